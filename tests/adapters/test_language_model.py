"""Our decoder-only model: its texts, traces and errors. tests/parity/test_gpt2.py compares its numbers."""

import pickle
import shutil

import numpy as np
import pytest
import torch

import visformer as vf
from scripts.bundle import pack_checkpoint
from tests.support import tiny_gpt, tiny_tokenizer
from visformer.adapters.load import nbytes_of
from visformer.adapters.own import LanguageModel
from visformer.edits import Silence
from visformer.errors import CheckpointError, TextError, VisformerError
from visformer.model.checkpoints import metadata_of, pack, save_checkpoint
from visformer.trace import Trace
from visformer.trace.names import all_names
from visformer.training.data import Pair

TEXT = "I went to school."


@pytest.fixture
def folder(tmp_path):
    save_checkpoint(tmp_path / "gpt", tiny_gpt(std=0.1).module, tiny_tokenizer())
    return tmp_path / "gpt"


def packed(folder, target):
    """Return a copy of the checkpoint, packed as the second bundled seed is."""
    shutil.copytree(folder, target)
    assert 0 < pack_checkpoint(target, [Pair("I went to school.", "我去学校。")]) < 0.005
    return target


def test_a_trace_has_one_text_and_what_each_token_is_followed_by():
    model = tiny_gpt()
    trace = model.trace(TEXT, "She", record="*")
    assert trace.tokens["tgt"] == model.tokenize(TEXT, "She") == ("</s>", "I", "went", "to", "school", ".", "She")
    assert trace.tokens["next"][:-1] == trace.tokens["tgt"][1:]
    assert trace.special["tgt"] == (True, *[False] * 6)
    assert trace.meta["target"] == "She" and trace.meta["forced"]
    assert set(trace.names()) == set(all_names(None, 2)) and not [name for name in trace if "cross" in name]
    alone = model.trace(TEXT, record="logits")
    assert alone.meta["target"] is None and not alone.meta["forced"]
    np.testing.assert_allclose(trace["logits"].value[:6], alone["logits"], atol=1e-5)
    assert model.trace(TEXT, model.tokenizer.encode("She")).tokens == trace.tokens


def test_a_text_is_continued_by_what_its_trace_predicts():
    model = tiny_gpt()
    decoding = model.generate(TEXT, max_new_tokens=4)
    ids = model.tokenizer.encode(TEXT)
    for n, following in enumerate(decoding.ids):
        assert model.trace(TEXT, decoding.ids[:n] or None).meta["ids"]["next"][-1] == following
    assert len(decoding.ids) == 4 and not decoding.finished
    prefixed = model.generate(TEXT, prefix=decoding.ids[:2], max_new_tokens=2)
    assert prefixed.ids == decoding.ids
    edited = model.generate(TEXT, max_new_tokens=4, edits=[Silence("decoder.0.self_attn", head=0)])
    assert edited.ids != decoding.ids and len(ids) == 5


def test_text_that_cannot_be_used_is_refused():
    model = tiny_gpt()
    for call in (model.tokenize, model.generate, model.trace, lambda text: model.trace("I", text)):
        with pytest.raises(TextError, match="There is no text"):
            call(" ")
    for call in (model.trace, model.generate):
        with pytest.raises(TextError, match="33 tokens long and the limit is 32"):
            call("I " * 31 + "I")
        with pytest.raises(VisformerError, match="to='zh': this model has no choice of target language"):
            call(TEXT, to="zh")
    assert len(model.generate("I " * 30 + "I").ids) == 1, "room for one more"
    with pytest.raises(VisformerError, match="only an encoder takes a pair"):
        model.trace(TEXT, pair="I")


def test_a_folder_loads_as_the_kind_that_its_config_tells(folder):
    model, saved = vf.load(folder), tiny_gpt(std=0.1)
    assert isinstance(model, LanguageModel)
    assert model.module.config == saved.module.config
    for p, q in zip(saved.module.parameters(), model.module.parameters(), strict=True):
        assert torch.equal(p.half().float(), q)
    assert (model.info.name, model.info.kind, model.info.max_tokens) == ("gpt", "decoder", 32)
    assert (model.info.n_encoder_layers, model.info.n_decoder_layers) == (0, 2)
    assert isinstance(vf.wrap(model.module, tiny_tokenizer()), LanguageModel)


def test_a_packed_checkpoint_loads_as_well(folder, tmp_path):
    small = packed(folder, tmp_path / "packed")
    assert (small / "model.z").stat().st_size < 0.6 * (folder / "model.safetensors").stat().st_size
    model, whole = vf.load(small), vf.load(folder)
    assert model.module.config == whole.module.config
    for p, q in zip(whole.module.parameters(), model.module.parameters(), strict=True):
        assert 0 < (p - q).abs().max() < 0.2 * p.abs().max() or p.dim() < 2
    assert nbytes_of(str(small)) == nbytes_of(str(folder)) == sum(p.nbytes for p in whole.module.parameters())
    content = (small / "model.z").read_bytes()
    assert metadata_of(content)["kind"] == '"gpt"'
    for damaged in (content[:-50], b"nothing", pack(dict(model.module.named_parameters()))):
        (small / "model.z").write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"model\.z cannot be read"):
            vf.load(small)
        assert nbytes_of(str(small)) >= 0


def test_a_trace_is_saved_and_an_outline_goes_to_another_process(tmp_path):
    model = tiny_gpt()
    trace = model.trace(TEXT)
    trace.save(tmp_path / "t.safetensors")
    assert Trace.load(tmp_path / "t.safetensors").tokens == trace.tokens
    outline = pickle.loads(pickle.dumps(model.outline()))
    assert outline.tokenize(TEXT, "She") == model.tokenize(TEXT, "She")
    assert outline.available(("*.pattern", "*.w_q", "*cross*")) == ("*.pattern", "*.w_q")
