"""Where the visitor is: on which page, and at which step of the guided lesson.

A page goes by the last part of its address, the first by "".
"""

from typing import NamedTuple

from streamlit.runtime.scriptrunner import get_script_run_ctx

from visformer.app.session import selection
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import State

FIRST = "attention"
"""What the first page would be called if its address were not "/", as the others are; who types it gets that page."""

_PAGE: Slot[str | None] = Slot("page", None)
_GO: Slot[str | None] = Slot("go_to", None)


class LessonPlace(NamedTuple):
    """A step of a lesson that is open, or was left there."""

    name: str = ""  # "": no lesson yet
    step: int = 1  # from 1
    is_open: bool = True


LESSON = Slot("lesson", LessonPlace(is_open=False))
LESSON_LINK: Slot[State | None] = Slot("lesson_followed", None)
"""The state of a link to a step, until the step is opened."""


def current_page() -> str:
    """The page that is shown."""
    return _PAGE.get() or ""


def enter(page: str) -> None:
    """A page that is opened begins with what was chosen last."""
    if _PAGE.get() != page:
        _PAGE.set(page)
        selection.START.set(selection.chosen())


def go_to(page: str) -> None:
    """Have the next run open this page."""
    _GO.set(page)


def wanted_page(page: str) -> str:
    """What :func:`go_to` was told, once; else ``page``."""
    wanted = _GO.pop()
    return page if wanted is None else wanted


def typed_page() -> str:
    """The page that the address names, whether or not there is one."""
    context = get_script_run_ctx()
    return (context.pages_manager.intended_page_name if context else None) or ""
