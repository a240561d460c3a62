"""Many texts through a model of transformers: as each alone, and as in transformers' own padded batch."""

import numpy as np
import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import HYBRIDS, TEXT, one_of_each, tiny_model, tiny_module, tokenizer
from tests.adapters.huggingface.listed import FAMILIES
from tests.adapters.huggingface.test_heads import MASKED, SEQUENCE, TOKENS, with_head
from tests.adapters.test_batching import same
from visformer.adapters import recording
from visformer.edits import Block, Open, Silence
from visformer.errors import EditError, TextError, VisformerError

TEXTS = [TEXT, "It is 2 + 2 .", "you", "I went to school"]


def targets_of(model):
    """Return a target for each text if the model would otherwise translate it first."""
    return [*TEXTS[1:], "I"] if model.info.kind == "encoder-decoder" else [None] * len(TEXTS)


def passes_of(model, monkeypatch):
    """Return a list that gets the size of each batch that the model runs."""
    passes, run = [], model._run
    monkeypatch.setattr(model, "_run", lambda batch: passes.append(len(batch)) or run(batch))
    return passes


@pytest.mark.parametrize("family", one_of_each(FAMILIES))
def test_each_text_of_a_batch_has_the_trace_that_it_has_alone(family, monkeypatch):
    model = tiny_model(family)
    assert model._pads_exactly()
    passes, targets = passes_of(model, monkeypatch), targets_of(model)
    together = list(model.trace_many(TEXTS, targets, record=("*",)))
    assert passes == [len(TEXTS)]
    for text, target, trace in zip(TEXTS, targets, together, strict=True):
        same(trace, model.trace(text, target, record=("*",)), atol=5e-5)


@pytest.mark.parametrize("family", ["bert", "distilbert", "gpt2", "opt", "bart", "marian"])
def test_in_double_precision_a_batch_equals_each_text_alone_to_twelve_digits(family, monkeypatch):
    """A Trace rounds to single precision: here it keeps what the model computed."""
    monkeypatch.setattr(recording, "_to_numpy", lambda tensor: tensor.detach().numpy())
    model = vf.wrap(tiny_module(family).double(), tokenizer())
    targets = targets_of(model)
    for text, target, trace in zip(TEXTS, targets, model.trace_many(TEXTS, targets, record=("*",)), strict=True):
        alone = model.trace(text, target, record=("*",))
        assert next(iter(alone.tensors.values())).value.dtype == np.float64
        same(trace, alone, atol=1e-12)


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "gpt2", "bloom", "t5"])
def test_patterns_are_those_of_transformers_own_padded_batch(family):
    model, kind = tiny_model(family), FAMILIES[family].kind
    given = tokenizer()(TEXTS, return_tensors="pt", padding=True)
    given = {name: given[name] for name in ("input_ids", "attention_mask")}
    if kind == "encoder-decoder":
        given["decoder_input_ids"] = given["input_ids"]
    with torch.no_grad():
        output = tiny_module(family)(**given, output_attentions=True)
    stacks = {f"{kind}.{{}}.self_attn": output.get("attentions")}
    targets = None
    if kind == "encoder-decoder":
        targets = ["I"] * len(TEXTS)
        stacks = {"encoder.{}.self_attn": output.encoder_attentions}
    for row, trace in enumerate(model.trace_many(TEXTS, targets)):
        for path, patterns in stacks.items():
            for layer, pattern in enumerate(patterns):
                ours = trace[f"{path.format(layer)}.pattern"]
                n = ours.shape[-1]
                np.testing.assert_allclose(ours, pattern[row, :, :n, :n].numpy(), atol=2e-5)


@pytest.mark.parametrize("family", one_of_each(["gpt2", "llama", "t5", "bloom", "marian", "m2m_100"]))
def test_texts_are_generated_at_once_as_alone(family):
    model, texts = tiny_model(family), [*TEXTS, "you saw the river today"]
    for text, many in zip(texts, model.translate_many(texts, max_new_tokens=5), strict=True):
        alone = model.translate(text, max_new_tokens=5)
        assert (many.ids, many.text, many.finished) == (alone.ids, alone.text, alone.finished)
        assert many.confidence == pytest.approx(alone.confidence, rel=1e-3)


@pytest.mark.full
@pytest.mark.parametrize("edit", [Silence("*.1.self_attn", head=2), Block("*.0.self_attn", key=0), Open("*.self_attn")])
@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_an_edit_changes_each_text_of_a_batch_as_it_does_alone(family, edit):
    model = tiny_model(family)
    targets = [None] * len(TEXTS) if isinstance(edit, Silence) else targets_of(model)  # one edit of translations
    together = model.trace_many(TEXTS, targets, record=("*",), edits=[edit])
    for text, target, trace in zip(TEXTS, targets, together, strict=True):
        same(trace, model.trace(text, target, record=("*",), edits=[edit]), atol=5e-5)


def test_an_edit_of_what_can_only_be_read_is_refused_in_a_batch_too():
    with pytest.raises(EditError, match=r"Text 0.*does not use further on"):
        next(tiny_model("llama").trace_many(TEXTS, edits=[lambda name, x: x + 1 if name.endswith("attn_sum") else x]))


def test_a_language_that_the_model_lacks_is_no_fault_of_a_text():
    for family in ("bert", "llama", "marian"):
        with pytest.raises(VisformerError, match=r"^to='zh': this model has no choice of target language"):
            tiny_model(family).trace_many([], to="zh")


def test_pairs_of_texts_keep_their_segments():
    model, pairs = tiny_model("bert"), ["you saw the river", None, "again", "I"]
    for text, pair, trace in zip(TEXTS, pairs, model.trace_many(TEXTS, pairs=pairs, record=("*",)), strict=True):
        same(trace, model.trace(text, pair=pair, record=("*",)))


@pytest.mark.parametrize("family", ["megatron-bert", *one_of_each(["xglm", *HYBRIDS])])
def test_texts_of_any_family_are_each_as_alone_and_one_by_one_if_it_has_patterns_only(family, monkeypatch):
    model = tiny_model(family)
    passes = passes_of(model, monkeypatch)
    for text, trace in zip(TEXTS, model.trace_many(TEXTS, batch=4), strict=True):
        assert passes[-1] == 1 or model._pads_exactly()
        assert not (model._patterns_only and model._pads_exactly())
        same(trace, model.trace(text))


def test_a_model_that_does_not_mask_padding_runs_each_text_alone(monkeypatch):
    model = vf.wrap(tiny_module("bert"), tokenizer())
    padded = model._engine.padded
    monkeypatch.setattr(model._engine, "padded", lambda rows: (padded(rows)[0], torch.ones_like(padded(rows)[1])))
    assert not model._pads_exactly()
    passes = passes_of(model, monkeypatch)
    for text, trace in zip(TEXTS, model.trace_many(TEXTS), strict=True):
        assert passes[-1] == 1
        same(trace, model.trace(text))


@pytest.mark.parametrize("auto", [MASKED, SEQUENCE, TOKENS])
def test_the_logits_of_a_head_are_those_of_each_text_alone(auto, monkeypatch):
    model = vf.wrap(with_head("bert", auto), tokenizer())
    assert model._pads_exactly()
    passes = passes_of(model, monkeypatch)
    edit = Silence("encoder.0.self_attn", head=(0, 2))
    for edits in ((), edit):
        together = list(model.trace_many(TEXTS, record=("*",), edits=edits))
        assert passes[0] == len(TEXTS)
        for text, trace in zip(TEXTS, together, strict=True):
            same(trace, model.trace(text, record=("*",), edits=edits), atol=5e-5)
        passes.clear()


@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_token_ids_stand_for_a_text_in_a_batch_too(family):
    model, rows = tiny_model(family), [[5, 6, 7], [9], "I went"]
    targets = targets_of(model)[:3]
    together = model.trace_many([rows[0], np.array(rows[1]), rows[2]], targets, record=("*",))
    for row, target, trace in zip(rows, targets, together, strict=True):
        same(trace, model.trace(row, target, record=("*",)))
    with pytest.raises(TextError, match=r"Text 1, counted from 0: -1 .* is not a token id"):
        list(model.trace_many([[5], [-1]]))


def test_without_patterns_torchs_fused_attention_computes_the_same_in_windows_and_beside_padding():
    model, texts = tiny_model("mistral"), [[7, 8, 9], [5 + i % 14 for i in range(40)]]  # the longer one is ten windows
    assert model._wiring.may_fuse
    for fused, ids in zip(model.trace_many(texts, record="logits", batch=2), texts, strict=True):
        ours = model.trace(ids, record=("logits", "*.pattern"))
        np.testing.assert_allclose(fused["logits"].value, ours["logits"].value, atol=1e-5)
