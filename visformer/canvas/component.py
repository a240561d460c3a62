"""The canvas in a Streamlit page."""

from collections.abc import Callable

import streamlit as st

from visformer.canvas.assets import script, stylesheet
from visformer.canvas.payload import focus_from, pack
from visformer.trace import Trace

_COMPONENT = st.components.v2.component(
    "visformer_attention",
    html='<div class="vf-host"></div>',
    css=stylesheet(),
    js=script("streamlit.js"),
)


@st.fragment
def attention(trace: Trace, *, key: str, gettext: Callable[[str], str] = str, lang: str = "en") -> None:
    """Every head of the Trace's attention.

    Hovering, clicks and switches happen in the browser. Only where a sentence is so long that not all heads' exact
    weights were sent does a head in focus come back here, and this fragment alone runs again.

    Args:
        trace: what to draw.
        key: the component's key in the session state.
        gettext: translates the words on the picture.
        lang: the language that gettext speaks.
    """
    focus = focus_from(st.session_state.get(key) or {})
    _COMPONENT(data=pack(trace, gettext=gettext, lang=lang, focus=focus), key=key)
