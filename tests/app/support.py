"""Reading and using the pages of a session; session state and address without a server."""

import json
import re
from contextlib import contextmanager
from unittest.mock import patch

import streamlit as st

from benchmarks.messages import read_message
from tests.addresses import fields_of
from visformer.app.session import boxes, visit

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
    "measure/compare": ("compare_view", ["sentences", "targets", "edited", "models", "matches", "moments"]),
    "understand/decoding": ("decoding_view", ["steps", "beams"]),
    "measure/effects": ("effects_view", ["weights", "shuffled", "methods", "patching", "lens"]),
    "measure/heads": ("heads_view", ["ranked", "pruned", "known"]),
    "measure/atlas": ("atlas_view", ["heads", "two"]),
    "measure/learning": ("learning_view", ["live", "history"]),
}
"""Page to the key of its switch and its views."""

PAGES = ["see/map", *VIEWS, "understand/lab"]
"""Every page but the explorer."""

_AROUND = {
    f"visformer_{name}"
    for name in ("link", "links", "address", "connection", "present", "words", "lesson", "focus", "here")
}
_MESSAGES = ("attention_ahead", "present_words", "lesson_steps_words", "here_picture", "here_selected")
"""The ends of the names of what feeds no picture, or was sent ahead of it."""


# Reading a page -------------------------------------------------------------------------------------------------------


def texts(app, start=""):
    return [text.value for text in app.text if text.value.startswith(start)]


def captions(app, start=""):
    return [caption.value for caption in app.caption if caption.value.startswith(start)]


def badges(app):
    """Return the words of each badge, which Streamlit sends as Markdown."""
    found = [re.fullmatch(r":\w+-badge\[(.*)\]", markdown.value) for markdown in app.markdown]
    return [match[1] for match in found if match]


def ignored(app):
    """Return the lines of the notice about what was ignored in a link or file."""
    return [line for text in texts(app) if ": " in text and "=" in text for line in text.split("\n")]


def address_of(app):
    """Return the fields of a session's address."""
    return fields_of({name: value[0] if isinstance(value, list) else value for name, value in app.query_params.items()})


def _component(app, name):
    (found,) = [one for one in app.get("bidi_component") if one.proto.id.endswith(name)] or [None]
    return found


def picture_components(app):
    """Return the components that draw the picture of a page: the view, then what feeds it.

    A picture that was sent ahead of the page is the first to feed it.
    """
    ahead = _component(app, "attention_ahead")
    others = [one for one in app.get("bidi_component") if one.proto.component_name not in _AROUND]
    fed = [_component(app, name) for name in _MESSAGES]
    view, *feeds = [one for one in others if one not in fed] or [None]
    has_picture = ahead is not None and read_message(ahead.proto.bytes)[0]["to"]
    return [one for one in (view, ahead if has_picture else None, *feeds) if one is not None]


def was_sent_ahead(app):
    """Return whether the picture of the explorer was sent ahead of the page."""
    return read_message(_component(app, "attention_ahead").proto.bytes)[0]["kind"] == "attention"


def presented(app):
    """Return what a presentation of the page shows, from the header of its message."""
    return read_message(_component(app, "present_words").proto.bytes)[0]


def link_words(app):
    """Return the words of the button that copies the link."""
    return json.loads(_component(app, "copy_link").proto.bytes)


def here(app):
    """Return the drawing of the model in the side bar, from the header of its message."""
    return read_message(_component(app, "here_picture").proto.bytes)[0]


def lesson_bar(app):
    """Return what the bar of a lesson shows, from the header of its message; None: there is no bar."""
    bar = _component(app, "lesson_steps_words")
    return bar and read_message(bar.proto.bytes)[0]


def shows_something(app):
    return bool(picture_components(app) or app.get("plotly_chart") or app.dataframe)


# Using a page ---------------------------------------------------------------------------------------------------------


def button(app, label):
    (found,) = [button for button in app.button if button.label == label]
    return found


def enter(app, text, *, box=boxes.SOURCE):
    """Type a text and press Enter."""
    return app.text_input(key=box).set_value(text).run()


def open_page(app, page):
    app.switch_page(f"pages/{page}.py")
    app.run()
    assert not app.exception
    return app


def choose(app, key, value):
    """Select an option of a switch."""
    next(group for group in app.get("button_group") if group.key == key).set_value(value)
    app.run()
    assert not app.exception


def choose_other_token(app, step):
    """On the page about decoding, choose the first other candidate of a step, from 0; return its label."""
    app.session_state["decoding_step"] = step  # a click, which only a browser can send
    app.run()
    (box,) = [box for box in app.selectbox if box.key.startswith("decoding_other")]
    label = box.options[0]
    box.select_index(0).run()
    assert not app.exception
    return label


def call(app, callback, *args):
    """Run the app with the callback of a component, whose clicks only a browser can send."""
    begin, calls = visit.begin, [lambda: callback(*args)]  # once, also where another page is opened by a second run

    def begin_with_call():
        if calls:
            calls.pop()()
        begin()

    with patch.object(visit, "begin", begin_with_call):
        app.run()
    assert not app.exception


def upload(app, popover, name, content):
    """Open a popover by its key and upload a file in it."""
    app.session_state[popover] = True
    app.run()
    app.get("file_uploader")[0].upload(name, content, "text/plain").run()
    assert not app.exception
    return app


def move_all_controls(app):
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
    for key in [w.key for w in app.radio]:
        app.radio(key=key).set_value(1).run()  # the second option, as they are numbers
        assert not app.exception, key
    for key in [w.key for w in app.selectbox if w.key not in (boxes.EXAMPLE, boxes.MODEL)]:
        if key not in [w.key for w in app.selectbox]:  # it depended on another one
            continue
        app.selectbox(key=key).select_index(len(app.selectbox(key=key).options) - 1).run()
        assert not app.exception, key


# Without a server -----------------------------------------------------------------------------------------------------


@contextmanager
def in_a_session(values):
    """Replace ``st.session_state`` by a copy of this dict."""
    with patch.object(st, "session_state", dict(values)) as session:
        yield session


@contextmanager
def address():
    """Replace ``st.query_params`` by a dict."""
    with patch.object(st, "query_params", _Address()) as link:
        yield link


class _Address(dict):
    """As much of ``st.query_params`` as the app uses."""

    def to_dict(self):
        return dict(self)

    def from_dict(self, wanted):
        self.clear()
        self.update(wanted)
