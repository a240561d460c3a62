"""The Trace: labels, axes, names, files and its repr."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support import tiny_translator
from tests.web.support import made_up_trace
from visformer.errors import MissingTensor, TraceError
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import Axis, all_names, axes_of

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
        trace.stack("encoder", "self_attn")
    assert NAME in trace
    assert "logits" not in trace


def test_a_tensor_can_be_used_as_a_numpy_array():
    traced = tiny_translator().trace("I went", "我")["encoder.0.self_attn.pattern"]
    assert len(traced) == traced.shape[0] == 2
    assert traced[1, 0].tolist() == traced.value[1, 0].tolist()
    np.testing.assert_allclose(np.asarray(traced).sum(-1), 1, atol=1e-6)


def test_a_stack_has_the_patterns_of_all_layers():
    trace = tiny_translator().trace("I went to school.", "我去学校。")
    stacked = trace.stack("decoder", "cross_attn")
    assert stacked.axes == (Axis("layer"), Axis("head"), Axis("query", "tgt"), Axis("key", "src"))
    for layer in range(3):
        np.testing.assert_array_equal(stacked.value[layer], trace[f"decoder.{layer}.cross_attn.pattern"])
    assert trace.stack("encoder").shape[0] == 2


def test_a_trace_is_the_same_after_saving_and_loading(tmp_path):
    trace = tiny_translator().trace("I 去 😀 مرحبا", record=("*",))
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
