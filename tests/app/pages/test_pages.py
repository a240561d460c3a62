"""Every page but the first: its views and controls, the course notes, edits and misprints."""

import gc
import inspect
import threading
import weakref
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import streamlit

import visformer as vf
from tests.addresses import address_of
from tests.app.pages.words import popovers, untranslated
from tests.app.support import (
    PAGES,
    VIEWS,
    badges,
    button,
    captions,
    choose,
    choose_other_token,
    controls,
    enter,
    ignored,
    in_a_session,
    link_words,
    moved,
    open_page,
    path_of,
    picture_components,
    shows_something,
    texts,
)
from visformer import i18n
from visformer.app.edits import editing
from visformer.app.serving import capacity
from visformer.app.serving.workbench import Workbench, workbench
from visformer.app.session import boxes
from visformer.pictures.claims import claims_of
from visformer.pictures.lab import examples
from visformer.pictures.registry.picture import pages
from visformer.web.panels import Click

AT_DEFAULTS = [
    "",
    "see/map",
    "see/embedding",
    "understand/block",
    "research/heads",
    "research/compare",
    "understand/lab",
]
"""Pages whose first view has no controls outside the browser, numbers alone, or a slider that ends at its default."""

_FILES = ("formulas.py", "panel.py", "analysis", "pictures/charts", "pictures/worked", "web/pa", "export/tables.py")
COMPUTING = tuple(str(Path(vf.__file__).parent / each) for each in _FILES)
"""Files whose functions take time that grows with what they are given."""


def every_view():
    """Yield the rows of each page's views; `make test` has its first and its last, controls together."""
    for page in ("", *PAGES):
        _, views = VIEWS.get(page, ("", [""]))
        for view in views:
            some = view in (views[0], views[-1])
            yield pytest.param(page, view, True, id=f"{page}-{view}-together", marks=() if some else pytest.mark.full)
            yield pytest.param(page, view, False, id=f"{page}-{view}-each", marks=pytest.mark.full)


@contextmanager
def computed():
    """Watch new threads: which functions of those files they call inside a place to draw (True), and outside."""
    seen = {True: set(), False: set()}

    def watch(frame, event, _value):
        if event == "call" and frame.f_code.co_filename.startswith(COMPUTING):
            name = f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}"
            if frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a function, not a module or class that is imported
                seen[capacity.is_drawing()].add(name)

    threading.setprofile(watch)
    try:
        yield seen
    finally:
        threading.setprofile(None)


@pytest.mark.parametrize(("page", "view", "together"), [*every_view()])
def test_every_view_is_translated_drawn_in_its_place_and_restored_by_its_link(in_brackets, page, view, together):
    """With all controls at each of their ends, all options of switches, and the content of all popovers."""
    key, views = VIEWS.get(page, ("", [""]))
    is_first = view == views[0]
    with computed() as found:
        app = in_brackets(page, **({key: view} if view else {}))
    assert not app.exception
    waits = view == "live"  # for the start
    assert found[True] or view in ("letters", "kinds") or waits, "it draws, or has tables"
    assert not found[False], "pages compute where they are drawn, and few are drawn at a time"
    assert shows_something(app)
    wanted, missing = controls(app), untranslated(app)
    for name in popovers(app):
        app.session_state[name] = True
    missing += untranslated(app.run())
    wanted = [one for one in (controls(app) if is_first else wanted) if one[1] != key]
    for _ in moved(app, wanted, together=together):
        missing += untranslated(app)
    assert shows_something(app)
    link = address_of(app)
    assert {*link} - {"lang", "text"} or (is_first and page in AT_DEFAULTS)
    another = in_brackets(page, **link)
    assert not another.exception
    assert ignored(another) == []
    assert address_of(another) == link
    if is_first:
        for _ in moved(app, [("selectbox", boxes.MODEL)], together=together):
            missing += untranslated(app)
    assert not list(map(str, missing))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(path_of(page), marks=() if page.name in ("attention", "block", "head") else pytest.mark.full)
        for page in pages().values()
        if page.has_sentence and not page.model
    ],
)
def test_a_page_that_is_open_keeps_no_trace(new_app, monkeypatch, page):
    """They are in the cache, which has a limit. The last page that ran is held by its script, whoever opened it."""
    made = []
    workbench().load().result()  # what exists at that moment is never collected
    monkeypatch.setattr(Workbench, "_store", lambda self, key, result: made.append(weakref.ref(result)))
    opened = enter(new_app(page=page), "She likes the old school.")
    new_app(page="understand/lab")
    gc.collect()
    assert made and not opened.exception
    assert [ref() for ref in made if ref() is not None] == []


def test_tokens_that_no_page_expects_raise_no_exception(new_app):
    app = enter(new_app(), "😀 <script>")
    for page in PAGES:
        open_page(app, page)
        assert page == "understand/learning" or app.text[-1].value, page


def test_a_chosen_attention_stays_chosen_in_another_view(new_app):
    app = open_page(new_app(), "understand/head")
    choose(app, "head_view", "joined")
    choose(app, "head_stack", "decoder.cross_attn")
    choose(app, "head_view", "silence")
    (control,) = [group for group in app.get("button_group") if group.key == "head_stack"]
    assert control.value == "decoder.cross_attn"


def test_all_heads_has_no_slider_for_a_head_and_other_views_keep_theirs(new_app):
    def place():
        return {slider.label: slider.value for slider in app.slider if slider.label in ("Layer", "Head")}

    app = open_page(new_app(), "understand/head")
    (head,) = [slider for slider in app.slider if slider.label == "Head"]
    head.set_value(3).run()
    (layer,) = [slider for slider in app.slider if slider.label == "Layer"]
    layer.set_value(2).run()
    assert place() == {"Layer": 2, "Head": 3}
    choose(app, "head_view", "joined")
    assert place() == {"Layer": 2}
    choose(app, "head_view", "silence")
    assert place() == {}
    assert (address_of(app)["layer"], address_of(app)["head"]) == ("2", "3")
    choose(app, "head_view", "steps")
    assert place() == {"Layer": 2, "Head": 3}


def test_misprints_are_shown_beside_their_corrections(new_app):
    app, gettext = new_app(lang="zh"), i18n.translations("zh").gettext
    for page in ("see/positions", "see/masks", "understand/head", "understand/block"):
        open_page(app, page)
        claims = claims_of(page.split("/")[1])
        assert claims
        popover = next(block for block in app.get("popover") if block.proto.popover.label == gettext("Misprints"))
        about, *reasons = [caption.value for caption in popover.caption]
        assert "课程讲义" in about, "where they were printed"
        assert reasons == [gettext(claim.why) for claim in claims]
        for claim, markdown in zip(claims, popover.markdown, strict=True):
            plain = markdown.value.replace("$\\small ", "$")
            assert gettext(claim.printed) in plain
            assert gettext(claim.right) in plain


def test_the_formula_of_the_masks_follows_the_notation(new_app):
    app = open_page(new_app(), "see/masks")

    def formula():
        return next(one.value for one in app.main.latex if "softmax" in one.value)

    assert "(1 - " not in formula()
    next(radio for radio in app.radio if radio.label == "Notation").set_value(1).run()
    assert "(1 - " in formula()


def test_tokens_count_from_1_and_what_most_of_them_are_is_said_once(new_app):
    app = open_page(new_app(), "see/embedding")
    tokens, _merges = (one.value for one in app.dataframe)
    assert tokens["no."].tolist() == [*range(1, len(tokens) + 1)]
    remarks = [remark for remark in tokens["what it is"] if remark]
    assert remarks == ["the sentence ends here"], "each remark is of a token that needs one"
    assert captions(app, "A token without a remark is a word, a character or a punctuation mark.")


def test_sections_of_a_page_have_one_kind_of_heading(new_app):
    app = new_app()
    open_page(app, "see/embedding")
    for view, titles in (
        ("letters", ["The tokens and their ids", "How letters are merged"]),
        ("sums", ["Two tokens", "Every token in numbers"]),
    ):
        choose(app, "embedding_view", view)
        assert [heading.value for heading in app.main.header] == titles
        assert not [text.value for text in app.main.markdown if text.value.startswith("**")]


@pytest.mark.parametrize(("page", "view"), [("see/masks", "steps"), ("understand/block", "zeros")])
def test_a_small_picture_is_beside_the_formula(new_app, page, view):
    """Below both, half of the page would be empty."""
    app = new_app(page=page, **{VIEWS[page][0]: view})
    with_formula = [column for column in app.columns if column.latex]
    with_picture = [column for column in app.columns if column.get("bidi_component")]
    assert with_formula and with_picture
    assert not {*map(id, with_formula)} & {*map(id, with_picture)}, "the two are neighbours"


# Decoding and edits ---------------------------------------------------------------------------------------------------


def test_decoding_continues_from_another_token(new_app):
    app = open_page(new_app(), "understand/decoding")
    assert not texts(app, "Decoded with these settings: "), "as long as it is the translation above"
    token, probability = choose_other_token(app, 1).split()
    assert texts(app, "Decoded with these settings: ")
    assert app.session_state["decoding_step"] == 1, "its step stays selected"
    (chosen,) = texts(app, "Step 2: ")
    assert f"chose {token} ({probability})" in chosen, "probabilities are written alike everywhere"
    assert "去 (0.9" in chosen, "and what the model would have chosen"
    app.session_state["decoding_step"] = 0
    app.run()
    assert not texts(app, "Step 2: ")
    button(app, "Back to the model's own choices").click().run()
    assert not texts(app, "Decoded with these settings: ")


def test_clicks_switch_cells_rows_and_columns_of_the_scope():
    where, shape = "decoder.self_attn", (2, 2, 2, 3)

    def click(scope, row, column):
        editing.switch(scope, Click("mask", row, column), editing.flips(where, shape))
        return editing.flips(where, shape)

    with in_a_session({boxes.SOURCE: "a"}):
        all_heads, one_head = (editing.Scope(where, (0, 1), *place) for place in ((), (1, 0)))
        assert np.argwhere(click(one_head, 0, 1)).tolist() == [[1, 0, 0, 1]]
        assert click(all_heads, 0, 1)[:, :, 0, 1].all(), "switched in some heads: now in all"
        assert click(all_heads, 0, None)[:, :, 0].all()
        assert click(all_heads, None, 1).sum() == 4 * 4
        assert click(one_head, 0, None)[1, 0].tolist() == [[False] * 3, [False, True, False]]
        assert not editing.flips("encoder.self_attn", shape).any(), "another attention has cells of its own"
        assert not editing.flips(where, (2, 2, 4, 4)).any(), "and so has another sentence"


def test_clicks_scale_a_layer_or_a_head():
    where = "decoder.cross_attn"
    with in_a_session({boxes.SOURCE: "a"}):
        for column, expected in ((None, [0.5, 0.5]), (0, [1, 0.5])):
            editing.scale_all(where, Click("heads", 1, column), editing.head_scales(where, 3, 2), 0.5)
            assert editing.head_scales(where, 3, 2).tolist() == [[1, 1], expected, [1, 1]]


# Course notes ---------------------------------------------------------------------------------------------------------


def open_example(app, name):
    open_page(app, "understand/lab")
    app.session_state["lab_example"] = name
    app.run()
    assert not app.exception
    return app


def set_number(app, label, value):
    next(number for number in app.number_input if number.label == label).set_value(value).run()
    assert not app.exception


@pytest.mark.full
def test_every_worked_example_is_drawn(new_app):
    app = new_app()
    for example in examples().values():
        open_example(app, example.name)
        measured = example.name == "operations"  # a table beside the example's own
        assert len(app.dataframe) - measured == sum(values.size > 1 for values in example.inputs.values()), example.name
        if example.instead:
            assert "3" in app.text[-1].value
            button(app, "Show the closest one that fits").click().run()
            assert app.session_state["lab_example"] == example.instead
            continue
        assert picture_components(app) or example.curves is not None, example.name
        assert bool(app.get("plotly_chart")) == (example.curves is not None), example.name
        for name, remark in example.remarks.items():
            assert name in app.text[-1].value
            assert remark in app.text[-1].value
        for key in [slider.key for slider in app.slider]:
            app.slider(key=key).set_value(app.slider(key=key).max).run()
            assert not app.exception, (example.name, key)
            assert picture_components(app), (example.name, key)


def test_remarks_on_printed_values_disappear_when_inputs_change(new_app):
    app = open_example(new_app(), "sinusoid")
    assert "those of base 100" in app.text[-1].value
    assert "unlinked" not in link_words(app)
    set_number(app, "base", 500)
    assert "those that you typed are not in it" in link_words(app)["unlinked"]
    assert not [text for text in texts(app) if "those of base 100" in text]
    assert texts(app, "These inputs have been changed")


TYPED = {
    "empty cells": lambda table: table.map(lambda _: None),
    "one empty cell": lambda table: table.mask(np.add.outer(range(len(table)), range(table.shape[1])) == 0),
    "text": lambda table: table.map(lambda _: "abc"),
    "too large": lambda table: table * 0 + 1e308,
    "not a number": lambda table: table * np.inf,
}
RESHAPED = {
    "no row": lambda table: table.iloc[:0],
    "one row": lambda table: table.iloc[:1],
    "one column": lambda table: table.iloc[:, :1],
    "six thousand rows": lambda table: pd.concat([table] * (6000 // len(table))),
}


OFTEN = ("text", "six thousand rows")


@pytest.mark.parametrize(
    "change", [pytest.param(one, marks=() if one in OFTEN else pytest.mark.full) for one in (*TYPED, *RESHAPED)]
)
def test_any_input_of_the_lab_gets_a_sentence_or_a_picture(new_app, monkeypatch, change):
    """AppTest cannot type into a table, so a patched table returns what would have been typed."""

    def editor(table, num_rows, **_):
        if change in TYPED:
            return TYPED[change](table)
        return table if num_rows == "fixed" else RESHAPED[change](table)

    app = open_page(new_app(), "understand/lab")
    monkeypatch.setattr(streamlit, "data_editor", editor)
    n_refused = 0
    for example in examples().values():
        open_example(app, example.name)
        has_picture = bool(picture_components(app) or app.get("plotly_chart"))
        n_refused += bool({"The shapes do not fit", "Check the numbers"} & {*badges(app)}) or not has_picture
        assert has_picture or app.text[-1].value.endswith("."), example.name
    assert n_refused, "no example refused this input"


@pytest.mark.parametrize(
    ("example", "box", "number", "badge", "said"),
    [
        ("sinusoid", "base", 0, "Check the numbers", "base is 0"),
        ("sinusoid", "d", -1, "Check the numbers", "d is -1"),
        ("shapes", "n_heads", 7, "Check the numbers", "cannot be divided among 7 heads"),
        ("broken", "", 0, "The shapes do not fit", "3 is not 2"),
    ],
)
def test_the_lab_says_what_is_wrong_until_it_is_reset(new_app, example, box, number, badge, said):
    app = open_example(new_app(), example)
    if box:
        assert badges(app) == []
        set_number(app, box, number)
    assert badges(app) == [badge]
    assert said in app.text[-1].value
    if box:
        button(app, "Reset").click().run()
        assert badges(app) == [] and picture_components(app), "reset restores the example"


def test_the_boxes_of_the_lab_have_chinese_words_beside_the_symbols_and_so_have_errors(new_app):
    app = open_example(new_app(lang="zh"), "sinusoid")
    assert [box.label for box in app.number_input] == ["维度 d", "底数 base"]
    assert any("位置 pos" in markdown.value for markdown in app.markdown)
    set_number(app, "底数 base", 0)
    assert app.text[-1].value.startswith("底数 base")
