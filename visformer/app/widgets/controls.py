"""Functions that pages call: the Trace of the text in the boxes, and drawing of pictures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from fnmatch import fnmatchcase
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from visformer import i18n
from visformer.adapters.checkpoints import figures_of, model_of, moment_name, reads_pictures
from visformer.app.serving import workbench
from visformer.app.serving.admission import PATIENCE
from visformer.app.serving.capacity import aside, drawing
from visformer.app.serving.models import MODEL, label, named, offered
from visformer.app.serving.parts import Offer
from visformer.app.serving.workbench import Workbench, workbench_of
from visformer.app.session import address, boxes, measured, presentation_steps, run, selection
from visformer.app.session.page import LESSON, current_page
from visformer.app.session.run import TraceRequest
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import EXPLORER
from visformer.app.streamlit_private.other_sessions import own_session
from visformer.app.widgets import downloads, formula_box, url_widgets
from visformer.app.widgets.component import attention_picture, panels
from visformer.errors import BusyError, NoTextError, ShortageError, VisformerError
from visformer.pictures.examples import EXAMPLES
from visformer.pictures.registry.options import Choice
from visformer.pictures.registry.picture import Picture, View, is_figure
from visformer.pictures.registry.setting import LONG, PATTERNS, Setting, Source
from visformer.system.memory import enough_memory
from visformer.trace.stacks import STACKS

if TYPE_CHECKING:  # numpy
    from concurrent.futures import Future

    from visformer.edits import Edit
    from visformer.trace import Trace
    from visformer.web.panels import Click

    OnClick = Callable[[Click], None] | None

_N = TypeVar("_N", bound=str)
_OFFER: Slot[tuple[object, Offer | None]] = Slot("parts", (None, None))  # for which text
_READ = Slot("text_read", EXAMPLES[0])  # the last long text that was shown, or the first example
_RECORDED: Slot[tuple[str, ...] | None] = Slot("asked_for", None)  # what the last page recorded
_TOOLS = ["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "autoScale2d"]
"""Plotly's buttons that Export, touch and mouse make redundant: on a phone they would cover the legend."""


def bench() -> Workbench:
    """Return the workbench of the visitor's model.

    Raises:
        VisformerError: the operator does not offer it.
    """
    return workbench_of(boxes.model())


def width() -> int | None:
    """Return d_model of the visitor's model, or None if it cannot be loaded; the bundled model need not be loaded."""
    if boxes.model() in (None, MODEL):
        return workbench.width()
    try:
        return int(bench().loaded().info.d_model)
    except VisformerError:
        return None


def prefetch() -> "Future[Trace] | None":
    """Start computing the Trace that the last run recorded, with the text now in the boxes.

    Returns:
        Its future; None: it is cached, or was not started.
    """
    record = _RECORDED.get()
    with suppress(VisformerError):  # the page will show the error
        if record is not None and (used := bench()).is_loaded:
            request = TraceRequest(boxes.source(), boxes.target(), boxes.model(), record)
            return used.expect(request.source, request.target, _recordable(used, request))
    return None


def send_ahead(expected: "Future[Trace] | None") -> None:
    """Send the picture of a new sentence before the page: a browser that draws the page slows the model down.

    If the Trace takes long, the page does not wait for it; None: there is no new picture.
    """
    if expected is not None and current_page() == EXPLORER:
        with suppress(TimeoutError, VisformerError), enough_memory():
            with aside():
                problem = expected.exception(PATIENCE)
            if problem is None:  # otherwise the page will show the error
                send_explorer(expected.result(), ahead=True)
                run.current().ahead = expected.result()
                return
    # A message all the same, so that the elements behind it keep their positions.
    attention_picture(None, ahead=True)


def send_explorer(trace: "Trace | None", *, ahead: bool = False) -> None:
    """Send the explorer its picture; None: none. ``ahead``: before the page that it is on."""
    if trace is None:
        attention_picture(None, ahead=ahead)
        return
    start = {**selection.start(trace).start(), "opened": address.OPENED.get()}
    offer = parts_offer(trace)
    parts = offer.address if offer is not None else ""
    notes = measured.notes()
    attention_picture(trace, start=start, file=downloads.file_name(""), notes=notes, parts=parts, ahead=ahead)


def parts_offer(trace: "Trace") -> Offer | None:
    """Return what the browser may fetch of the heads of a long text; None: it has all that it needs."""
    from visformer.trace.overview import PatternOnDemand

    if not any(isinstance(tensor, PatternOnDemand) for tensor in trace.tensors.values()):
        return None
    text = (boxes.model(), boxes.source(), boxes.target())
    known, offer = _OFFER.get()
    if offer is None or known != text:
        ask = partial(bench().part, boxes.source(), boxes.target(), session=own_session())
        offer = Offer(ask)
        _OFFER.set((text, offer))
    return offer


def current_trace(record: Sequence[str] = PATTERNS) -> "Trace | None":
    """Return the Trace of the text in the boxes, or None if it fails; the head of the page then shows the error.

    The boxes' text is in the session state, so a page can call this, and draw its picture, before they are drawn.

    Args:
        record: globs of the tensors that the page shows; those that the model lacks are ignored.
    """
    this_run = run.current()
    this_run.request = TraceRequest(boxes.source(), boxes.target(), boxes.model(), tuple(record))
    try:
        this_run.trace, this_run.problem = _trace_for(this_run.request, this_run.ahead), None
    except VisformerError as error:
        this_run.trace, this_run.problem = None, error
    return this_run.trace


def recorded(record: tuple[str, ...]) -> "Trace":
    """Return the Trace of the text in the boxes with other tensors than the page shows.

    Raises:
        VisformerError: as on the page.
    """
    used = bench()
    request = TraceRequest(boxes.source(), boxes.target(), boxes.model(), record)
    return used.trace(request.source, request.target, record=_recordable(used, request))


def _trace_for(request: TraceRequest, ahead: "Trace | None") -> "Trace":
    """Return the Trace for a request; ``ahead``: the one whose picture is already drawn."""
    _, used_bench = boxes.gettext(), workbench_of(request.model)
    must_load = not used_bench.is_loaded and not used_bench.holds(request.source, request.target, request.record)
    with st.spinner(_("Loading the model …")) if must_load else nullcontext():
        _RECORDED.set(request.record)
        if ahead is not None and request.record in (PATTERNS, LONG):
            return ahead
        record = _recordable(used_bench, request)
        if record != LONG or not used_bench.is_long(request.source, request.target):
            return used_bench.trace(request.source, request.target, record=record)
        with _reading() as on_progress:
            trace = used_bench.trace(request.source, request.target, record=record, on_progress=on_progress)
        _READ.set(request.source)
        return trace


@contextmanager
def _reading() -> Iterator[Callable[[float], object]]:
    """Show how far the attention of a long text is, with a button that goes back to the text read before."""
    _, place = boxes.gettext(), st.empty()
    bar: Any = None

    def show(share: float) -> None:
        nonlocal bar
        if bar is None:
            with place.container(horizontal=True, vertical_alignment="center"):
                bar = st.progress(0.0, _("Reading a long text …"))
                st.button(_("Cancel"), key="cancel_reading", on_click=boxes.enter_example, args=(_READ.get(),))
        bar.progress(share, _("Reading a long text …"))  # raises once the visitor has done something else

    yield show
    place.empty()


def _recordable(used_bench: Workbench, request: TraceRequest) -> tuple[str, ...]:
    """Return the globs of a request for which the model has tensors.

    Every model has patterns, and the example is there before the model: the first picture need not wait for it.
    """
    if request.record in (PATTERNS, LONG) or used_bench.holds(request.source, request.target, request.record):
        return request.record
    return tuple(used_bench.reading(request.source).available(request.record))


@contextmanager
def errors_shown() -> Iterator[None]:
    """Draw a page or a fragment when there is a place, and show an error as a sentence, in place of the rest."""
    with drawing():
        try:
            with enough_memory():
                yield
        except VisformerError as problem:
            show_error(problem)


def show_error(problem: VisformerError) -> None:
    """Show why there is nothing to see, with a button for what may help: an example, or to try again."""
    _ = boxes.gettext()
    is_failure = not isinstance(problem, NoTextError)
    if is_failure:
        st.badge(_("This cannot be shown"), color="red")
    st.text(problem.localized(_))  # never markdown: a message may quote what was typed
    if not is_failure:
        st.button(EXAMPLES[0], key="first_example", on_click=boxes.enter_example, args=(EXAMPLES[0],))
    if isinstance(problem, BusyError | ShortageError):
        st.button(_("Try again"), key="try_again")


def view(label: str, options: Mapping[_N, str], *, key: str) -> _N:
    """Draw the switch between the views of a page, unless there is only one, and return the selected view's name.

    Args:
        label: for screen readers.
        options: names to message ids; the first is the default.
        key: in the session state, and in the address.
    """
    if len(options) == 1:
        return next(iter(options))
    presentation_steps.begin_options(key, [*options])
    option = Choice(name=key, label=label, link=None, values=options)
    selected: _N = url_widgets.draw(option, url_widgets.nothing(), "", label_visibility="collapsed")
    presentation_steps.offer_options(key, [*options], selected, [*map(boxes.gettext(), options.values())])
    return selected


def look_for(text: str, place: Any = st, *, asked: str = "") -> None:
    """Show what to look for above the picture and in a presentation; a lesson has its own.

    Args:
        text: true of all that the picture can show.
        place: the container.
        asked: a question about what it shows now, which a presentation, drawn less often, would ask too long.
    """
    run.current().caption = text
    if not LESSON.get().is_open:
        place.caption(i18n.paragraph(text, asked))


def setting_of(view: View, trace: "Trace | None", recorded: tuple[str, ...] = PATTERNS, **known: Any) -> Setting:
    """Return the setting that a view is drawn from; ``known``: options whose values the page already has."""
    return Setting(source_of(trace, recorded), view.needs if isinstance(view, Picture) else (), known)


def source_of(trace: "Trace | None", recorded: tuple[str, ...] = PATTERNS) -> Source:
    """Return the visitor's sentence and model as a source of pictures.

    Args:
        trace: of the sentence; None: only formulas can be shown.
        recorded: globs of the tensors that the Trace holds; others that a picture needs are computed.
    """
    common: dict[str, Any] = {"theme": formula_box.theme(), "gettext": boxes.gettext()}
    common["d_model"] = width() or 32
    if trace is None:
        return Source(**common)

    def record(needs: tuple[str, ...]) -> Any:
        is_recorded = all(any(fnmatchcase(name, glob) for glob in (*PATTERNS, *recorded)) for name in needs)
        return trace if is_recorded else current_trace(needs)

    def measure(analysis: Callable[..., Any], **settings: Any) -> Any:
        return bench().measured(analysis, boxes.source(), boxes.target(), **settings)

    return Source(
        record=record,
        speak=lambda **how: bench().decoded(boxes.source(), **how),
        read=_read,
        measure=measure,
        models=tuple(label(name) for name in offered() if not reads_pictures(name)),
        moments=lambda: figures_of(boxes.model() or MODEL),
        stacks=tuple(stack.name for stack in STACKS if stack.in_trace(trace)),
        tokens=trace.tokens["src" if "src" in trace.tokens else "tgt"],
        **common,
    )


def _read(
    text: str,
    target: "str | tuple[int, ...] | None" = None,
    *,
    model: str | None = None,
    moment: int | None = None,
    edits: "Sequence[Edit]" = (),
    record: tuple[str, ...] = PATTERNS,
) -> "Trace":
    """Return the Trace of another input, see :class:`visformer.pictures.registry.setting.Source`."""
    name = boxes.model() or MODEL if model is None else named(model)
    used = workbench_of(name if moment is None else moment_name(model_of(name)[0], moment))
    _ = boxes.gettext()
    with nullcontext() if used.is_loaded else st.spinner(_("Loading the model …")):
        return used.trace(text, target, record=record, edits=edits)


def draw(shown: Any, *, key: str, on_click: "OnClick" = None, export: bool = True, **style: Any) -> None:
    """Draw panels, curves or bars in the visitor's language, to be exported with the page.

    Args:
        shown: panels, see :func:`visformer.web.panels.pack_panels`; or a Plotly figure.
        key: the picture's key.
        on_click: see :func:`visformer.app.widgets.component.panels`.
        export: False for a picture that serves as a control.
        style: how panels are drawn, "share", "stages" and "told" of :func:`visformer.app.widgets.component.panels`.
    """
    if is_figure(shown):
        _chart(shown, key)
    else:
        panels(shown, key=key, on_click=on_click, **style)
    if export:
        run.current().exports.append((shown, key))


def _chart(figure: Any, key: str) -> None:
    """Draw a Plotly figure in a frame that scrolls sideways where it has no room for the figure's texts."""
    from visformer.export.curves import least_width

    config = {"modeBarButtonsToRemove": _TOOLS}
    with st.container(key=f"wide_{key}"):
        st.plotly_chart(
            figure, theme=None, key=f"picture_{key}", width=ceil(least_width(figure)) or "stretch", config=config
        )


def pattern(trace: "Trace", path: str, head: int, *, key: str) -> None:
    """Draw a pattern alone, for a model without intermediate values; ``path``: of its attention."""
    from visformer.panel import traced

    draw([traced(trace, f"{path}.pattern", head, title="softmax", scale="weight")], key=key)
