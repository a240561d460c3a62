"""The canvas in a Streamlit page."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from visformer.canvas.assets import script, stylesheet
from visformer.canvas.panels import Click, click_from, pack_panels
from visformer.canvas.payload import focus_from, pack
from visformer.panel import Panel
from visformer.trace import Trace

_HTML = '<div class="vf-host"></div>'
_ATTENTION = st.components.v2.component(
    "visformer_attention", html=_HTML, css=stylesheet(), js=script("streamlit_attention.js")
)
_PANELS = st.components.v2.component("visformer_panels", html=_HTML, css=stylesheet(), js=script("streamlit_panels.js"))


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
    _ATTENTION(data=pack(trace, gettext=gettext, lang=lang, focus=focus), key=key)


def panels(
    shown: Sequence[Panel | Sequence[Panel]],
    *,
    key: str,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    share: float = 1.0,
    on_click: Callable[[Click], None] | None = None,
) -> None:
    """Matrices, side by side or one under the other.

    Args:
        shown: see :func:`visformer.canvas.panels.pack_panels`.
        key: the component's key in the session state.
        gettext: translates the words on the picture.
        lang: the language that gettext speaks.
        share: see :func:`visformer.canvas.panels.pack_panels`.
        on_click: called before the page runs again, with what was clicked in a panel that does not only lock.
    """

    def clicked() -> None:
        value: Any = (st.session_state.get(key) or {}).get("click")
        click = click_from(value, shown)
        if click is not None and on_click is not None:
            on_click(click)

    data = pack_panels(shown, gettext=gettext, lang=lang, share=share)
    _PANELS(data=data, key=key, on_click_change=clicked)
