"""Where the visitor is in the guided lesson."""

from visformer.app.session.slots import Slot
from visformer.app.session.url_state import State

_LESSON, _STEP, _IS_OPEN = Slot("lesson", ""), Slot("lesson_step", 1), Slot("in_lesson", False)
LINK: Slot[State | None] = Slot("lesson_followed", None)
"""The state of a link to a step, until the step is opened."""


def set_lesson(name: str, step: int, *, is_open: bool = True) -> None:
    """The guided lesson that is shown, or was left at this step."""
    _LESSON.set(name)
    _STEP.set(step)
    _IS_OPEN.set(is_open)


def lesson() -> tuple[str, int, bool]:
    """The guided lesson by its name ("": none yet), its step from 1, and whether it is open."""
    return _LESSON.get(), _STEP.get(), _IS_OPEN.get()


def is_open() -> bool:
    """Whether a lesson is shown."""
    return _IS_OPEN.get()
