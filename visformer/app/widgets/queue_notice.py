"""What a visitor is told while others' sentences come first. Nothing is sent to the browser where none do."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from visformer.app.serving.admission import Look
from visformer.app.session import boxes


@contextmanager
def notice() -> Iterator[Look]:
    """For :meth:`visformer.app.serving.admission.Admission.run`: tells how many come first, on the page being drawn.

    Ends the script's run, as Streamlit does, once the visitor has left or asks for something else.
    """
    place: DeltaGenerator | None = None
    said: int | None = None

    def look(before: int | None) -> None:
        nonlocal place, said
        if get_script_run_ctx(suppress_warning=True) is None:
            return  # not a page
        _ = boxes.gettext()  # reads the session state, which raises what ends the run
        if before == said:
            return
        said, place = before, place or st.empty()
        if before is None:
            place.empty()
        else:
            place.caption(_("In the queue: {n} before you.").format(n=before))

    try:
        yield look
    except Exception:
        if place is not None:
            place.empty()
        raise
    if place is not None:
        place.empty()
