"""The head that all pages share: the sentence, its target, the examples, and what could not be shown."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from visformer import i18n
from visformer.adapters.bundled import BUNDLED
from visformer.app.lessons import lesson_panel
from visformer.app.presentation import presentation_steps
from visformer.app.serving import workbench
from visformer.app.serving.models import MODEL, any_allowed, is_allowed, label, offered
from visformer.app.serving.workbench import PATTERNS, Workbench, workbench_of
from visformer.app.session import state
from visformer.app.session.examples import EXAMPLES
from visformer.app.widgets import downloads, model_download, sharing, unavailable, untrained_sliders, url_widgets
from visformer.app.widgets.component import connection_notice, panels, streamlit_words
from visformer.errors import N_, BusyError, ShortageError, VisformerError
from visformer.model.untrained import names_untrained
from visformer.pictures.options import Choice
from visformer.system.memory import enough_memory

if TYPE_CHECKING:  # numpy
    from concurrent.futures import Future

    from plotly.graph_objects import Figure

    from visformer.panel import Panel
    from visformer.trace import Trace
    from visformer.web.panels import Click

_P = ParamSpec("_P")
_ASKED = "asked_for"  # the tensors that the page showed
_KEPT = "sentence_kept"  # whether the page before showed no box
_TOOLS = ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d"]
"""Of Plotly's, which a finger and a mouse can do without them: on a phone they would lie over the legend."""

_ABOUT_TARGET = {
    "encoder": N_(
        "This model is an encoder: it reads and says nothing. It can read a second sentence behind the first."
    ),
    "decoder": N_("Empty: the sentence alone. Type how it goes on to see how the model reads that."),
    "encoder-decoder": N_(
        "Empty: the model's own translation. Type a target to see how the model reads that one instead."
    ),
}


def side_bar(sections: Mapping[str, Sequence[StreamlitPage]]) -> None:
    """Beside every page: the pages, and where the numbers come from."""
    st.header("Visformer", anchor=False)
    lesson_panel.entry()
    for title, pages in sections.items():
        with st.container(gap="xxsmall"):
            st.caption(title)
            for page in pages:
                st.page_link(page, query_params=state.address())
    model_chooser()


def language_switch() -> None:
    """Every language that has a catalogue, by its own name. On the page itself: on a phone the side bar is closed."""
    _, names = state.gettext(), i18n.languages()
    st.segmented_control(
        _("Language"),
        list(names),
        format_func=names.__getitem__,
        key=state.LANGUAGE,
        required=True,
        on_change=state.keep_language,
        label_visibility="collapsed",
        width="content",
    )


def model_chooser() -> None:
    """The bundled translator, an untrained Transformer of any size, and what the operator offers.

    Every page but the lab shows the chosen one.
    """
    _ = state.gettext()
    first, *others = offered()
    if state.model() is None:
        st.session_state[state.MODEL] = first
    st.selectbox(
        _("Model"),
        list(dict.fromkeys([first, state.untrained(), *others, str(state.model())])),
        format_func=partial(_called, gettext=_),
        key=state.MODEL,
        accept_new_options=any_allowed(),
        help=_("Every page looks inside this model; the lab alone has numbers of its own."),
    )
    chosen = str(state.model())
    if names_untrained(chosen):
        untrained_sliders.settings()
    elif chosen in BUNDLED:
        st.caption(
            _("Our own Transformer translates between English and Chinese. Every number here was computed by it.")
        )
    elif chosen != first and is_allowed(chosen):
        model_download.offer(chosen)


def _called(name: str, *, gettext: i18n.Gettext) -> str:
    """What a visitor sees of a model."""
    _ = gettext
    if names_untrained(name):
        return _("Untrained model")
    return _("Translator {name}").format(name=name) if name in BUNDLED else label(name)


def bench() -> Workbench:
    """The workbench of the model that the visitor chose.

    Raises:
        VisformerError: the operator does not offer it.
    """
    return workbench_of(state.model())


def width() -> int | None:
    """d_model of the model that the visitor chose; None where it cannot be had. Ours is asked without loading it."""
    if state.model() in (None, MODEL):
        return workbench.width()
    try:
        return int(bench().loaded().info.d_model)
    except VisformerError:
        return None


def expected() -> "Future[Trace] | None":
    """Begin with what the page will show, before it is built: what it did before, of what the boxes hold now.

    Returns:
        Where it will be; None: it is here, or was not begun.
    """
    with suppress(VisformerError):  # the page will say it, in its place
        if _ASKED in st.session_state:
            return bench().expect(state.source(), state.target(), st.session_state[_ASKED])
    return None


def current_trace(record: Sequence[str] = PATTERNS) -> "Trace | None":
    """The Trace of what stands in the boxes; None where it cannot be made, which the head of the page then explains.

    Boxes keep their text in the session state, so a page can ask before they are drawn, and draw its picture first.

    Args:
        record: what the page shows, as far as the model has it.
    """
    _ = state.gettext()
    trace, problem = None, None
    try:
        of_model = bench()
        waits = not of_model.is_loaded and not of_model.holds(state.source(), state.target(), record)
        with st.spinner(_("Loading the model …")) if waits else nullcontext():
            # Patterns every model has: the first picture, painted before the model is loaded, asks it for nothing.
            wanted = record if record == PATTERNS else of_model.loaded().available(record)
            st.session_state[_ASKED] = tuple(wanted)
            trace = state.ahead() if wanted == PATTERNS else None
            if trace is None:
                trace = of_model.trace(state.source(), state.target(), record=wanted)
    except VisformerError as error:
        problem = error
    state.remember(trace, problem)
    return trace


def sentence_head(*, brief: bool = False) -> None:
    """The sentence and its controls, and what the page has found for it.

    Args:
        brief: the boxes alone: what stands above them needs the room.
    """
    _ = state.gettext()
    if state.found() is None:  # a page whose picture needs no trace
        current_trace()
    trace, problem = state.found() or (None, None)
    if st.session_state.pop(_KEPT, False):
        state.hold(state.SOURCE, state.TARGET)  # or the browser would draw new, empty boxes
    kind = unavailable.kind_of(trace) if trace is not None else _kind()
    said = _translation(trace) if trace is not None else problem.localized(_) if problem is not None else ""
    left, middle, right = st.columns([4, 3, 6] if brief else [5, 4, 3], vertical_alignment="center")
    label: dict[str, Any] = {"label_visibility": "collapsed" if brief else "visible"}
    changed = None if kind == "encoder" else state.forget_target
    left.text_input(_("Sentence"), key=state.SOURCE, on_change=changed, **label)
    middle.text_input(
        _(state.SECOND_BOX[kind]),
        key=state.TARGET,
        placeholder=_("optional") if kind == "encoder" else _own_translation(trace),
        help=_(_ABOUT_TARGET[kind]),
        **label,
    )
    if brief:
        with right.container(horizontal=True, vertical_alignment="center"):
            sharing.bar(said)
            language_switch()
        if problem is not None:
            tell(problem)
        return
    right.selectbox(
        _("Examples"),
        EXAMPLES,
        index=None,
        key=state.EXAMPLE,
        placeholder=_("Choose a sentence"),
        on_change=state.take_example,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.container(gap="xxsmall"):
            if trace is not None:
                st.text("\n".join(filter(None, [said, *_hints(trace)])))
            elif problem is not None:
                tell(problem)
        sharing.bar(said)
        language_switch()


def _kind() -> str:
    """Of the chosen model, as far as it is known."""
    try:
        return bench().kind
    except VisformerError:
        return "encoder-decoder"


def told(draw: Callable[_P, None]) -> Callable[_P, None]:
    """What draws a page or a fragment, with a sentence in place of what it cannot draw."""

    @wraps(draw)
    def drawn(*arguments: _P.args, **named: _P.kwargs) -> None:
        try:
            with enough_memory():
                draw(*arguments, **named)
        except VisformerError as problem:
            tell(problem)

    return drawn


def tell(problem: VisformerError) -> None:
    """Why something cannot be shown; where the text is not to blame, with a way to ask once more."""
    _ = state.gettext()
    st.badge(_("This cannot be shown"), color="red")
    st.text(problem.localized(_))  # never markdown: a message may quote what was typed
    if isinstance(problem, BusyError | ShortageError):
        st.button(_("Try again"), key="try_again")


def surroundings() -> None:
    """What Streamlit itself writes, in the visitor's language; and what is told while the server cannot be reached."""
    _ = state.gettext()
    streamlit_words(gettext=_, lang=state.language())
    connection_notice(
        _(
            "The connection to the server is lost. What you see can still be explored, and your sentence is kept; "
            "the page goes on by itself as soon as the server answers."
        )
    )


def keep_sentence() -> None:
    """Where no box shows it: Streamlit would forget what stands in it."""
    state.hold(state.SOURCE, state.TARGET)
    st.session_state[_KEPT] = True
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        sharing.bar()
        language_switch()


def _translation(trace: "Trace") -> str:
    from visformer.pictures.theme import visible

    _ = state.gettext()
    if not trace.tokens.get("src"):
        return _("The model goes on with: {token}").format(token=visible(trace.tokens["next"][-1]))
    if not trace.tokens.get("tgt"):
        return ""  # an encoder says nothing
    sentence = _("Translation: {text}") if trace.meta.get("to") else _("The model says: {text}")
    if trace.meta.get("forced"):
        sentence = _("Target as typed: {text}")
        if state.target() is None:  # lent
            sentence = _("It has learned no words, so it is given the translator's: {text}")
    return sentence.format(text=visible(str(trace.meta.get("target", ""))))  # a model may say control characters


def _hints(trace: "Trace") -> list[str]:
    """What people ask about the tokens of this sentence; hardly any has one."""
    _ = state.gettext()
    from visformer.pictures import tokens
    from visformer.pictures.theme import visible

    return [_(said).format(tokens=visible(of)) for said, of in tokens.hints(trace)]


def _own_translation(trace: "Trace | None") -> str:
    """What stands in the empty box: the translation that the model found, or was lent."""
    return str(trace.meta.get("target") or "") if trace and state.target() is None else ""


def view(label: str, options: Mapping[str, str], *, key: str) -> str:
    """One of several views of a page; where there is but one, no choice is shown.

    Args:
        label: for screen readers.
        options: name to message id, the first is shown at the beginning.
        key: in the session state, and in the address.
    """
    if len(options) == 1:
        return next(iter(options))
    presentation_steps.begin_options(key, [*options])
    option = Choice(name=key, label=label, link=None, values=options)
    chosen: str = url_widgets.draw(option, url_widgets.nothing(), "", label_visibility="collapsed")
    presentation_steps.offer_options(key, [*options], chosen)
    return chosen


def look_for(text: str, place: Any = st) -> None:
    """What to look for, above the picture, in a presentation too; a lesson says it itself. ``place``: the container."""
    state.look_for(text)
    if not lesson_panel.is_open():
        place.caption(text)


def draw(
    shown: "Sequence[Panel | Sequence[Panel]]",
    *,
    key: str,
    on_click: "Callable[[Click], None] | None" = None,
    share: float = 1.0,
    kept: bool = True,
) -> None:
    """Panels in the visitor's language; see :func:`visformer.web.panels.pack_panels`.

    With a way to keep them, except (``kept`` False) for what is there to be clicked: it would only take room.
    """
    words: Any = {"gettext": state.gettext(), "lang": state.language()}
    panels(shown, key=key, **words, share=share, file=downloads.file_name(key), on_click=on_click)
    if kept:
        downloads.panels(shown, key=key)


def pattern(trace: "Trace", path: str, head: int, *, key: str) -> None:
    """A pattern alone, of a model that shows nothing between; ``path``: of its attention."""
    from visformer.panel import traced

    draw([traced(trace, f"{path}.pattern", head, title="softmax", scale="weight")], key=key)


def draw_figure(shown: "Figure", *, key: str) -> None:
    """Curves or bars, with a way to keep them; the camera over them makes a PNG in the visitor's browser."""
    config = {
        "toImageButtonOptions": {"filename": downloads.file_name(key), "scale": 3},
        "modeBarButtonsToRemove": _TOOLS,
    }
    st.plotly_chart(shown, theme=None, key=key, config=config)
    downloads.figure(shown, key=key)
