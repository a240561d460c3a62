"""The canvas in a Streamlit page: views, and the messages that bring them what they show.

A view's own message never changes, so that the browser gets its script once. Nothing here needs numpy: the browser can
fetch what it needs for a view while Python imports what packs the picture.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.canvas.assets import script, stylesheet
from visformer.canvas.post import addressed

if TYPE_CHECKING:
    from visformer.canvas.panels import Click
    from visformer.panel import Panel
    from visformer.trace import Trace

_HTML = '<div class="vf-host"></div>'
_ATTENTION = st.components.v2.component(
    "visformer_attention", html=_HTML, css=stylesheet(), js=script("streamlit_attention.js")
)
_PANELS = st.components.v2.component("visformer_panels", html=_HTML, css=stylesheet(), js=script("streamlit_panels.js"))
_FEED = st.components.v2.component("visformer_feed", js=script("streamlit_feed.js"))

_BREATH = 0.015
"""Seconds in which the picture is sent and drawn alone: the browser draws what arrives within 10 ms together, and the
rest of the page takes it several times as long."""


def attention_view(*, key: str, on_select: Callable[[Any], None]) -> None:
    """Where attention is shown, empty until :func:`show_attention`: it need not wait for the Trace.

    Args:
        key: the component's key in the session state.
        on_select: called with what the visitor has chosen, as the browser sent it.
    """

    def selected() -> None:
        on_select((st.session_state.get(key) or {}).get("selection"))

    # The name as bytes: for anything else Streamlit imports pandas first.
    _ATTENTION(data=key.encode(), key=key, on_selection_change=selected, on_wanted_change=lambda: None)


def show_attention(
    trace: "Trace | None",
    *,
    key: str,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    start: Mapping[str, Any] | None = None,
) -> None:
    """Every head of the Trace's attention.

    Hovering, clicks and switches happen in the browser. Exact weights that do not fit into the first message follow in
    one of their own; where a sentence is so long that not all are sent, those of a head in focus are asked for, and
    the fragment that this is called in runs again.

    Args:
        trace: what to draw; None: nothing, what was there goes.
        key: of the view.
        gettext: translates the words on the picture.
        lang: the language that gettext speaks.
        start: what is chosen at first, see :meth:`visformer.canvas.selection.Selection.start`.
    """
    if trace is None:
        _FEED(data=addressed(key, b""), key=f"{key}_picture")
        return
    from visformer.canvas.payload import pack, pack_rest, wanted_from

    _FEED(data=addressed(key, pack(trace, gettext=gettext, lang=lang, start=start)), key=f"{key}_picture")
    time.sleep(_BREATH)
    rest = pack_rest(trace, wanted=wanted_from(st.session_state.get(key) or {}))
    if rest is not None:
        _FEED(data=addressed(key, rest), key=f"{key}_weights")


def panels(
    shown: "Sequence[Panel | Sequence[Panel]]",
    *,
    key: str,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
    share: float = 1.0,
    on_click: "Callable[[Click], None] | None" = None,
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
    from visformer.canvas.panels import click_from, pack_panels

    def clicked() -> None:
        value: Any = (st.session_state.get(key) or {}).get("click")
        click = click_from(value, shown)
        if click is not None and on_click is not None:
            on_click(click)

    with st.container(gap=None):  # what feeds takes no room
        picture = pack_panels(shown, gettext=gettext, lang=lang, share=share)
        _FEED(data=addressed(key, picture), key=f"{key}_picture")
        _PANELS(data=key.encode(), key=key, on_click_change=clicked)
