"""Every key of the session state, in one place, and the callbacks that change more than one."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer import i18n
from visformer.canvas.selection import Selection
from visformer.ui.examples import EXAMPLES

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

LANGUAGE = "lang"  # also the name in the address: ?lang=zh
SOURCE = "source"
TARGET = "target"
EXAMPLE = "example"
CANVAS = "attention"
_START = "start"  # what the address asked for when the session began
_SELECTION = "selection"
_FOUND = "found"  # what the page found for the sentence in this run: the Trace, and why there is none


def set_defaults() -> None:
    """At the start of a session: a real sentence in the box, and the language of the address, else of the browser."""
    st.session_state.pop(_FOUND, None)
    st.session_state.setdefault(SOURCE, EXAMPLES[0])
    asked = st.query_params.get(LANGUAGE) or st.context.locale
    st.session_state.setdefault(LANGUAGE, i18n.closest(asked))
    if _START not in st.session_state:
        st.session_state[_START] = Selection.from_link(st.query_params.to_dict())


def keep_language() -> None:
    """A chosen language stays in the address: a widget bound to it would put its label there, not its code."""
    st.query_params[LANGUAGE] = language()


def language() -> str:
    """The visitor's language."""
    return i18n.closest(st.session_state.get(LANGUAGE))


def gettext() -> i18n.Gettext:
    """Translates into the visitor's language."""
    return i18n.translations(language()).gettext


def source() -> str:
    """The sentence in the box."""
    return str(st.session_state.get(SOURCE) or "")


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
    """What the address asked for when the session began; it stays, so that the picture need not be sent again."""
    first: Selection = st.session_state[_START]
    return first


def selection() -> Selection:
    """What is chosen in the explorer."""
    chosen: Selection = st.session_state.get(_SELECTION, start())
    return chosen


def keep_selection(value: Any, trace: "Trace") -> None:
    """The chosen head and cell, as a browser sent them: in the address, and where "Inside a head" begins."""
    chosen = Selection.from_browser(value)
    if chosen is None:
        return
    st.session_state[_SELECTION] = chosen
    link = chosen.link()
    for name in set(Selection().start()) - set(link):
        st.query_params.pop(name, None)
    st.query_params.update(link)
    part, kind = chosen.stack.split(".")
    n_layers, n_heads = trace.stack(part, kind).shape[:2]  # type: ignore[arg-type]
    side = "src" if part == "encoder" else "tgt"
    st.session_state["head_stack"] = chosen.stack
    st.session_state[f"head_layer_{n_layers}"] = min(chosen.layer, n_layers - 1) + 1
    st.session_state[f"head_head_{n_heads}"] = min(chosen.head, n_heads - 1) + 1
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
