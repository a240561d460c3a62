"""Methods side by side: what each row takes from each token, by five measures that one pass gives."""

from dataclasses import replace

import numpy as np

from visformer.adapters.bundled import TRANSLATOR, folder_of
from visformer.analysis.methods import METHODS, attribution_of
from visformer.errors import N_, MissingTensor, TraceError
from visformer.i18n import Gettext
from visformer.panel import AXIS_TITLES, Labels, Panel, tokens_of
from visformer.trace import Trace

SCORES = folder_of(TRANSLATOR) / "methods.json"
"""How the methods do on the translator: alignment errors and curves, by ``scripts/method_scores.py``."""

RECORD = (
    *("*.pattern", "*.v", "*.w_o", "*.b_o", "*.resid_pre", "*.resid_self", "*.resid_cross"),
    *("*.norm_self.gamma", "*.norm_self.beta", "*.norm_cross.gamma", "*.norm_cross.beta"),
)
"""Globs over the tensors and weights that these pictures need."""

_TITLES = {
    "raw": N_("weights, mean of the heads of layer {layer}"),
    "norm": N_("weights × values, layer {layer}"),
    "alti": N_("ALTI, layer {layer}"),
    "rollout": N_("rollout, all layers"),
    "alti+": N_("ALTI+, all layers"),
}


def methods(trace: Trace, part: str, gettext: Gettext = str) -> list[Panel]:
    """Draw the shares of each row on one scale, of the last layer and of all layers.

    Args:
        trace: holds :data:`RECORD`, as far as the model has it.
        part: "encoder", or "decoder": what its rows take from the source or, in a decoder-only model, from itself.
        gettext: translates titles and notes.

    Returns:
        A panel for each method; one that this family does not allow is left out, and the first panel says why.
    """
    where = "cross" if part == "decoder" and trace.tokens.get("src") else part
    panels, reasons = [], []
    for name in _TITLES:
        try:
            panels.append(_drawn(trace, name, where, gettext))
        except (MissingTensor, TraceError) as error:
            reasons.append(f"{name}: {error.localized(gettext)}")
    first, *others = panels
    return [replace(first, note=" ".join([first.note, *reasons])), *others]


def _drawn(trace: Trace, name: str, where: str, gettext: Gettext) -> Panel:
    found = attribution_of(trace, method=name, stack=where)  # type: ignore[arg-type]
    values = found.value / found.value.sum(axis=1, keepdims=True) if name == "norm" else found.value
    rows = tokens_of(trace, "src" if where == "encoder" else "tgt", AXIS_TITLES["query"])
    if where != "encoder":
        rows = replace(rows, after=trace.tokens["next"])
    columns = tokens_of(trace, "tgt" if where == "decoder" else "src", AXIS_TITLES["key"])
    if values.shape[1] > len(columns):  # what ALTI leaves to the residual stream
        texts = (*columns.texts, gettext(N_("residual stream")))
        columns = Labels(texts, columns.title, places=True, special=(*columns.special, True))
    layer = None if found.layer is None else found.layer + 1
    return Panel(
        name="pattern",
        title=gettext(_TITLES[name]).format(layer=layer),
        values=values.astype(np.float32),
        rows=rows,
        columns=columns,
        scale="weight",
        note=gettext(METHODS[name].limit),
    )
