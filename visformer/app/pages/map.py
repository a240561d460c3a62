"""The whole model on its page; the head in focus is that of the other pages."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.lessons import lesson_panel
from visformer.app.pages.attention import link_inside
from visformer.app.presentation import following
from visformer.app.session import address, boxes, run, selection
from visformer.app.widgets import controls, downloads
from visformer.app.widgets.component import map_picture
from visformer.pictures.map import PAGE, RECORD
from visformer.web.chunks import Focus

if TYPE_CHECKING:  # numpy
    pass


def page() -> None:
    """Draw the page: what it is, with the way into a lesson, and the model."""
    above = st.container(horizontal=True, vertical_alignment="center", key="map_line")
    whole_model()
    if run.current().trace is not None:
        with above:
            controls.look_for(boxes.gettext()(PAGE.views[0].look_for))
            lesson_panel.invitation()


@st.fragment
@controls.errors_shown()
def whole_model() -> None:
    """Draw the model. Choosing a head reruns only this."""
    trace = controls.current_trace(RECORD)
    if trace is None:
        return

    def select(value: Any) -> None:
        if selection.take(value, trace):
            address.update()
        following.publish()

    chosen = selection.selection(trace)
    focus = Focus(chosen.stack, chosen.layer, chosen.head)
    map_picture(trace, focus=focus, file=downloads.file_name(""), on_select=select)
    with st.container(horizontal=True, vertical_alignment="center"):
        link_inside(trace, chosen)
        downloads.model(trace)
