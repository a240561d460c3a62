"""Decoding: the translation token by token, the alternatives at each step, and the hypotheses of beam search.

The visitor may choose another token at a step, and the model continues from there.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer import i18n
from visformer.app.serving.models import MODEL
from visformer.app.session import address, boxes, presentation_steps
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, formula_box, pick, unavailable, url_widgets
from visformer.errors import N_, LinkError, VisformerError
from visformer.pictures.charts.decoding import best_path
from visformer.pictures.decoding import (
    BEAMS,
    CANDIDATES,
    DRAWS,
    GROWING,
    PAGE,
    SEED,
    STEP,
    SURE,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    TREE,
    growing,
    shape,
)
from visformer.pictures.style import decoded_text, probability
from visformer.trace import Trace
from visformer.web.panels import Click

if TYPE_CHECKING:  # visformer.model.decoding imports torch
    from visformer.model.decoding import Candidate, Decoding, Step

    # The sentence and the model: with others, nothing is forced. The steps of the prefix, the last one with the token
    # that the visitor chose. And by step, the model's own choice where the visitor replaced it.
    Forced = tuple[tuple[str, str | None], tuple[Step, ...], dict[int, Candidate]]

FORMULA = r"""&P(y_t \mid y_{<t}%s) = \sym{pattern}{\mathrm{softmax}}(\sym{scores}{z_t} / \sym{k}{T}) \\[4pt]
&\sym{scores}{z_t} = \sym{out}{h_t} %s"""
TIED, UNTIED = r"\sym{embed}{E}^T", r"\sym{embed}{W}_{out}"
LONGEST = 24  # tokens that a decoder-only model adds
CODE = (("model/decoding.py", "decode"), ("model/decoding.py", "reshape"), ("model/decoding.py", "beam_search"))

TAKEN = "decoding_taken"  # in an address: the ids of the forced prefix
FORCED: "Slot[Forced | None]" = Slot("decoding_turned", None, resets=True)
SELECTED: Slot[int | None] = Slot("decoding_step", 0, resets=True)

_ = boxes.gettext()


def draw() -> None:
    """Draw the page. A session keeps what is called on a click: no global of this script may hold a Trace."""
    trace = controls.current_trace()
    if trace is None:
        return
    if unavailable.kind_of(trace) == "encoder":
        unavailable.say(N_("This model is an encoder: it generates no text, so there are no decoding steps."))
        unavailable.elsewhere()
        return
    most = LONGEST if unavailable.kind_of(trace) == "decoder" else None
    words, maths = st.columns([63, 37], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="decoding_view"))
        bar = st.container()
    with maths:
        last = TIED if boxes.model() in (None, MODEL) else UNTIED
        formula_box.formula(FORMULA % ("" if most else ", x", last), section="3.4, 6.1", code=CODE)
    top = st.container()
    try:
        model = controls.bench().loaded(boxes.source())
        if view is TREE:
            draw_beams(trace, most, bar)
        else:
            draw_steps(trace, model, most, bar, top)
    except VisformerError as error:
        st.text(error.localized(_))
    if not prefix() or view is TREE:
        length = _("It continues for at most {n} tokens.").format(n=most) if most else ""
        controls.look_for(i18n.paragraph(_(view.look_for), length), top)


def draw_beams(trace: Trace, most: int | None, bar: Any) -> None:
    setting = controls.setting_of(TREE, trace)
    url_widgets.draw(BEAMS, setting, "decoding", place=bar, width=300)
    decoded = controls.bench().decoded(boxes.source(), beam_size=setting["beams"], max_new_tokens=most)
    with st.container(horizontal=True, gap="large"):
        st.text(_("Decoded with these settings: {text}").format(text=decoded_text(decoded.text, _)), width="content")
        path = best_path(decoded.beams)  # the winner's rank at each step, from 0
        if any(path):
            lowest = max(range(len(path)), key=path.__getitem__)
            said = _("The winner ranked only number {place} at step {step}: what looked worse then won in the end.")
            st.text(said.format(place=path[lowest] + 1, step=lowest + 1))
        else:
            said = _("Here the top line leads from start to finish: always taking the most likely token finds it too.")
            st.text(said)
    setting.source = replace(setting.source, speak=lambda **_: decoded)
    controls.draw(TREE.draw(setting), key="decoding_tree")


def draw_steps(trace: Trace, model: Any, most: int | None, bar: Any, top: Any) -> None:
    bench, setting = controls.bench(), controls.setting_of(CANDIDATES, trace)
    left, right = st.columns([52, 48], gap="medium")
    with left:
        how: dict[str, Any] = {"max_new_tokens": most}
        columns = st.columns([3, 3, 3, 4], vertical_alignment="bottom")
        for option, box in zip((TEMPERATURE, TOP_K, TOP_P), columns[:3], strict=True):
            url_widgets.draw(option, setting, "decoding", place=box)
        if url_widgets.draw(DRAWS, setting, "decoding", place=columns[3]):
            url_widgets.draw(SEED, setting, "decoding", place=columns[3])
            how |= {**shape(setting), "seed": setting["seed"]}

    def decode(ids: tuple[int, ...]) -> "Decoding":
        return bench.decoded(boxes.source(), prefix=ids, **how)

    # Decode behind the forced prefix, from the visitor or a link, and put the prefix into the address.
    address.take(TAKEN, lambda value: FORCED.set(replayed(value, model.text, decode)))
    address.show_changes(TAKEN, ".".join(map(str, prefix())))
    decoded = decode(prefix())
    taken, replaced = forced()
    steps = (*taken, *decoded.steps)
    at = setting["step"] = selected_step(len(steps))
    setting.source = replace(setting.source, speak=lambda: replace(decoded, steps=steps))
    with bar:
        controls.draw(SURE.draw(setting), key="decoding_sure", on_click=look_at, share=0.3, export=False)

    # The decoded text, a token forced in place of the model's own, and a button to undo all of them.
    with top.container(horizontal=True, vertical_alignment="center", gap="large"):
        if decoded.text != trace.meta.get("target"):
            said = _("Decoded with these settings: {text}")
            st.text(said.format(text=decoded_text(decoded.text, _)), width="content")
        if at in replaced:
            before, chosen = replaced[at], steps[at].chosen
            said = _("Step {step}: you chose {token} ({probability}) instead of {before} ({other}).")
            chances = {"probability": probability(chosen.probability), "other": probability(before.probability)}
            st.text(said.format(step=at + 1, token=chosen.token, before=before.token, **chances))
        if prefix() and st.button(_("Back to the model's own choices"), key="decoding_back"):
            FORCED.clear()
            st.rerun()

    with right:
        another, depth = st.columns([3, 2], vertical_alignment="bottom")
    with another:
        choose_another(model, steps, at, steps[at].reshaped(**shape(setting)))
    with left:
        controls.draw(CANDIDATES.draw(setting), key="decoding_bars")
    if decoded.text.strip():  # what the tokens so far attended to
        whole = bench.trace(boxes.source(), decoded.ids)
        others = len(whole.tokens["tgt"]) - len(decoded.ids) - 1  # rows of special tokens, or of a decoder's prompt
        layer = url_widgets.draw(GROWING.option("layer"), setting, "decoding", place=depth)
        with right:
            controls.draw([growing(whole, layer, others + at)], key="decoding_attention", share=0.5)


def forced() -> "tuple[tuple[Step, ...], dict[int, Candidate]]":
    """Return the steps of the forced prefix of this sentence's translation, and what they replace."""
    stored = FORCED.get()
    return stored[1:] if stored is not None and stored[0] == (boxes.source(), boxes.model()) else ((), {})


def prefix() -> tuple[int, ...]:
    """Return the ids of the forced prefix."""
    return tuple(step.chosen.id for step in forced()[0])


def replayed(value: str, text: Any, decode: "Callable[[tuple[int, ...]], Decoding]") -> "Forced":
    """Decode again, forcing the ids of an address where the model chooses others; special tokens cannot be forced."""
    ids = [int(part) for part in value.split(".") if part.isdecimal() and len(part) < 8]
    if ".".join(map(str, ids)) != value or max(ids) >= len(text) or any(text.is_special(ids)):
        raise LinkError(N_("expected token ids separated by dots."))
    steps: list[Step] = []
    before: dict[int, Candidate] = {}
    upcoming: list[Step] = []
    for at, token_id in enumerate(ids):
        upcoming = upcoming or [*decode(tuple(ids[:at])).steps]
        own = upcoming.pop(0) if upcoming else None  # decoding may have reached its limit
        candidates = {candidate.id: candidate for candidate in (*own.candidates, own.chosen)} if own else {}
        if own is None or token_id not in candidates:
            raise LinkError(N_("token {place} of these cannot be chosen at its step."), place=at + 1)
        if own.chosen.id != token_id:
            before[at], upcoming = own.chosen, []
        steps.append(replace(own, chosen=candidates[token_id]))
    return (boxes.source(), boxes.model()), tuple(steps), before


def selected_step(count: int) -> int:
    """Return the selected step, from 0: the one clicked last, or where the visitor last chose a token."""
    option = pick.counted(STEP, count)
    address.take(SELECTED.key, lambda value: SELECTED.set(option.read(value, url_widgets.nothing())))
    at = 0 if presentation_steps.came() > 0 else min(SELECTED.get() or 0, count - 1)
    SELECTED.set(at)
    address.show(SELECTED.key, str(at + 1) if at else None)
    presentation_steps.offer(partial(go, at, count), place=f"{at + 1}/{count}")
    return at


def go(at: int, count: int, direction: int) -> bool:
    """Select the next step (1) or the previous one (-1); return False if there is none."""
    if not 0 <= at + direction < count:
        return False
    SELECTED.set(at + direction)
    return True


def look_at(click: Click) -> None:
    """Select the step whose cell was clicked."""
    SELECTED.set(click.column)


def choose_another(model: Any, steps: "tuple[Step, ...]", at: int, candidates: "Sequence[Candidate]") -> None:
    """Offer the other candidates of a step, best first; a chosen one is forced behind the steps before it."""
    current_id, text = steps[at].chosen.id, model.text
    others = [c for c in candidates if c.id != current_id and c.id < len(text) and not text.is_special([c.id])[0]]
    if any(candidate.token.startswith("␣") for candidate in candidates):
        st.caption(_("␣ stands for a space: with one before it, the same word or mark is another token."))
    chosen = st.selectbox(
        _("Choose another token and continue"),
        range(len(others)),
        index=None,
        format_func=lambda i: f"{others[i].token}  {probability(others[i].probability)}",
        placeholder=_("Choose a token"),
        key=f"decoding_other_{'-'.join(map(str, prefix()))}_{at}",
    )
    if chosen is not None:
        replaced = forced()[1]
        before = {step: own for step, own in replaced.items() if step < at}
        before[at] = replaced.get(at, steps[at].chosen)
        forced_steps = (*steps[:at], replace(steps[at], chosen=others[chosen]))
        FORCED.set(((boxes.source(), boxes.model()), forced_steps, before))
        SELECTED.set(at)
        st.rerun()


draw()
