"""The models that a visitor may choose, and the attention page with some of them."""

import numpy as np
import pytest

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from visformer.app.serving import models, workbench
from visformer.app.session import boxes, url_state
from visformer.errors import VisformerError
from visformer.model.untrained import Untrained


@pytest.fixture
def folder(tmp_path):
    tiny_module("llama").save_pretrained(tmp_path / "tiny-llama")
    tokenizer().save_pretrained(tmp_path / "tiny-llama")
    return str(tmp_path / "tiny-llama")


def test_the_operators_list_follows_the_default_model(monkeypatch):
    monkeypatch.delenv("VISFORMER_MODELS", raising=False)
    assert models.offered() == (models.MODEL,)
    monkeypatch.setenv("VISFORMER_MODELS", "gpt2, /models/x,,gpt2")
    assert models.offered() == (models.MODEL, "gpt2", "/models/x")


def test_a_name_that_is_not_offered_is_refused_before_it_is_looked_up(monkeypatch, folder):
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
    assert any("The model continues with" in text.value for text in page.text)
    assert folder not in url_state.State(model=folder).file()
    assert url_state.read({"model": "tiny-llama"})[0].model == folder


def trace_of(page):
    """Return the page's trace, and the error that it shows instead."""
    run = page.session_state["run"]
    return run.trace, run.problem


def test_an_untrained_model_borrows_the_translation_and_follows_its_sliders(new_app):
    page = new_app()
    translated = trace_of(page)[0].meta["target"]
    (chooser,) = [box for box in page.selectbox if box.label == "Model"]
    assert chooser.options == ["Translator en-zh", "Untrained model"]
    chooser.select_index(1).run()
    trace, _ = trace_of(page)
    assert trace.meta["model"] == page.session_state[boxes.MODEL] == Untrained().name
    assert trace.meta["target"] == translated
    assert any(translated in text.value and "Untrained" in text.value for text in page.text)
    page.select_slider(key="untrained_d_model").set_value(96).run()
    page.select_slider(key="untrained_n_heads").set_value(3).run()
    assert page.session_state[boxes.MODEL] == "untrained-96x3-enc3-dec3-ff1024"
    page.select_slider(key="untrained_d_model").set_value(64).run()
    assert page.session_state[boxes.MODEL] == "untrained-64x2-enc3-dec3-ff1024", "the most heads that divide d_model"
    page.select_slider(key="untrained_n_decoder_layers").set_value(1).run()
    page.number_input(key="untrained_seed").set_value(7).run()
    trace, _ = trace_of(page)
    assert not page.exception
    assert trace.stack("encoder").shape[:2] == (3, 2) and trace.stack("decoder", "cross_attn").shape[:2] == (1, 2)
    model = vf.load("untrained-64x2-enc3-dec1-ff1024-seed7")
    np.testing.assert_array_equal(
        trace["encoder.2.self_attn.pattern"].value,
        model.trace(trace.meta["source"], translated)["encoder.2.self_attn.pattern"].value,
    )
    page.text_input(key=boxes.TARGET).set_value("我").run()
    assert any(text.value == "Target as typed: 我" for text in page.text)


def test_the_untrained_sizes_are_kept_while_another_model_is_selected(new_app):
    page = new_app(model="untrained-96x3-enc1-dec2-ff64-pre-learned-seed7")
    assert trace_of(page)[0].meta["model"] == "untrained-96x3-enc1-dec2-ff64-pre-learned-seed7"
    assert page.select_slider(key="untrained_n_heads").value == 3
    (chooser,) = [box for box in page.selectbox if box.label == "Model"]
    chooser.select_index(0).run()
    assert "model" not in page.query_params
    (chooser,) = [box for box in page.selectbox if box.label == "Model"]
    chooser.select_index(1).run()
    assert page.session_state[boxes.MODEL] == "untrained-96x3-enc1-dec2-ff64-pre-learned-seed7"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("untrained-128x5-enc2-dec2-ff512", "d_model=128 cannot be divided among n_heads=5"),
        ("untrained-1024x4-enc2-dec2-ff512", "d_model=1024: an untrained Transformer can have 8 to 512 here"),
        ("untrained-128x4-enc0-dec2-ff512", "n_encoder_layers=0: an untrained Transformer can have 1 to 6"),
        (
            "untrained-<b>",
            "'untrained-<b>' is not the name of an untrained Transformer: write untrained-128x4-enc2-dec2-ff512",
        ),
    ],
)
def test_an_invalid_untrained_name_in_a_link_gives_an_error(new_app, name, said):
    page = new_app(model=name)
    assert not page.exception
    assert any(said in text.value for text in page.text)
