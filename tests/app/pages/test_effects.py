"""The page about effects: what is locked, typed and refused; and the locked cell of the explorer."""

from urllib.parse import parse_qsl

import pytest
from transformers import AutoModelForSequenceClassification

import visformer as vf
from benchmarks.messages import read_message
from tests.adapters.huggingface.hub import tokenizer
from tests.adapters.huggingface.test_heads import with_head
from tests.addresses import address_of
from tests.app.support import button, call, captions, choose, ignored, noted, open_page, texts
from visformer.app.session.url_state import start
from visformer.app.widgets import controls
from visformer.pictures.examples import EXAMPLES
from visformer.web.panels import Click

PAGE = "research/effects"


def weight(head, layer=2):
    """Return the weight on Northeastern of this head of cross-attention in the row that predicts 东北."""
    return vf.load("en-zh").trace(EXAMPLES[0]).stack("decoder.cross_attn")[layer, head, 2, 3]


def test_a_clicked_cell_is_told_in_words_and_is_in_the_address(new_app, monkeypatch):
    clicks = noted(monkeypatch, controls, "panels", "on_click")
    app = open_page(new_app(), PAGE)
    assert texts(app, "The largest effect here. Without this weight (")
    call(app, clicks[-1], Click("pattern", 2, 3))
    assert texts(
        app,
        f"Without this weight ({weight(start('en-zh').head, start('en-zh').layer):.2g}), "
        "the log-probability of “东北” changes by ",
    )
    link = address_of(app)
    assert (link["query"], link["key"]) == ("3", "4")
    again = new_app(page=PAGE, **link)
    assert texts(again) == texts(app)


def test_another_way_to_take_a_weight_away_is_in_the_address(new_app):
    app = open_page(new_app(), PAGE)
    choose(app, "effects_how", "mask")
    assert texts(app, "The largest effect here. With this key masked")
    assert address_of(app)["effects_how"] == "mask"


def test_a_second_sentence_is_in_the_address_and_one_of_another_length_is_refused(new_app):
    app = new_app(page=PAGE, effects_view="patching", text="I saw a cat.")
    (box,) = [box for box in app.text_input if box.key == "effects_corrupt"]
    box.set_value("I saw a car.").run()
    (said,) = texts(app, "Clean run:")
    assert "“I saw a cat.”" in said and "“I saw a car.”" in said
    again = new_app(page=PAGE, **address_of(app))
    assert texts(again, "Clean run:") == [said]
    (box,) = [box for box in again.text_input if box.key == "effects_corrupt"]
    box.set_value("I saw a big red car.").run()
    assert "texts of equal length" in again.info[-1].value


def test_a_post_norm_model_has_a_lens_and_a_sentence_on_parts(new_app):
    app = new_app(page=PAGE, effects_view="lens")
    assert app.get("plotly_chart")
    assert any("no path adds linearly" in text for text in captions(app))


def test_an_answer_in_a_row_is_in_the_address(new_app):
    app = open_page(new_app(), PAGE)
    (box,) = [box for box in app.selectbox if box.key.startswith("effects_of")]
    box.set_value(3).run()
    row, token = vf.load("en-zh").trace(EXAMPLES[0]), "effects_answer"
    assert (
        texts(app, "The largest effect here. Without this weight (")[0]
        .split(", ")[1]
        .startswith(f"the logit of “{row.tokens['next'][2]}” changes by ")
    )
    pair = "东北 − 学校"
    again = new_app(page=PAGE, **{**address_of(app), token: pair})
    assert (
        texts(again, "The largest effect here.")[0]
        .split(", ")[1]
        .startswith("the logit of “东北” minus that of “学校”")
    )
    assert address_of(again)[token] == pair and address_of(again)["effects_of"] == "3"


@pytest.mark.parametrize("view", ["weights", "shuffled", "methods", "patching", "lens"])
def test_a_classifier_is_asked_for_its_labels(new_app, monkeypatch, tmp_path, view):
    module = with_head("bert", AutoModelForSequenceClassification)
    module.save_pretrained(tmp_path / "opinions")
    tokenizer().save_pretrained(tmp_path / "opinions")
    monkeypatch.setenv("VISFORMER_MODELS", str(tmp_path / "opinions"))
    chosen = {"effects_view": view, "effects_answer": "good − bad", "effects_method": "masking"}
    chosen |= {"effects_corrupt": "I saw to the school", "effects_runs": "gradient"}
    app = new_app(page=PAGE, model="opinions", text="I went to the river", **chosen)
    said = [*texts(app), *(info.value for info in app.info)]
    wanted = {
        "weights": "the logit of “good” minus that of “bad” changes by",
        "shuffled": "the row “the whole text” moves most",
        "patching": "where good is ahead of bad by",
        "lens": "The lens is of models that predict next tokens",
    }
    if view != "methods":
        assert any(wanted[view] in one for one in said) or "as large in both runs" in " ".join(said), said
    boxes = [box for box in app.selectbox if box.key.startswith("effects_answer")]
    assert bool(boxes) == (view in ("weights", "methods", "patching"))
    if boxes:
        assert {"bad", "so-so", "good", "good − bad"} <= {*boxes[0].options}


def test_what_takes_long_waits_for_a_click(new_app, monkeypatch):
    monkeypatch.setattr(controls, "width", lambda: 10**6)
    app = open_page(new_app(), PAGE)
    assert not texts(app, "The largest effect here.")
    button(app, "Measure").click().run()
    assert texts(app, "The largest effect here.")
    assert not [one for one in app.button if one.label == "Cancel"], "it is done"
    choose(app, "effects_how", "mask")
    assert button(app, "Measure"), "this has not been asked for"


def effect_of(app):
    """Return the header of the message on the locked cell; None: there is none."""
    found = [one for one in app.get("bidi_component") if one.proto.id.endswith("attention_effect")]
    return read_message(found[0].proto.bytes)[0] if found else None


def test_the_explorer_tells_the_effect_of_a_clicked_cell_alone(new_app):
    place = {"stack": "decoder.cross_attn", "layer": 2, "head": 1, "query": 2, "key": 3}
    app = new_app(stack="cross", layer="3", head="2", query="3", key="4")
    assert effect_of(app) is None, "the browser has not reported it yet: the picture comes first"
    app.session_state["clicked_cell"] = place
    app.run()
    found = effect_of(app)
    said = f"Without this weight ({weight(1):.2f}), the log-probability of “东北” changes by "
    assert found["said"].startswith(said)
    assert {name: found[name] for name in place} == place


def test_a_clicked_value_opens_the_corrupt_run_with_and_without_it(new_app, exported, monkeypatch):
    clicks = noted(monkeypatch, controls, "panels", "on_click")
    link = {"effects_view": "patching", "effects_corrupt": "I saw a car.", "text": "I saw a cat."}
    app = new_app(page=PAGE, stack="encoder", **link)
    call(app, clicks[-1], Click("embed", 1, 3))
    assert texts(app, "Token 4 · cat / car, before layer 2: ")
    (link,) = [link.proto for link in app.main.get("page_link") if "compare" in link.proto.page]
    query = dict(parse_qsl(link.query_string))
    assert query["text"] == "I saw a car."
    other = new_app(page="research/compare", **query)
    assert ignored(other) == []
    overview = exported(other)[0][0][0]
    assert "In B, layer 2 has this of “I saw a cat.”: encoder vector, 4 · car." in overview.note
    assert not overview.values[0].any(), "the layer before it reads as before"
    assert overview.values[1].any()
    choose(app, "effects_view", "lens")
    choose(app, "effects_view", "patching")
    app.session_state["effects_corrupt"] = "I saw a bus."
    assert not texts(app.run(), "Token 4"), "of other maps nothing has been clicked"
