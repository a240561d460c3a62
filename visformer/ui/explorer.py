"""The explorer on its page: what is chosen in it reaches the address, and the page that looks inside a head."""

from typing import Any

import streamlit as st

from visformer.canvas.component import attention
from visformer.canvas.selection import Selection
from visformer.trace import Trace
from visformer.ui import state


@st.fragment
def explorer(trace: Trace) -> None:
    """Every head of the Trace, and a way into the one in focus. Choosing runs this fragment alone again."""
    _ = state.gettext()

    def keep(value: Any) -> None:
        chosen = Selection.from_browser(value)
        if chosen is not None:
            state.keep_selection(chosen, trace)

    attention(trace, key=state.CANVAS, gettext=_, lang=state.language(), start=state.start().start(), on_select=keep)
    chosen = state.selection()
    st.page_link(
        "pages/understand/head.py",
        label=_("Inside this head: layer {layer}, head {head}").format(layer=chosen.layer + 1, head=chosen.head + 1),
    )
