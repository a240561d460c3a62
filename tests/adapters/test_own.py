"""Our own model as an adapter: a trace holds what the model computed."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import visformer as vf
from tests.support import tiny_tokenizer, tiny_translator
from visformer import edits
from visformer.adapters.huggingface.model import HubModel
from visformer.errors import BudgetError, EditError, TextError, TraceError, VisformerError
from visformer.trace.names import all_names

SENTENCE, TARGET = "I went to school.", "我喜欢学校。"


def test_the_sides_are_labelled():
    model = tiny_translator()
    trace = model.trace(SENTENCE, TARGET)
    assert trace.tokens["src"] == model.tokenize(SENTENCE) == ("I", "went", "to", "school", ".", "</s>")
    assert trace.tokens["tgt"] == ("<zh>", "我", "喜欢", "学校", "。")
    assert trace.tokens["next"] == ("我", "喜欢", "学校", "。", "</s>")
    assert trace.special["src"] == (False,) * 5 + (True,)
    assert trace.meta["to"] == "zh"
    assert trace.meta["target"] == TARGET
    assert trace.meta["forced"]


def test_the_direction_can_be_given():
    model = tiny_translator()
    assert model.trace("Tom", to="zh").tokens["tgt"][0] == "<zh>"
    assert model.trace("Tom", to="en").tokens["tgt"][0] == "<en>"
    assert model.trace("我").meta["to"] == "en"
    with pytest.raises(VisformerError, match="to='fr'"):
        model.trace("Tom", to="fr")


def test_without_a_target_it_traces_its_own_translation():
    model = tiny_translator()
    decoding = model.translate(SENTENCE)
    trace = model.trace(SENTENCE)
    assert trace.meta["target"] == decoding.text
    assert trace.tokens["next"][: len(decoding.tokens)] == decoding.tokens
    assert not trace.meta["forced"]
    full = model.trace(SENTENCE, record=("logits",))["logits"].value
    assert tuple(full.argmax(axis=1)[: len(decoding.ids)]) == decoding.ids


@pytest.mark.parametrize(("norm", "bundled"), [("post", False), ("pre", False), ("post", True)])
def test_the_logits_follow_from_the_trace_alone(norm, bundled):
    """Recompute the whole model in NumPy from the embedding rows and weights in the trace."""
    model = vf.load("en-zh") if bundled else tiny_translator(norm=norm)
    trace, info = model.trace(SENTENCE, None if bundled else TARGET, record=("*",)), model.info
    own, p = trace.tensors, {name: np.float64(param.value) for name, param in trace.params.items()}

    def norm_of(x, path):
        if f"{path}.gamma" not in p:
            return x
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * p[f"{path}.gamma"] + p[f"{path}.beta"]

    def attend(path, x, source, mask):
        q, k, v = (
            (y @ p[f"{path}.w_{c}"] + p[f"{path}.b_{c}"]).reshape(len(y), info.n_heads, -1).swapaxes(0, 1)
            for c, y in (("q", x), ("k", source), ("v", source))
        )
        for name, value in (("q", q), ("k", k), ("v", v)):
            np.testing.assert_allclose(own[f"{path}.{name}"].value, value, atol=1e-5 * max(1, np.abs(value).max()))
        scores = np.where(mask, q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), -np.inf)
        pattern = np.exp(scores - scores.max(-1, keepdims=True))
        pattern /= pattern.sum(-1, keepdims=True)
        np.testing.assert_allclose(own[f"{path}.pattern"].value, pattern, atol=1e-5)
        return (pattern @ v).swapaxes(0, 1).reshape(len(x), -1) @ p[f"{path}.w_o"] + p[f"{path}.b_o"]

    def add(x, sublayer, path):
        return x + sublayer(norm_of(x, path)) if norm == "pre" else norm_of(x + sublayer(x), path)

    def feed_forward(path):
        return lambda x: np.maximum(0, x @ p[f"{path}.w_1"] + p[f"{path}.b_1"]) @ p[f"{path}.w_2"] + p[f"{path}.b_2"]

    x, y = (p[f"{s}.embedding"] * info.d_model**0.5 + own[f"{s}.position"].value for s in ("src", "tgt"))
    for layer in range(info.n_encoder_layers):
        at = f"encoder.{layer}"
        x = add(x, lambda z, at=at: attend(f"{at}.self_attn", z, z, True), f"{at}.norm_self")
        x = add(x, feed_forward(f"{at}.ffn"), f"{at}.norm_ffn")
    memory = norm_of(x, "encoder.norm")
    causal = np.tri(len(y), dtype=bool)
    for layer in range(info.n_decoder_layers):
        at = f"decoder.{layer}"
        y = add(y, lambda z, at=at: attend(f"{at}.self_attn", z, z, causal), f"{at}.norm_self")
        y = add(y, lambda z, at=at: attend(f"{at}.cross_attn", z, memory, True), f"{at}.norm_cross")
        y = add(y, feed_forward(f"{at}.ffn"), f"{at}.norm_ffn")
    logits = norm_of(y, "decoder.norm") @ p["output.w"]
    np.testing.assert_allclose(own["logits"].value, logits, atol=1e-5 * max(1, np.abs(logits).max()))
    if bundled:
        assert logits.argmax(axis=-1).tolist() == trace.meta["ids"]["next"]


def test_everything_can_be_recorded_and_little_too():
    model = tiny_translator()
    trace = model.trace(SENTENCE, TARGET, record=("*",))
    assert set(trace.names()) == set(all_names(2, 3))
    assert trace["decoder.1.self_attn.mask"].value.dtype == bool
    assert trace["decoder.1.self_attn.mask"].value[0].tolist() == np.tri(5, dtype=bool).tolist()
    assert trace["encoder.0.self_attn.mask"].value.all()
    few = model.trace(SENTENCE, TARGET, record=("encoder.1.*.q",))
    assert few.names() == ("encoder.1.self_attn.q",)
    assert dict(few.params) == {}


def test_a_glob_that_names_nothing_is_refused():
    with pytest.raises(TraceError, match=r"record='\*\.patern' matches no tensor"):
        tiny_translator().trace(SENTENCE, TARGET, record=("*.patern",))


def test_the_budget_is_what_the_trace_then_holds(monkeypatch):
    model = tiny_translator()
    held = model.trace(SENTENCE, TARGET, record=("*",)).nbytes
    monkeypatch.setattr("visformer.system.limits.MAX_TRACE_BYTES", held)
    assert model.trace(SENTENCE, TARGET, record=("*",)).nbytes == held
    monkeypatch.setattr("visformer.system.limits.MAX_TRACE_BYTES", held - 1)
    with pytest.raises(BudgetError, match=f"{held:,} bytes, 1 over"):
        model.trace(SENTENCE, TARGET, record=("*",))


@pytest.mark.parametrize("text", ["", "   ", "\t\n", "\u3000"])
def test_no_text_is_refused(text):
    model = tiny_translator()
    for call in (model.tokenize, model.translate, model.trace, lambda t: model.trace("I", t)):
        with pytest.raises(TextError, match="There is no text"):
            call(text)


@pytest.mark.parametrize("text", ["a" * 10_000, "x" * 513])
def test_a_long_text_is_refused_with_its_length(text):
    tokens = len(tiny_tokenizer().encode(text)) + 1  # and </s>
    with pytest.raises(TextError, match=rf"{tokens} tokens long and the limit is 512"):
        tiny_translator().trace(text)


def test_sixty_four_threads_get_their_own_numbers():
    """Sentences of different lengths, every other one under an edit, all at once on one model."""
    model = tiny_translator()

    def trace(i):
        torch.set_num_threads(1)
        edit = [edits.Silence("encoder.0.self_attn", head=0, scale=i / 64)] * (i % 2)
        return model.trace(f"I went to school {i}." + " She likes." * (i % 5), f"我{i}。", edits=edit)

    serial, barrier = [trace(i) for i in range(64)], threading.Barrier(64)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(64) as threads:
            found = list(threads.map(lambda i: barrier.wait(60) < 0 or trace(i), range(64)))
    finally:
        sys.setswitchinterval(before)
    for alone, together in zip(serial, found, strict=True):
        assert together.tokens == alone.tokens
        for name in alone:
            assert together[name].value.tobytes() == alone[name].value.tobytes()


def test_silence_takes_a_head_out():
    model = tiny_translator()
    edit = edits.Silence("decoder.1.cross_attn", head=1)
    trace = model.trace(SENTENCE, TARGET, record=("*",), edits=(edit,))
    assert not trace["decoder.1.cross_attn.heads"].value[1].any()
    assert trace["decoder.1.cross_attn.heads"].value[0].any()
    plain = model.trace(SENTENCE, TARGET, record=("*",))
    np.testing.assert_array_equal(trace["decoder.0.cross_attn.out"], plain["decoder.0.cross_attn.out"])
    assert np.abs(trace["logits"].value - plain["logits"].value).max() > 1e-3
    half = model.trace(
        SENTENCE, TARGET, record=("*.heads",), edits=(edits.Silence("decoder.1.cross_attn", head=1, scale=0.5),)
    )
    np.testing.assert_allclose(
        half["decoder.1.cross_attn.heads"].value[1], plain["decoder.1.cross_attn.heads"].value[1] / 2
    )


def test_edits_change_the_translation_and_leave_the_model_as_it_was():
    model = tiny_translator()

    def steps(*changes):
        return model.translate(SENTENCE, max_new_tokens=6, edits=changes).steps

    before = steps()
    assert steps(edits.Block("decoder.*.cross_attn", key=0), edits.Silence("encoder.0.self_attn", 0)) != before
    assert steps() == before


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (edits.Silence("decoder.9.cross_attn", head=0), "matches nothing"),
        (edits.Silence("decoder.0.cross_attn", head=2), "2 is not in 0 to 1"),
        (edits.Block("encoder.0.self_attn", key=6), "6 is not in 0 to 5"),
        (edits.SetPattern("encoder.0.self_attn", 0, ((1.0,),)), r"shape \(1, 1\)"),
    ],
)
def test_an_edit_that_cannot_be_honoured_raises(edit, message):
    with pytest.raises(EditError, match=message):
        tiny_translator().trace(SENTENCE, TARGET, edits=(edit,))


@pytest.mark.parametrize(
    "edit",
    [
        edits.Silence("decoder.0.cross_attn", head=1, scale=0.5),
        edits.Block("encoder.*.self_attn", query=1, key=(0, 3)),
        edits.Open("decoder.0.self_attn", head=0, query=0, key=2),
        edits.SetPattern("encoder.0.self_attn", 0, ((0.5, 0.5), (0.0, 1.0))),
    ],
)
def test_edits_are_keys_and_json(edit):
    import json

    assert edits.from_json(json.loads(json.dumps(edit.to_json()))) == edit
    assert len({edit, edits.from_json(edit.to_json())}) == 1


@pytest.mark.parametrize("data", [{}, {"edit": "Delete"}, {"edit": "Silence", "nose": 1}])
def test_json_that_is_no_edit_is_named(data):
    with pytest.raises(EditError, match="is not an edit"):
        edits.from_json(data)


def test_a_target_may_be_the_ids_of_a_decoding():
    """A text that was decoded token by token may be tokenized differently when encoded again."""
    model = tiny_translator()
    ids = [model.tokenizer.encode(character)[0] for character in TARGET[:3]]
    trace = model.trace(SENTENCE, ids)
    assert trace.meta["ids"]["next"] == [*ids, model._end]
    assert trace.meta["target"] == model.tokenizer.decode(ids)
    with pytest.raises(TextError):
        model.trace(SENTENCE, ())


def test_a_pair_is_for_encoders():
    with pytest.raises(VisformerError, match="pair='x'"):
        tiny_translator().trace("I", pair="x")


def test_the_tokenizer_is_the_models():
    assert tiny_translator().tokenizer is tiny_tokenizer()


def test_one_glob_may_be_a_plain_string():
    model = tiny_translator()
    names = model.trace(SENTENCE, TARGET, record="*.q").names()
    assert names == model.trace(SENTENCE, TARGET, record=("*.q",)).names()
    assert all(name.endswith(".q") for name in names)


def test_it_has_the_same_methods_as_hub_models():
    model = tiny_translator()
    assert model.generate(SENTENCE, max_new_tokens=4).tokens == model.translate(SENTENCE, max_new_tokens=4).tokens
    offered = {name for name in dir(HubModel) if not name.startswith("_")}
    assert offered <= {name for name in dir(type(model)) if not name.startswith("_")}
