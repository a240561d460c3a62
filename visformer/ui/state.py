"""Every key of the session state, in one place, and the callbacks that change more than one."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import streamlit as st

from visformer import i18n
from visformer.canvas.selection import Selection
from visformer.ui.examples import EXAMPLES
from visformer.ui.models import offered

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

LANGUAGE = "lang"  # also the name in the address: ?lang=zh
SOURCE = "source"
TARGET = "target"  # in the address too
TEXT = "text"  # the sentence, in the address
LONGEST_LINK = 4000
"""Characters of an address, without the server's own: a sentence that makes it longer is left out."""

EXAMPLE = "example"
MODEL = "model"
CANVAS = "attention"
_START = "start"  # what the explorer begins with on the page that is open
_PAGE = "page"
_LANGUAGE_IS_CHOSEN = "language_is_chosen"  # by the visitor or the link, not by the browser
_SELECTION = "selection"
_FOUND = "found"  # what the page found for the sentence in this run: the Trace, and why there is none


def set_defaults() -> None:
    """At the start of a session: what the address asks for, else a real sentence and the browser's language."""
    st.session_state.pop(_FOUND, None)
    if _START in st.session_state:
        return
    link = st.query_params.to_dict()
    st.session_state[_START] = Selection.from_link(link)
    st.session_state[SOURCE] = link.get(TEXT) or EXAMPLES[0]
    st.session_state[TARGET] = link.get(TARGET, "")
    st.session_state[LANGUAGE] = i18n.closest(link.get(LANGUAGE) or st.context.locale)
    st.session_state[_LANGUAGE_IS_CHOSEN] = LANGUAGE in link
    if link.get(MODEL) in offered():
        st.session_state[MODEL] = link[MODEL]


def enter(page: str) -> None:
    """A page that is opened begins with what was chosen last."""
    if st.session_state.get(_PAGE) != page:
        st.session_state[_PAGE] = page
        st.session_state[_START] = st.session_state.get(_SELECTION, start())


def address() -> dict[str, str]:
    """Everything that a link needs to bring back."""
    chosen: Selection = st.session_state.get(_SELECTION, start())
    said = {LANGUAGE: language()} if st.session_state.get(_LANGUAGE_IS_CHOSEN) else {}
    if model() not in (None, offered()[0]):
        said[MODEL] = str(model())
    typed = {TEXT: source(), TARGET: target() or ""}
    typed = {name: text for name, text in typed.items() if text and text != EXAMPLES[0]}
    wanted = {**said, **typed, **chosen.link()}
    if len(urlencode(wanted)) > LONGEST_LINK:  # browsers and proxies cut longer ones
        wanted = {**said, **chosen.link()}
    return wanted


def keep_address() -> None:
    """In the address of every page. A link to another page should have it already: each change is a step back, too."""
    wanted = address()
    if wanted != st.query_params.to_dict():
        st.query_params.from_dict(wanted)


def keep_language() -> None:
    """A chosen language stays in the address."""
    st.session_state[_LANGUAGE_IS_CHOSEN] = True


def language() -> str:
    """The visitor's language."""
    return i18n.closest(st.session_state.get(LANGUAGE))


def gettext() -> i18n.Gettext:
    """Translates into the visitor's language."""
    return i18n.translations(language()).gettext


def source() -> str:
    """The sentence in the box."""
    return str(st.session_state.get(SOURCE) or "")


def model() -> str | None:
    """The model that the visitor chose among those that the operator offers; None: no choice was made."""
    chosen: str | None = st.session_state.get(MODEL)
    return chosen


def target() -> str | None:
    """The target that was typed; None where the model is to find its own."""
    typed = str(st.session_state.get(TARGET) or "")
    return typed if typed.strip() else None


def forget_target() -> None:
    """A new sentence gets its own translation, not the target typed for the last one."""
    st.session_state[TARGET] = ""


def take_example() -> None:
    """Put the chosen example into the box; the chooser itself goes back to its placeholder."""
    example = st.session_state.get(EXAMPLE)
    if example in EXAMPLES:
        st.session_state[SOURCE] = example
        forget_target()
    st.session_state[EXAMPLE] = None


def start() -> Selection:
    """What the explorer begins with; it stays while its page is open, so that the picture need not be sent again."""
    first: Selection = st.session_state[_START]
    return first


def selection(trace: "Trace") -> Selection:
    """What is chosen in the explorer: at first what the address asked for, as far as the Trace has it."""
    if _SELECTION not in st.session_state:
        keep_selection(start().start(), trace)
    chosen: Selection = st.session_state[_SELECTION]
    return chosen.within(trace)


def keep_selection(value: Any, trace: "Trace") -> None:
    """The chosen head and cell, as a browser sent them: in the address, and where "Inside a head" begins."""
    chosen = Selection.from_browser(value)
    if chosen is None:
        return
    st.session_state[_SELECTION] = chosen = chosen.within(trace)
    keep_address()
    part, kind = chosen.stack.split(".")
    layers = trace.layers(part, kind)  # type: ignore[arg-type]
    side = "src" if part == "encoder" else "tgt"
    st.session_state["head_stack"] = chosen.stack
    st.session_state[f"head_layer_{len(layers)}"] = chosen.layer + 1
    st.session_state[f"head_head_{layers[0].value.shape[0]}"] = chosen.head + 1
    n_tokens = len(trace.tokens[side])
    if chosen.query is not None and chosen.query < n_tokens:
        st.session_state[f"head_query_{n_tokens}"] = chosen.query


def remember(trace: "Trace | None", problem: str) -> None:
    """What the page found for the sentence, for the head that is drawn after it."""
    st.session_state[_FOUND] = (trace, problem)


def found() -> "tuple[Trace | None, str] | None":
    """What the page found in this run; None where it did not look."""
    result: tuple[Trace | None, str] | None = st.session_state.get(_FOUND)
    return result


def version(name: str) -> int:
    """Part of the key of widgets that :func:`renew` sets back."""
    return int(st.session_state.get(f"{name}_version", 0))


def renew(name: str) -> None:
    """Set the widgets of this name back to what they show first."""
    st.session_state[f"{name}_version"] = version(name) + 1
