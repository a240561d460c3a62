"""The canvas in a Streamlit page."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from visformer.canvas.assets import script, stylesheet
from visformer.canvas.frame import addressed
from visformer.canvas.panels import Click, click_from, pack_panels
from visformer.canvas.payload import pack, pack_rest, wanted_from
from visformer.panel import Panel
from visformer.trace import Trace

_HTML = '<div class="vf-host"></div>'
_ATTENTION = st.components.v2.component(
    "visformer_attention", html=_HTML, css=stylesheet(), js=script("streamlit_attention.js")
)
_PANELS = st.components.v2.component("visformer_panels", html=_HTML, css=stylesheet(), js=script("streamlit_panels.js"))
_FEED = st.components.v2.component("visformer_feed", js=script("streamlit_feed.js"))
"""Brings a view its bytes. The view's own message stays the same, so that the browser gets its script only once."""

_BREATH = 0.015
"""Seconds in which the picture is sent and drawn alone: the browser draws what arrives within 10 ms together, and the
rest of the page takes it several times as long."""


def attention(
    trace: Trace,
    *,
    key: str,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    start: Mapping[str, Any] | None = None,
    on_select: Callable[[Any], None] | None = None,
) -> None:
    """Every head of the Trace's attention.

    Hovering, clicks and switches happen in the browser. Exact weights that do not fit into the first message follow in
    one of their own; where a sentence is so long that not all are sent, those of a head in focus are asked for, and
    the fragment that this is called in runs again.

    Args:
        trace: what to draw.
        key: the component's key in the session state.
        gettext: translates the words on the picture.
        lang: the language that gettext speaks.
        start: what is chosen at first, see :meth:`visformer.canvas.selection.Selection.start`.
        on_select: called with what the visitor has chosen, as the browser sent it.
    """

    def selected() -> None:
        if on_select is not None:
            on_select((st.session_state.get(key) or {}).get("selection"))

    # First of all: Streamlit waits 5 ms after each sending, and what is sent before would be one.
    _FEED(data=addressed(key, pack(trace, gettext=gettext, lang=lang, start=start)), key=f"{key}_picture")
    _ATTENTION(data=key, key=key, on_selection_change=selected, on_wanted_change=lambda: None)
    time.sleep(_BREATH)
    rest = pack_rest(trace, wanted=wanted_from(st.session_state.get(key) or {}))
    if rest is not None:
        _FEED(data=addressed(key, rest), key=f"{key}_weights")


def panels(
    shown: Sequence[Panel],
    *,
    key: str,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    stacked: bool = False,
    on_click: Callable[[Click], None] | None = None,
) -> None:
    """Matrices, side by side or one under the other.

    Args:
        shown: in the order of reading.
        key: the component's key in the session state.
        gettext: translates the words on the picture.
        lang: the language that gettext speaks.
        stacked: see :func:`visformer.canvas.panels.pack_panels`.
        on_click: called before the page runs again, with what was clicked in a panel that does not only lock.
    """

    def clicked() -> None:
        value: Any = (st.session_state.get(key) or {}).get("click")
        click = click_from(value, shown)
        if click is not None and on_click is not None:
            on_click(click)

    with st.container(gap=None):  # what feeds takes no room
        _FEED(
            data=addressed(key, pack_panels(shown, gettext=gettext, lang=lang, stacked=stacked)), key=f"{key}_picture"
        )
        _PANELS(data=key, key=key, on_click_change=clicked)
