"""Attention: all heads of all layers at once, and one of them enlarged; its selection goes into the address."""

from contextlib import suppress
from typing import Any

import streamlit as st

from visformer.adapters.checkpoints import TRANSLATOR
from visformer.app.presentation import following
from visformer.app.session import address, boxes, run, selection
from visformer.app.session.markdown import plain
from visformer.app.session.page import LESSON, page_named
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, locator, pick, unavailable
from visformer.app.widgets.component import CANVAS, attention_effect, attention_view, attention_weights
from visformer.errors import N_, VisformerError
from visformer.i18n import paragraph
from visformer.pictures.effects import EFFECTS, describe_weight
from visformer.pictures.examples import NAMING
from visformer.pictures.registry.setting import LONG
from visformer.pictures.style import visible
from visformer.trace import Trace
from visformer.trace.overview import PatternOnDemand
from visformer.web.selection import Selection

# What the browser reported last. Only such a cell is measured: it reports that of a link, too, once that is drawn,
# so that the first picture does not wait for the model.
CLICKED: Slot[dict[str, Any] | None] = Slot("clicked_cell", None, resets=True)

CLEARLY = 0.5  # of a row's weight, in the mean over all rows
# The name of a score to the question that a head with a high one answers.
QUESTIONS = {
    "previous": N_("Try: which head reads the previous token?"),
    "diagonal": N_("Try: in which head do tokens mostly read themselves?"),
}
CROSS_QUESTIONS = {"diagonal": N_("Try: which head moves along the source as the target grows?")}

_ = boxes.gettext()


@st.fragment
@controls.errors_shown()
def explorer() -> None:
    """Draw every head of the sentence's Trace and a link into the one in focus. A selection reruns only this."""
    above, picture = st.container(), st.container(gap=None)  # feeds take up no room
    with picture:
        attention_view(select)
        # Send nothing between the Trace and its picture: Streamlit waits 5 ms after each message.
        with above:  # the notice of a wait appears here
            trace = controls.current_trace(LONG)
        if trace is None or trace is not run.current().ahead:
            controls.send_explorer(trace)
        if trace is None:
            return
        offer = controls.parts_offer(trace)
        attention_weights(trace, None if offer is None else offer.ask)
        locator.send("selected")
    selected = selection.selection(trace)
    said = _("Each word reads others, by weights that sum to 1: the stronger a colour, the more is read.")
    asked = (language_token(trace, selected), question_of(trace, selected.stack))
    controls.look_for(said, above, asked=paragraph(*asked))
    with st.container(horizontal=True, vertical_alignment="center"):
        pick.link_inside(trace, selected)
        if unavailable.predicts(trace):
            st.page_link(page_named("effects"), label=_("What its weights do"), query_params=address.to_query())
    run.current().exports.append((trace, CANVAS))
    if place_of(selected) == CLICKED.get() and not LESSON.get().is_open:  # a lesson does not speak of nats
        with picture:
            tell_effect(trace, selected)


def select(value: Any) -> None:
    trace = controls.current_trace(LONG)
    if trace is not None:
        if selection.take(value, trace):
            CLICKED.set(place_of(selection.chosen()))
            address.update()
        following.publish()


def is_on_demand(trace: Trace, selected: Selection) -> bool:
    """Whether the heads of the selected attention are computed when the browser asks for them: a long text."""
    part, kind = selected.stack.split(".")
    return isinstance(trace[f"{part}.{selected.layer}.{kind}.pattern"], PatternOnDemand)


def place_of(selected: Selection) -> dict[str, Any]:
    return {name: getattr(selected, name) for name in ("stack", "layer", "head", "query", "key")}


def language_token(trace: Trace, selected: Selection) -> str:
    """Say what the row of the token that begins a translation reads, where that row is seen; "" elsewhere."""
    tokens, special = trace.tokens, trace.special
    is_seen = selected.view in ("heatmap", "arcs") and not selected.hiding and selected.combine == "one"
    if (
        not is_seen
        or is_on_demand(trace, selected)
        or not selected.stack.endswith("cross_attn")
        or not special["tgt"][0]
        or selected.rows != "input"
    ):
        return ""
    row = trace[f"decoder.{selected.layer}.cross_attn.pattern"].value[selected.head][0]
    most = int(row.argmax())
    said = _("The first row is no word, {token}: it reads {key} most ({weight}).")
    if special["src"][most]:
        said = _("The first row is no word, {token}: it reads {key} most ({weight}), nothing in particular.")
    names = {"token": tokens["tgt"][0], "key": tokens["src"][most]}
    return said.format(weight=f"{row[most]:.2f}", **{name: plain(visible(text)) for name, text in names.items()})


def question_of(trace: Trace, stack: str) -> str:
    """Return a question that the heads of this attention answer for this sentence; "" if none does it clearly."""
    from visformer.web.payload import scores_of

    scores = scores_of(trace, stack)
    is_cross = stack.endswith("cross_attn")
    if is_cross and boxes.model() == TRANSLATOR and boxes.target() is None and boxes.source() in NAMING:
        return _("Try: which head finds the name?")
    for name, question in (CROSS_QUESTIONS if is_cross else QUESTIONS).items():
        if max((score or 0 for layer in scores.get(name, ()) for score in layer), default=0) >= CLEARLY:
            return _(question)
    return ""


def tell_effect(trace: Trace, selected: Selection) -> None:
    """Send the explorer what the weight of the locked cell does: only that of one head is measured, alone."""
    if is_on_demand(trace, selected):
        return
    is_plain = selected.combine == "one" and not (selected.merging or selected.renormalising)
    if selected.query is None or selected.key is None or not is_plain or not unavailable.predicts(trace):
        return
    given: dict[str, Any] = {"stack": selected.stack, "layer": selected.layer, "head": selected.head, "how": "zero"}
    with suppress(VisformerError):  # such as a model whose weights cannot be changed: the page says why
        setting = controls.setting_of(EFFECTS, trace, **given)
        attention_effect(place_of(selected), describe_weight(setting, (selected.query, selected.key), alone=True))


explorer()
