"""The logit lens, and a logit as a sum over the parts of a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from visformer.analysis.effects import lens
from visformer.errors import N_
from visformer.panel import Labels, Panel
from visformer.pictures.experiments.shuffled import rows_of
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style.theme import visible

if TYPE_CHECKING:
    from visformer.adapters.base import TracedModel


@dataclass(frozen=True)
class Tops:
    """The top token of the logit lens after each layer.

    Args:
        tokens: (layer, row), as displayed.
        scores: (layer, row).
    """

    tokens: list[list[str]]
    scores: list[list[float]]


def tops(model: "TracedModel", source: str, target: str | None = None, *, to: str | None = None) -> Tops:
    """Apply the logit lens to a text; errors as for :func:`visformer.analysis.logit_lens`."""
    record = model.available((*lens.LENS_NEEDS, "decoder.norm.*"))
    logits = lens.logit_lens(model.trace(source, target, to=to, record=record)).logits
    best = logits.argmax(axis=-1)
    return Tops([[*model.text.shown([int(i) for i in row])] for row in best], logits.max(axis=-1).tolist())


def logit_lens(setting: Setting) -> Any:
    """Draw the top token of each row after each layer."""
    from visformer.pictures.charts.effects import top_tokens

    of, _ = setting.source.measure(tops), setting.gettext
    return top_tokens(
        rows_of(setting),
        [[visible(token) for token in row] for row in of.tokens],
        of.scores,
        layer=_(N_("layer {layer}")),
        title=_(N_("logit lens: the top token after each layer, with its score")),
        theme=setting.source.theme,
    )


def split(model: "TracedModel", source: str, target: str | None = None, *, row: int, to: str | None = None) -> Any:
    """Split the logit of what a row predicts; errors as for :func:`visformer.analysis.direct_attribution`."""
    record = model.available((*lens.DIRECT_NEEDS, "decoder.*.b_o"))
    return lens.direct_attribution(model.trace(source, target, to=to, record=record), row)


_OTHERS = {
    "embedding": N_("embedding"),
    "norm": N_("last norm's summand"),
    "output": N_("bias of the logits"),
    "residue": N_("residue (rounding)"),
}


def parts(setting: Setting) -> list[Panel]:
    """Draw the logit of what a row predicts as a sum over heads and layers, and beside it all else and the sum."""
    table, _ = setting.source.measure(split, row=setting["row"]), setting.gettext
    layers = sorted({int(layer) for layer in table["layer"] if layer >= 0})
    stacks = [name for name in dict.fromkeys(table["stack"]) if name != "decoder"]
    heads = int(table["head"].max()) + 1
    marks = {name: name.split(".")[1].removesuffix("_attn") + " " if len(stacks) > 1 else "" for name in stacks}
    names = [f"{mark}{i + 1}" for mark in marks.values() for i in range(heads)]
    values = np.zeros((len(layers), len(names) + 2))
    for part, stack, layer, head, logit in table.itertuples(index=False):
        if layer >= 0:
            at = stacks.index(stack) * heads + head if part == "head" else len(names) + (part == "bias")
            values[layers.index(layer), at] += logit
    columns = (*names, "FFN", _(N_("bias of W_O")))
    by_part = table[table["layer"] < 0].set_index("part")["logit"]
    rest = [float(by_part.get(name, 0.0)) for name in _OTHERS]
    total = float(table["logit"].sum())
    token = visible(setting.patterns.tokens["next"][setting["row"]])
    main = Panel(
        name="heads",
        title=_(N_("what each part adds to the logit of {token}")).format(token=token),
        values=values,
        rows=Labels(tuple(str(layer + 1) for layer in layers), N_("layer")),
        columns=Labels(columns, N_("head")),
        note=_(N_("Its direct path alone: what later layers make of it counts as theirs.")),
    )
    others = Panel(
        name="out",
        title=N_("everything else, and the sum"),
        values=np.array([[*rest, total]]).T,
        rows=Labels((*(_(name) for name in _OTHERS.values()), _(N_("sum: the logit")))),
        columns=Labels(("",)),
        before="+",
        digits=4,
    )
    return [main, others]
