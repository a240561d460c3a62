"""Which models a visitor may choose, and the attention page on one of them."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.adapters.hub import tiny_module, tokenizer
from visformer.errors import VisformerError
from visformer.ui import models, resources


@pytest.fixture
def folder(tmp_path):
    tiny_module("llama").save_pretrained(tmp_path / "tiny-llama")
    tokenizer().save_pretrained(tmp_path / "tiny-llama")
    return str(tmp_path / "tiny-llama")


def test_the_operators_list_comes_behind_the_first_model():
    assert models.offered({}) == (models.MODEL,)
    assert models.offered({"VISFORMER_MODELS": "gpt2, /models/x,,gpt2"}) == (models.MODEL, "gpt2", "/models/x")
    assert not models.any_allowed({}) and models.any_allowed({"VISFORMER_ANY_MODEL": "1"})


def test_a_name_that_is_not_offered_is_refused_before_it_is_looked_up(monkeypatch, folder):
    with pytest.raises(VisformerError, match="not offered here: choose one of"):
        resources.workbench_of("gpt2")
    monkeypatch.setenv("VISFORMER_ANY_MODEL", "1")
    models.require_allowed("owner/model")
    for path in (folder, "../secrets", "~/x", "a/b/c", "docs"):
        with pytest.raises(VisformerError, match="no hub id"):
            models.require_allowed(path)
    monkeypatch.setenv("VISFORMER_MODELS", folder)
    models.require_allowed(folder)


def test_a_visitor_chooses_a_model_of_the_list(monkeypatch, folder):
    monkeypatch.setenv("VISFORMER_MODELS", folder)
    page = AppTest.from_file("../../app.py", default_timeout=120).run()
    (chooser,) = [box for box in page.selectbox if box.label == "Model"]
    assert chooser.options == [models.MODEL, "tiny-llama"]
    chooser.select_index(1).run()
    assert not page.exception
    assert any("The model goes on with" in text.value for text in page.text)


def test_one_model_offers_no_choice():
    page = AppTest.from_file("../../app.py", default_timeout=120).run()
    assert not [box for box in page.selectbox if box.label == "Model"]
