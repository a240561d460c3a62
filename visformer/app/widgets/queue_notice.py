"""What a visitor is told while others' sentences come first. Nothing is sent to the browser where none do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import streamlit as st

from visformer.app.serving.admission import OnWait
from visformer.app.session import boxes
from visformer.app.streamlit_private.other_sessions import own_session


@contextmanager
def notice() -> Iterator[OnWait]:
    """For :meth:`visformer.app.serving.admission.Admission.run`: tells how many come first, on the page being drawn.

    Ends the script's run, as Streamlit does, once the visitor has left or asks for something else.
    """
    place: Any = None
    said: int | None = None

    def look(before: int | None) -> None:
        nonlocal place, said
        if not own_session():
            return  # not a page
        _ = boxes.gettext()  # reads the session state, which raises what ends the run
        if before == said:
            return
        said, place = before, place or st.empty()
        if before is None:
            place.empty()
        else:
            place.caption(_("In the queue: {n} ahead of you.").format(n=before))

    try:
        yield look
    except Exception:
        if place is not None:
            place.empty()
        raise
    if place is not None:
        place.empty()
