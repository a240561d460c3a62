"""The architecture of a model: as JSON and back, and what a file may not say in its place."""

import json
from dataclasses import fields, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import tiny_gpt, tiny_translator
from visformer.errors import TraceError
from visformer.model.positions import DESCRIBED
from visformer.trace import Trace
from visformer.trace.blocks import Blocks, Norm, StackBlocks

SUBLAYERS = {"encoder": ("self_attn", "ffn"), "decoder": ("self_attn", "cross_attn", "ffn")}
STACK = StackBlocks(
    n_layers=6, sublayers=("self_attn", "ffn"), norm="pre", parallel=False, final_norm=True, n_heads=8, n_kv_heads=2,
    attention_layers=(2, 4),
)  # fmt: skip
BOTH = Blocks(STACK, replace(STACK, sublayers=SUBLAYERS["decoder"]), "rotary", logits=True)


@st.composite
def stacks(draw, sublayers):
    n_layers = draw(st.integers(0, 100))
    some = st.sets(st.integers(0, n_layers - 1)).map(lambda layers: tuple(sorted(layers))) if n_layers else st.just(())
    return StackBlocks(
        n_layers=n_layers,
        sublayers=tuple(draw(st.permutations(sublayers))),
        norm=draw(st.sampled_from(get_args(Norm))),
        parallel=draw(st.booleans()),
        final_norm=draw(st.booleans()),
        n_heads=draw(st.integers(1, 128)),
        n_kv_heads=draw(st.none() | st.integers(1, 128)),
        attention_layers=draw(st.none() | some),
    )


@st.composite
def blocks(draw):
    parts = draw(st.sampled_from([("encoder",), ("decoder",), ("encoder", "decoder")]))
    has = {part: SUBLAYERS[part] if len(parts) == 2 else SUBLAYERS["encoder"] for part in parts}
    drawn = {part: draw(stacks(has[part])) if part in has else None for part in SUBLAYERS}
    return Blocks(**drawn, position=draw(st.sampled_from([*DESCRIBED])), logits=draw(st.booleans()))


@given(blocks())
def test_an_architecture_is_the_same_after_it_was_written_as_json(architecture):
    value = architecture.to_json()
    assert json.loads(json.dumps(value)) == value, "lists, not tuples: a Trace's metadata is equal after loading"
    assert Blocks.from_json(value) == architecture


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.sampled_from([("encoder",), ("decoder",), ()]), st.data(), JSON)
def test_any_value_in_any_place_is_read_or_refused(path, data, value):
    whole = BOTH.to_json()
    part = whole[path[0]] if path else whole
    part[data.draw(st.sampled_from([*part]))] = value
    try:
        read = Blocks.from_json(whole)
    except TraceError:
        return
    assert read.to_json() == whole
    assert all(type(getattr(read, name)) in (StackBlocks, type(None)) for name in SUBLAYERS)


WRONG = {
    "n_layers": (-1, True, 2.0, "6", None, 10**9),
    "sublayers": ((), [], "ffn", ["ffn", "ffn"], ["attention"], [["ffn"]], None),
    "norm": ("", "sandwich", None, ["pre"]),
    "parallel": (0, None, "no"),
    "final_norm": (1, None),
    "n_heads": (0, True, None, 10**9),
    "n_kv_heads": (0, "8", False),
    "attention_layers": ([4, 2], [2, 2], [6], [-1], [True], ["2"], 2, {}),
}


def test_wrong_values_of_every_field_are_listed():
    assert [*WRONG] == [field.name for field in fields(StackBlocks)]


@pytest.mark.parametrize("part", SUBLAYERS)
@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_value_is_refused_with_its_place(part, name, value):
    whole = BOTH.to_json()
    whole[part][name] = value
    with pytest.raises(TraceError, match=rf"^its meta\['blocks'\]\['{part}'\]\['{name}'\] do not match"):
        Blocks.from_json(whole)


WRONG_WHOLES = [
    ({"encoder": None, "decoder": None}, ""),
    ({"encoder": 3}, r"\['encoder'\]"),
    ({"decoder": {}}, r"\['decoder'\]"),
    ({"position": None}, r"\['position'\]"),
    ({"position": "\ud800"}, r"\['position'\]"),
    ({"logits": None}, r"\['logits'\]"),
    ({"encoder": None}, r"\['decoder'\]\['sublayers'\]"),  # whose cross-attention would have nothing to read
    ({"encoder": BOTH.to_json()["decoder"]}, r"\['encoder'\]\['sublayers'\]"),
]
WHOLES = [(BOTH.to_json() | changes, place) for changes, place in WRONG_WHOLES]
WHOLES += [(value, "") for value in ([], "blocks", 0, {}, {"encoder": None})]


@pytest.mark.parametrize(("value", "place"), WHOLES)
def test_a_wrong_whole_is_refused(value, place):
    with pytest.raises(TraceError, match=rf"^its meta\['blocks'\]{place} do not match"):
        Blocks.from_json(value)


def test_a_field_of_a_later_version_is_let_through():
    value = BOTH.to_json() | {"later": 1}
    value["encoder"] |= {"later": 1}
    assert Blocks.from_json(value) == BOTH


@pytest.mark.parametrize("make", [tiny_translator, tiny_gpt])
def test_the_architecture_is_kept_in_a_file_and_a_wrong_one_is_refused(make, tmp_path):
    model, path = make(), tmp_path / "t.safetensors"
    trace = model.trace("I went to school.", "I")
    assert trace.blocks == model.info.blocks
    trace.save(path)
    assert Trace.load(path).blocks == trace.blocks
    wrong = trace.meta["blocks"] | {"position": 3}
    replace(trace, meta={**trace.meta, "blocks": wrong}).save(path)
    with pytest.raises(TraceError, match=r"its meta\['blocks'\]\['position'\] do not match what a Trace writes"):
        Trace.load(path)


def test_a_trace_without_a_model_has_no_architecture(tmp_path):
    trace = Trace.from_attention(["a"], [[[[1.0]]]])
    assert trace.blocks is None
    replace(trace, meta={**trace.meta, "blocks": None}).save(tmp_path / "t.safetensors")
    assert Trace.load(tmp_path / "t.safetensors").blocks is None
