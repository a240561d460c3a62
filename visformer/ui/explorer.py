"""The explorer on its page: what is chosen in it reaches the address, and the page that looks inside a head."""

from typing import Any

import streamlit as st

from visformer.canvas.component import attention
from visformer.canvas.selection import Selection
from visformer.ui import controls, state


@st.fragment
def explorer(look_for: str) -> None:
    """Every head of the sentence's Trace, and a way into the one in focus. Choosing runs this fragment alone again.

    Args:
        look_for: stands above the picture.
    """
    _ = state.gettext()
    above, picture = st.container(), st.container(gap=None)  # there before the Trace is, so that nothing comes between
    trace = controls.current_trace()
    if trace is None:
        return

    def keep(value: Any) -> None:
        chosen = Selection.from_browser(value)
        if chosen is not None:
            state.keep_selection(chosen, trace)

    with picture:
        attention(
            trace, key=state.CANVAS, gettext=_, lang=state.language(), start=state.start().start(), on_select=keep
        )
    above.caption(look_for)
    chosen = state.selection()
    st.page_link(
        "pages/understand/head.py",
        label=_("Inside this head: layer {layer}, head {head}").format(layer=chosen.layer + 1, head=chosen.head + 1),
    )
