"""Visformer's own model: a Trace has what the model computed, and edits change it."""

import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from statistics import geometric_mean

import numpy as np
import pytest
import torch

from tests.model.support import record
from tests.support import tiny_gpt, tiny_tokenizer, tiny_translator
from visformer import edits
from visformer.adapters.huggingface.model import HubModel
from visformer.adapters.own import READ_BACK
from visformer.errors import BudgetError, EditError, TextError, TraceError, VisformerError
from visformer.trace.names import all_names

SENTENCE, TARGET = "I went to school.", "我喜欢学校。"


def test_a_trace_has_the_tokens_of_each_side():
    model = tiny_translator()
    trace = model.trace(SENTENCE, TARGET)
    assert trace.tokens["src"] == model.tokenize(SENTENCE) == ("I", "went", "to", "school", ".", "</s>")
    assert trace.tokens["tgt"] == ("<zh>", "我", "喜欢", "学校", "。")
    assert trace.tokens["next"] == ("我", "喜欢", "学校", "。", "</s>")
    assert trace.special["src"] == (False,) * 5 + (True,)
    assert trace.meta["to"] == "zh"
    assert trace.meta["target"] == TARGET
    assert trace.meta["forced"]


def test_the_direction_is_detected_or_given():
    model = tiny_translator()
    assert model.trace("Tom", to="zh").tokens["tgt"][0] == "<zh>"
    assert model.trace("Tom", to="en").tokens["tgt"][0] == "<en>"
    assert model.trace("我").meta["to"] == "en"
    with pytest.raises(VisformerError, match="to='fr'"):
        model.trace("Tom", to="fr")


def test_without_a_target_the_model_s_translation_is_traced_with_its_confidence():
    model = tiny_translator()
    decoding, trace = model.translate(SENTENCE), model.trace(SENTENCE, record=("logits",))
    assert trace.meta["target"] == decoding.text and not trace.meta["forced"]
    assert trace.tokens["next"][: len(decoding.tokens)] == decoding.tokens
    logits = trace["logits"].value
    assert tuple(logits.argmax(axis=1)[: len(decoding.ids)]) == decoding.ids
    probabilities = torch.tensor(logits).double().softmax(dim=-1).numpy()
    chosen = probabilities[np.arange(len(trace.tokens["next"])), trace.meta["ids"]["next"]]
    back = model.forced([trace.meta["ids"]["next"]], [SENTENCE], to="en")
    (read_back,) = model.log_probabilities((encoded, ()) for encoded in back)
    expected = geometric_mean(chosen) * np.exp(read_back).prod() ** READ_BACK
    assert trace.confidence == pytest.approx(expected, rel=1e-4)
    assert decoding.confidence == pytest.approx(trace.confidence, rel=1e-4)


def test_a_model_says_that_it_is_unsure_of_its_own_unedited_translation_alone():
    model = tiny_translator()
    never_evaluated = model.trace(SENTENCE)
    sure = never_evaluated.confidence
    assert not never_evaluated.is_unsure
    model.unsure_below = sure * 1.01
    assert model.trace(SENTENCE).is_unsure
    forced = model.trace(SENTENCE, TARGET)
    assert (forced.confidence, forced.is_unsure) == (None, False)
    edited = model.trace(SENTENCE, edits=[edits.Silence("decoder.0.cross_attn", head=0)])
    assert not edited.is_unsure, "the threshold is not of the edited model"
    assert edited.confidence != sure
    model.unsure_below = sure * 0.99
    assert not model.trace(SENTENCE).is_unsure


def weight_of(name, state, ids):
    """Return what the module holds as the weight of this name; ours maps rows from the left."""
    path, _, last = name.rpartition(".")
    path = re.sub(r"^(encoder|decoder)\.(\d+)", r"\1.layers.\2", path)
    if last == "embedding":
        return state[f"{path}_embedding.token.weight"][ids[path]]
    if last in ("gamma", "beta"):
        return state[f"{path}.{'weight' if last == 'gamma' else 'bias'}"]
    if last.startswith("b_"):
        return state[f"{path}.w_{last[2:]}.bias"]
    return state[f"{path}.{last}.weight" if last != "w" else f"{path}.weight"].T


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_trace_has_what_the_module_computes_and_its_weights(norm):
    """tests/parity compares with the formulas what the module computes from these weights."""
    model = tiny_translator(norm=norm)
    trace, state = model.trace(SENTENCE, TARGET, record=("*",)), model.module.state_dict()
    ids = trace.meta["ids"]
    _, tapped = record(model.module, *(torch.tensor([ids[side]]) for side in ("src", "tgt")))
    assert {*trace.tensors} == {*tapped}
    for name, tensor in trace.tensors.items():
        whole = tapped[name].numpy()
        np.testing.assert_array_equal(tensor, whole[0] if len(whole.shape) > len(tensor.shape) else whole, name)
    weights = {name.rpartition(".")[2] for name in trace.params}
    letters = {f"{kind}_{part}" for kind in "wb" for part in "qkvo12"}
    assert weights == {*letters, "gamma", "beta", "embedding", "w"}
    for name, weight in trace.params.items():
        np.testing.assert_array_equal(weight, weight_of(name, state, ids), name)


def test_record_selects_all_or_some_tensors():
    model = tiny_translator()
    trace = model.trace(SENTENCE, TARGET, record=("*",))
    assert set(trace.names()) == set(all_names(2, 3))
    assert trace["decoder.1.self_attn.mask"].value.dtype == bool
    assert trace["decoder.1.self_attn.mask"].value[0].tolist() == np.tri(5, dtype=bool).tolist()
    assert trace["encoder.0.self_attn.mask"].value.all()
    for one_name in (("encoder.1.*.q",), "encoder.1.*.q"):
        trace = model.trace(SENTENCE, TARGET, record=one_name)
        assert trace.names() == ("encoder.1.self_attn.q",)
        assert dict(trace.params) == {}


def test_a_glob_that_matches_no_tensor_is_refused():
    with pytest.raises(TraceError, match=r"record='\*\.patern' matches no tensor"):
        tiny_translator().trace(SENTENCE, TARGET, record=("*.patern",))


@pytest.mark.parametrize("make", [tiny_translator, tiny_gpt])
def test_a_trace_may_have_as_many_bytes_as_the_limit_and_not_one_more(make, monkeypatch):
    model = make()
    nbytes = model.trace(SENTENCE, TARGET, record="*").nbytes
    monkeypatch.setattr("visformer.system.limits.MAX_TRACE_BYTES", nbytes)
    assert model.trace(SENTENCE, TARGET, record="*").nbytes == nbytes
    monkeypatch.setattr("visformer.system.limits.MAX_TRACE_BYTES", nbytes - 1)
    with pytest.raises(BudgetError, match=f"{nbytes:,} bytes, 1 over"):
        model.trace(SENTENCE, TARGET, record="*")


@pytest.mark.parametrize("text", ["", "   ", "\t\n", "\u3000"])
def test_a_blank_text_is_refused(text):
    model = tiny_translator()
    for call in (model.tokenize, model.translate, model.trace, lambda t: model.trace("I", t)):
        with pytest.raises(TextError, match="There is no text"):
            call(text)


@pytest.mark.parametrize("text", ["a" * 10_000, "x" * 513])
def test_a_long_text_is_refused_with_its_length(text):
    n_tokens = len(tiny_tokenizer().encode(text)) + 1  # and </s>
    with pytest.raises(TextError, match=rf"{n_tokens} tokens long and the limit is 512"):
        tiny_translator().trace(text)


def test_64_threads_compute_what_each_computes_alone():
    """Sentences of different lengths, every other one with an edit, all at once on one model."""
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
            parallel = list(threads.map(lambda i: barrier.wait(300) < 0 or trace(i), range(64)))
    finally:
        sys.setswitchinterval(before)
    for alone, together in zip(serial, parallel, strict=True):
        assert together.tokens == alone.tokens
        for name in alone:
            assert together[name].value.tobytes() == alone[name].value.tobytes()


def test_silence_scales_a_head():
    model, path = tiny_translator(), "decoder.1.cross_attn"
    plain, silent, half = (
        model.trace(SENTENCE, TARGET, record=("*",), edits=[edits.Silence(path, head=1, scale=scale)])
        for scale in (1.0, 0.0, 0.5)
    )
    assert not silent[f"{path}.heads"].value[1].any()
    assert silent[f"{path}.heads"].value[0].any()
    np.testing.assert_array_equal(silent["decoder.0.cross_attn.out"], plain["decoder.0.cross_attn.out"])
    assert np.abs(silent["logits"].value - plain["logits"].value).max() > 1e-3
    np.testing.assert_allclose(half[f"{path}.heads"].value[1], plain[f"{path}.heads"].value[1] / 2)


def test_edits_change_the_translation_but_not_the_model():
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
        (edits.Silence("decoder.0.cross_attn", head=(0, 2)), "heads has 2 entries along its head axis; 2 is not"),
        (edits.Block("encoder.0.self_attn", key=6), "6 is not in 0 to 5"),
        (edits.SetPattern("encoder.0.self_attn", 0, ((1.0,),)), r"shape \(1, 1\)"),
    ],
)
def test_an_edit_that_does_not_fit_the_trace_is_refused(edit, message):
    with pytest.raises(EditError, match=message):
        tiny_translator().trace(SENTENCE, TARGET, edits=(edit,))


@pytest.mark.parametrize("data", [{}, {"edit": "Delete"}, {"edit": "Silence", "nose": 1}])
def test_json_that_is_not_an_edit_is_refused(data):
    with pytest.raises(EditError, match="is not an edit"):
        edits.from_json(data)


def test_a_target_may_be_given_as_ids():
    """Encoding the text of a decoding may give other tokens than those that were decoded."""
    model = tiny_translator()
    ids = [model.tokenizer.encode(character)[0] for character in TARGET[:3]]
    trace = model.trace(SENTENCE, ids)
    assert trace.meta["ids"]["next"] == [*ids, model._end]
    assert trace.meta["target"] == model.tokenizer.decode(ids)
    with pytest.raises(TextError):
        model.trace(SENTENCE, ())


def test_it_has_the_public_methods_of_hub_models():
    model = tiny_translator()
    assert model.generate(SENTENCE, max_new_tokens=4).tokens == model.translate(SENTENCE, max_new_tokens=4).tokens
    assert {name for name in dir(HubModel) if not name.startswith("_")} <= {*dir(model)}


@pytest.mark.parametrize(
    ("norm", "final_norm", "position"),
    [("pre", None, "sinusoidal"), ("pre", False, "rotary"), ("post", None, "rotary"), ("post", True, "sinusoidal")],
)
def test_a_translator_tells_its_architecture(norm, final_norm, position):
    model = tiny_translator(norm=norm, final_norm=final_norm, position=position)
    trace = model.trace(SENTENCE, TARGET, record=("*norm*", "*pattern"))
    told = model.info.blocks
    assert (told.position, told.logits) == (position, True)
    assert told.encoder.sublayers == ("self_attn", "ffn")
    assert told.decoder.sublayers == ("self_attn", "cross_attn", "ffn")
    for part, blocks in (("encoder", told.encoder), ("decoder", told.decoder)):
        assert (blocks.n_layers, blocks.n_heads) == (
            len(trace.layers(f"{part}.self_attn")),
            len(trace[f"{part}.0.self_attn.pattern"]),
        )
        assert (blocks.n_kv_heads, blocks.attention_layers, blocks.parallel) == (blocks.n_heads, None, False)
        assert (blocks.norm, blocks.final_norm) == (norm, f"{part}.norm.gamma" in trace.params)


def test_a_decoder_only_model_tells_its_architecture():
    model = tiny_gpt()
    told, trace = model.info.blocks, model.trace(SENTENCE, record=("*",))
    assert told.encoder is None
    assert (told.decoder.sublayers, told.decoder.norm, told.decoder.final_norm) == (("self_attn", "ffn"), "pre", True)
    assert told.decoder.n_layers == len(trace.layers("decoder.self_attn"))
    assert told.decoder.n_heads == len(trace["decoder.0.self_attn.pattern"])
    assert (told.position, told.logits) == ("learned", "logits" in trace)
