"""The page that compares: its second side, the focus, and edits that other pages made."""

import pytest

from tests.addresses import address_of
from tests.app.support import button, call, choose, enter, ignored, noted, open_page, texts
from visformer.app.widgets import component
from visformer.pictures.sides import Sides
from visformer.web.selection import Selection

PAGE = "research/compare"


@pytest.fixture
def shown(exported):
    """Return the panels of the page's files, the map of all heads first."""
    return lambda app: [panel for shown, _ in exported(app) if not isinstance(shown, Sides) for panel in shown]


@pytest.fixture
def sides(exported):
    """Return what the two explorers show."""

    def only(app):
        (shown,) = [shown for shown, _ in exported(app) if isinstance(shown, Sides)]
        return shown

    return only


def second(app):
    (box,) = [box for box in app.text_input if box.label == "Sentence B"]
    return box


def test_the_page_opens_with_a_sentence_of_which_one_word_is_changed(new_app, shown):
    app = new_app(page=PAGE)
    assert second(app).value == "I went to Northeastern China."
    overview, _a, _b, difference = shown(app)
    assert overview.values.max() > 0.25
    assert "University / China" in difference.columns.texts
    enter(app, "I like tea.")
    assert second(app).value == "I like tea?"


@pytest.mark.parametrize("text", ["她 & he: 100 % <b>?", "I went to 东北 = home."])
def test_any_second_sentence_is_part_of_the_address(new_app, text):
    app = new_app(page=PAGE)
    second(app).set_value(text).run()
    assert address_of(app)["compare_other_text"] == text
    another = new_app(page=PAGE, **address_of(app))
    assert not another.exception
    assert (ignored(another), second(another).value) == ([], text)


def test_a_text_too_long_gets_a_sentence(new_app):
    app = new_app(page=PAGE)
    second(app).set_value("a" * 2000).run()
    assert not app.exception
    assert [text for text in texts(app) if "1,000" in text or "1000" in text]


def test_what_the_explorers_report_is_in_the_address_and_in_the_files(new_app, shown, monkeypatch):
    selects = noted(monkeypatch, component, "pair_picture", "on_select")
    app = new_app(page=PAGE)
    call(app, selects[-1], Selection("decoder.cross_attn", layer=1, head=5, query=2, key=3).start())
    place = {"stack": "cross", "layer": "2", "head": "6", "query": "3", "key": "4"}
    assert {name: address_of(app).get(name) for name in place} == place
    assert [panel.title for panel in shown(app)[1:3]] == ["A: layer 2, head 6", "B: layer 2, head 6"]
    call(app, selects[-1], {"stack": "nothing"})
    assert address_of(app)["head"] == "6"


def test_edits_of_other_pages_are_compared_and_stay_in_the_address(new_app, shown):
    app = new_app(page="understand/head", head_view="silence", stack="encoder", head_scales="1.3.0_2.1.50")
    open_page(app, PAGE)
    choose(app, "compare_view", "edited")
    assert address_of(app)["compare_scales"] == "encoder_1.3.0_2.1.50"
    overview = shown(app)[0]
    assert "No edit yet" not in overview.note
    another = new_app(page=PAGE, **address_of(app))
    assert ignored(another) == []
    assert shown(another)[0].values == pytest.approx(overview.values)
    button(another, "Reset").click().run()
    assert "compare_scales" not in address_of(another)
    assert "No edit yet" in shown(another)[0].note


def test_an_edited_mask_is_compared_too(new_app, shown):
    link = {"compare_view": "edited", "stack": "decoder", "compare_switched": "decoder_o0.0.0.0"}
    app = new_app(page=PAGE, **link)
    assert ignored(app) == []
    assert address_of(app)["compare_switched"] == "decoder_o0.0.0.0"
    _overview, a, b, _difference = shown(app)
    assert a.values[0, 1:].max() == 0
    assert b.values[0, 1:].max() > 0


@pytest.mark.parametrize(
    ("name", "value", "view"),
    [
        ("compare_scales", "cross_9.1.0", "edited"),
        ("compare_scales", "nothing", "edited"),
        ("compare_switched", "cross_o0.0.99.0", "edited"),
        ("compare_other_model", "some/where", "models"),
        ("compare_moment", "99", "moments"),
    ],
)
def test_what_a_link_cannot_mean_is_reported(new_app, name, value, view):
    app = new_app(page=PAGE, **{"compare_view": view, name: value})
    assert not app.exception
    (line,) = ignored(app)
    assert line.startswith(f"{name}={value}: ")


def test_two_models_share_an_attention_whatever_was_selected(new_app, shown, sides):
    app = new_app(page=PAGE, compare_view="models", compare_other_model="mini-gpt")
    assert [*sides(app).maps] == ["decoder.self_attn"]
    assert [panel.name for panel in shown(app)] == ["overview", "pattern_a", "pattern_b", "difference"]


def test_an_attention_that_the_other_model_lacks_comes_back_on_other_pages(new_app):
    link = {"compare_other_model": "mini-gpt", "stack": "cross", "layer": "2", "head": "3"}
    app = new_app(page=PAGE, compare_view="models", **link)
    assert address_of(app)["stack"] == "cross"
    open_page(app, "understand/head")
    place = {name: address_of(app).get(name) for name in ("stack", "layer", "head")}
    assert place == {"stack": "cross", "layer": "2", "head": "3"}
