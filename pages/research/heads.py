"""Heads: ranked by what the model loses without each, pruned one after another, and those of known kinds."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from visformer.analysis.answers import Answer, asked, spoken
from visformer.analysis.effects.head_effects import (
    Method,
    head_effects,
    pruning,
    rank_correlation,
    told_from_zero,
)
from visformer.analysis.known_heads import LABELS, LEAST
from visformer.app.session import boxes, measured, selection
from visformer.app.session import page as pages
from visformer.app.session.markdown import plain
from visformer.app.session.measured import HeadTable
from visformer.app.session.url_state import EXPLORER
from visformer.app.widgets import (
    controls,
    downloads,
    formula_box,
    sentence_list,
    tables,
    unavailable,
    url_widgets,
    waiting,
)
from visformer.errors import N_
from visformer.i18n import paragraph
from visformer.panel import Panel
from visformer.pictures.block import Stack
from visformer.pictures.effects import answer_rows, logit_of, predicts_next
from visformer.pictures.heads import ANSWER, EFFECT, KNOWN, METHODS, PAGE, PRUNED, RANKED, answer_of, labelled, place_of
from visformer.pictures.registry.picture import Picture
from visformer.pictures.registry.setting import Setting
from visformer.system.progress import report
from visformer.trace.stacks import STACKS
from visformer.web.panels import Click

NO_EFFECT = N_("This model is an encoder: it predicts no next token, so its heads have no effect on one.")
NO_TEXT = N_(
    "This model labels single tokens, of which the sentences of a list share none: the page Effects takes one."
)
NO_SENTENCES = N_("Heads are measured on a list of sentences, and this model reads pictures.")
FORMULA = r"""&\sym{out}{\Delta_h} = L(\sym{heads}{O_h} \to 0 \ \text{or} \ \mathbb{E}\, \sym{heads}{O_h}) - L \\[4pt]
&\sym{out}{I_h} = \mathbb{E}\, |\partial L / \partial \sym{heads}{g_h}|"""
FORMULAS = {"known": r"\sym{out}{\mathrm{induction}_h} = \mathbb{E}_t\, \sym{pattern}{\alpha^h}_{t,\, t - p + 1}"}
SOURCES = {"known": N_("Olsson et al. 2022")}
CODE = (
    ("analysis/effects/head_effects.py", "head_effects"),
    ("analysis/effects/head_effects.py", "pruning"),
    ("analysis/known_heads.py", "known_heads"),
)
NOTHING = N_("Nothing has been measured of this model yet: the button starts it.")
RANKED_LIMIT = N_(
    "An effect is what this model loses on this list without one head, not why. Heads that can stand in for each other "
    "(backup heads) both seem to do little."
)
PRUNED_LIMIT = N_("Nothing is trained after silencing: a model that may adapt loses less. The baseline is zero.")
KNOWN_LIMIT = N_(
    "A label says where a head looks on random tokens, not why, nor what follows from it; on real text it may do "
    "something else."
)
COMPUTING: dict[Method, str] = {
    "zero": N_("Each head zeroed"),
    "mean": N_("Each head set to its mean"),
    "gradient": N_("The gradient of each head's gate"),
}
STACK_LABELS = {stack.name: stack.label for stack in STACKS}
COLUMNS = {
    "stack": N_("attention"),
    "layer": N_("layer"),
    "head": N_("head"),
    "label": N_("label"),
    "offset": N_("offset"),
    "score": N_("score"),
    "null": N_("null"),
    "null_high": N_("largest null"),
    "n": N_("n"),
    "found": N_("how it was found"),
}

_ = boxes.gettext()


def draw() -> None:
    """Draw the page. A session keeps what is called on a click: no global of this script may hold a Trace."""
    trace = controls.current_trace()
    if trace is None:
        return
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="heads_view"))
        controls.look_for(_(view.look_for))
    if boxes.reads_pictures():
        unavailable.say(NO_SENTENCES)
        unavailable.elsewhere()
        return
    with maths:
        source = SOURCES.get(view.view, N_("Michel et al. 2019, § 3, 4.1"))
        formula_box.formula(FORMULAS.get(view.view, FORMULA), source=source, code=CODE)
    part: Stack = "encoder" if "src" in trace.tokens else "decoder"
    needed = f"{part}.{next(iter(trace.layers(f'{part}.self_attn')))}.self_attn.heads"
    setting = controls.setting_of(view, trace)
    labels = bool(trace.meta.get("labels"))
    if view is KNOWN:
        known()
    elif not (labels or unavailable.predicts(trace)) or (labels and answer_rows(setting)):
        unavailable.say(NO_TEXT if labels else NO_EFFECT)
        unavailable.elsewhere()
    elif (reason := trace.lacks(needed)) is not None:
        unavailable.say(unavailable.NOT_TO_CHANGE, reason)
        unavailable.elsewhere()
    elif view is RANKED:
        ranked(setting)
    else:
        pruned(setting)


def ranked(setting: Setting) -> None:
    """Draw the effect of each head: the button, a map, what can be told, and a table."""

    def steps(**how: Any) -> list[waiting.LongStep]:
        return [(_(said), partial(head_effects, method=method, **how)) for method, said in COMPUTING.items()]

    bar = offer(steps, [*COMPUTING], setting, key="heads_rank")
    found = {method: table for method, table in measured.tables().items() if method in METHODS}
    if not found:
        unavailable.say(NOTHING)
        return
    measured.see_effects()
    method = url_widgets.draw(EFFECT, setting, PAGE.name, place=bar)
    frames = {name: table.frame() for name, table in found.items()}
    draw_maps(RANKED, setting, frames[method])
    tell(frames, method, found[method], setting)
    draw_table(effect_rows(frames), _("The effect of each head"), "head-effects")


def tell(frames: dict[str, pd.DataFrame], method: str, table: HeadTable, setting: Setting) -> None:
    """Say on what it was measured, how many heads can be told from zero, and whether the methods agree."""
    frame = frames[method]
    n, heads = int(frame["n"].iloc[0]), len(frame)
    said = _("Measured on {n} sentences of the bundled list.")
    if table.is_own:
        said = _("Measured on {n} sentences of your list.")
    lines = [said.format(n=n), *said_of(frame, setting)]
    if method == "gradient":
        lines.append(_("Estimates by the gradient are always above 0."))
    else:
        said = _(
            "{told} of {heads} heads can be told from zero, at a level of 0.95 (outlined); without any effect, about "
            "{chance} would be."
        )
        chance = round((1 - frame.attrs["level"]) * heads)
        lines.append(said.format(told=told_from_zero(frame), heads=heads, chance=chance))
    pairs = [("zero", "mean"), ("zero", "gradient"), ("mean", "gradient")]
    agree = [
        _("{a} – {b}: {r}").format(
            a=_(METHODS[a]), b=_(METHODS[b]), r=f"{rank_correlation(frames[a], frames[b]):.2f}".replace("-", "−")
        )
        for a, b in pairs
    ]
    said = _("Rank correlation of the methods, over {heads} heads: {pairs}.")
    lines.append(said.format(heads=heads, pairs=_(", ").join(agree)))
    st.caption(paragraph(*lines, _(RANKED_LIMIT)))


def effect_rows(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Join the tables of the methods, a row a head."""
    keys, joined = ["stack", "layer", "head"], None
    for method, frame in frames.items():
        names = {"effect": method, "low": f"{method}_low", "high": f"{method}_high"}
        one = frame[[*keys, *names]].rename(columns=names)
        joined = one if joined is None else joined.merge(one, on=keys)
    assert joined is not None
    return joined


def pruned(setting: Setting) -> None:
    """Draw the curves of silencing more and more heads."""

    def steps(**how: Any) -> list[waiting.LongStep]:
        return [(_("More and more heads silenced"), partial(pruning, **how))]

    offer(steps, ["pruning"], setting, key="heads_prune")
    table = measured.tables().get("pruning")
    if table is None:
        unavailable.say(NOTHING)
        return
    frame = table.frame()
    setting.source = replace(setting.source, measure=lambda *_, **__: frame)
    controls.draw(PRUNED.draw(setting), key="heads_pruned")
    said = _("Ranked by the gradient on other sentences of {list}, silenced on {n}. Dotted: {draws} random orders.")
    name = _("your list") if table.is_own else _("the bundled list")
    draws = frame[frame["order"] == "random"]["draw"].nunique()
    told = said.format(n=int(frame["n"].iloc[0]), list=name, draws=draws)
    st.caption(paragraph(told, *said_of(frame, setting), _(PRUNED_LIMIT)))
    downloads.csv(frame, "pruning")


def known() -> None:
    """Draw the scores of the known kinds of heads, and a table of those that have a label."""
    steps: list[waiting.LongStep] = [(_("Random tokens that recur"), labelled)]
    measure(lambda: steps, ["known"], key="heads_know", is_own=False)
    table = measured.tables().get("known")
    if table is None:
        unavailable.say(NOTHING)
        return
    frame = table.frame()
    draw_maps(KNOWN, controls.setting_of(KNOWN, None), frame)
    labels = frame[frame["score"] >= LEAST].reset_index(drop=True)
    said = _(
        "Heads with a label: {n}. On random tokens it takes a mean weight of at least {least} that is above the null "
        "of every sequence."
    )
    n = len(labels[["stack", "layer", "head"]].drop_duplicates())
    shows = _("The explorer shows the labels with each head.") if n else ""
    st.caption(paragraph(said.format(n=n, least=LEAST), shows, _(KNOWN_LIMIT)))
    if n:
        draw_table(labels.drop(columns=["first"]), _("Heads with a label"), "known-heads")


def asked_of(setting: Setting) -> Answer | None:
    """Return what is asked of each sentence, of a classifier the label of this one; None: its whole target."""
    given = spoken(setting["answer"])
    if given is None and not predicts_next(setting):
        return asked(setting.source.record(("logits",)), None).names[0]
    return given


def said_of(frame: pd.DataFrame, setting: Setting) -> list[str]:
    """Say which answer the numbers are about, if one was asked for, or is now."""
    answer, said = answer_of(frame), _("Effects are on {answer}.")
    if not answer and spoken(setting["answer"]) is not None:
        return [_("These effects are still on the whole target: press Measure for those on the answer that is chosen.")]
    if predicts_next(setting):
        said = _("Effects are on {answer}, in the last row of each.")
    return [said.format(answer=plain(logit_of(answer, _)))] if answer else []


def offer(steps: Callable[..., list[waiting.LongStep]], names: list[str], setting: Setting, *, key: str) -> Any:
    """Draw the choices of a list and of an answer, and the button that measures; return the row that they are in."""
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        chosen = sentence_list.choose(PAGE.name)
        url_widgets.draw(ANSWER, setting, PAGE.name, width=190)
    answer = asked_of(setting)
    if chosen.is_own:
        sentence_list.box()
    measure(
        lambda: steps(sentences=chosen.sentences(), answer=answer, progress=report),
        names,
        key=key,
        is_own=chosen.is_own,
        place=row,
    )
    return row


def measure(steps: Callable[[], list[waiting.LongStep]], names: list[str], *, is_own: bool, **how: Any) -> None:
    def keep(found: list[pd.DataFrame]) -> None:
        measured.keep({name: HeadTable.of(table, is_own=is_own) for name, table in zip(names, found, strict=True)})

    waiting.offer_long_run(_("Measure"), steps, keep=keep, too_long=_("Measure fewer sentences at a time."), **how)


def draw_maps(picture: Picture, setting: Setting, frame: pd.DataFrame) -> None:
    """Draw the maps of a table; a click on a head opens it in the explorer."""
    setting.source = replace(setting.source, measure=lambda *_, **__: frame)
    panels: Any = picture.draw(setting)
    controls.draw(
        panels, key=f"heads_{picture.view}", on_click=partial(explore, panels), share=0.5 if picture is RANKED else 0.9
    )


def explore(panels: list[Panel], click: Click) -> None:
    """Open the head of a cell in the explorer, before the page runs again."""
    if click.row is not None and click.column is not None:
        selection.keep_place(**place_of(click.panel, click.row, click.column, panels))
        pages.go_to(EXPLORER)


def draw_table(frame: pd.DataFrame, title: str, file: str) -> None:
    """Draw a table with numbers from 1 and words in the visitor's language, and offer it as CSV."""
    shown = frame.assign(
        stack=[_(STACK_LABELS[name]) for name in frame["stack"]], layer=frame["layer"] + 1, head=frame["head"] + 1
    )
    if "label" in shown:
        shown["label"] = [_(LABELS[label]) for label in frame["label"]]
        shown["found"] = [_(found) for found in frame["found"]]
    names = {name: _(label) for name, label in COLUMNS.items()}
    for method, label in METHODS.items():
        names |= {method: _(label), f"{method}_low": f"{_(label)} ≥", f"{method}_high": f"{_(label)} ≤"}
    tables.draw(shown.rename(columns=names), title=title, height=320)
    downloads.csv(frame, file)


draw()
