"""Heads of two models, matched by their patterns; and how similar matched heads of two trainings are anyway."""

from typing import Any

import numpy as np

from visformer.adapters.checkpoints import GPT, GPT_2
from visformer.analysis.comparing import head_similarity, match_heads
from visformer.errors import N_, BudgetError, TraceError
from visformer.panel import Panel
from visformer.pictures.comparing.sides import Sides, heads
from visformer.pictures.registry.setting import Setting
from visformer.system import limits
from visformer.trace import Trace
from visformer.trace.stacks import STACKS, Stack, shape_of

_TOLD = N_(
    "Similarity: 1 − mean total variation distance of aligned rows. Mean of matched heads: {matched:.2f}, of all "
    "pairs: {floor:.2f}; {mutual} of {n} matches are mutual."
)
_NULL = N_(
    "Two trainings of mini-gpt that differ in their seed only, on this text: {matched:.2f}, of all pairs {floor:.2f}."
)
_IS_NULL = N_("These two trainings differ in their seed only: other pairs are to be compared with them.")


def similarities(setting: Setting, sides: Sides) -> Panel:
    """Draw how similar each head of A is to its match in B."""
    table = match_heads(sides.first, sides.second, setting.part, setting.kind)
    layers = sides.first.layers(setting.part, setting.kind)
    return heads(
        layers,
        table["similarity"].to_numpy().reshape(shape_of(layers)[:2]),
        title=N_("similarity of each head to its match"),
        limit=1.0,
        note=" ".join(_told(setting, table)),
    )


def both(setting: Setting) -> tuple[Trace, Trace]:
    """Return the pass of this model and that of the other one, which reads the same texts.

    A decoder-only model reads the target of a translator, whose decoder it is compared with.

    Raises:
        BudgetError: there are too many pairs of heads for texts of this length.
        TraceError: the other one has no such attention.
    """
    first, name = setting.patterns, setting["other_model"]
    target = first.meta.get("target") or first.meta.get("pair")
    second = setting.source.read(str(first.meta["source"]), target, model=name)
    if target and first.tokens.get("src") and not second.tokens.get("src"):
        second = setting.source.read(str(target), model=name)
    (stack,) = (stack for stack in STACKS if stack.name == setting["stack"])
    if not stack.in_trace(second):
        lacks = N_("{model} has no such attention ({attention}), whose heads could be compared: choose another model.")
        raise TraceError(lacks, model=name, attention=stack.label)
    _check_size(first, second, stack)
    return first, second


def _check_size(first: Trace, second: Trace, stack: Stack) -> None:
    layers = [stack.layers(trace) for trace in (first, second)]
    n_heads = [np.prod(shape_of(each)[:2]) for each in layers]
    given = int(np.prod(n_heads) * np.prod(shape_of(layers[1])[2:]))
    if given > limits.MATCHED:
        raise BudgetError(
            N_("Matching all heads of both compares {given} weights; the limit is {limit}: shorten the sentence."),
            given=f"{given:,}",
            limit=f"{limits.MATCHED:,}",
        )


def matches(first: Trace, second: Trace, stack: Stack) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return for each head of A, layer by layer, the layer and head of its match in B; and the same from B to A.

    Raises:
        BudgetError: there are too many pairs of heads for texts of this length.
        TraceError: no row has a partner.
    """
    _check_size(first, second, stack)
    part, kind = stack.name.split(".")
    similarity = head_similarity(first, second, part, kind)  # type: ignore[arg-type]
    ones, others = (
        [(layer, head) for layer, each in stack.layers(trace).items() for head in range(len(each.value))]
        for trace in (first, second)
    )
    table = similarity.reshape(len(ones), len(others))
    return [others[i] for i in table.argmax(axis=1)], [ones[i] for i in table.argmax(axis=0)]


def _told(setting: Setting, table: Any) -> list[str]:
    """Say how similar matched heads are, and what two seeds of one model give."""
    told = setting.gettext(_TOLD).format(
        matched=table["similarity"].mean(), floor=table["floor"].mean(), mutual=int(table["mutual"].sum()), n=len(table)
    )
    trace = setting.patterns
    if {trace.meta.get("model"), setting["other_model"]} == {GPT, GPT_2}:
        return [told, setting.gettext(_IS_NULL)]
    if not {GPT, GPT_2} <= {*setting.source.models, trace.meta.get("model")}:
        return [told]
    text = str((trace.meta.get("target") if setting.part == "decoder" else None) or trace.meta["source"])
    one, other = (setting.source.read(text, model=name) for name in (GPT, GPT_2))
    null = match_heads(one, other, "decoder")
    said = setting.gettext(_NULL).format(matched=null["similarity"].mean(), floor=null["floor"].mean())
    return [told, said]
