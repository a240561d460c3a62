"""The Trace: labels, axes, names, files and its repr."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import tiny_translator
from tests.web.support import made_up_trace
from visformer.errors import MissingTensor, TraceError
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import Axis, all_names, axes_of
from visformer.trace.stacks import ranges

LABELS = {
    "tokens": {"src": ("a", "b"), "tgt": ("<zh>",), "next": ("</s>",)},
    "special": {"src": (False, False), "tgt": (True,), "next": (True,)},
    "words": {"src": (0, 1), "tgt": (0,), "next": (0,)},
}
NAME = "decoder.0.cross_attn.pattern"


def trace_of(*shape):
    """Return a Trace with a single tensor."""
    return Trace(**LABELS, tensors={NAME: TracedTensor(NAME, np.zeros(shape, dtype=np.float32), axes_of(NAME))})


def test_labels_that_do_not_fit_are_refused():
    assert trace_of(3, 1, 2)[NAME].shape == (3, 1, 2)
    with pytest.raises(TraceError, match=r"its key axis has 3 entries, but there are 2 src tokens"):
        trace_of(3, 1, 3)
    with pytest.raises(TraceError, match=r"its query axis has 2 entries, but there are 1 tgt tokens"):
        trace_of(3, 2, 2)
    with pytest.raises(TraceError, match="3 axes are named"):
        trace_of(3, 1)
    with pytest.raises(TraceError, match=r"special\['src'\] has 1 entries for 2 tokens"):
        Trace(**(LABELS | {"special": LABELS["special"] | {"src": (True,)}}), tensors={})
    with pytest.raises(TraceError, match="one entry for each"):
        Trace(tokens={"tgt": ("a",)}, special={"tgt": (False,)}, words={"tgt": (0,)}, tensors={})


def test_a_trace_is_immutable():
    trace = trace_of(3, 1, 2)
    with pytest.raises(ValueError, match="read-only"):
        trace[NAME].value[0] = 1
    with pytest.raises(TypeError):
        trace.tokens["src"] = ()
    with pytest.raises(AttributeError):
        trace.meta = {}


def test_the_error_for_a_missing_tensor_says_what_was_recorded():
    trace = trace_of(3, 1, 2)
    with pytest.raises(MissingTensor, match=f"no tensor of that name. Recorded: {NAME}"):
        trace["decoder.0.pattern"]
    with pytest.raises(MissingTensor, match="was not recorded"):
        trace["decoder.0.cross_attn.scores"]
    with pytest.raises(KeyError):
        trace.stack("encoder.self_attn")
    for unknown in ("cross", "decoder", "decoder.0.cross_attn"):
        with pytest.raises(TraceError, match=f"'{unknown}' is unknown: .*, decoder.cross_attn"):
            trace.layers(unknown)
    assert NAME in trace
    assert "logits" not in trace


def test_a_tensor_can_be_used_as_a_numpy_array():
    traced = tiny_translator().trace("I went", "我")["encoder.0.self_attn.pattern"]
    assert len(traced) == traced.shape[0] == 2
    assert traced[1, 0].tolist() == traced.value[1, 0].tolist()
    np.testing.assert_allclose(np.asarray(traced).sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize("value", [0, 2, np.float32(0.5), np.arange(2.0)])
def test_arithmetic_is_that_of_the_array(value):
    tensor = TracedTensor(NAME, np.arange(6, dtype=np.float32).reshape(3, 1, 2), axes_of(NAME))
    large = tensor.value > 1
    for ours, numpy_s in (
        (tensor + value, tensor.value + value),
        (value - tensor, value - tensor.value),
        (tensor > value, tensor.value > value),
        (tensor == tensor, np.ones((3, 1, 2), dtype=bool)),
        (np.exp(tensor), np.exp(tensor.value)),
        (np.add.reduce(tensor), tensor.value.sum(axis=0)),
        (np.add.reduce(tensor, where=replace(tensor, value=large)), tensor.value.sum(axis=0, where=large)),
    ):
        assert type(ours) is np.ndarray
        assert ours.dtype == numpy_s.dtype
        np.testing.assert_array_equal(ours, numpy_s)
    with pytest.raises(ValueError, match="read-only"):
        tensor += 1


def test_the_repr_of_a_tensor_has_its_axes_but_no_numbers():
    assert repr(trace_of(3, 1, 2)[NAME]) == f"TracedTensor({NAME}: head 3, query 1, key 2; float32)"


def test_a_stack_has_the_patterns_of_all_layers():
    trace = tiny_translator().trace("I went to school.", "我去学校。")
    stacked, layers = trace.stack("decoder.cross_attn"), trace.layers("decoder.cross_attn")
    assert type(stacked) is np.ndarray and stacked.flags.writeable
    assert [*layers] == [0, 1, 2]
    for layer in range(3):
        np.testing.assert_array_equal(stacked[layer], trace[f"decoder.{layer}.cross_attn.pattern"])
        assert layers[layer] is trace[f"decoder.{layer}.cross_attn.pattern"]
    assert trace.stack("encoder.self_attn").shape[0] == 2


def test_layers_that_are_missing_between_others_leave_a_gap_and_no_recorded_one_is_left_out():
    trace = tiny_translator().trace("I went", "我", record=("decoder.2.*.pattern", "decoder.0.cross_attn.pattern"))
    assert [*trace.layers("decoder.cross_attn")] == [0, 2]
    assert [*trace.layers("decoder.self_attn")] == [2]
    for stack in ("decoder.cross_attn", "decoder.self_attn"):
        patterns = [tensor.value for tensor in trace.layers(stack).values()]
        np.testing.assert_array_equal(trace.stack(stack), np.stack(patterns))
    in_another_order = replace(trace, tensors=dict(reversed(trace.tensors.items())))
    assert [*in_another_order.layers("decoder.cross_attn")] == [0, 2]
    names = [NAME.replace("0", number) for number in ("10", "9")]
    ten = replace(trace_of(1, 1, 2), tensors=dict.fromkeys(names, trace_of(1, 1, 2)[NAME]))
    assert [*ten.layers("decoder.cross_attn")] == [9, 10], "by number, not by letters"


def test_layers_with_different_numbers_of_heads_cannot_be_stacked():
    names = [NAME, NAME.replace("0", "1")]
    tensors = {
        name: TracedTensor(name, np.zeros((heads, 1, 2)), axes_of(NAME))
        for name, heads in zip(names, (3, 2), strict=True)
    }
    trace = Trace(**LABELS, tensors=tensors)
    assert [len(layer) for layer in trace.layers("decoder.cross_attn").values()] == [3, 2]
    with pytest.raises(
        TraceError, match=r"decoder\.1\.\S+ has 2 heads, but decoder\.0\.\S+ has 3: take one layer at a time"
    ):
        trace.stack("decoder.cross_attn")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((4,), "4"), ((0, 1, 2), "0–2"), ((1, 3, 4, 9), "1, 3–4, 9"), (range(0, 6, 2), "0, 2, 4")],
)
def test_ascending_numbers_are_written_in_short(numbers, text):
    assert ranges(numbers) == text


def test_a_trace_is_the_same_after_saving_and_loading(tmp_path):
    trace = tiny_translator().trace("I 去 😀 مرحبا", "我", record=("*",))
    trace.save(tmp_path / "t.safetensors")
    loaded = Trace.load(tmp_path / "t.safetensors")
    assert loaded.names() == trace.names()
    for labels in ("tokens", "special", "words", "meta"):
        assert getattr(loaded, labels) == getattr(trace, labels)
    for before, after in ((trace.tensors, loaded.tensors), (trace.params, loaded.params)):
        assert before.keys() == after.keys()
        for name, tensor in before.items():
            assert (tensor.axes, tensor.value.dtype) == (after[name].axes, after[name].value.dtype)
            np.testing.assert_array_equal(tensor, after[name])


def test_confidence_is_kept_in_a_file_and_one_that_is_none_is_refused(tmp_path):
    model = tiny_translator()
    model.unsure_below = 1.0
    trace = model.trace("I went to school.")
    trace.save(tmp_path / "t.safetensors")
    loaded = Trace.load(tmp_path / "t.safetensors")
    assert (loaded.confidence, loaded.is_unsure) == (trace.confidence, True)
    for wrong in ("high", 1.5, True, None):
        replace(trace, meta={**trace.meta, "confidence": wrong}).save(tmp_path / "t.safetensors")
        with pytest.raises(TraceError, match=r"meta\['confidence'\]"):
            Trace.load(tmp_path / "t.safetensors")


def test_every_valid_name_has_axes():
    names = list(all_names(2, 3))
    assert len(names) == len(set(names))
    assert all(axes_of(name) for name in names)


@pytest.mark.parametrize(
    "name", ["encoder.0.cross_attn.q", "encoder.0.norm_cross", "decoder.0.self_attn.x", "src", "encoder.x.ffn.out"]
)
def test_an_invalid_name_has_no_axes(name):
    assert axes_of(name) is None


def test_the_repr_is_one_short_line():
    assert repr(trace_of(3, 1, 2)) == "Trace(src: a b; tgt: <zh>; 1 tensors, 24 bytes)"
    long = Trace.from_attention(["word\n"] * 500, np.full((1, 1, 500, 500), 1 / 500))
    assert len(repr(long)) < 130
    assert "word… (500 tokens); 1 tensors, " in repr(long)
    assert len(repr(long).splitlines()) == 1


def test_a_trace_is_not_saved_under_another_ending(tmp_path):
    with pytest.raises(TraceError, match=r"'a\.html': this writes only safetensors"):
        made_up_trace().save(tmp_path / "a.html")
    assert not (tmp_path / "a.html").exists()


def test_a_tensor_has_what_an_array_of_numpy_has():
    tensor = made_up_trace()["encoder.0.self_attn.pattern"]
    value = tensor.value
    assert (tensor.dtype, tensor.ndim, tensor.size) == (value.dtype, value.ndim, value.size)
    np.testing.assert_array_equal(tensor.T, value.T)
    np.testing.assert_array_equal(tensor.mean(axis=0), value.mean(axis=0))
    assert tensor.argmax() == value.argmax()
    with pytest.raises(AttributeError, match="'TracedTensor' object has no attribute 'mena'"):
        tensor.mena  # noqa: B018


def test_a_tensor_of_ones_own_goes_with_the_trace(tmp_path):
    trace = made_up_trace()
    effects = np.arange(len(trace.tokens["src"]), dtype=np.float64)
    own = trace.with_tensor("my effects", effects, [("token", "src")])
    pattern = trace["encoder.0.self_attn.pattern"]
    own = own.with_tensor(pattern.name, 0.5 * pattern)
    assert "my effects" not in trace
    own.save(tmp_path / "own.safetensors")
    again = Trace.load(tmp_path / "own.safetensors")
    np.testing.assert_array_equal(again["my effects"], effects)
    assert again["my effects"].axes == (Axis("token", "src"),)
    np.testing.assert_array_equal(again[pattern.name], 0.5 * pattern.value)
    with pytest.raises(TraceError, match="What are the axes of 'mine'"):
        trace.with_tensor("mine", effects)
    with pytest.raises(TraceError, match=r"axis has \d+ entries, but there are"):
        trace.with_tensor("mine", effects[1:], [("token", "src")])
