"""The explorer on its page: what is chosen in it reaches the address, and the page that looks inside a head."""

from typing import Any

import streamlit as st

from visformer import i18n
from visformer.canvas.component import attention_view, show_attention
from visformer.ui import controls, following, keep, state


@st.fragment
@controls.told
def explorer(look_for: str, *, crossing: str, alone: str) -> None:
    """Every head of the sentence's Trace, and a way into the one in focus. Choosing runs this fragment alone again.

    Args:
        look_for: stands above the picture.
        crossing: behind it, of a model with cross-attention.
        alone: behind it, of any other.
    """
    _ = state.gettext()
    above, picture = st.container(), st.container(gap=None)  # what feeds the picture takes no room

    def kept(value: Any) -> None:
        trace = controls.current_trace()
        if trace is not None:
            state.keep_selection(value, trace)
            following.publish()

    with picture:
        attention_view(key=state.CANVAS, on_select=kept)
        # Nothing is sent between the Trace and its picture: Streamlit waits 5 ms after each sending.
        with above:  # where one is told to wait
            trace = controls.current_trace()
        start = {**state.start(trace).start(), "opened": state.opened()}
        show_attention(trace, key=state.CANVAS, gettext=_, lang=state.language(), start=start, file=keep.file_name(""))
    if trace is None:
        return
    said = i18n.paragraph(look_for, crossing if "decoder.0.cross_attn.pattern" in trace else alone)
    controls.look_for(said, above)
    chosen = state.selection(trace)
    with st.container(horizontal=True, vertical_alignment="center"):
        if trace.lacks(f"{chosen.stack.replace('.', '.0.')}.q") is None:
            st.page_link(
                "pages/understand/head.py",
                label=_("Inside this head: layer {layer}, head {head}").format(
                    layer=chosen.layer + 1, head=chosen.head + 1
                ),
                query_params=state.address(),
            )
        keep.attention(trace)
