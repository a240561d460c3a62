"""The explorer on its page; its selection goes into the address, and to the page that shows the inside of a head."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.adapters.bundled import TRANSLATOR
from visformer.app.pages import effects
from visformer.app.presentation import following
from visformer.app.serving.admission import PATIENCE
from visformer.app.serving.capacity import aside
from visformer.app.session import address, boxes, measured, page, run, selection, visit
from visformer.app.session.examples import NAMING
from visformer.app.session.page import page_named
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import EXPLORER
from visformer.app.widgets import controls, downloads, here
from visformer.app.widgets.component import attention_effect, attention_picture, attention_view, attention_weights
from visformer.errors import N_, VisformerError
from visformer.system.memory import enough_memory
from visformer.web.selection import Selection

if TYPE_CHECKING:  # numpy
    from concurrent.futures import Future

    from visformer.trace import Trace

_CLICKED: Slot[dict[str, Any] | None] = Slot("clicked_cell", None, resets=True)
"""What the browser reported last. Only such a cell is measured: it reports that of a link, too, once that is drawn,
so that the first picture does not wait for the model."""

_CLEARLY = 0.5  # of a row's weight, in the mean over all rows
_QUESTIONS = {
    "previous": N_("Try: which head reads the previous token?"),
    "diagonal": N_("Try: in which head do tokens mostly read themselves?"),
}
_CROSS_QUESTIONS = {"diagonal": N_("Try: which head moves along the source as the target grows?")}
"""The name of a score to the question that a head with a high one answers."""


def ahead(expected: "Future[Trace] | None") -> None:
    """Send the picture of a new sentence before the page: a browser that draws the page slows the model down.

    If the Trace takes long, the page does not wait for it; None: there is no new picture.
    """
    if expected is not None and page.current_page() == EXPLORER:
        with suppress(TimeoutError, VisformerError), enough_memory():
            with aside():
                problem = expected.exception(PATIENCE)
            if problem is None:  # otherwise the page will show the error
                _picture(expected.result(), ahead=True)
                run.current().ahead = expected.result()
                return
    # A message all the same, so that the elements behind it keep their positions.
    attention_picture(None, ahead=True)


def _picture(trace: "Trace | None", *, ahead: bool = False) -> None:
    if trace is None:
        attention_picture(None, ahead=ahead)
        return
    start = {**selection.start(trace).start(), "opened": visit.OPENED.get()}
    attention_picture(trace, start=start, file=downloads.file_name(""), notes=measured.notes(), ahead=ahead)


def _asked(trace: "Trace", stack: str) -> str:
    """Return a question that the heads of this attention answer for this sentence; "" if none does it clearly."""
    from visformer.web.payload import scores_of

    _, scores = boxes.gettext(), scores_of(trace, stack)
    is_cross = stack.endswith("cross_attn")
    if is_cross and boxes.model() == TRANSLATOR and boxes.target() is None and boxes.source() in NAMING:
        return _("Try: which head finds the name?")
    for name, question in (_CROSS_QUESTIONS if is_cross else _QUESTIONS).items():
        if max((score or 0 for layer in scores.get(name, ()) for score in layer), default=0) >= _CLEARLY:
            return _(question)
    return ""


@st.fragment
@controls.errors_shown()
def explorer() -> None:
    """Draw every head of the sentence's Trace and a link into the one in focus. A selection reruns only this."""
    _ = boxes.gettext()
    above, picture = st.container(), st.container(gap=None)  # feeds take up no room

    def select(value: Any) -> None:
        trace = controls.current_trace()
        if trace is not None:
            if selection.take(value, trace):
                _CLICKED.set(_place(selection.chosen()))
                address.update()
            following.publish()

    with picture:
        attention_view(select)
        # Send nothing between the Trace and its picture: Streamlit waits 5 ms after each message.
        with above:  # the notice of a wait appears here
            trace = controls.current_trace()
        if trace is None or trace is not run.current().ahead:
            _picture(trace)
        if trace is None:
            return
        attention_weights(trace)
        here.tell("selected")
    selected = selection.selection(trace)
    said = _("Each row reads, each column is read: the stronger a cell's colour, the more its row reads that column.")
    controls.look_for(said, above, asked=_asked(trace, selected.stack))
    with st.container(horizontal=True, vertical_alignment="center"):
        link_inside(trace, selected)
        link_effects(trace)
        downloads.attention(trace)
    if _place(selected) == _CLICKED.get():
        with picture:
            tell_effect(trace, selected)


def link_effects(trace: "Trace") -> None:
    """Link to what the weights of the head do, if the model predicts next tokens."""
    _ = boxes.gettext()
    if effects.predicts(trace):
        st.page_link(page_named("effects"), label=_("What its weights do"), query_params=address.address())


def _place(selected: Selection) -> dict[str, Any]:
    return {name: getattr(selected, name) for name in ("stack", "layer", "head", "query", "key")}


def tell_effect(trace: "Trace", selected: Selection) -> None:
    """Send the explorer what the weight of the locked cell does: only that of one head is measured, alone."""
    is_plain = selected.combine == "one" and not (selected.merging or selected.renormalising)
    if selected.query is None or selected.key is None or not is_plain or not effects.predicts(trace):
        return
    with suppress(VisformerError):  # such as a model whose weights cannot be changed: the page says why
        attention_effect(_place(selected), effects.of_cell(trace, selected))


def link_inside(trace: "Trace", selected: Selection) -> None:
    """Link to the inside of a head, if the model shows it."""
    _ = boxes.gettext()
    if trace.lacks(f"{selected.stack.replace('.', f'.{selected.layer}.')}.q") is None:
        label = _("Inside this head: layer {layer}, head {head}")
        st.page_link(
            page_named("head"),
            label=label.format(layer=selected.layer + 1, head=selected.head + 1),
            query_params=address.address(),
        )
