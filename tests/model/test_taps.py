"""Taps: the model continues with what they return; sessions nest, end, and do not affect each other."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.model.support import build, edit, ids, record, run
from visformer.model import taps

BATCH, SRC, TGT = 2, 7, 5
SMALL = {"n_encoder_layers": 1, "n_decoder_layers": 1}


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_an_edit_of_any_tensor_changes_the_logits(norm):
    """Every recorded tensor is one that the model uses."""
    model, src, tgt = build(norm=norm, **SMALL), ids(BATCH, SRC), ids(BATCH, TGT)
    plain, names = record(model, src, tgt)

    def change(tensor):
        return torch.ones_like(tensor).tril() if tensor.dtype == torch.bool else tensor.flip(-1) * 0.5 + 0.25

    for name in names:
        edited, tapped = edit(model, {name: change}, src, tgt)
        if name.startswith("decoder") and name.endswith("self_attn.mask"):
            assert torch.equal(edited, plain)  # a causal mask is lower triangular already
            edited, tapped = edit(model, {name: torch.ones_like}, src, tgt)
        assert not torch.equal(edited, plain), name
        assert torch.equal(tapped["logits"], edited), name
    assert torch.equal(run(model, src, tgt), plain)


def append_to(names):
    def visit(name, tensor):
        names.append(name)
        return tensor

    return visit


def test_of_nested_sessions_only_the_inner_one_gets_tensors():
    model, outer, inner = build(), [], []
    with taps.session(append_to(outer)):
        run(model, ids(1, 3), ids(1, 2))
        count = len(outer)
        with taps.session(append_to(inner)):
            run(model, ids(1, 3), ids(1, 2))
        assert len(inner) == count == len(outer)
        run(model, ids(1, 3), ids(1, 2))
        assert len(outer) == 2 * count
    run(model, ids(1, 3), ids(1, 2))
    assert (len(outer), len(inner)) == (2 * count, count)
    assert taps.current() is taps.CLOSED


def test_a_session_ends_when_its_visitor_raises():
    model, names = build(), []

    def refuse(name, tensor):
        if name == "encoder.1.attn_sum":
            raise RuntimeError("stop here")
        return tensor

    with taps.session(append_to(names)):
        outer = taps.current()
        with pytest.raises(RuntimeError, match="stop here"), taps.session(refuse):
            run(model, ids(1, 3), ids(1, 2))
        assert taps.current() is outer
    assert taps.current() is taps.CLOSED and names == []


def test_masks_that_are_not_wanted_are_not_tapped():
    names = []
    with taps.session(append_to(names), wanted=lambda name: name == "encoder.0.self_attn.mask"):
        run(build(), ids(1, 3), ids(1, 2))
    assert [name for name in names if name.endswith("mask")] == ["encoder.0.self_attn.mask"]


def test_a_new_thread_has_no_session():
    with taps.session(lambda name, tensor: tensor), ThreadPoolExecutor(1) as threads:
        assert threads.submit(taps.current).result() is taps.CLOSED
