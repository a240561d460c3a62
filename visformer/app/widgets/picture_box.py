"""The box of a model of transformers that reads pictures: the picture, and the text with it or instead of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.adapters import picture_files
from visformer.app.serving import uploaded_pictures
from visformer.app.serving.uploaded_pictures import EXAMPLES, NONE, named, text_of
from visformer.app.session import boxes
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private.other_sessions import own_session
from visformer.app.widgets import picture_file
from visformer.errors import VisformerError
from visformer.pictures.examples import EXAMPLES as SENTENCES

if TYPE_CHECKING:
    from visformer.trace import Trace

_TEXT = Slot("picture_text", "")


def draw(place: Any, trace: "Trace | None", pictures: str, *, on_change: Callable[[], object]) -> None:
    """Draw the box.

    Args:
        place: the container.
        trace: of the model, if there is one.
        pictures: which ones the model reads, see :class:`visformer.adapters.base.TracedModel`; not "none".
        on_change: called when a text was typed.
    """
    _, (name, text) = boxes.gettext(), named(boxes.typed())
    if pictures != "instead":
        name = name or EXAMPLES[0]
    shown = "" if name == NONE else name
    if shown:
        uploaded_pictures.show(shown, own_session())
    with place, st.container(horizontal=True, vertical_alignment="bottom", key="picture_box"):
        if shown:
            picture_file.thumbnail(_image(shown, trace))
        if pictures == "with" or not shown:
            _TEXT.set(text)
            st.text_input(
                _("Text"),
                key=_TEXT.key,
                placeholder=_("Type a question") if pictures == "with" else _("Type a sentence"),
                on_change=_type,
                args=(name, on_change),
            )
        with st.popover(_("Change the picture") if shown else _("Choose a picture")):
            is_default = pictures != "with" and text == SENTENCES[0]
            _choices("" if is_default else text, pictures, is_shown=bool(shown))


def _image(name: str, trace: "Trace | None") -> Any:
    """Return the picture as the model reads it, or as it was uploaded."""
    if trace is not None and "src.pixels" in trace:
        return trace.image
    try:
        file = uploaded_pictures.file_of(name)
    except VisformerError:  # which the page says
        file = uploaded_pictures.file_of(EXAMPLES[0])
    return picture_files.Prompt("", file).image


def _choices(text: str, pictures: str, *, is_shown: bool) -> None:
    _ = boxes.gettext()
    with st.container(horizontal=True, key="picture_examples"):
        for name in EXAMPLES:
            label = _("Example {n}").format(n=name)
            st.button(label, key=f"picture_{name}", on_click=_take, args=(name, text), type="tertiary")
        if is_shown and pictures != "alone":
            label = _("Without a picture") if pictures == "with" else _("A text instead")
            alone = text_of(NONE, text) if pictures == "with" else text
            st.button(label, key="picture_none", on_click=boxes.enter_example, args=(alone,), type="tertiary")

    def take(file: bytes) -> None:
        _take(uploaded_pictures.keep(file, own_session()), text)

    about = _("It stays in this server's memory while you look at it: a link holds its name, not the picture.")
    picture_file.draw(picture_files.kept, take, about=about)


def _take(name: str, text: str) -> None:
    boxes.enter_example(text_of(name, text))


def _type(name: str, on_change: Callable[[], object]) -> None:
    boxes.SOURCE_BOX.set(text_of(name, _TEXT.get()) if name else _TEXT.get())
    on_change()
