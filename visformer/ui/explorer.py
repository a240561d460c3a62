"""The explorer on its page: what is chosen in it reaches the address, and the page that looks inside a head."""

from typing import Any

import streamlit as st

from visformer.canvas.component import attention_view, show_attention
from visformer.ui import controls, keep, state
from visformer.ui.models import MODEL


@st.fragment
def explorer(look_for: str) -> None:
    """Every head of the sentence's Trace, and a way into the one in focus. Choosing runs this fragment alone again.

    Args:
        look_for: stands above the picture.
    """
    _ = state.gettext()
    above, picture = st.container(), st.container(gap=None)  # what feeds the picture takes no room

    def kept(value: Any) -> None:
        trace = controls.current_trace(of_chosen=True)
        if trace is not None:
            state.keep_selection(value, trace)

    with picture:
        attention_view(key=state.CANVAS, on_select=kept)
        # Nothing is sent between the Trace and its picture: Streamlit waits 5 ms after each sending.
        trace = controls.current_trace(of_chosen=True)
        start = state.start().start()
        show_attention(trace, key=state.CANVAS, gettext=_, lang=state.language(), start=start)
    if trace is None:
        return
    above.caption(look_for)
    chosen = state.selection(trace)
    with st.container(horizontal=True, vertical_alignment="center"):
        if state.model() in (None, MODEL):  # the page behind the link looks inside our own
            st.page_link(
                "pages/understand/head.py",
                label=_("Inside this head: layer {layer}, head {head}").format(
                    layer=chosen.layer + 1, head=chosen.head + 1
                ),
                query_params=state.address(),
            )
        keep.attention(trace)
