"""Encoders with a head: their logits, compared with transformers, and which head a checkpoint is loaded with."""

import copy
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

import visformer as vf
from tests.adapters.huggingface.hub import SIZE, one_of_each, tiny_module, tokenizer
from visformer.errors import CheckpointError, MissingTensor
from visformer.trace import Trace

TEXT = "I went to the river"
MASKED, SEQUENCE, TOKENS = AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoModelForTokenClassification


def with_head(family, auto):
    """Return an untrained encoder with a head for three labels, or for the vocabulary."""
    config = copy.deepcopy(tiny_module(family).config)
    config.id2label = {0: "bad", 1: "so-so", 2: "good"}
    torch.manual_seed(0)
    return auto.from_config(config, attn_implementation="eager").eval()


@pytest.mark.parametrize("family", one_of_each(["bert", "roberta", "distilbert", "modernbert", "deberta-v2"]))
@pytest.mark.parametrize(
    ("auto", "axes", "shape"),
    [
        (MASKED, [("token", "src"), ("vocab", None)], (7, SIZE)),
        (SEQUENCE, [("label", None)], (3,)),
        (TOKENS, [("token", "src"), ("label", None)], (7, 3)),
    ],
)
def test_the_logits_of_an_encoder_s_head_are_those_of_transformers(family, auto, axes, shape, tmp_path):
    model, twin = vf.wrap(with_head(family, auto), tokenizer()), with_head(family, auto)
    assert model.info.kind == "encoder" and not model._patterns_only
    trace = model.trace(TEXT, record="*")
    with torch.no_grad():
        theirs = twin(torch.tensor([trace.meta["ids"]["src"]]), output_attentions=True, output_hidden_states=True)
    assert trace["logits"].shape == shape
    np.testing.assert_allclose(trace["logits"], theirs.logits[0], atol=1e-5)
    np.testing.assert_allclose(trace["encoder.out"], theirs.hidden_states[-1][0], atol=1e-5)
    np.testing.assert_allclose(trace["encoder.2.self_attn.pattern"], theirs.attentions[2][0], atol=1e-5)
    assert [(axis.name, axis.side) for axis in trace["logits"].axes] == axes
    assert trace.meta.get("labels") == (None if auto is MASKED else ["bad", "so-so", "good"])
    trace.save(tmp_path / "t.safetensors")
    assert Trace.load(tmp_path / "t.safetensors")["logits"].axes == trace["logits"].axes


def test_an_edit_reaches_the_logits_of_a_head():
    model = vf.wrap(with_head("bert", SEQUENCE), tokenizer())
    plain, silent = (
        model.trace(TEXT, record="logits", edits=given)["logits"].value
        for given in ((), vf.edits.Silence("encoder.*.self_attn", range(4)))
    )
    assert np.abs(plain - silent).max() > 1e-7
    zero = model.trace(TEXT, record="logits", edits=[lambda name, x: x * 0 if name == "logits" else x])["logits"]
    assert not zero.value.any()


def test_without_such_a_head_there_are_no_logits_and_the_error_says_why():
    trace = vf.wrap(tiny_module("bert"), tokenizer()).trace(TEXT)
    with pytest.raises(MissingTensor, match="this encoder has no head that predicts tokens or labels"):
        trace["logits"]


@pytest.fixture
def folder(tmp_path):
    def save(module):
        module.save_pretrained(tmp_path)
        tokenizer().save_pretrained(tmp_path)
        return tmp_path

    return save


@pytest.mark.parametrize("auto", [MASKED, SEQUENCE, TOKENS])
def test_a_checkpoint_of_an_encoder_is_loaded_with_the_head_that_it_names(auto, folder):
    module = with_head("bert", auto)
    path = folder(module)
    model = vf.load(path)
    assert type(model.module) is type(module)
    logits = vf.wrap(module, tokenizer()).trace(TEXT, record="logits")["logits"]
    np.testing.assert_allclose(model.trace(TEXT, record="logits")["logits"], logits, atol=1e-6)


def test_a_checkpoint_that_lacks_its_head_or_names_none_is_loaded_without_one(folder):
    path = folder(with_head("bert", SEQUENCE))
    weights = load_file(path / "model.safetensors")
    bare = {name: value for name, value in weights.items() if not name.startswith("classifier")}
    save_file(bare, path / "model.safetensors", {"format": "pt"})
    assert type(vf.load(path).module).__name__ == "BertModel"
    config = json.loads((path / "config.json").read_text())
    save_file(weights, path / "model.safetensors", {"format": "pt"})
    (path / "config.json").write_text(json.dumps({**config, "architectures": None}))
    assert type(vf.load(path).module).__name__ == "BertModel"
    short = {name: value for name, value in weights.items() if "layer.1.attention" not in name}
    save_file(short, path / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"no weights for encoder\.layer\.1\.attention"):
        vf.load(path)
