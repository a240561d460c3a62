"""The weights of a head, and beside each what it does to the prediction."""

import math
from dataclasses import replace

import numpy as np

from visformer.analysis.effects import weight_effects
from visformer.errors import N_
from visformer.panel import Panel, traced
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style.theme import visible
from visformer.system.progress import report

Cell = tuple[int | None, int | None]
"""Query and key, from 0; None: not selected."""


def found(setting: Setting, alone: Cell | None = None) -> weight_effects.WeightEffects:
    """Return the effects of the weights of the selected head; ``alone``: of this one only."""
    few = {} if alone is None else {"cells": (alone,)}
    effects: weight_effects.WeightEffects = setting.source.measure(
        weight_effects.weight_effects,
        path=setting.path,
        head=setting["head"],
        how=setting["how"],
        progress=report,
        **few,
    )
    return effects


_ROUNDING = 5e-6
"""Effects below this are rounding errors of log-probabilities in float32, nats."""

_EXACT = N_("effect of each weight (nats)")
_ESTIMATED = N_("effect of each weight (nats), estimated by the gradient: above {n} tokens")
_OF = {
    "row": N_("On the log-probability of what the row predicts. Below 0: the weight speaks for it."),
    "target": N_("On the log-probability of the whole target. Below 0: the weight speaks for it."),
}


def weights(setting: Setting, cell: Cell = (None, None)) -> list[Panel]:
    """Draw the weights of a head, and beside each its effect; where there is no weight, the effect is empty.

    The cell that :func:`told` speaks of is outlined.
    """
    effects, trace = found(setting), setting.trace
    outlined = np.zeros(effects.values.shape, dtype=bool)
    outlined[_cell(effects, cell)] = True
    pattern = traced(trace, f"{setting.path}.pattern", setting["head"], title=N_("weights"), scale="weight")
    title: str = _EXACT
    if effects.method == "gradient":
        title = setting.gettext(_ESTIMATED).format(n=weight_effects.EXACT_TOKENS)
    values = np.where(abs(effects.values) < _ROUNDING, 0.0, effects.values)
    largest = float(abs(values).max(initial=_ROUNDING))
    effect = replace(
        pattern,
        name="effect",
        symbol="out",
        title=title,
        values=np.where(effects.pattern > 0, values, np.nan).astype(np.float32),
        scale="signed",
        digits=min(4, max(2, 1 - math.floor(math.log10(largest)))),
        note=_OF[effects.predicts],
    )
    return [replace(panel, click="says", outlined=outlined) for panel in (pattern, effect)]


def _cell(effects: weight_effects.WeightEffects, cell: Cell) -> tuple[int, int]:
    """Return the cell to speak of: the selected one, or else that of the largest effect."""
    query, key = cell
    n_queries, n_keys = effects.values.shape
    if query is not None and key is not None and query < n_queries and key < n_keys:
        return query, key
    row, column = np.unravel_index(int(abs(effects.values).argmax()), effects.values.shape)
    return int(row), int(column)


_SAID = {
    ("zero", "row"): N_("Without this weight ({weight}), the log-probability of “{token}” changes by {effect} nats."),
    ("zero", "target"): N_(
        "Without this weight ({weight}), the log-probability of the whole target changes by {effect} nats."
    ),
    ("mask", "row"): N_(
        "With this key masked (its weight was {weight}), the log-probability of “{token}” changes by {effect} nats."
    ),
    ("mask", "target"): N_(
        "With this key masked (its weight was {weight}), the log-probability of the whole target changes by {effect} "
        "nats."
    ),
}
_LARGEST = N_("The largest effect here. {said}")
_ESTIMATE = N_("This is an estimate by the gradient: exact numbers are for texts of up to {n} tokens.")
_NO_WEIGHT = N_("This weight is 0: there is nothing to take away.")


def told(setting: Setting, cell: Cell = (None, None), *, alone: bool = False) -> str:
    """Say what one weight does, in the visitor's language.

    Args:
        setting: of the head.
        cell: the weight; without one, that of the largest effect.
        alone: whether this weight only is measured.
    """
    effects, _ = found(setting, cell if alone else None), setting.gettext
    row, _column = place = _cell(effects, cell)
    weight = float(effects.pattern[place])
    if not weight:
        return _(_NO_WEIGHT)
    said = _(_SAID[effects.how, effects.predicts]).format(
        weight=f"{weight:.2f}" if weight >= 0.005 else f"{weight:.2g}",
        token=visible(setting.trace.tokens["next"][row]) if effects.predicts == "row" else "",
        effect=signed(float(effects.values[place])),
    )
    if place != cell:
        said = _(_LARGEST).format(said=said)
    if effects.method == "gradient":
        said += " " + _(_ESTIMATE).format(n=weight_effects.EXACT_TOKENS)
    return said


def signed(value: float) -> str:
    """Format a change of a log-probability with its sign."""
    text = f"{value:+.2f}" if abs(value) >= 0.1 else f"{value:+.4f}"
    return text.replace("-", "−") if float(text) else "0.0000"
