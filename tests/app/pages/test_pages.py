"""Every page but the first: each control is moved to its ends, in both languages, and none raises an exception."""

import numpy as np
import pandas as pd
import pytest
import streamlit

from tests.app.support import pictures
from visformer import i18n
from visformer.app.session import boxes
from visformer.pictures.examples.claims import claims_of
from visformer.pictures.lab import examples
from visformer.web.panels import Click

VIEWS = {
    "see/tokens": ("tokens_side", ["src", "tgt"]),
    "see/positions": (
        "positions_view",
        ["waves", "matrix", "angles", "similarity", "rotation", "learned", "rotary", "alibi", "kinds"],
    ),
    "see/embedding": ("embedding_side", ["src", "tgt"]),
    "see/masks": ("masks_view", ["batch", "scores", "steps", "edit"]),
    "understand/head": ("head_view", ["steps", "joined", "silence"]),
    "understand/block": ("block_view", ["stream", "added", "zeros", "similar", "norms", "parts"]),
    "understand/decoding": ("decoding_view", ["steps", "beams"]),
}
PAGES = [*VIEWS, "understand/lab"]


def open_page(app, page):
    app.switch_page(f"pages/{page}.py")
    app.run()
    assert not app.exception
    return app


def choose(app, key, value):
    next(group for group in app.get("button_group") if group.key == key).set_value(value)
    app.run()
    assert not app.exception


def drive(app):
    """Move each control to each of its ends, one at a time."""
    for kind in ("slider", "number_input"):
        for key in [widget.key for widget in app.get(kind)]:
            for end in ("min", "max"):
                widget = next((w for w in app.get(kind) if w.key == key), None)
                if widget is None:  # the view no longer has it
                    continue
                widget.set_value(getattr(widget, end))
                app.run()
                assert not app.exception, (key, end)
    for key in [w.key for w in app.toggle]:
        app.toggle(key=key).set_value(not app.toggle(key=key).value).run()
        assert not app.exception, key
    for key in [w.key for w in app.selectbox if w.key not in (boxes.EXAMPLE, boxes.MODEL)]:
        app.selectbox(key=key).select_index(len(app.selectbox(key=key).options) - 1).run()
        assert not app.exception, key
    for radio in app.radio:
        radio.set_value(radio.options and True).run()
        assert not app.exception


def shown(app):
    return len(pictures(app)) + len(app.get("plotly_chart")) + len(app.dataframe)


@pytest.mark.parametrize(("page", "view"), [(page, view) for page, (_, views) in VIEWS.items() for view in views])
def test_every_control_of_every_view(new_app, page, view):
    app = open_page(new_app(), page)
    choose(app, VIEWS[page][0], view)
    assert shown(app), "no view is empty"
    drive(app)
    assert shown(app)


@pytest.mark.parametrize("text", ["", "😀 <script>"])
def test_bad_input_gets_a_sentence_and_no_exception(new_app, text):
    app = new_app()
    app.text_input(key=boxes.SOURCE).set_value(text).run()
    for page in PAGES:
        assert open_page(app, page).text[-1].value, page


def open_example(app, name):
    open_page(app, "understand/lab")
    app.selectbox(key="lab_example").select_index([*examples()].index(name)).run()
    assert not app.exception
    return app


@pytest.mark.parametrize("example", examples().values(), ids=examples())
def test_every_worked_example(new_app, example):
    app = open_example(new_app(), example.name)
    assert len(app.dataframe) == sum(values.size > 1 for values in example.inputs.values())
    if example.instead:
        assert "3" in app.text[-1].value
        next(button for button in app.button if button.label == "Show the closest one that fits").click().run()
        assert app.selectbox(key="lab_example").value == example.instead
        return
    assert pictures(app)
    for name, remark in example.remarks.items():
        assert name in app.text[-1].value
        assert remark in app.text[-1].value
    drive_to_the_last_slice(app)


def test_printed_values_apply_only_to_their_own_inputs(new_app):
    """With others, no printed value is called wrong, and the remarks on them are not shown."""
    app = open_example(new_app(), "sinusoid")
    assert "those of base 100" in app.text[-1].value
    next(number for number in app.number_input if number.label == "base").set_value(500).run()
    assert not app.exception
    assert not [text for text in app.text if "those of base 100" in text.value]
    assert [text for text in app.text if text.value.startswith("These inputs have been changed")]


def drive_to_the_last_slice(app):
    for slider in [slider.key for slider in app.slider]:
        widget = app.slider(key=slider)
        widget.set_value(widget.max).run()
        assert not app.exception
        assert pictures(app)


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


@pytest.mark.parametrize("typed", [*TYPED, *RESHAPED])
def test_any_input_of_the_lab_gets_a_sentence_or_a_picture(new_app, monkeypatch, typed):
    """AppTest cannot type into a table, so a patched table returns what would have been typed."""

    def editor(table, num_rows, **_):
        change = TYPED.get(typed) or (RESHAPED[typed] if num_rows != "fixed" else lambda table: table)
        return change(table)

    app = open_page(new_app(), "understand/lab")
    monkeypatch.setattr(streamlit, "data_editor", editor)
    told = 0
    for example in examples().values():
        app.selectbox(key="lab_example").select(example.name).run()
        assert not app.exception, example.name
        told += "This does not fit" in [badge.value for badge in app.get("badge")] or not pictures(app)
        assert pictures(app) or app.text[-1].value.endswith("."), example.name
    assert told, "some example cannot be computed from this"


def test_an_impossible_number_gets_a_sentence(new_app):
    app = open_example(new_app(), "shapes")
    next(number for number in app.number_input if number.label == "n_heads").set_value(7).run()
    assert not app.exception
    assert "cannot be divided among 7 heads" in app.text[-1].value
    next(button for button in app.button if button.label == "Reset").click().run()
    assert pictures(app), "reset brings the example back"


@pytest.mark.parametrize("page", ["see/positions", "see/masks", "understand/head", "understand/block"])
def test_misprints_are_shown_beside_what_is_right(new_app, page):
    app = open_page(new_app(lang="zh"), page)
    gettext = i18n.translations("zh").gettext
    found = claims_of(page.split("/")[1])
    assert found
    claims = next(block for block in app.get("popover") if block.proto.popover.label == gettext("Misprints"))
    shown = [markdown.value for markdown in claims.markdown]
    assert len(shown) == len(found)
    about, *whys = [caption.value for caption in claims.caption]
    assert "课程讲义" in about, "which notes they are"
    assert whys == [gettext(claim.why) for claim in found]
    for claim, text in zip(found, shown, strict=True):
        plain = text.replace("$\\small ", "$")
        assert gettext(claim.printed) in plain
        assert gettext(claim.right) in plain


def test_decoding_continues_from_another_candidate(new_app):
    """A click on a step comes from the browser only: its handler's key is set here."""

    def told(app, begins):
        return [text.value for text in app.text if text.value.startswith(begins)]

    app = open_page(new_app(), "understand/decoding")
    assert not told(app, "Decoded with these settings: "), "as long as it is the translation above"
    app.session_state["decoding_step"] = 2
    app.run()
    others = next(box for box in app.selectbox if box.key.startswith("decoding_other"))
    token, probability = others.options[0].split()
    others.select_index(0).run()
    assert not app.exception
    assert told(app, "Decoded with these settings: ")
    assert app.session_state["decoding_step"] == 2, "the step where it was taken is still looked at"
    (taken,) = told(app, "Step 3: ")
    assert f"chose {token} ({probability})" in taken, "probabilities are written alike everywhere"
    assert "东北 (0.99" in taken, "and what would have been taken"
    app.session_state["decoding_step"] = 0
    app.run()
    assert not told(app, "Step 3: ")
    next(button for button in app.button if button.label == "Back to the model's own choices").click().run()
    assert not told(app, "Decoded with these settings: ")


def test_clicks_switch_cells_rows_and_columns_of_the_scope():
    from tests.app.support import in_a_session
    from visformer.app.edits import editing

    where, shape = "decoder.self_attn", (2, 2, 2, 3)

    def click(scope, row, column):
        editing.switch(scope, Click("mask", row, column), editing.flips(where, shape))
        return editing.flips(where, shape)

    with in_a_session({boxes.SOURCE: "a"}):
        every, one = editing.Scope(where), editing.Scope(where, layer=1, head=0)
        assert np.argwhere(click(one, 0, 1)).tolist() == [[1, 0, 0, 1]]
        assert click(every, 0, 1)[:, :, 0, 1].all(), "not all had it: all get it"
        assert click(every, 0, None)[:, :, 0].all()
        assert click(every, None, 1).sum() == 4 * 4
        assert click(one, 0, None)[1, 0].tolist() == [[False] * 3, [False, True, False]]
        assert not editing.flips("encoder.self_attn", shape).any(), "another attention has cells of its own"
        assert not editing.flips(where, (2, 2, 4, 4)).any(), "and so has another sentence"
        for column, then in ((None, [0.5, 0.5]), (0, [1, 0.5])):
            before = editing.scales("decoder.cross_attn", 3, 2)
            editing.scale_all("decoder.cross_attn", Click("heads", 1, column), before, 0.5)
            assert editing.scales("decoder.cross_attn", 3, 2).tolist() == [[1, 1], then, [1, 1]]


def test_a_chosen_attention_stays_chosen_in_another_view(new_app):
    app = open_page(new_app(), "understand/head")
    choose(app, "head_view", "joined")
    choose(app, "head_stack", "decoder.cross_attn")
    choose(app, "head_view", "silence")
    (control,) = [group for group in app.get("button_group") if group.key == "head_stack"]
    assert control.value == "decoder.cross_attn"
