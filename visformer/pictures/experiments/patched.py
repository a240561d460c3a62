"""Maps of patching: which values of another text bring its answer back."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from visformer.analysis.effects import patching
from visformer.errors import N_, VisformerError
from visformer.panel import Labels, Panel, numbered
from visformer.pictures.experiments.weights import signed
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style.theme import visible
from visformer.system.progress import report

if TYPE_CHECKING:
    from visformer.adapters.base import TracedModel


@dataclass(frozen=True)
class Maps:
    """What patching one value at a time brings back.

    Args:
        pair: the two texts.
        tokens: of the residual stream that enters a layer, at one token.
        heads: of the output of each head.
    """

    pair: patching.PatchingPair
    tokens: patching.Patched
    heads: patching.Patched


NO_PAIRS = N_("There are no bundled pairs for this model: give a second sentence, of as many tokens as the first.")


def maps(
    model: "TracedModel",
    source: str,
    target: str | None = None,
    *,
    corrupt: str,
    bundled: int,
    stack: str,
    to: str | None = None,
) -> Maps:
    """Patch a bundled pair, or a text and one of one's own, ``corrupt``, if it is not empty; errors as for patching."""
    pairs_of_model = patching.patching_pairs(model.info.name)
    if not corrupt.strip() and bundled >= len(pairs_of_model):
        raise VisformerError(NO_PAIRS)
    pair = patching.patching_pair(model, source, corrupt, to=to) if corrupt.strip() else pairs_of_model[bundled]
    how: dict[str, Any] = {"answers": pair.answers, "prefix": pair.prefix, "to": to, "progress": report}
    tokens = patching.patching(model, pair.clean, pair.corrupt, by="layer-token", stack=stack.split(".")[0], **how)
    return Maps(pair, tokens, patching.patching(model, pair.clean, pair.corrupt, by="head", stack=stack, **how))


def patches(setting: Setting) -> Maps:
    """Return the maps of a setting."""
    given = {name: setting[name] for name in ("corrupt", "bundled", "stack")}
    measured: Maps = setting.source.measure(maps, **given)
    return measured


_ROUNDING = 1e-4
"""Shares below this are rounding errors of log-probabilities in float32."""


def patched(setting: Setting) -> list[Panel]:
    """Draw the share that comes back, on one scale: layer by token, and layer by head."""
    of = patches(setting)
    tokens, by_head = (np.where(abs(each.share) < _ROUNDING, 0.0, each.share) for each in (of.tokens, of.heads))
    columns = tuple(a if a == b else f"{a} / {b}" for a, b in zip(*of.tokens.tokens, strict=True))
    layers = numbered(len(tokens), N_("layer"), first=1)
    stream = Panel(
        name="embed",
        title=N_("residual stream that enters a layer"),
        values=tokens,
        rows=layers,
        columns=Labels(columns, N_("token, clean / corrupt"), places=True),
        click="says",
    )
    heads = Panel(
        name="heads",
        title=N_("output of a head"),
        values=by_head,
        rows=layers,
        columns=numbered(by_head.shape[1], N_("head"), first=1),
        click="says",
    )
    limit = max(1.0, float(abs(tokens).max()), float(abs(by_head).max()))
    return [replace(panel, limit=limit) for panel in (stream, heads)]


@dataclass(frozen=True)
class Place:
    """One value of the maps.

    Args:
        patch: what it is, as for :mod:`visformer.pictures.comparing.carried`.
        layer: its layer, from 0.
        index: its token or head, from 0.
        share: how much of the answer it brings back.
        label: the token in both texts; the number of a head.
    """

    patch: str
    layer: int
    index: int
    share: float
    label: str


def place(setting: Setting, panel: str, row: int, column: int) -> Place:
    """Return the value of a clicked cell."""
    of, shown = patches(setting), {panel.name: panel for panel in patched(setting)}[panel]
    heads = "cross-head" if setting.kind == "cross_attn" else f"{setting.part}-head"
    patch = heads if panel == "heads" else of.tokens.stack
    return Place(patch, row, column, float(shown.values[row, column]), shown.columns.texts[column])


_DIFFERENCE = N_(
    "log p({a}) − log p({b}) is {clean} nats in the clean run, “{clean_text}”, and {corrupt} in the corrupt one, "
    "“{corrupt_text}”. 0: as in the corrupt run; 1: as in the clean one."
)


def difference(setting: Setting) -> str:
    """Say what the two runs differ in, in the visitor's language."""
    of = patches(setting)
    a, b = map(visible, of.tokens.answers)
    return setting.gettext(_DIFFERENCE).format(
        a=a,
        b=b,
        clean=signed(of.tokens.clean),
        corrupt=signed(of.tokens.corrupt),
        clean_text=of.pair.clean,
        corrupt_text=of.pair.corrupt,
    )


def pairs(setting: Setting) -> list[patching.PatchingPair]:
    """Return the bundled pairs of the model."""
    return patching.patching_pairs(str(setting.patterns.meta.get("model", "-")))


def pair_labels(setting: Setting) -> tuple[str, ...]:
    """Return what each of them is called."""
    return tuple(f"{setting.gettext(_ABOUT.get(p.about, p.about))}: {p.clean} / {p.corrupt}" for p in pairs(setting))


_ABOUT = {
    "measure word": N_("measure word"),
    "number": N_("number"),
    "gender": N_("gender"),
    "place name": N_("place name"),
    "agreement": N_("agreement"),
    "repetition": N_("repetition"),
}
