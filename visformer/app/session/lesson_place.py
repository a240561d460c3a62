"""Where the visitor is in the guided lesson."""

from typing import NamedTuple

from visformer.app.session.slots import Slot
from visformer.app.session.url_state import State


class Place(NamedTuple):
    """A step of a lesson that is open, or was left there."""

    name: str = ""  # "": no lesson yet
    step: int = 1  # from 1
    is_open: bool = True


PLACE = Slot("lesson", Place(is_open=False))
LINK: Slot[State | None] = Slot("lesson_followed", None)
"""The state of a link to a step, until the step is opened."""
