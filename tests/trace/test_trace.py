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


def tensor(shape, name=NAME):
    return TracedTensor(name, np.zeros(shape, dtype=np.float32), axes_of(name))


def test_labels_that_do_not_fit_are_refused():
    assert Trace(**LABELS, tensors={NAME: tensor((3, 1, 2))})[NAME].shape == (3, 1, 2)
    with pytest.raises(TraceError, match=r"its key axis has 3 entries, but there are 2 src tokens"):
        Trace(**LABELS, tensors={NAME: tensor((3, 1, 3))})
    with pytest.raises(TraceError, match=r"its query axis has 2 entries, but there are 1 tgt tokens"):
        Trace(**LABELS, tensors={NAME: tensor((3, 2, 2))})
    with pytest.raises(TraceError, match="3 axes are named"):
        tensor((3, 1))
    with pytest.raises(TraceError, match=r"special\['src'\] has 1 entries for 2 tokens"):
        Trace(**(LABELS | {"special": LABELS["special"] | {"src": (True,)}}), tensors={})
    with pytest.raises(TraceError, match="one entry for each"):
        Trace(tokens={"tgt": ("a",)}, special={"tgt": (False,)}, words={"tgt": (0,)}, tensors={})


def test_nothing_can_be_changed():
    trace = Trace(**LABELS, tensors={NAME: tensor((3, 1, 2))})
    with pytest.raises(ValueError, match="read-only"):
        trace[NAME].value[0] = 1
    with pytest.raises(TypeError):
        trace.tokens["src"] = ()
    with pytest.raises(AttributeError):
        trace.meta = {}


def test_a_missing_name_says_what_there_is():
    trace = Trace(**LABELS, tensors={NAME: tensor((3, 1, 2))})
    with pytest.raises(MissingTensor, match=f"no tensor of that name. Recorded: {NAME}"):
        trace["decoder.0.pattern"]
    with pytest.raises(MissingTensor, match="was not recorded"):
        trace["decoder.0.cross_attn.scores"]
    with pytest.raises(KeyError):
        trace.stack("encoder", "self_attn")
    assert NAME in trace
    assert "logits" not in trace


def test_a_tensor_is_at_home_in_numpy():
    traced = tiny_translator().trace("I went", "我")["encoder.0.self_attn.pattern"]
    assert len(traced) == traced.shape[0] == 2
    assert traced[1, 0].tolist() == traced.value[1, 0].tolist()
    np.testing.assert_allclose(np.asarray(traced).sum(-1), 1, atol=1e-6)


def test_stack_is_all_layers():
    trace = tiny_translator().trace("I went to school.", "我去学校。")
    stacked = trace.stack("decoder", "cross_attn")
    assert stacked.axes == (Axis("layer"), Axis("head"), Axis("query", "tgt"), Axis("key", "src"))
    for layer in range(3):
        np.testing.assert_array_equal(stacked.value[layer], trace[f"decoder.{layer}.cross_attn.pattern"])
    assert trace.stack("encoder").shape[0] == 2


def test_saved_and_loaded_it_is_the_same(tmp_path):
    trace = tiny_translator().trace("I 去 😀 مرحبا", record=("*",))
    trace.save(tmp_path / "t.safetensors")
    again = Trace.load(tmp_path / "t.safetensors")
    assert again.names() == trace.names()
    assert (again.tokens, again.special, again.words, again.meta) == (
        trace.tokens,
        trace.special,
        trace.words,
        trace.meta,
    )
    for name in trace:
        assert again[name].value.dtype == trace[name].value.dtype
        np.testing.assert_array_equal(again[name], trace[name])
    assert again.params.keys() == trace.params.keys()
    for name, param in trace.params.items():
        assert again.params[name].axes == param.axes
        np.testing.assert_array_equal(again.params[name], param)


def test_every_name_has_axes_and_no_other_has():
    names = list(all_names(2, 3))
    assert len(names) == len(set(names))
    assert all(axes_of(name) for name in names)
    for wrong in (
        "encoder.0.cross_attn.q",
        "encoder.0.norm_cross",
        "decoder.0.self_attn.x",
        "src",
        "encoder.x.ffn.out",
    ):
        assert axes_of(wrong) is None


def test_it_names_itself_in_one_line():
    trace = Trace(**LABELS, tensors={NAME: tensor((3, 1, 2))})
    assert repr(trace) == "Trace(src: a b; tgt: <zh>; 1 tensors, 24 bytes)"
    many = Trace.from_attention(["word\n"] * 500, np.full((1, 1, 500, 500), 1 / 500))
    assert len(repr(many)) < 130
    assert "word… (500 tokens); 1 tensors, " in repr(many)
    assert len(repr(many).splitlines()) == 1


def test_an_ending_of_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(TraceError, match=r"'a\.html': this writes only safetensors"):
        made_up_trace().save(tmp_path / "a.html")
    assert not (tmp_path / "a.html").exists()
