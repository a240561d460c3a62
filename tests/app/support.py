"""Reading and using the pages of a session; session state and address without a server."""

import json
import re
from contextlib import contextmanager
from unittest.mock import patch

import streamlit as st

from benchmarks.messages import read_message
from tests.app.pages.seen import script_of
from visformer.app.session import address as addresses
from visformer.app.session import boxes
from visformer.app.session.url_state import EXPLORER
from visformer.pictures.positions import OWN
from visformer.pictures.registry.picture import Page, pages


def path_of(page: Page) -> str:
    """Return the path of a page's script in ``pages/``, without its extension."""
    return page.path.removeprefix("pages/").removesuffix(".py")


def _switch(page: Page) -> tuple[str, list[str]]:
    return f"{page.name}_view", [name for name in page.titles if name != OWN.view]  # OWN needs a model that learns them


VIEWS = {path_of(page): _switch(page) for page in pages().values() if _switch(page)[1]}
"""Page to the key of its switch and the views that the bundled model has."""

PAGES = [path_of(page) for page in pages().values() if page.name != EXPLORER]
"""Every page but the explorer."""

_AROUND = {
    f"visformer_{name}"
    for name in ("link", "links", "address", "connection", "present", "words", "lesson", "focus", "shrink", "here")
}
_MESSAGES = ("attention_ahead", "present_words", "lesson_steps_words", "here_picture", "here_selected")
"""The ends of the names of what feeds no picture, or was sent ahead of it."""


# Reading a page -------------------------------------------------------------------------------------------------------


def texts(app, start=""):
    return [text.value for text in app.text if text.value.startswith(start)]


def captions(app, start=""):
    return [text for text in (unescaped(caption.value) for caption in app.caption) if text.startswith(start)]


def unescaped(markdown):
    """Return the text that is seen of Markdown with what :func:`visformer.app.session.markdown.plain` returned."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown).replace("\u2060", "")


def badges(app):
    """Return the words of each badge, which Streamlit sends as Markdown."""
    found = [re.fullmatch(r":\w+-badge\[(.*)\]", markdown.value) for markdown in app.markdown]
    return [match[1] for match in found if match]


def ignored(app):
    """Return the lines of the notice about what was ignored in a link or file."""
    return [line for text in texts(app) if ": " in text and "=" in text for line in text.split("\n")]


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
    return bool(picture_components(app) or app.get("plotly_chart") or app.dataframe or app.table)


# Using a page ---------------------------------------------------------------------------------------------------------


def button(app, label):
    (found,) = [button for button in app.button if unescaped(button.label) == label]
    return found


def enter(app, text, *, box=boxes.SOURCE):
    """Type a text and press Enter."""
    return app.text_input(key=box).set_value(text).run()


def open_page(app, page):
    app.switch_page(script_of(page))
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
    begin, calls = addresses.begin, [lambda: callback(*args)]  # once, also where another page is opened by a second run

    def begin_with_call():
        if calls:
            calls.pop()()
        begin()

    with patch.object(addresses, "begin", begin_with_call):
        app.run()
    assert not app.exception


def noted(monkeypatch, place, name, keyword):
    """Return what each later drawing of a component is to call, the last one last; only a browser could call it."""
    draw, given = getattr(place, name), []

    def note(*args, **how):
        given.append(how[keyword])
        return draw(*args, **how)

    monkeypatch.setattr(place, name, note)
    return given


def upload(app, popover, name, content):
    """Open a popover by its key and upload a file in it."""
    app.session_state[popover] = True
    app.run()
    app.get("file_uploader")[0].upload(name, content, "text/plain").run()
    assert not app.exception
    return app


def controls(app):
    """Return kind and key of each control; not the language, the examples and the model."""
    apart = (boxes.LANGUAGE, boxes.EXAMPLE, boxes.MODEL)
    kinds = ("slider", "number_input", "button_group", "toggle", "radio", "selectbox")
    return [(kind, widget.key) for kind in kinds for widget in app.get(kind) if widget.key not in apart]


def moved(app, wanted, *, together=False):
    """Move these controls to each of their ends, or through their options; yield what was moved, and where.

    One at a time, or all ``together``, a few options of each. Of a box that offers data, only the last option is
    chosen. Switches return to their first option, as other controls depend on it.
    """
    if together:
        ends = {one: _some(_ends(app, *one)) for one in wanted}
        times = max(map(len, ends.values()), default=0)
        rounds = ([(*one, all_[time]) for one, all_ in ends.items() if time < len(all_)] for time in range(times))
    else:
        rounds = ([(*one, end)] for one in wanted for end in _ends(app, *one))
    for moves in rounds:
        were_there = [_set(app, *move) for move in moves]
        if any(were_there):
            app.run()
            assert not app.exception, moves
            yield moves


def _some(ends, most=3):
    """Return a few of many options, the last among them."""
    return ends if len(ends) <= most else (*ends[: -1 : len(ends) // (most - 1)][: most - 1], ends[-1])


def _ends(app, kind, key):
    if kind in ("slider", "number_input"):
        return "min", "max"
    if kind == "toggle":
        return ("other",)
    options = next((one.options for one in app.get(kind) if one.key == key), [])
    if kind == "selectbox" and not all("⟦" in option for option in options):  # of a token or text: no words of ours
        return (len(options) - 1,)
    return (*range(1, len(options)), *([0] if kind == "button_group" else []))


def _set(app, kind, key, end):
    """Set the value of a control, if the view still has it."""
    widget = next((one for one in app.get(kind) if one.key == key), None)
    if widget is None or (isinstance(end, int) and end >= len(widget.options)):
        return False
    if kind in ("slider", "number_input"):
        widget.set_value(getattr(widget, end))
    elif kind == "toggle":
        widget.set_value(not widget.value)
    elif kind == "selectbox":
        widget.select_index(end)
    else:  # by its text on screen, as AppTest has no values of its options
        widget.__class__ = type("Formatted", (type(widget),), {"format_func": property(lambda _: str)})
        widget.set_value(widget.options[end])
    return True


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
