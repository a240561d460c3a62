"""The beginning of each run: admit the visitor, then let links, presenters and lessons set the state."""

import streamlit as st

from visformer.app.lessons import open_lesson
from visformer.app.presentation import following, guessing
from visformer.app.serving import capacity
from visformer.app.serving.admission import ADMISSION
from visformer.app.session import visit
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private import logs
from visformer.app.streamlit_private.other_sessions import address_of
from visformer.app.widgets import component, controls, queue_notice

_IS_INSIDE = Slot("inside", False)  # admitted visitors stay admitted


def begin() -> None:
    """Begin a run, before anything is drawn. Where the server is full, the run ends here."""
    logs.keep_typed_text_out()
    ADMISSION.notice, ADMISSION.address_of = queue_notice.notice, address_of
    component.make_up()
    visit.begin()
    if not _IS_INSIDE.get() and (problem := capacity.no_room()):
        st.set_page_config(page_title="Visformer")
        controls.show_error(problem)
        st.stop()
    _IS_INSIDE.set(True)
    following.catch_up()
    guessing.bring_back()
    open_lesson.follow()
