"""Attention: all heads of all layers at once, and one of them enlarged; its selection goes into the address."""

from contextlib import suppress
from typing import Any

import streamlit as st

from visformer.adapters.checkpoints import TRANSLATOR
from visformer.app.presentation import following
from visformer.app.session import address, boxes, run, selection, slots
from visformer.app.session.markdown import plain
from visformer.app.session.page import LESSON, page_named
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, locator, pick, unavailable
from visformer.app.widgets.component import CANVAS, attention_effect, attention_view, attention_weights
from visformer.errors import N_, VisformerError
from visformer.i18n import paragraph
from visformer.pictures.effects import EFFECTS, describe_weight
from visformer.pictures.examples import NAMING
from visformer.pictures.registry.setting import LONG, PATTERNS
from visformer.pictures.style import visible
from visformer.system import limits
from visformer.trace import Trace
from visformer.trace.overview import PatternOnDemand
from visformer.web.selection import Selection

# What the browser reported last. Only such a cell is measured: it reports that of a link, too, once that is drawn,
# so that the first picture does not wait for the model.
CLICKED: Slot[dict[str, Any] | None] = Slot("clicked_cell", None, resets=True)

TYPED: Slot[str | None] = Slot("long_text", "")
UPLOADED = "long_text_file"
SECONDS_A_WEIGHT = 7e-9  # on two cores, see docs/benchmarks.md

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
            trace = controls.current_trace(record())
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


def record() -> tuple[str, ...]:
    """Return what is recorded: of a long text as much as a thousand heads leave room for, but not for a whole room."""
    return PATTERNS if following.shared() else LONG


def long_text() -> None:
    """Draw the button that opens a box for a text longer than a sentence, which may come from a file."""
    if following.shared() or LESSON.get().is_open:
        return
    if st.button(_("Read a long text"), type="tertiary", icon=":material/article:", key="long_text_open"):
        st.dialog(_("A long text"), width="large")(text_box)()


def text_box() -> None:
    """Draw the box, and say what it will take to read what is in it."""
    key = f"{UPLOADED}_{slots.version(UPLOADED)}"
    st.file_uploader(_("A file"), ["txt", "md"], max_upload_size=1, key=key, on_change=take_file, args=(key,))
    text = st.text_area(_("Or type or paste it"), key=TYPED.key, height="content", max_chars=limits.LONG_CHARACTERS)
    is_empty = not (text or "").strip()
    st.caption(_("The picture then zooms like a map, from sentences to words.") if is_empty else estimated(str(text)))
    if st.button(_("Read it"), type="primary", disabled=is_empty, on_click=read_it):
        st.rerun()


def read_it() -> None:
    """Take the text from the box in place of the sentence."""
    boxes.enter_example(TYPED.get() or "")


def take_file(key: str) -> None:
    """Take the text of an uploaded file."""
    uploaded: Any = Slot(key, None).get()
    if uploaded is not None:
        TYPED.set(uploaded.getvalue().decode(errors="replace")[: limits.LONG_CHARACTERS])
    slots.renew(UPLOADED)


def estimated(text: str) -> str:
    """Say how many tokens and weights a text has, and about how long they will take."""
    try:
        model = controls.bench().loaded()
    except VisformerError as problem:
        return plain(problem.localized(_))
    info, n = model.info, len(model.tokenize(text))
    if info.max_tokens is not None and n > info.max_tokens:
        said = _("{given:,} tokens: this model takes at most {limit:,}. Shorten the text, or choose another model.")
        return said.format(given=n, limit=info.max_tokens)
    heads = info.n_heads * (info.n_encoder_layers or info.n_decoder_layers)
    said = _("{n:,} tokens, {heads:,} heads: about {seconds:,.0f} s.")
    return said.format(n=n, heads=heads, seconds=max(1.0, heads * n**2 * SECONDS_A_WEIGHT))


def select(value: Any) -> None:
    trace = controls.current_trace(record())
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
long_text()
