"""The notice that a visitor sees while waiting in the queue; without a queue nothing is sent to the browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import streamlit as st

from visformer.app.serving.admission import OnWait
from visformer.app.session import boxes
from visformer.app.streamlit_private.other_sessions import own_session


@contextmanager
def notice() -> Iterator[OnWait]:
    """Show the place in the queue on the page being drawn, for :meth:`visformer.app.serving.admission.Admission.run`.

    Ends the script run, as Streamlit does, once the visitor has left or triggered another run.
    """
    place: Any = None
    shown: int | None = None

    def look(before: int | None) -> None:
        nonlocal place, shown
        if not own_session():
            return  # outside a page
        _ = boxes.gettext()  # reads the session state, where Streamlit raises what ends the run
        if before == shown:
            return
        shown, place = before, place or st.empty()
        if before is None:
            place.empty()
        else:
            place.caption(_("In the queue: {n} ahead of you.").format(n=before))

    try:
        yield look
    except Exception:
        look(None)
        raise
    look(None)
