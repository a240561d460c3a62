"""vf.load and vf.wrap: checkpoints, the bundled translator, and models in memory."""

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import visformer as vf
from tests.support import tiny_config, tiny_tokenizer, tiny_translator
from visformer.errors import CheckpointError, VisformerError
from visformer.i18n import translations
from visformer.model.checkpoints import FOLDER, load_checkpoint, save_checkpoint
from visformer.pictures.map import RECORD
from visformer.system.files import remedy_of


@pytest.fixture
def folder(tmp_path):
    save_checkpoint(tmp_path / "tiny", tiny_translator(tie_embeddings=True).module, tiny_tokenizer())
    return tmp_path / "tiny"


def test_a_saved_checkpoint_is_rounded_to_float16(folder):
    saved = tiny_translator(tie_embeddings=True).module
    module, tokenizer = load_checkpoint(folder)
    assert module.config == saved.config
    assert not module.training
    for p, q in zip(saved.parameters(), module.parameters(), strict=True):
        assert q.dtype == torch.float32
        assert torch.equal(p.half().float(), q)
    assert module.output.weight is module.tgt_embedding.token.weight
    assert len(tokenizer) == len(tiny_tokenizer())


def test_a_folder_loads_as_a_model(folder):
    model = vf.load(folder)
    assert model.info.name == "tiny"
    assert vf.load(folder, dtype=torch.float64).module.output.weight.dtype == torch.float64


@pytest.mark.parametrize("damage", ["missing", "truncated", "nonsense", "no config", "size mismatch"])
def test_a_damaged_checkpoint_is_reported_with_its_file_and_a_remedy(folder, damage):
    path = folder / "model.safetensors"
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    elif damage == "nonsense":
        path.write_bytes(b"\xff" * 200)
    elif damage == "no config":
        save_file(load_file(path), path)
    else:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
        save_file(load_file(path) | {"encoder.layers.0.ffn.w_1.weight": torch.zeros(3, 3)}, path, metadata=metadata)
    reason = r"encoder\.\S+ has the shape \(3, 3\) instead of \(" if damage == "size mismatch" else ""
    message = rf"model\.safetensors cannot be read \({reason}.*\): copy it anew from where it comes from\.$"
    with pytest.raises(CheckpointError, match=message) as error:  # "." matches no line break: one line
        vf.load(folder)
    assert len(str(error.value)) < 400


def test_the_remedy_for_a_damaged_file_is_possible_in_its_folder(folder):
    tokenizer = folder / "tokenizer.json"
    tokenizer.write_text("{")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json .*: copy it anew from where it comes from\.$"):
        vf.load(folder)
    (folder.parent / "settings.json").touch()  # of a training
    with pytest.raises(CheckpointError, match=r"delete it if it is there, and repeat the command") as error:
        vf.load(folder)
    assert "再运行一遍当时的训练命令" in error.value.localized(translations("zh").gettext)
    with pytest.raises(
        CheckpointError, match=rf"is the folder of a training: its model is {folder.parent}/checkpoint,"
    ):
        vf.load(folder.parent)
    assert "git checkout" in remedy_of(FOLDER / "en-zh" / "tokenizer.json")
    assert "delete it; the other moments" in remedy_of(folder / "moments" / "step-0000003.safetensors")


def test_a_checkpoint_s_evaluation_says_below_which_confidence_it_is_unsure(folder):
    path = folder / "evaluation.json"
    assert vf.load(folder).unsure_below is None
    path.write_text('{"bleu": {}, "calibration": {"threshold": 0.4}}', encoding="utf-8")
    assert vf.load(folder).unsure_below == 0.4
    for undecided in ("", '{"bleu": {}}', '{"calibration": null}'):
        path.write_text(undecided, encoding="utf-8")
        assert vf.load(folder).unsure_below is None


@pytest.mark.parametrize("content", ["{", "[]", '{"calibration": {}}', '{"calibration": {"threshold": "high"}}'])
def test_a_damaged_evaluation_is_reported_with_its_file_and_a_remedy(folder, content):
    (folder / "evaluation.json").write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"evaluation\.json cannot be read .*: restore the file or delete it\."):
        vf.load(folder)


def test_an_unknown_name_lists_the_bundled_models(monkeypatch):
    monkeypatch.setattr("visformer.adapters.names.find_spec", lambda name: None)
    with pytest.raises(
        CheckpointError, match=r"no model 'en-fr': the bundled ones are en-zh, mini-gpt, mini-gpt-2.*visformer\[hf\]"
    ):
        vf.load("en-fr")


def test_wrap_takes_a_visformer_transformer():
    module = vf.Transformer(tiny_config())
    model = vf.wrap(module, tiny_tokenizer())
    assert model.trace("I", "我").tokens["src"] == ("I", "</s>")
    with pytest.raises(VisformerError, match="not Linear"):
        vf.wrap(torch.nn.Linear(1, 1), tiny_tokenizer())


def test_the_bundled_translator_is_small_and_translates_the_example():
    assert (FOLDER / "en-zh" / "model.safetensors").stat().st_size <= 20_000_000
    model = vf.load("en-zh")
    assert model.translate("I went to Northeastern University.").text == "我去东北大学。"
    assert model.translate("我去东北大学。").text == "I went to Northeastern University."


def test_the_bundled_trace_is_what_the_model_computes():
    bundled = vf.Trace.load(FOLDER / "en-zh" / "example.safetensors")
    model = vf.load("en-zh")
    computed = model.trace(bundled.meta["source"], record=model.available(RECORD))
    assert (computed.tokens, computed.names()) == (bundled.tokens, bundled.names())
    assert computed.meta == {**bundled.meta, "confidence": pytest.approx(bundled.confidence, rel=1e-3)}
    for name in computed:
        np.testing.assert_allclose(computed[name], bundled[name], atol=1e-4, rtol=1e-5)


def test_every_public_name_is_listed_and_no_other_can_be_imported():
    assert set(vf.__all__) <= set(dir(vf))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        vf.nothing  # noqa: B018


def test_the_repr_of_a_model_has_its_kind_and_sizes():
    assert repr(vf.load("en-zh")) == "Translator(en-zh: encoder-decoder, 3 + 3 layers, 8 heads, d_model 256)"


@pytest.mark.parametrize("name", ["", " "])
def test_a_blank_name_is_refused_even_if_the_current_folder_has_a_checkpoint(name, tmp_path, monkeypatch):
    save_checkpoint(tmp_path, tiny_translator().module, tiny_tokenizer())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=f"^'{name}' is not a model name: give a bundled one"):
        vf.load(name)


@pytest.mark.parametrize(
    ("folder", "name"),
    [("mine/model", "mine/model"), ("mine/checkpoint-200", "mine/checkpoint-200"), ("mine/small", "small")],
)
def test_a_model_has_the_name_of_its_folder_and_of_the_parent_if_that_is_too_general(folder, name, tmp_path):
    save_checkpoint(tmp_path / folder, tiny_translator().module, tiny_tokenizer())
    assert vf.load(tmp_path / folder).info.name == name
