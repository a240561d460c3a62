"""Taps: what they return is used; sessions nest, close, and do not affect each other."""

import threading

import pytest
import torch

from tests.model.support import build, edit, ids, record, run
from visformer.model import taps

BATCH, SRC, TGT = 2, 7, 5
SMALL = {"n_encoder_layers": 1, "n_decoder_layers": 1}
NAMES = [name for name, _ in record(build(**SMALL), ids(BATCH, SRC), ids(BATCH, TGT))[1]]
"""Every tap of one layer of each kind; tests/parity/test_formulas_model.py checks the tensors themselves."""


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("name", NAMES)
def test_an_edit_anywhere_is_followed(norm, name):
    """The model continues with whatever a tap returns: every recorded tensor is one that is used."""
    model, src, tgt = build(norm=norm, **SMALL), ids(BATCH, SRC), ids(BATCH, TGT)
    plain = run(model, src, tgt)

    def change(tensor):
        return torch.ones_like(tensor).tril() if tensor.dtype == torch.bool else tensor.flip(-1) * 0.5 + 0.25

    edited, seen = edit(model, {name: change}, src, tgt)
    if name.startswith("decoder") and name.endswith("self_attn.mask"):
        assert torch.equal(edited, plain)  # a causal mask is lower triangular already
        edited, seen = edit(model, {name: torch.ones_like}, src, tgt)
    assert not torch.equal(edited, plain)
    assert torch.equal(seen["logits"], edited)
    assert torch.equal(run(model, src, tgt), plain)


def keeper(into):
    def visit(name, tensor):
        into.append(name)
        return tensor

    return visit


def test_sessions_nest_and_the_inner_one_alone_sees():
    model, outer, inner = build(), [], []
    with taps.session(keeper(outer)):
        run(model, ids(1, 3), ids(1, 2))
        count = len(outer)
        with taps.session(keeper(inner)):
            run(model, ids(1, 3), ids(1, 2))
        assert len(inner) == count == len(outer)
        run(model, ids(1, 3), ids(1, 2))
        assert len(outer) == 2 * count
    run(model, ids(1, 3), ids(1, 2))
    assert (len(outer), len(inner)) == (2 * count, count)
    assert taps.current() is taps.CLOSED


def test_a_session_closes_when_the_visitor_raises():
    model, seen = build(), []

    def refuse(name, tensor):
        if name == "encoder.1.attn_sum":
            raise RuntimeError("stop here")
        return tensor

    with taps.session(keeper(seen)):
        outer = taps.current()
        with pytest.raises(RuntimeError, match="stop here"), taps.session(refuse):
            run(model, ids(1, 3), ids(1, 2))
        assert taps.current() is outer
    assert taps.current() is taps.CLOSED and seen == []


def test_an_unwanted_mask_is_not_built():
    names = []
    with taps.session(keeper(names), wanted=lambda name: name == "encoder.0.self_attn.mask"):
        run(build(), ids(1, 3), ids(1, 2))
    assert [name for name in names if name.endswith("mask")] == ["encoder.0.self_attn.mask"]


def test_a_new_thread_starts_with_no_session():
    found = []
    with taps.session(lambda name, tensor: tensor):
        thread = threading.Thread(target=lambda: found.append(taps.current()))
        thread.start()
        thread.join()
    assert found == [taps.CLOSED]
