"""The slider over the moments of a model's training: on every page, in links, and for models that have a history."""

import json
import math

import pytest

import visformer as vf
from benchmarks.messages import read_message
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.adapters.test_history import trained_in
from tests.addresses import address_of
from tests.app.support import here, ignored, open_page, picture_components, presented, texts
from visformer.app.serving import models
from visformer.pictures.registry.picture import pages

SENTENCE = "I like cats."


def slider(app):
    (found,) = [one for one in app.select_slider if one.key == "timeline_moment"] or [None]
    return found


def toggle(app):
    (found,) = [one for one in app.toggle if one.key == "timeline"] or [None]
    return found


def translation(app):
    return next(iter(texts(app, "Translation: "))).removeprefix("Translation: ")


def test_a_page_is_scrubbed_by_slider_and_buttons_and_comes_back_to_the_model(new_app):
    app = new_app(text=SENTENCE)
    assert slider(app) is None
    toggle(app).set_value(True).run()
    assert slider(app).value == 9
    slider(app).set_value(6).run()
    assert app.selectbox(key="model").value == "en-zh@6"
    assert translation(app) == vf.load("en-zh", moment=6).trace(SENTENCE).meta["target"]
    app.button(key="timeline_on").click().run()
    assert slider(app).value == 7
    assert translation(app) == vf.load("en-zh", moment=7).trace(SENTENCE).meta["target"]
    open_page(app, "understand/decoding")
    assert slider(app).value == 7, "the next page shows the same moment"
    slider(app).set_value(9).run()
    open_page(app, "understand/lab")
    assert (toggle(app), slider(app)) == (None, None)
    open_page(app, "understand/decoding")
    assert slider(app).value == 9, "it is still open"
    slider(app).set_value(9).run()
    assert app.selectbox(key="model").value == "en-zh", "the last moment is the model itself"
    assert app.button(key="timeline_on").disabled
    slider(app).set_value(0).run()
    assert app.button(key="timeline_back").disabled
    toggle(app).set_value(False).run()
    assert slider(app) is None
    assert app.selectbox(key="model").value == "en-zh"


def test_a_link_opens_a_moment_and_a_moment_has_an_address(new_app):
    app = new_app(text=SENTENCE, model="en-zh@5")
    assert not app.exception
    assert slider(app).value == 5
    assert toggle(app).value
    assert address_of(app)["model"] == "en-zh@5"
    assert presented(app)["moments"]
    assert "Step 179 of 23,839" in presented(app)["sentence"]
    (figures,) = [caption for caption in app.caption if caption.value.startswith("Step 179 of 23,839 · loss ")]
    assert "−ln p" in figures.help and "BLEU" in figures.help and "alignment error rate" in figures.help


def test_a_link_to_a_moment_that_does_not_exist_is_remarked_on(new_app):
    for model in ("en-zh@99", "untrained-64x2-enc1-dec1-ff64-seed1@3", "nothing@1"):
        app = new_app(text=SENTENCE, model=model)
        assert not app.exception, model
        assert [line.partition(":")[0] for line in ignored(app)] == [f"model={model}"]
        assert app.selectbox(key="model").value == "en-zh", model


NOWHERE = {"where": None}
CROSS = {"where": "attention", "stack": "decoder", "kind": "cross_attn", "layer": 0}  # of start.json
PLACES = {
    **dict.fromkeys(("attention", "head", "effects", "heads", "compare"), CROSS),
    **dict.fromkeys(("lab", "learning", "atlas"), NOWHERE),
    "": {"where": "model"},
    "positions": {"where": "position"},
    "embedding": {"where": "tokens"},  # of its first view
    "masks": {"where": "masks"},
    "block": {"where": "layer", "stack": "encoder", "kind": None, "layer": None},  # until a view shows one layer
    "decoding": {"where": "output"},
}
"""Where in the model each page is, as the side bar draws it."""


def test_every_page_shows_the_moment_its_place_in_the_model_and_a_caption(new_app):
    app = new_app(text=SENTENCE, model="en-zh@6")
    assert {*PLACES} == {name for name, page in pages().items() if not page.model}
    for name, place in PLACES.items():
        open_page(app, pages()[name].path.removeprefix("pages/").removesuffix(".py"))
        assert app.selectbox(key="model").value == "en-zh@6", name
        has_none = name in ("lab", "learning", "atlas")
        assert (slider(app) is None) == (toggle(app) is None) == has_none, name
        assert here(app)["here"] == place, name
        assert here(app)["stacks"]["decoder"]["n_layers"] == 3, name
        shown = presented(app)
        assert bool(shown["caption"]) == (name != ""), "the whole model has a line of its own"
        assert bool(shown["sentence"]) != has_none, name
        assert not shown["guided"], name


def test_a_decoder_has_a_history_too_and_a_model_without_one_no_switch(new_app):
    app = new_app(model="mini-gpt@4")
    assert slider(app).value == 4
    assert picture_components(app)
    for model in ("mini-gpt-2", "untrained"):
        app = new_app(model=model)
        assert (toggle(app), slider(app)) == (None, None)


def test_the_checkpoint_of_a_training_has_a_history(new_app, tmp_path, monkeypatch):
    trained_in(tmp_path)
    folder = tmp_path / "checkpoint"
    monkeypatch.setenv("VISFORMER_MODELS", str(folder))
    name = models.label(str(folder))
    app = new_app(model=f"{name}@2", text="I went to school.")
    assert not app.exception and not ignored(app)
    assert slider(app).options == [f"{step}" for step in vf.moments(folder)["step"]]
    assert slider(app).value == 2
    assert address_of(app)["model"] == f"{name}@2", "no path of the server"


def test_a_folder_of_transformers_checkpoints_is_scrubbed_to_its_last(new_app, tmp_path, monkeypatch):
    for step in (10, 20):
        folder = tmp_path / "gpt" / f"checkpoint-{step}"
        tiny_module("gpt2", seed=step).save_pretrained(folder)
        tokenizer().save_pretrained(folder)
    monkeypatch.setenv("VISFORMER_MODELS", str(tmp_path / "gpt"))
    name = models.label(str(tmp_path / "gpt"))
    app = new_app(model=f"{name}@0", text="I went")
    assert not app.exception and not ignored(app)
    first = read_message(picture_components(app)[-1].proto.bytes)[0]["revision"]
    slider(app).set_value(1).run()
    assert app.selectbox(key="model").value == str(tmp_path / "gpt")
    assert read_message(picture_components(app)[-1].proto.bytes)[0]["revision"] != first


def test_the_curves_have_a_line_at_the_moment_that_is_shown(new_app):
    app = new_app(text=SENTENCE, model="en-zh@6")
    assert not app.get("plotly_chart")
    app.session_state["timeline_curves"] = True
    app.run()
    assert not app.exception
    (chart,) = app.get("plotly_chart")
    drawn = json.loads(chart.proto.spec)["data"]
    lines = [trace["x"] for trace in drawn if len(trace["x"]) == 2 and trace["x"][0] == trace["x"][1]]
    assert len(lines) == 3, "one in each panel"
    assert [x for x, _ in lines] == [pytest.approx(math.log10(506 + 1))] * 3
