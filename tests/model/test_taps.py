"""Taps: every name once and in shape; sessions that nest, close, edit, and never meet."""

import sys
import threading

import pytest
import torch

from tests.model.support import SIZES, build, edit, ids, record, run
from visformer.model import taps

BATCH, SRC, TGT, HEADS, D_MODEL, D_FF, D_K = 2, 7, 5, 3, 12, 20, 4

ATTENTION = ("q", "k", "v", "scores", "mask", "pattern", "heads", "out")
# In the order in which a pass meets them.
ENCODER = {
    "pre": "resid_pre norm_self self_attn attn_sum resid_self norm_ffn ffn ffn_sum resid_post",
    "post": "resid_pre self_attn attn_sum norm_self resid_self ffn ffn_sum norm_ffn resid_post",
}
DECODER = {
    "pre": "resid_pre norm_self self_attn attn_sum resid_self norm_cross cross_attn cross_sum resid_cross "
    "norm_ffn ffn ffn_sum resid_post",
    "post": "resid_pre self_attn attn_sum norm_self resid_self cross_attn cross_sum norm_cross resid_cross "
    "ffn ffn_sum norm_ffn resid_post",
}


def shapes(norm):
    """Every tap name of one forward pass, in order, with its shape."""
    table = {f"src.{name}": (BATCH, SRC, D_MODEL) for name in ("embed", "position", "input")}
    table["src.position"] = (SRC, D_MODEL)
    for i in range(SIZES["n_encoder_layers"]):
        table |= _layer(f"encoder.{i}", ENCODER[norm], SRC)
    table["encoder.out"] = (BATCH, SRC, D_MODEL)
    table |= {f"tgt.{name}": (BATCH, TGT, D_MODEL) for name in ("embed", "position", "input")}
    table["tgt.position"] = (TGT, D_MODEL)
    for i in range(SIZES["n_decoder_layers"]):
        table |= _layer(f"decoder.{i}", DECODER[norm], TGT)
    return table | {"decoder.out": (BATCH, TGT, D_MODEL), "logits": (BATCH, TGT, SIZES["tgt_vocab"])}


def _layer(layer, names, length):
    table = {}
    for name in names.split():
        if name.endswith("_attn"):
            keys = SRC if name == "cross_attn" else length
            square, wide = (BATCH, HEADS, length, keys), (BATCH, HEADS, length, D_K)
            of = dict.fromkeys(("scores", "mask", "pattern"), square) | dict.fromkeys(("q", "heads"), wide)
            of |= dict.fromkeys(("k", "v"), (BATCH, HEADS, keys, D_K)) | {"out": (BATCH, length, D_MODEL)}
            table |= {f"{layer}.{name}.{part}": of[part] for part in ATTENTION}
        elif name == "ffn":
            table |= {f"{layer}.ffn.hidden": (BATCH, length, D_FF), f"{layer}.ffn.out": (BATCH, length, D_MODEL)}
        else:
            table[f"{layer}.{name}"] = (BATCH, length, D_MODEL)
    return table


@pytest.mark.parametrize("padded", [False, True], ids=["full", "padded"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_every_name_once_in_order_and_in_shape(norm, padded):
    src, tgt = ids(BATCH, SRC), ids(BATCH, TGT)
    if padded:
        src[0, 3:], tgt[1, 2:] = 0, 0
    _, seen = record(build(norm=norm), src, tgt)
    assert [(name, tuple(tensor.shape)) for name, tensor in seen] == list(shapes(norm).items())
    masks = {name for name, tensor in seen if tensor.dtype == torch.bool}
    assert masks == {name for name in shapes(norm) if name.endswith(".mask")}


@pytest.mark.parametrize(("norm", "is_resid"), [("post", ("norm_self", "norm_cross", "norm_ffn")),
                                                ("pre", ("attn_sum", "cross_sum", "ffn_sum"))])  # fmt: skip
def test_resid_is_what_the_next_sublayer_adds_to(norm, is_resid):
    seen = dict(record(build(norm=norm), ids(BATCH, SRC), ids(BATCH, TGT))[1])
    for i in range(3):
        for name, resid in zip(is_resid, ("resid_self", "resid_cross", "resid_post"), strict=True):
            assert torch.equal(seen[f"decoder.{i}.{name}"], seen[f"decoder.{i}.{resid}"])
        for total, before, sublayer in (
            ("attn_sum", "resid_pre", "self_attn.out"),
            ("cross_sum", "resid_self", "cross_attn.out"),
            ("ffn_sum", "resid_cross", "ffn.out"),
        ):
            added = seen[f"decoder.{i}.{before}"] + seen[f"decoder.{i}.{sublayer}"]
            assert torch.equal(seen[f"decoder.{i}.{total}"], added)
    assert torch.equal(seen["decoder.1.resid_pre"], seen["decoder.0.resid_post"])


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("name", [n for n in shapes("post") if n != "logits"])
def test_an_edit_anywhere_is_followed(norm, name):
    """Whatever a tap hands back is what the model goes on with: nothing is shown that is not used."""
    model, src, tgt = build(norm=norm), ids(BATCH, SRC), ids(BATCH, TGT)
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


def test_an_edited_pattern_changes_what_follows_and_nothing_before():
    model, src, tgt = build(), ids(BATCH, SRC), ids(BATCH, TGT)
    plain = dict(record(model, src, tgt)[1])

    def silence(pattern):
        pattern = pattern.clone()
        pattern[:, 1] = 0
        return pattern

    name = "encoder.1.self_attn.pattern"
    _, seen = edit(model, {name: silence}, src, tgt)
    assert (seen["encoder.1.self_attn.heads"][:, 1] == 0).all()
    assert torch.equal(seen["encoder.1.self_attn.heads"][:, [0, 2]], plain["encoder.1.self_attn.heads"][:, [0, 2]])
    order = list(plain)
    for before in order[: order.index(name)]:
        assert torch.equal(seen[before], plain[before])
    for after in ("encoder.1.self_attn.out", "encoder.out", "decoder.0.cross_attn.k", "logits"):
        assert not torch.equal(seen[after], plain[after])


def test_logits_can_be_edited():
    edited, _ = edit(build(), {"logits": torch.zeros_like}, ids(1, 3), ids(1, 2))
    assert (edited == 0).all()


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


def test_the_closed_tap_does_nothing():
    tensor = torch.zeros(1)
    assert taps.CLOSED("name", tensor) is tensor
    assert taps.CLOSED.at("deeper") is taps.CLOSED and not taps.CLOSED.wants("name")


def test_a_new_thread_starts_with_no_session():
    found = []
    with taps.session(lambda name, tensor: tensor):
        thread = threading.Thread(target=lambda: found.append(taps.current()))
        thread.start()
        thread.join()
    assert found == [taps.CLOSED]


def test_nothing_stays_on_the_model():
    model = build()
    before = {id(m): {k: id(v) for k, v in vars(m).items()} for m in model.modules()}
    record(model, ids(2, 5), ids(2, 4))
    assert {id(m): {k: id(v) for k, v in vars(m).items()} for m in model.modules()} == before


def test_64_threads_on_one_model_each_equal_the_serial_result():
    """Different sentences of different lengths, every other thread also edits; all at once on one model."""
    model = build()
    work = [(ids(1, 2 + i % 9, seed=i), ids(1, 1 + i % 7, seed=100 + i)) for i in range(64)]

    def one(i):
        changes = {"encoder.0.self_attn.pattern": lambda t: t * (i / 64)} if i % 2 else {}
        return edit(model, changes, *work[i])

    serial = [one(i) for i in range(64)]
    assert not torch.equal(serial[9][0], serial[9 + 18][0][:, : serial[9][0].shape[1]])
    results, start = [None] * 64, threading.Barrier(64)

    def body(i):
        torch.set_num_threads(1)
        start.wait(timeout=60)
        results[i] = one(i)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=body, args=(i,)) for i in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
    finally:
        sys.setswitchinterval(before)
    for (logits, seen), got in zip(serial, results, strict=True):
        assert torch.equal(got[0], logits)
        assert list(got[1]) == list(seen)
        assert all(torch.equal(got[1][name], tensor) for name, tensor in seen.items())
