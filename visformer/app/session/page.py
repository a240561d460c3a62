"""The pages as Streamlit knows them, and the visitor's page and step of the guided lesson.

A page's name is the last part of its address; the first page's is "".
"""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from visformer.app.session import boxes, run, selection
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import State
from visformer.pictures.registry.picture import View, pages
from visformer.system.shipped import app_folder

StreamlitPage = Any  # what st.Page returns, for which Streamlit documents no type

_PAGES: Slot[tuple[str, dict[str, StreamlitPage]]] = Slot("pages", ("", {}))  # and the language of their titles
_PAGE: Slot[str | None] = Slot("page", None)
_GO: Slot[str | None] = Slot("go_to", None)
IS_NEW = Slot("page_is_new", False)
"""Whether the visitor came from another page and no run has ended since: the last entry of the history is its own."""


class LessonPlace(NamedTuple):
    """The step at which a lesson is open, or was left."""

    name: str = ""  # "": no lesson opened yet
    step: int = 1  # from 1
    is_open: bool = True


LESSON = Slot("lesson", LessonPlace(is_open=False))
LESSON_OPENED: Slot[State | None] = Slot("lesson_opened", None)
"""The state of the open step before any change, once it is drawn."""
LESSON_IS_PLAIN = Slot("lesson_plain", False, resets=True)
"""Whether the step was opened as the lesson has it, not by a link that changes it."""
LESSON_SENTENCE = Slot("lesson_sentence", "")
"""The visitor's own sentence, from before a lesson or typed during it; "": there is none."""
LESSON_LINK: Slot[State | None] = Slot("lesson_followed", None)
"""The state of a link to a step, until the step is opened."""


def page_named(name: str) -> StreamlitPage:
    """Return a page for ``st.page_link``, for which paths begin in the folder of Streamlit's script."""
    return all_pages()[name]


def all_pages() -> dict[str, StreamlitPage]:
    """Return every page by name, in order, titled in the visitor's language."""
    _, (language, made) = boxes.gettext(), _PAGES.get()
    if language != boxes.language():  # making them takes 3 ms, too long for each run
        made = {
            name: st.Page(_folder() / page.path, title=_(page.title), url_path=name, default=not name)
            for name, page in pages().items()
        }
        _PAGES.set((boxes.language(), made))
    return made


@cache
def _folder() -> Path:
    return app_folder() or Path()


def current_page() -> str:
    """Return the name of the current page."""
    return _PAGE.get() or ""


def current_view() -> View | None:
    """Return the view of the current page that its switch selects, by default the first; None: it has no views."""
    page = pages()[current_page()]
    name = run.current().choices.get(f"{page.name}_view")
    return page.view(name) if name else next(iter(page.views), None)


def enter(page: str) -> None:
    """Make a page the current one; its explorer starts from the last selection."""
    if _PAGE.get() != page:
        IS_NEW.set(_PAGE.get() is not None)
        _PAGE.set(page)
        boxes.OWN_MODEL.set(pages()[page].model)
        selection.START.set(selection.chosen())


def go_to(page: str) -> None:
    """Open this page in the next run."""
    _GO.set(page)


def requested_page(page: str) -> str:
    """Return the page that :func:`go_to` requested, once; else ``page``."""
    requested = _GO.pop()
    return page if requested is None else requested
