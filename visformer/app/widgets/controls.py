"""What pages call: the Trace of what stands in the boxes, and how pictures are drawn."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.serving import workbench
from visformer.app.serving.models import MODEL
from visformer.app.serving.workbench import PATTERNS, Workbench, workbench_of
from visformer.app.session import boxes, presentation_steps, run
from visformer.app.session.page import LESSON
from visformer.app.session.run import Request
from visformer.app.session.slots import Slot
from visformer.app.widgets import downloads, formula_box, url_widgets
from visformer.app.widgets.component import panels
from visformer.errors import BusyError, ShortageError, VisformerError
from visformer.pictures.options import Choice
from visformer.pictures.picture import Picture, View, is_figure
from visformer.pictures.setting import Setting, Source
from visformer.system.memory import enough_memory
from visformer.trace.stacks import STACKS

if TYPE_CHECKING:  # numpy
    from concurrent.futures import Future

    from visformer.trace import Trace
    from visformer.web.panels import Click

    OnClick = Callable[[Click], None] | None

_RECORDED: Slot[tuple[str, ...] | None] = Slot("asked_for", None)  # by the page that was drawn last
_TOOLS = ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d"]
"""Of Plotly's, which a finger and a mouse can do without them: on a phone they would lie over the legend."""


def bench() -> Workbench:
    """The workbench of the model that the visitor chose.

    Raises:
        VisformerError: the operator does not offer it.
    """
    return workbench_of(boxes.model())


def width() -> int | None:
    """d_model of the model that the visitor chose; None where it cannot be had. Ours is asked without loading it."""
    if boxes.model() in (None, MODEL):
        return workbench.width()
    try:
        return int(bench().loaded().info.d_model)
    except VisformerError:
        return None


def expected() -> "Future[Trace] | None":
    """Start computing what the last run asked for, with the text that the boxes hold now.

    Returns:
        Where it will be; None: it is here, or was not begun.
    """
    record = _RECORDED.get()
    with suppress(VisformerError):  # the page will say it, in its place
        if record is not None:
            return bench().expect(boxes.source(), boxes.target(), record)
    return None


def current_trace(record: Sequence[str] = PATTERNS) -> "Trace | None":
    """The Trace of what stands in the boxes; None where it cannot be made, which the head of the page then explains.

    Boxes keep their text in the session state, so a page can ask before they are drawn, and draw its picture first.

    Args:
        record: what the page shows, as far as the model has it.
    """
    shown = run.current()
    shown.request = Request(boxes.source(), boxes.target(), boxes.model(), tuple(record))
    try:
        shown.trace, shown.problem = _answer(shown.request, shown.ahead), None
    except VisformerError as error:
        shown.trace, shown.problem = None, error
    return shown.trace


def _answer(request: Request, ahead: "Trace | None") -> "Trace":
    """The Trace that answers a request; ``ahead``: the one whose picture is drawn already."""
    _, of_model = boxes.gettext(), workbench_of(request.model)
    waits = not of_model.is_loaded and not of_model.holds(request.source, request.target, request.record)
    with st.spinner(_("Loading the model …")) if waits else nullcontext():
        # Patterns every model has: the first picture, painted before the model is loaded, asks it for nothing.
        is_plain = request.record == PATTERNS
        record = PATTERNS if is_plain else tuple(of_model.loaded().available(request.record))
        _RECORDED.set(record)
        if ahead is not None and record == PATTERNS:
            return ahead
        return of_model.trace(request.source, request.target, record=record)


@contextmanager
def told() -> Iterator[None]:
    """Around what draws a page or a fragment: a sentence in place of what it cannot draw."""
    try:
        with enough_memory():
            yield
    except VisformerError as problem:
        tell(problem)


def tell(problem: VisformerError) -> None:
    """Why something cannot be shown; where the text is not to blame, with a way to ask once more."""
    _ = boxes.gettext()
    st.badge(_("This cannot be shown"), color="red")
    st.text(problem.localized(_))  # never markdown: a message may quote what was typed
    if isinstance(problem, BusyError | ShortageError):
        st.button(_("Try again"), key="try_again")


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
    run.current().caption = text
    if not LESSON.get().is_open:
        place.caption(text)


def setting_of(view: View, trace: "Trace | None", recorded: tuple[str, ...] = PATTERNS, **known: Any) -> Setting:
    """What a view is drawn from; ``known``: options whose values the page knows already."""
    return Setting(source_of(trace, recorded), view.needs if isinstance(view, Picture) else (), known)


def source_of(trace: "Trace | None", recorded: tuple[str, ...] = PATTERNS) -> Source:
    """The visitor's sentence and model.

    Args:
        trace: of the sentence; None: only formulas can be shown.
        recorded: globs over what the Trace holds; what else a picture needs is computed.
    """
    common: dict[str, Any] = {"theme": formula_box.theme(), "gettext": boxes.gettext()}
    common["d_model"] = width() or 32
    if trace is None:
        return Source(**common)

    def record(needs: tuple[str, ...]) -> Any:
        held = all(any(fnmatchcase(name, glob) for glob in (*PATTERNS, *recorded)) for name in needs)
        return trace if held else current_trace(needs)

    def untrained(norm: str, needs: tuple[str, ...]) -> "Trace":
        return bench().untrained(boxes.source(), str(trace.meta["target"]), norm=norm, record=needs)

    return Source(
        record=record,
        speak=lambda **how: bench().decoded(boxes.source(), **how),
        read=lambda text: bench().trace(text, None, record=PATTERNS),
        untrained=untrained,
        stacks=tuple(stack.name for stack in STACKS if stack.in_trace(trace)),
        tokens=trace.tokens["src" if "src" in trace.tokens else "tgt"],
        **common,
    )


def draw(shown: Any, *, key: str, share: float = 1.0, on_click: "OnClick" = None, kept: bool = True) -> None:
    """Panels, curves or bars in the visitor's language, with a way to keep them.

    Args:
        shown: panels, see :func:`visformer.web.panels.pack_panels`; or a figure of plotly.
        key: of the picture.
        share: of the window's height that panels may take.
        on_click: see :func:`visformer.app.widgets.component.panels`.
        kept: False for what is there to be clicked: a way to keep it would only take room.
    """
    file = downloads.file_name(key)
    if is_figure(shown):  # the camera over it makes a PNG in the visitor's browser
        config = {"toImageButtonOptions": {"filename": file, "scale": 3}, "modeBarButtonsToRemove": _TOOLS}
        st.plotly_chart(shown, theme=None, key=key, config=config)
    else:
        panels(shown, key=key, share=share, file=file, on_click=on_click)
    if kept:
        downloads.offer("figure" if is_figure(shown) else "panels", shown, key=key)


def pattern(trace: "Trace", path: str, head: int, *, key: str) -> None:
    """A pattern alone, of a model that shows nothing between; ``path``: of its attention."""
    from visformer.panel import traced

    draw([traced(trace, f"{path}.pattern", head, title="softmax", scale="weight")], key=key)
