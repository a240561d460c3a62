"""The models that a visitor may choose, and untrained models on the first page."""

import numpy as np
import pytest

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.app.support import enter, texts
from visformer.adapters.checkpoints import BUNDLED, folder_of
from visformer.app.serving import models, workbench
from visformer.app.serving.model_downloads import is_to_be_downloaded
from visformer.app.session import boxes, url_state
from visformer.errors import VisformerError
from visformer.model.untrained import Untrained


@pytest.fixture
def folder(tmp_path):
    tiny_module("llama").save_pretrained(tmp_path / "tiny-llama")
    tokenizer().save_pretrained(tmp_path / "tiny-llama")
    return str(tmp_path / "tiny-llama")


def test_the_operators_models_are_offered_after_the_default_one(monkeypatch):
    monkeypatch.delenv("VISFORMER_MODELS", raising=False)
    assert models.offered() == (models.MODEL, "mini-gpt", "mini-gpt-2", "mini-caption")
    monkeypatch.setenv("VISFORMER_MODELS", "gpt2, /models/x,,gpt2")
    assert models.offered() == (models.MODEL, "mini-gpt", "mini-gpt-2", "mini-caption", "gpt2", "/models/x")
    monkeypatch.setattr(models, "MODEL", "/models/x")
    assert models.offered() == ("/models/x", "gpt2"), "who sets a model decides what there is"


def test_a_model_that_is_not_offered_is_refused(monkeypatch, folder):
    with pytest.raises(VisformerError, match="not offered here: choose one of"):
        workbench.workbench_of("gpt2")
    monkeypatch.setenv("VISFORMER_ANY_MODEL", "1")
    models.require_allowed("owner/model")
    for path in (folder, "../secrets", "~/x", "a/b/c", "docs"):
        with pytest.raises(VisformerError, match="not a hub id"):
            models.require_allowed(path)
    monkeypatch.setenv("VISFORMER_MODELS", folder)
    models.require_allowed(folder)


def test_a_folder_has_the_shortest_unique_label(monkeypatch):
    names = ("/a/MiniLM", "/b/en-zh", "/x/deep/one", "/y/deep/one", "/z/mine/checkpoint", "owner/MiniLMs", "/")
    monkeypatch.setattr(models, "MODEL", "en-zh")
    monkeypatch.setenv("VISFORMER_MODELS", ",".join(names))
    labels = ["MiniLM", "b/en-zh", "x/deep/one", "y/deep/one", "mine/checkpoint", "owner/MiniLMs"]
    assert [models.label(name) for name in names[:-1]] == labels
    assert [models.named(label) for label in labels] == list(names[:-1])
    assert models.named("en-zh") == "en-zh"
    assert models.named("MiniLM2") == "MiniLM2"


def test_a_link_holds_the_label_of_a_folder_and_not_its_path(monkeypatch, folder, new_app):
    monkeypatch.setenv("VISFORMER_MODELS", folder)
    page = new_app(model="tiny-llama")
    assert page.session_state[boxes.MODEL] == folder
    assert page.query_params["model"] == "tiny-llama"
    assert any("The model continues with" in text for text in texts(page))
    assert folder not in url_state.State(model=folder).file()
    assert url_state.read({"model": "tiny-llama"})[0].model == folder


def trace_of(page):
    return page.session_state["run"].trace


def model_box(page):
    (box,) = [box for box in page.selectbox if box.label == "Model"]
    return box


def test_an_untrained_model_uses_the_translators_translation_and_follows_its_sliders(new_app):
    page = new_app()
    translated = trace_of(page).meta["target"]
    assert model_box(page).options == [
        "Translator en-zh",
        "Untrained model",
        "Decoder mini-gpt",
        "Decoder mini-gpt-2",
        "Captioner mini-caption",
    ]
    model_box(page).select_index(1).run()
    trace = trace_of(page)
    assert trace.meta["model"] == page.session_state[boxes.MODEL] == Untrained().name
    assert trace.meta["target"] == translated
    assert any(translated in text and "Untrained" in text for text in texts(page))
    page.select_slider(key="untrained_d_model").set_value(96).run()
    page.select_slider(key="untrained_n_heads").set_value(3).run()
    assert page.session_state[boxes.MODEL] == "untrained-96x3-enc3-dec3-ff1024"
    page.select_slider(key="untrained_d_model").set_value(64).run()
    assert page.session_state[boxes.MODEL] == "untrained-64x2-enc3-dec3-ff1024", "the most heads that divide d_model"
    page.select_slider(key="untrained_n_decoder_layers").set_value(1).run()
    page.number_input(key="untrained_seed").set_value(7).run()
    trace = trace_of(page)
    assert not page.exception
    assert trace.stack("encoder.self_attn").shape[:2] == (3, 2) and trace.stack("decoder.cross_attn").shape[:2] == (
        1,
        2,
    )
    model = vf.load("untrained-64x2-enc3-dec1-ff1024-seed7")
    np.testing.assert_array_equal(
        trace["encoder.2.self_attn.pattern"].value,
        model.trace(trace.meta["source"], translated)["encoder.2.self_attn.pattern"].value,
    )
    assert "Target as typed: 我" in texts(enter(page, "我", box=boxes.TARGET))


def test_the_untrained_sizes_are_kept_while_another_model_is_selected(new_app):
    page = new_app(model="untrained-96x3-enc1-dec2-ff64-pre-learned-seed7")
    assert trace_of(page).meta["model"] == "untrained-96x3-enc1-dec2-ff64-pre-learned-seed7"
    assert page.select_slider(key="untrained_n_heads").value == 3
    model_box(page).select_index(0).run()
    assert "model" not in page.query_params
    model_box(page).select_index(1).run()
    assert page.session_state[boxes.MODEL] == "untrained-96x3-enc1-dec2-ff64-pre-learned-seed7"


def test_an_invalid_untrained_model_in_a_link_is_an_error(new_app):
    for sizes, message in (
        ("128x5-enc2-dec2-ff512", "d_model=128 cannot be divided among n_heads=5"),
        ("1024x4-enc2-dec2-ff512", "d_model=1024: an untrained Transformer can have 8 to 512 here"),
        ("128x4-enc0-dec2-ff512", "n_encoder_layers=0: an untrained Transformer can have 1 to 6"),
        ("<b>", "'untrained-<b>' is not the name of an untrained Transformer: write untrained-128x4-enc2-dec2-ff512"),
    ):
        page = new_app(model=f"untrained-{sizes}")
        assert not page.exception
        assert any(message in text for text in texts(page)), sizes


def test_a_moment_is_loaded_again_and_never_downloaded():
    for name in ("en-zh@4", f"{folder_of('en-zh')}@4"):
        assert models.can_be_loaded_again(name) and not is_to_be_downloaded(name)


@pytest.mark.parametrize(
    ("files", "may"),
    [((), False), (("preprocessor_config.json",), True), (("processor_config.json",), True)],
)
def test_it_is_seen_by_its_files_whether_a_model_may_read_pictures(tmp_path, files, may):
    for file in ("config.json", "model.safetensors", *files):
        (tmp_path / file).touch()
    assert models.may_read_pictures(str(tmp_path)) == may


def test_our_models_read_no_picture_of_a_visitors_and_of_what_is_not_here_nobody_knows():
    assert not any(map(models.may_read_pictures, (*BUNDLED, "broken-1")))
    assert models.may_read_pictures("nobody/has-this") and models.may_read_pictures("no..model")
