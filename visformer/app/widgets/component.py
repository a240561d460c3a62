"""Browser components in a Streamlit page, and the messages that feed them.

A component's own message never changes, so that its script is sent once. Nothing here needs numpy: the browser can
fetch a component while Python imports the code that packs its picture.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

import streamlit as st

from visformer.app.session import address, boxes
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private import run_context
from visformer.app.streamlit_private.words import ICONS, WORDS
from visformer.web.bundle import script, stylesheet
from visformer.web.message import write_message

if TYPE_CHECKING:
    from visformer.panel import Panel, Stage
    from visformer.pictures.map import WholeModel
    from visformer.pictures.sides import Sides
    from visformer.trace import Trace
    from visformer.web.panels import Click
    from visformer.web.tiles import Ask

CANVAS = "attention"
"""The key of the explorer."""

MAP = "map"
"""The key of the whole model."""

PAIR = "pair"
"""The key of two linked explorers."""

LEARNING = "learning"
"""The key of a training that is watched."""

_PRESENTATION, _LESSON, _HERE = "present", "lesson_steps", "here"

_HTML = '<div class="vf-host"></div>'
_LINK_HTML = """<div class="vf-link"><button></button>
<div role="status" tabindex="-1" hidden><p></p><input readonly></div></div>"""
_ELEMENTS = stylesheet("streamlit/elements.css")
_SHEET = escape(stylesheet("streamlit_private/presentation.css"), quote=False)


def _component(
    name: str, function: str, file: str, html: str | None = None, css: str | None = None, **options: Any
) -> Any:
    """Register a component by the function of a file that Streamlit calls."""
    javascript = script(f"export default {function}", **{function: file})
    return st.components.v2.component(f"visformer_{name}", html=html, css=css, js=javascript, **options)


def _view(name: str, mount: str, file: str, css: str = "", html: str = _HTML) -> Any:
    """Register a component that draws the messages to its name, by the function of a file that mounts it."""
    javascript = script(f"export default streamlitView({mount})", streamlitView="streamlit/view.js", **{mount: file})
    return st.components.v2.component(f"visformer_{name}", html=html, css=css, js=javascript)


_ATTENTION = _view("attention", "mountAttention", "explorer/explorer.js", stylesheet())
_PAIR = _view("pair", "mountPair", "explorer/pair.js", stylesheet() + stylesheet("explorer/pair.css"))
_PANELS = _view("panels", "mountPanels", "panels/panels.js", stylesheet())
_MAP = _view("map", "mountMap", "map/map.js", stylesheet() + stylesheet("map/map.css"))
_LEARNING = _view(
    "learning", "mountLearning", "learning/learning.js", stylesheet() + stylesheet("learning/learning.css")
)
_PRESENT = _view(
    "present",
    "mountPresentation",
    "streamlit/present.js",
    _ELEMENTS + stylesheet("presentation/present.css"),
    f'{_HTML}<div class="vf-sheet" hidden>{_SHEET}</div>',
)
_LESSON_BAR = _view("lesson", "mountLessonBar", "streamlit/lesson.js", stylesheet("streamlit/lesson.css"))
_LOCATOR = _view("here", "mountLocator", "streamlit/locator.js", stylesheet("streamlit/locator.css"))
_FEED = _component("feed", "deliver", "streamlit/mailbox.js")
_LINKS = _component("links", "openLinks", "streamlit/page.js")
_ADDRESS = _component("address", "renameEntry", "streamlit/page.js")
_FOCUS = _component("focus", "focusBox", "streamlit/page.js")
_SHRINK = _component("shrink", "shrinkPictures", "streamlit/shrink.js")
_KEPT_KEY = _component("kept_key", "keepKey", "streamlit/kept_key.js")
_LINK = _component("link", "copyButton", "streamlit/copy_link.js", _LINK_HTML, _ELEMENTS)
_CONNECTION = _component(
    "connection",
    "watchConnection",
    "streamlit_private/connection.js",
    '<div class="vf-connection" role="status" popover="manual"></div>',
    _ELEMENTS,
)
_PAGE = "".join(
    map(stylesheet, ("streamlit/page.css", "streamlit_private/legible.css", "streamlit_private/lesson.css"))
)
_WORDS = _component("words", "translateLabels", "streamlit_private/words.js", css=_PAGE, isolate_styles=False)


_MISSED: Slot[list[Callable[[], None]]] = Slot("missed_acts", [])

_PAUSE = 0.015
"""Seconds for the browser to draw the picture before the rest of the page, which takes it longer (docs/adr/0019)."""


def _sent(key: str) -> Mapping[str, Any]:
    """Return what the component with this key last sent."""
    return Slot[Any](key, None).get() or {}


def _whole(text: object) -> str:
    """Return a text without half characters, which JSON may have and an address may not."""
    return str(text).encode(errors="replace").decode()


def _mount(
    component: Any, key: str, acts: Mapping[str, Callable[[Any], None]], *, data: str = "", **options: Any
) -> None:
    """Mount a component, and pass each of its triggers to one of ``acts``; ``data``: by default its name in messages.

    That happens in a callback, before the page reruns. In a callback Streamlit loses the value where a message from the
    page that was left came in between; then the page reruns once more, and it happens at the beginning of that run.
    """
    called = Slot(f"{key}_called", False)

    def callback(name: str) -> None:
        if (value := _sent(key).get(name)) is not None:
            called.set(True)
            acts[name](value)

    sent = component(
        data=(data or key).encode(),
        key=key,
        **{f"on_{name}_change": partial(callback, name) for name in acts},
        **options,
    )
    missed = {} if called.pop() else {name: sent[name] for name in acts if sent[name] is not None}
    if missed:
        _MISSED.set([partial(acts[name], value) for name, value in missed.items()])
        called.set(True)  # the next run finds the same values
        st.rerun()


def run_missed_acts() -> None:
    """Do at the beginning of a run what a callback should have done: once they are drawn, boxes cannot be set."""
    for act in _MISSED.pop():
        act()


def _language() -> dict[str, Any]:
    return {"gettext": boxes.gettext(), "lang": boxes.language()}


def attention_view(on_select: Callable[[Any], None]) -> None:
    """Mount the explorer, empty until :func:`attention_picture`, so that it need not wait for the Trace.

    ``on_select`` is called with the visitor's selection, as the browser sent it.
    """

    def selected() -> None:
        on_select(_sent(f"picture_{CANVAS}").get("selection"))

    # Bytes: for data of any other type, Streamlit imports pandas first.
    _ATTENTION(
        data=CANVAS.encode(),
        key=f"picture_{CANVAS}",
        on_selection_change=selected,
        on_wanted_change=lambda: None,
    )


def attention_picture(trace: "Trace | None", *, ahead: bool = False, **style: Any) -> None:
    """Send every head of the Trace's attention. Hovering, clicks and switches are handled in the browser.

    Args:
        trace: what to draw; None: clear the explorer or, ahead of the page, leave it as it is.
        ahead: whether this is sent before the page that the explorer is on.
        style: "start", "file", "notes" and "parts" of :func:`visformer.web.payload.pack`.
    """
    name = f"{CANVAS}_ahead" if ahead else f"{CANVAS}_picture"
    if trace is None:
        _FEED(data=write_message("nothing", {}, to="" if ahead else CANVAS), key=name)
        return
    from visformer.web.payload import pack

    _FEED(data=pack(trace, **_language(), **style, to=CANVAS), key=name)
    time.sleep(_PAUSE)


def attention_weights(trace: "Trace", ask: "Ask | None") -> None:
    """Send exact weights that did not fit into the picture's message.

    ``ask`` computes parts of heads of a long text, where the browser could not fetch them.

    For a sentence so long that not all are sent, the browser requests those of the head in focus, which reruns the
    fragment that calls this.
    """
    from visformer.web.chunks import wanted_from
    from visformer.web.payload import pack_rest

    rest = pack_rest(trace, wanted=wanted_from(_sent(f"picture_{CANVAS}")), ask=ask, to=CANVAS)
    if rest is not None:
        _FEED(data=rest, key=f"{CANVAS}_weights")


def attention_effect(place: Mapping[str, Any], said: str) -> None:
    """Send what the weight of a locked cell does; ``place``: stack, layer, head, query and key, from 0."""
    _FEED(data=write_message("effect", {**place, "said": said}, to=CANVAS), key=f"{CANVAS}_effect")


def pair_picture(sides: "Sides", *, on_select: Callable[[Any], None], **style: Any) -> None:
    """Draw two linked explorers; ``style``: "start" and "file" of :func:`visformer.web.pair.pack_pair`.

    ``on_select`` is called with the selection in A, as the browser sent it.
    """
    from visformer.web.chunks import wanted_from
    from visformer.web.pair import pack_pair, pack_rests

    def selected() -> None:
        on_select(_sent(f"picture_{PAIR}").get("selection"))

    sent = _sent(f"picture_{PAIR}").get("wanted")
    each = sent if isinstance(sent, Mapping) else {}
    wanted = [wanted_from({"wanted": each.get(name)}) for name in ("a", "b")]
    with st.container(gap=None):  # feeds take up no room
        _FEED(data=pack_pair(sides, **_language(), **style, to=PAIR), key=f"{PAIR}_picture")
        for name, rest in zip("ab", pack_rests(sides, wanted=wanted, to=PAIR), strict=True):
            if rest is not None:
                _FEED(data=rest, key=f"{PAIR}_weights_{name}")
        _PAIR(
            data=PAIR.encode(),
            key=f"picture_{PAIR}",
            on_selection_change=selected,
            on_wanted_change=lambda: None,
        )


def map_picture(
    drawn: "WholeModel",
    *,
    place: Mapping[str, Any],
    on_select: Callable[[Any], None],
    on_zoom: Callable[[Any], None],
    **style: Any,
) -> None:
    """Draw the whole model; ``style``: see :func:`visformer.web.map.pack_map`.

    Args:
        drawn: what to draw.
        place: what is zoomed in on, see :func:`visformer.web.map.pack_place`.
        on_select: called with the head that the visitor follows, as the browser sent it.
        on_zoom: called with the place at which the visitor's zoom rests, as the browser sent it.
        style: the rest of the message.
    """
    from visformer.web.chunks import Focus
    from visformer.web.map import pack_map, pack_place

    def selected() -> None:
        on_select(_sent(f"picture_{MAP}").get("selection"))

    def zoomed() -> None:
        on_zoom(_sent(f"picture_{MAP}").get("zoom"))

    with st.container(gap=None):  # feeds take up no room
        # The place first: a model that arrives is drawn there.
        _FEED(
            data=pack_place(**place, gettext=boxes.gettext(), opened=address.OPENED.get(), to=MAP), key=f"{MAP}_place"
        )
        _FEED(
            data=pack_map(drawn.trace, focus=Focus(*drawn.head), **_language(), **style, to=MAP), key=f"{MAP}_picture"
        )
        _MAP(data=MAP.encode(), key=f"picture_{MAP}", on_selection_change=selected, on_zoom_change=zoomed)


def learning_view(*, on_act: Callable[[Mapping[str, Any]], None], on_missing: Callable[[int], None]) -> None:
    """Mount the view of a training, empty until :func:`learning_moments`.

    Args:
        on_act: called with what the visitor does, before the rerun, as the browser sent it.
        on_missing: called with the number of moments that the browser has, if some did not arrive.
    """

    def acted() -> None:
        act = _sent(f"picture_{LEARNING}").get("act")
        if isinstance(act, Mapping):
            on_act(act)

    def missed() -> None:
        have = _sent(f"picture_{LEARNING}").get("have")
        if isinstance(have, int) and have >= 0:
            on_missing(have)

    _LEARNING(data=LEARNING.encode(), key=f"picture_{LEARNING}", on_act_change=acted, on_have_change=missed)


def learning_moments(trainings: Sequence[Any], **style: Any) -> None:
    """Send the moments of a training that are new; arguments: see :func:`visformer.web.learning.pack_learning`."""
    from visformer.web.learning import pack_learning

    _FEED(data=pack_learning(trainings, **style, **_language(), to=LEARNING), key=f"{LEARNING}_picture")


def connection_notice(words: str) -> None:
    """Have the browser show this while it cannot reach the server, and rerun the page once it can.

    It needs the words in advance.
    """
    _CONNECTION(data=words.encode(), key="connection", on_back_change=lambda: None)


def streamlit_words() -> None:
    """Send the browser the page's language, and translations of Streamlit's own texts.

    Texts that are the same in both languages are left out.
    """
    _ = boxes.gettext()
    pairs = [(word, _(word)) for word in WORDS] + [(icon, _(name)) for icon, name in ICONS.items()]
    words = {"lang": boxes.language(), "words": [pair for pair in pairs if pair[0] != pair[1]]}
    _WORDS(data=json.dumps(words).encode(), key="streamlit_words")


def link_button(words: Mapping[str, str]) -> None:
    """Draw a button that copies the page's address and confirms it.

    Of the words, "copy" is its label and "copied" the confirmation; where the browser refuses, "byHand" is shown beside
    the address, whose label is "address"; "refused", if present, is shown instead of copying, and "unlinked" after it.
    """
    _LINK(data=json.dumps(words).encode(), key="copy_link", width="content")


def kept_key(what: str, key: str, *, on_kept: Callable[[str], None]) -> None:
    """Have the browser keep a secret in this tab, for a reload.

    Args:
        what: names it.
        key: the secret; "": what was kept before stays.
        on_kept: called once with the one that was kept before, if that is another; it may be any text.
    """
    _mount(_KEPT_KEY, f"kept_{what}", {"kept": lambda kept: on_kept(str(kept))}, data=json.dumps([what, key]))


def links(addresses: Mapping[str, str]) -> None:
    """Have clicks at Streamlit's buttons, named by their keys, open addresses, relative to the page's."""
    _LINKS(data=json.dumps(addresses).encode(), key="links")


def focus(key: str, value: str) -> None:
    """Give the text box with this key the focus once it has this value, all of it selected, ready to be replaced."""
    _FOCUS(data=json.dumps([key, value]).encode(), key="focus")


def shrink_pictures(key: str, *, side: int, nbytes: int) -> None:
    """Have the browser scale pictures down that are given to the uploader in the container with this key.

    Args:
        key: of the container.
        side: pixels that the longer side is scaled to.
        nbytes: of a file that is left as it is.
    """
    _SHRINK(data=json.dumps({"key": key, "side": side, "bytes": nbytes}).encode(), key=f"shrink_{key}")


def href(page: str, query: Mapping[str, str]) -> str:
    """Return the address of a page with this query, relative to that of another page."""
    return f"{page or './'}?{urlencode(query)}".rstrip("?")


def replace_address(page: str, query: Mapping[str, str], *, key: str = "address") -> None:
    """Give the entry of the browser's history that this run shows this query, unless the visitor has left it since."""
    _ADDRESS(data=json.dumps({"known": run_context.history_entry(), "link": href(page, query)}).encode(), key=key)


def presentation(
    shown: Mapping[str, Any],
    *,
    on_step: Callable[[int], None],
    on_ask: Callable[[str], None],
    on_type: Callable[[str], None],
    on_room: Callable[[object], None],
) -> None:
    """Draw the button of presentation mode, which hides all but the picture and its captions.

    Args:
        shown: "words" on its buttons; "title", "sentence", "caption" and "task" over the picture; "over": there is only
            text; "typed": what the sentence box holds, None where the page has none; "place" and "at": the step's id
            and its text; "keys" for its help, "picture_keys" where there is a picture; "note": the suggested
            presenter's note; "moments": whether the model's history is open; "guided": whether the views take no steps
            of their own; "code": see :func:`visformer.app.presentation.presenting.code`; "room": see
            :func:`visformer.app.presentation.following.room`; "guesses": whether the room can be asked a question.
        on_step: called with 1 or -1 before the page reruns.
        on_ask: called with "code", "follow", "stop", "guess", or "" once the code is closed.
        on_type: called with a sentence that was typed.
        on_room: called with the key of a room that the browser kept.
    """
    with st.container(gap=None, width="content"):  # feeds take up no room
        _FEED(data=write_message("presentation", shown, to=_PRESENTATION), key=f"{_PRESENTATION}_words")
        acts: dict[str, Callable[[Any], None]] = {
            "step": lambda step: on_step(step) if step in (1, -1) else None,
            "ask": lambda what: on_ask(str(what or "")),
            "type": lambda sentence: on_type(_whole(sentence)),
            "room": on_room,
        }
        _mount(_PRESENT, _PRESENTATION, acts, width="content")


def lesson_bar(shown: Mapping[str, Any], *, on_open: Callable[[int], None], on_leave: Callable[[], None]) -> None:
    """Draw the bar of a lesson: back, a dot for each step, on, restore, leave.

    Args:
        shown: "at": the step, from 1, one more behind the last; "titles" and "pages" of the steps; "query" of their
            addresses, up to the number, no longer than "longest"; "changed": whether there is anything to restore;
            "fits": which steps show the visitor's "sentence"; "box": what the sentence box holds; "words": the labels.
        on_open: called with the number of a step before the page reruns.
        on_leave: called before the page reruns without the lesson.
    """
    with st.container(gap=None, key="lesson_bar"):  # feeds take up no room
        _FEED(data=write_message("lesson", shown, to=_LESSON), key=f"{_LESSON}_words")
        acts: dict[str, Callable[[Any], None]] = {
            "open": lambda step: on_open(step) if isinstance(step, int) else None,
            "leave": lambda _clicked: on_leave(),
        }
        _mount(_LESSON_BAR, _LESSON, acts)


def locator_view() -> None:
    """Mount the small drawing of the model, empty until :func:`locator_picture`."""
    _LOCATOR(data=_HERE.encode(), key=_HERE)


def locator_picture(shown: Mapping[str, Any] | None, *, key: str) -> None:
    """Send the small drawing of the model; ``shown``: see :mod:`visformer.app.widgets.locator`; None: there is none.

    ``key``: of the sender; the last one counts.
    """
    kind: Literal["here", "nothing"] = "nothing" if shown is None else "here"
    _FEED(data=write_message(kind, shown or {}, to=_HERE), key=f"{_HERE}_{key}")


def panels(
    shown: "Sequence[Panel | Sequence[Panel]]",
    *,
    key: str,
    share: float = 1.0,
    stages: "Sequence[Stage]" = (),
    told: str = "",
    on_click: "Callable[[Click], None] | None" = None,
) -> None:
    """Draw matrices, side by side or one below the other; see :func:`visformer.web.panels.pack_panels`.

    ``on_click`` is called before the page reruns, with a click on a panel that does more than lock cells.
    """
    from visformer.web.panels import click_from, pack_panels

    def clicked() -> None:
        played = [panel for stage in stages for panel in stage.shown]
        click = click_from(_sent(f"picture_{key}").get("click"), [*shown, *played])
        if click is not None and on_click is not None:
            on_click(click)

    with st.container(gap=None):  # feeds take up no room
        style: dict[str, Any] = {"share": share, "stages": stages, "told": told, "opened": address.OPENED.get()}
        picture = pack_panels(shown, **_language(), **style, to=key)
        _FEED(data=picture, key=f"{key}_picture")
        _PANELS(data=key.encode(), key=f"picture_{key}", on_click_change=clicked)
