"""The limits on the number of visitors, and of pages that are drawn at a time.

What a page computes besides the model's passes (pictures, tables, worked examples) is computed where it is drawn.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from visformer.app.serving.admission import ADMISSION
from visformer.app.serving.connections import OPENINGS
from visformer.app.streamlit_private.other_sessions import count, own_session
from visformer.errors import N_, BusyError
from visformer.system import limits

_THREAD = threading.local()


def no_room() -> BusyError | None:
    """Return the error for a visitor who arrives when the server is full; None: there is room."""
    if count() <= (limit := min(limits.SESSIONS, OPENINGS.most)):  # the count includes this visitor
        return None
    return BusyError(
        N_("The server is full: it takes at most {limit} visitors at once. Try again in a minute."),
        limit=limit,
    )


def is_drawing() -> bool:
    """Whether this thread has one of the places where pages are drawn."""
    return getattr(_THREAD, "drawn", None) is not None


@contextmanager
def drawing(place: bool = True) -> Iterator[None]:
    """Wait for a place, and have it while a page or a part of one is drawn; a session has one thread, so one place."""
    before = is_drawing()
    _move(place)
    try:
        yield
    finally:
        _move(before)


aside = partial(drawing, False)
"""Gives another page the place, if any, while this one waits for something."""


def _move(place: bool) -> None:
    if place and not is_drawing():
        _THREAD.drawn = ADMISSION.draw(own_session())
    elif is_drawing() and not place:
        _THREAD.drawn()
        _THREAD.drawn = None
