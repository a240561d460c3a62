"""Views in a Streamlit page, and the messages that bring them what they show.

A view's own message never changes, so that the browser gets its script once. Nothing here needs numpy: the browser can
fetch what it needs for a view while Python imports what packs the picture.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.session import boxes
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private.words import ICONS, WORDS
from visformer.web.bundle import script, stylesheet
from visformer.web.message import write_message

if TYPE_CHECKING:
    from visformer.panel import Panel
    from visformer.trace import Trace
    from visformer.web.panels import Click

CANVAS = "attention"
"""The key of the explorer."""

_PRESENTATION = "present"

_PRIVATE = "streamlit_private"
_HTML = '<div class="vf-host"></div>'
_LINK_HTML = """<div class="vf-link"><button></button>
<div role="status" tabindex="-1" hidden><p></p><input readonly></div></div>"""
_BESIDE = stylesheet("streamlit/beside.css")
_SHEET = escape(stylesheet("streamlit_private/presentation.css"), quote=False)


def _component(name: str, html: str = "", css: str | None = None, *, folder: str = "streamlit", **options: Any) -> Any:
    javascript = script(f"{folder}/{name}.js")
    return st.components.v2.component(f"visformer_{name}", html=html or None, css=css, js=javascript, **options)


_ATTENTION = _component("attention", _HTML, stylesheet())
_PANELS = _component("panels", _HTML, stylesheet())
_LINK = _component("link", _LINK_HTML, _BESIDE)
_CONNECTION = _component(
    "connection", '<div class="vf-connection" role="status" hidden></div>', _BESIDE, folder=_PRIVATE
)
_PRESENT = _component(
    "present", f'{_HTML}<div class="vf-sheet" hidden>{_SHEET}</div>', _BESIDE + stylesheet("presentation/present.css")
)
_WORDS = _component("words", css=stylesheet("streamlit/page.css"), folder=_PRIVATE, isolate_styles=False)
_FEED = _component("feed")


def _sent(key: str) -> Mapping[str, Any]:
    """What the component of this key has sent last."""
    return Slot[Any](key, None).get() or {}


def _language() -> dict[str, Any]:
    return {"gettext": boxes.gettext(), "lang": boxes.language()}


def attention_view(on_select: Callable[[Any], None]) -> None:
    """Where attention is shown, empty until :func:`attention_picture`: it need not wait for the Trace.

    ``on_select`` is called with what the visitor has chosen, as the browser sent it.
    """

    def selected() -> None:
        on_select(_sent(CANVAS).get("selection"))

    # The name as bytes: for anything else Streamlit imports pandas first.
    _ATTENTION(data=CANVAS.encode(), key=CANVAS, on_selection_change=selected, on_wanted_change=lambda: None)


def attention_picture(
    trace: "Trace | None", *, start: Mapping[str, Any] | None = None, file: str = "", ahead: bool = False
) -> None:
    """Every head of the Trace's attention. Hovering, clicks and switches happen in the browser.

    Args:
        trace: what to draw; None: nothing, what was there goes, or, ahead of the page, stays.
        start: what is chosen at first, see :meth:`visformer.web.selection.Selection.start`.
        file: see :func:`visformer.web.payload.pack`.
        ahead: whether the page that the view stands on is still to come.
    """
    name = f"{CANVAS}_ahead" if ahead else f"{CANVAS}_picture"
    if trace is None:
        _FEED(data=write_message("nothing", {}, to="" if ahead else CANVAS), key=name)
        return
    from visformer.web.payload import pack

    _FEED(data=pack(trace, **_language(), start=start, file=file, to=CANVAS), key=name)


def attention_weights(trace: "Trace") -> None:
    """Exact weights that do not fit into the picture's message.

    Where a sentence is so long that not all are sent, those of a head in focus are asked for, and the fragment that
    this is called in runs again.
    """
    from visformer.web.chunks import wanted_from
    from visformer.web.payload import pack_rest

    rest = pack_rest(trace, wanted=wanted_from(_sent(CANVAS)), to=CANVAS)
    if rest is not None:
        _FEED(data=rest, key=f"{CANVAS}_weights")


def connection_notice(words: str) -> None:
    """Have the browser tell this while it does not reach the server, and run the page again once it does.

    It has to have the words before.
    """
    _CONNECTION(data=words.encode(), key="connection", on_back_change=lambda: None)


def streamlit_words() -> None:
    """Have the browser know the page's language, and put what Streamlit itself writes into it.

    Nothing is sent of words that are the same in it.
    """
    _ = boxes.gettext()
    said = [(word, _(word)) for word in WORDS] + [(icon, _(ours)) for icon, ours in ICONS.items()]
    words = {"lang": boxes.language(), "words": [pair for pair in said if pair[0] != pair[1]]}
    _WORDS(data=json.dumps(words).encode(), key="streamlit_words")


def link_button(words: Mapping[str, str]) -> None:
    """A button that copies the address of the page, and says so.

    Of the words "copy" stands on it, "copied" once it is done; "byHand" beside the address where the browser refuses,
    which is then called "address"; "refused", if there, is told in place of copying.
    """
    _LINK(data=json.dumps(words).encode(), key="copy_link", width="content")


def presentation(
    shown: Mapping[str, Any],
    *,
    on_step: Callable[[int], None],
    on_ask: Callable[[str], None],
    on_room: Callable[[object], None],
) -> None:
    """A button, and a key, that leave nothing on the page but the picture and what it is about.

    Args:
        shown: "words" on its buttons, "sentence" and "caption" over the picture, "place" and "at": which step this is,
            by name and to be read; "note": what is proposed as the presenter's note; "guided": the views take no steps
            of their own; "code": see :func:`visformer.app.presentation.presenting.code`; "room": see
            :func:`visformer.app.presentation.following.room`.
        on_step: called with 1 or -1 before the page runs again.
        on_ask: called with "code", "follow", "stop", or "" once the code is put away.
        on_room: called with the key of a room that the browser kept.
    """

    def stepped() -> None:
        if (step := _sent(_PRESENTATION).get("step")) in (1, -1):
            on_step(step)

    with st.container(gap=None, width="content"):  # what feeds takes no room
        _FEED(data=write_message("presentation", shown, to=_PRESENTATION), key=f"{_PRESENTATION}_words")
        _PRESENT(
            data=_PRESENTATION.encode(),
            key=_PRESENTATION,
            width="content",
            on_step_change=stepped,
            on_ask_change=lambda: on_ask(str(_sent(_PRESENTATION).get("ask") or "")),
            on_room_change=lambda: on_room(_sent(_PRESENTATION).get("room")),
        )


def panels(
    shown: "Sequence[Panel | Sequence[Panel]]",
    *,
    key: str,
    share: float = 1.0,
    file: str = "",
    on_click: "Callable[[Click], None] | None" = None,
) -> None:
    """Matrices, side by side or one under the other; see :func:`visformer.web.panels.pack_panels`.

    ``on_click`` is called before the page runs again, with what was clicked in a panel that does not only lock.
    """
    from visformer.web.panels import click_from, pack_panels

    def clicked() -> None:
        click = click_from(_sent(key).get("click"), shown)
        if click is not None and on_click is not None:
            on_click(click)

    with st.container(gap=None):  # what feeds takes no room
        _FEED(data=pack_panels(shown, **_language(), share=share, file=file, to=key), key=f"{key}_picture")
        _PANELS(data=key.encode(), key=key, on_click_change=clicked)
