"""The head that all pages share: the sentence, its target, the examples, and what could not be shown."""

from contextlib import nullcontext

import streamlit as st

from visformer import i18n
from visformer.errors import VisformerError
from visformer.trace import Trace
from visformer.ui import state
from visformer.ui.examples import EXAMPLES
from visformer.ui.resources import workbench


def language_switch() -> None:
    """English or Chinese."""
    st.segmented_control(
        "Language / 语言",
        list(i18n.LANGUAGES),
        format_func=i18n.LANGUAGES.__getitem__,
        key=state.LANGUAGE,
        required=True,
        on_change=state.keep_language,
        label_visibility="collapsed",
    )


def reading_guide() -> None:
    """How to read the pictures and how to move in them, beside every page."""
    _ = state.gettext()
    st.caption(_("Our own Transformer translates between English and Chinese. Every number here was computed by it."))


def current_trace() -> tuple[Trace | None, str]:
    """The Trace of what stands in the boxes.

    Boxes keep their text in the session state, so a page can ask before it draws them, and draw its picture first.

    Returns:
        The Trace; or None, and what is wrong in the visitor's language.
    """
    _ = state.gettext()
    bench = workbench()
    try:
        if bench.holds(state.source(), state.target()):
            return bench.trace(state.source(), state.target()), ""
        with st.spinner(_("Loading the model …")) if not bench.is_loaded else nullcontext():
            return bench.trace(state.source(), state.target()), ""
    except VisformerError as error:
        return None, error.localized(_)


def sentence_head(trace: Trace | None, problem: str) -> None:
    """The sentence and its controls.

    Args:
        trace: of what stands in the boxes, if it could be made.
        problem: else why not.
    """
    _ = state.gettext()
    left, middle, right = st.columns([5, 4, 3])
    left.text_input(_("Sentence"), key=state.SOURCE, on_change=state.forget_target)
    middle.text_input(
        _("Target"),
        key=state.TARGET,
        placeholder=_own_translation(trace),
        help=_("Empty: the model's own translation. Type a target to see how the model reads that one instead."),
    )
    right.selectbox(
        _("Examples"),
        EXAMPLES,
        index=None,
        key=state.EXAMPLE,
        placeholder=_("Choose a sentence"),
        on_change=state.take_example,
    )
    if trace is not None:
        st.text(_translation(trace))
    else:
        st.badge(_("This cannot be shown"), color="red")
        st.text(problem)  # never markdown: a message may quote what was typed


def _translation(trace: Trace) -> str:
    _ = state.gettext()
    sentence = _("Target as typed: {text}") if trace.meta.get("forced") else _("Translation: {text}")
    return sentence.format(text=trace.meta.get("target", ""))


def _own_translation(trace: Trace | None) -> str:
    return str(trace.meta.get("target", "")) if trace and not trace.meta.get("forced") else ""
