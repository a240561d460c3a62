"""The head that all pages share: the sentence, its target, the examples, and what could not be shown."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from visformer import i18n
from visformer.canvas.component import panels
from visformer.errors import VisformerError
from visformer.ui import keep, state
from visformer.ui.examples import EXAMPLES
from visformer.ui.models import MODEL, any_allowed, label, offered
from visformer.ui.resources import PATTERNS, workbench, workbench_of

if TYPE_CHECKING:  # numpy
    from visformer.canvas.panels import Click
    from visformer.panel import Panel
    from visformer.trace import Trace

_KEPT = "sentence_kept"  # whether the page before showed no box


def side_bar(sections: Mapping[str, Sequence[StreamlitPage]]) -> None:
    """Beside every page: the language, the pages, and where the numbers come from."""
    _ = state.gettext()
    st.header("Visformer", anchor=False)
    language_switch()
    for title, pages in sections.items():
        with st.container(gap="xxsmall"):
            st.caption(title)
            for page in pages:
                st.page_link(page, query_params=state.address())
    model_chooser()
    if state.model() in (None, MODEL):
        st.caption(
            _("Our own Transformer translates between English and Chinese. Every number here was computed by it.")
        )


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


def model_chooser() -> None:
    """The models that the operator offers, where there are several; the explorer shows the chosen one."""
    _ = state.gettext()
    if len(offered()) == 1 and not any_allowed():
        return
    st.selectbox(
        _("Model"),
        offered(),
        format_func=label,
        key=state.MODEL,
        accept_new_options=any_allowed(),
        help=_("For the attention page; the others look inside our own translator."),
    )


def current_trace(record: Sequence[str] = PATTERNS, *, of_chosen: bool = False) -> "Trace | None":
    """The Trace of what stands in the boxes; None where it cannot be made, which the head of the page then explains.

    Boxes keep their text in the session state, so a page can ask before they are drawn, and draw its picture first.

    Args:
        record: what the page shows.
        of_chosen: by the model that the visitor chose, instead of the one that every page shows.
    """
    _ = state.gettext()
    trace, problem = None, ""
    try:
        bench = workbench_of(state.model()) if of_chosen else workbench()
        waits = not bench.is_loaded and not bench.holds(state.source(), state.target(), record)
        with st.spinner(_("Loading the model …")) if waits else nullcontext():
            trace = bench.trace(state.source(), state.target(), record=record)
    except VisformerError as error:
        problem = error.localized(_)
    state.remember(trace, problem)
    return trace


def sentence_head() -> None:
    """The sentence and its controls, and what the page has found for it."""
    _ = state.gettext()
    if state.found() is None:  # a page whose picture needs no trace
        current_trace()
    trace, problem = state.found() or (None, "")
    if st.session_state.pop(_KEPT, False):
        _set_again()  # or the browser would draw new, empty boxes
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
    elif problem:
        st.badge(_("This cannot be shown"), color="red")
        st.text(problem)  # never markdown: a message may quote what was typed


def keep_sentence() -> None:
    """Where no box shows it: Streamlit would forget what stands in it."""
    _set_again()
    st.session_state[_KEPT] = True


def _set_again() -> None:
    for key in (state.SOURCE, state.TARGET):
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]


def _translation(trace: "Trace") -> str:
    _ = state.gettext()
    if not trace.tokens.get("src"):
        return _("The model goes on with: {token}").format(token=trace.tokens["next"][-1])
    if not trace.tokens.get("tgt"):
        return ""  # an encoder says nothing
    sentence = _("Target as typed: {text}") if trace.meta.get("forced") else _("Translation: {text}")
    return sentence.format(text=trace.meta.get("target", ""))


def _own_translation(trace: "Trace | None") -> str:
    return str(trace.meta.get("target") or "") if trace and not trace.meta.get("forced") else ""


def view(label: str, options: Mapping[str, str], *, key: str) -> str:
    """One of several views of a page.

    Args:
        label: for screen readers.
        options: name to message id, the first is shown at the beginning.
        key: in the session state.
    """
    _ = state.gettext()
    chosen = st.segmented_control(
        label,
        list(options),
        format_func=lambda name: _(options[name]),
        key=key,
        default=None if key in st.session_state else next(iter(options)),
        required=True,
        label_visibility="collapsed",
    )
    return str(chosen)


def draw(
    shown: "Sequence[Panel | Sequence[Panel]]",
    *,
    key: str,
    on_click: "Callable[[Click], None] | None" = None,
    share: float = 1.0,
    kept: bool = True,
) -> None:
    """Panels in the visitor's language; see :func:`visformer.canvas.panels.pack_panels`.

    With a way to keep them, except (``kept`` False) for what is there to be clicked: it would only take room.
    """
    panels(shown, key=key, gettext=state.gettext(), lang=state.language(), share=share, on_click=on_click)
    if kept:
        keep.panels(shown, key=key)
