"""What each row takes from each token, by each method of ``vf.analysis``; and how the methods do."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visformer.adapters.checkpoints import TRANSLATOR, folder_of
from visformer.analysis.methods import METHODS, Attribution, Where, attribution, attribution_of, globs
from visformer.errors import N_
from visformer.i18n import Gettext, paragraph
from visformer.panel import AXIS_TITLES, Labels, Panel, tokens_of
from visformer.pictures.registry.setting import Setting

SCORES = folder_of(TRANSLATOR) / "methods.json"
"""How the methods do on the translator: alignment errors and curves, by ``scripts/method_scores.py``."""

RECORD = globs(end for method in METHODS.values() for end in method.needs)
"""Globs over the tensors and weights that these pictures need."""

_SHARES = (N_("source"), N_("prefix"))
_SIDES: tuple[Where, ...] = ("cross", "decoder")


def allowed(setting: Setting) -> dict[str, str]:
    """Return the methods that say something of the rows of this attention, with what they are called."""
    if "stack" not in setting:  # on the command line, before there is a sentence
        return titles()
    trace, where = setting.patterns, _where(setting)
    return {name: title for name, title in titles().items() if METHODS[name].of != "model" or _explains(trace, where)}


def titles() -> dict[str, str]:
    """Return what each method is called."""
    return {name: method.title for name, method in METHODS.items()}


def methods(setting: Setting) -> list[Panel]:
    """Draw what each row takes from each token, by one method; of one layer: the last. Some have shares beside it.

    Args:
        setting: its "stack" says whose rows take from whom; its Trace holds :data:`RECORD`, as far as the model has it.

    Raises:
        VisformerError: the model's family does not allow the method, such as by norms in other places.
    """
    method, where = METHODS[setting["method"]], _where(setting)
    if method.of == "model":
        found = setting.source.measure(attribution, method=method.name, stack="total")
    else:
        found = attribution_of(setting.trace, method=method.name, stack=where)
    panels = [_drawn(setting, found, where)]
    if method.split_title is not None and where == "cross":
        panels.append(_source_share(setting, method.name, method.split_title))
    return panels


def _where(setting: Setting) -> Any:
    return "cross" if setting.kind == "cross_attn" else setting.part


def _explains(trace: Any, where: str) -> bool:
    """Whether rows and tokens are those that the methods of the whole model explain: predictions and their source."""
    has_logits = trace.blocks is None or trace.blocks.logits
    return bool(has_logits) and (where == "cross" or (where == "decoder" and "src" not in trace.tokens))


def _drawn(setting: Setting, found: Attribution, where: str) -> Panel:
    trace, gettext, method = setting.trace, setting.gettext, METHODS[found.method]
    values = found.value / found.value.sum(axis=1, keepdims=True) if method.are_lengths else found.value
    columns = tokens_of(trace, "tgt" if where == "decoder" else "src", AXIS_TITLES["key"])
    if values.shape[1] > len(columns):  # what ALTI leaves to the residual stream
        texts = (*columns.texts, gettext(N_("residual stream")))
        columns = Labels(texts, columns.title, places=True, special=(*columns.special, True))
    is_share = method.of != "model"
    return Panel(
        name=method.name,
        symbol="pattern",
        title=gettext(method.title),
        values=values.astype(np.float32),
        rows=_rows(trace, where),
        columns=columns,
        scale="weight" if is_share else "signed" if method.signed else "unsigned",
        note=paragraph(f"{method.plain}.", gettext(method.about), gettext(method.limit)),
    )


def _rows(trace: Any, where: str) -> Labels:
    rows = tokens_of(trace, "src" if where == "encoder" else "tgt", AXIS_TITLES["query"])
    return rows if where == "encoder" else replace(rows, after=trace.tokens["next"])


def _source_share(setting: Setting, method: str, title: str) -> Panel:
    """How much of each predicted word comes from the source, and how much from what is already written."""
    gettext: Gettext = setting.gettext
    parts = [attribution_of(setting.trace, method=method, stack=stack).value for stack in _SIDES]
    return Panel(
        name="shares",
        symbol="pattern",
        title=gettext(title),
        values=np.stack([part.sum(axis=1) for part in parts], axis=1).astype(np.float32),
        rows=_rows(setting.trace, "cross"),
        columns=Labels(tuple(map(gettext, _SHARES)), "", places=False),
        scale="weight",
    )


@dataclass(frozen=True)
class Measure:
    """How a method does on the translator: its number and 95 % interval for each measure, by the measure's name."""

    method: str
    values: dict[str, tuple[float, float, float]]


MEASURES = {
    "by hand prediction": N_("alignment error by hand, row of the prediction"),
    "by hand input": N_("by hand, row of the input"),
    "grammar prediction": N_("alignment error in the grammar, row of the prediction"),
    "grammar input": N_("in the grammar, row of the input"),
    "deletion": N_("deletion (nats a word, lower is better)"),
    "insertion": N_("insertion (nats a word, higher is better)"),
}
"""The measures, in the order of the table; of an alignment error, lower is better."""


def measures(to: str) -> tuple[dict[str, int], list[Measure]]:
    """Return the number of sentence pairs of each set, and how each method does, with all heads of a layer together.

    Args:
        to: "zh" or "en".
    """
    rows = json.loads(SCORES.read_text(encoding="utf-8"))
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    for row in rows["alignment"]:
        if row["to"] == to and row["choice"] != "head":
            found.setdefault(row["method"], {})[f"{row['set']} {row['row']}"] = row["error"], row["low"], row["high"]
    for row in rows["curves"]:
        if row["to"] == to:
            found.setdefault(row["method"], {})[row["curve"]] = row["height"], row["low"], row["high"]
    sizes = {row["set"]: row["n"] for row in rows["alignment"]}
    return sizes, [Measure(method, values) for method, values in found.items()]
