"""Heads measured: what a model loses without each, what without more and more of them, and heads of known kinds.

The numbers come from :mod:`visformer.analysis`, on the bundled list of sentences or, on the page, on the visitor's own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.answers import spoken
from visformer.analysis.effects.head_effects import effect_sentences, head_effects, pruning
from visformer.analysis.known_heads import LABELS, LEAST, known_heads
from visformer.errors import N_
from visformer.i18n import Gettext
from visformer.panel import Labels, Panel, common_limit, numbered
from visformer.pictures import effects
from visformer.pictures.effects import logit_of
from visformer.pictures.registry.options import Choice, resolved
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import Setting
from visformer.trace.stacks import STACKS

if TYPE_CHECKING:
    import pandas as pd

METHODS = {"zero": N_("Zeroed"), "mean": N_("Mean"), "gradient": N_("Gradient")}
ALIGNMENT = N_("1 − alignment error rate of the source word that a row reads most, on 50 pairs aligned by hand")
"""How the alignment head of the bundled translator was found; how the others are is in their table."""

RELATIONS = {
    "advmod": N_("reads from an adverb to its verb (advmod), in sentences with trees"),
    "aux": N_("reads from an auxiliary to its verb (aux), in sentences with trees"),
    "case": N_("reads from a preposition to its noun (case), in sentences with trees"),
    "cop": N_("reads from “be” to the predicate (cop), in sentences with trees"),
    "det": N_("reads from a determiner to its noun (det), in sentences with trees"),
    "mark": N_("reads from a conjunction to the verb of its clause (mark), in sentences with trees"),
    "nmod:poss": N_("reads from an owner to what is owned (nmod:poss), in sentences with trees"),
    "nsubj": N_("reads from a subject to its verb (nsubj), in sentences with trees"),
    "obj": N_("reads from an object to its verb (obj), in sentences with trees"),
    "obl": N_("reads from an adverbial to its verb (obl), in sentences with trees"),
    "obl:tmod": N_("reads from a time to its verb (obl:tmod), in sentences with trees"),
    "xcomp": N_("reads from a dependent verb to the main verb (xcomp), in sentences with trees"),
}
"""How syntactic heads were found, by the relation."""

_DIGITS = 3
_STACKS = {stack.name: stack.label for stack in STACKS}


def effect_maps(table: "pd.DataFrame") -> list[Panel]:
    """Draw effects as a map of each attention: a row for each layer, a column for each head, on one scale.

    Heads whose interval leaves out zero are outlined; estimates by the gradient always do, and are not.

    Args:
        table: from :func:`visformer.analysis.head_effects`.
    """
    limit, gradient = common_limit(table["effect"]), table.attrs.get("method") == "gradient"
    told = (table["low"] > 0) | (table["high"] < 0)
    return [
        head_map(
            rows,
            rows["effect"],
            name=name,
            title=label,
            outlined=None if gradient else told[rows.index],
            scale="unsigned" if gradient else "signed",
            limit=limit,
        )
        for name, label, rows in by_stack(table)
    ]


def known_maps(table: "pd.DataFrame", gettext: Gettext = str) -> list[Panel]:
    """Draw the scores of known heads as a map for each label and attention; those that have the label are outlined.

    Empty cells are not above the null. If none is, empty maps of the first label say so.

    Args:
        table: from :func:`labelled`.
        gettext: translates the titles.
    """
    found = [(label, *each) for label in LABELS for each in by_stack(table[table["label"] == label])]
    none = [("previous token", name, _STACKS[name], table) for name in table.attrs["stacks"]]
    return [
        head_map(
            rows,
            rows["score"],
            name=f"{name} {label}",
            title=f"{gettext(LABELS[label])} · {gettext(stack)}",
            outlined=rows["score"] >= LEAST,
            size=(table.attrs["n_layers"], table.attrs["n_heads"]),
            scale="weight",
        )
        for label, name, stack, rows in found or none
    ]


def place_of(panel: str, row: int, column: int, panels: Iterable[Panel]) -> dict[str, Any]:
    """Return the head of a cell of these maps: stack, layer and head, from 0."""
    (layers,) = (each.rows for each in panels if each.name == panel)
    return {"stack": panel.split(" ")[0], "layer": int(layers.texts[row]) - 1, "head": column}


def by_stack(table: "pd.DataFrame") -> list[tuple[str, str, "pd.DataFrame"]]:
    """Return name, label and rows of each attention that the table has, in order."""
    rows = [(stack, table[table["stack"] == stack.name]) for stack in STACKS]
    return [(stack.name, stack.label, found) for stack, found in rows if len(found)]


def head_map(
    rows: "pd.DataFrame",
    values: "pd.Series[float]",
    *,
    outlined: "pd.Series[bool] | None",
    size: tuple[int, int] | None = None,
    **look: Any,
) -> Panel:
    """Draw one number a head, the largest where there are several: a row for each layer, a column for each head.

    Args:
        rows: with layer and head, of one attention.
        values: a number of each row.
        outlined: which rows are outlined; None: none.
        size: layers and heads, if not all heads have a row.
        look: further arguments of :class:`visformer.panel.Panel`.
    """
    layers = [*range(size[0])] if size else sorted({*rows["layer"]})
    shape = (len(layers), size[1] if size else int(rows["head"].max()) + 1)
    numbers, marked = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    for i, layer, head, value in zip(rows.index, rows["layer"], rows["head"], values, strict=True):
        at = layers.index(layer), head
        numbers[at] = np.fmax(numbers[at], value)
        marked[at] |= outlined is not None and bool(outlined[i])
    return Panel(
        values=numbers,
        rows=Labels(tuple(str(layer + 1) for layer in layers), N_("layer")),
        columns=numbered(shape[1], N_("head"), first=1),
        outlined=_or_none(marked),
        digits=_DIGITS,
        click="explores",
        **look,
    )


def _or_none(marked: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return marked if marked.any() else None


def ranked(model: Any, *_sentence: Any, to: Any = None, **how: Any) -> "pd.DataFrame":
    """Measure the effects of a model's heads on the bundled list, whatever the sentence; ``how``: method and answer."""
    return head_effects(model, effect_sentences(model.info.name), **how)


def pruned(model: Any, *_sentence: Any, to: Any = None, **how: Any) -> "pd.DataFrame":
    """Silence more and more heads of a model on the bundled list, whatever the sentence; ``how``: the answer."""
    return pruning(model, effect_sentences(model.info.name), **how)


def labelled(model: Any, *_sentence: Any, to: Any = None) -> "pd.DataFrame":
    """Score the known kinds of heads of a model, also below the least score of a label; ``attrs`` has its size."""
    table, info = known_heads(model, least=0.0), model.info
    stacks = [stack.name for stack in STACKS if stack.kind == "self_attn" and stack.of_kind(info.kind)]
    size = {"n_layers": max(info.n_encoder_layers, info.n_decoder_layers), "n_heads": info.n_heads}
    table.attrs |= {"stacks": stacks, **size}
    return table


def answer_of(table: "pd.DataFrame") -> tuple[str, ...]:
    """Return the tokens or labels that a table's numbers are about; none: whole targets."""
    answer = table.attrs.get("answer", ())
    return tuple(map(str, answer if isinstance(answer, tuple) else (answer,)))


def _answers(setting: Setting) -> Mapping[str, str]:
    """Return the answers that a page suggests: of the last row of the sentence that is shown."""
    suggested: dict[str, str] = resolved(effects.ANSWER.suggested, setting)
    return suggested | ({"": setting.gettext(N_("the whole target"))} if effects.predicts_next(setting) else {})


def _curves(setting: Setting) -> Any:
    from visformer.pictures.charts.effects import pruning_curves

    _, table = setting.gettext, setting.source.measure(pruned, answer=spoken(setting["answer"]))
    lost = _(N_("rise of the loss, nats a token"))
    if answer := answer_of(table):
        lost = _(N_("fall of {answer}, nats")).format(answer=logit_of(answer, _))
    return pruning_curves(
        table,
        names=(_(N_("least important first")), _(N_("random order"))),
        axes=(_(N_("heads silenced")), lost),
        title=_(N_("heads silenced one after another")),
        theme=setting.source.theme,
    )


# fmt: off
EFFECT = Choice(
    name="effect", label=N_("Method"), help="What is done to a head: zero, mean or gradient.", values=METHODS,
)
ANSWER = replace(
    effects.ANSWER, label=N_("Effect on"), suggested=_answers,
    help='A token or a label, or a pair such as "is - are", in the last row of each sentence; else the whole target.',
    tooltip=N_(
        "A token or a label in the last row of each sentence, or a pair such as “is − are”: by how much the first is "
        "ahead."
    ),
)
RANKED = Picture(
    name="head-effects", view="ranked", title=N_("Ranked"), options=(EFFECT, ANSWER), in_handouts=False,
    draw=lambda setting: effect_maps(
        setting.source.measure(ranked, method=setting["effect"], answer=spoken(setting["answer"]))
    ),
    look_for=N_("How much worse is the target predicted without this one head? Which heads could one do without?"),
)
PRUNED = Picture(
    name="pruning", view="pruned", title=N_("Pruned"), options=(ANSWER,), in_handouts=False, draw=_curves,
    look_for=N_("Heads are ranked on one half of the sentences and silenced on the other. How many does it take?"),
)
KNOWN = Picture(
    name="known-heads", view="known", title=N_("Known"), in_handouts=False,
    look_for=N_("What does a head attend to on random tokens, where no meaning helps? Outlined: it has the label."),
    draw=lambda setting: known_maps(setting.source.measure(labelled), setting.gettext),
)
PAGE = Page(
    name="heads", section="research", order=110, title=N_("Heads"),
    about=N_("Which heads matter: what is lost when one is taken away."),
    views=(RANKED, PRUNED, KNOWN), where="attention",
)
# fmt: on
