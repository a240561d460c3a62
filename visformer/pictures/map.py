"""The whole model: the numbers of every block, from the tokens to the prediction (figure 1 of the paper)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, Message
from visformer.pictures.registry.options import SELECTED
from visformer.pictures.registry.picture import Page, Picture
from visformer.pictures.registry.setting import Setting
from visformer.trace import Trace
from visformer.trace.blocks import StackBlocks
from visformer.trace.tokens import likeliest

RECORD = ("*.pattern", "*.map", "*.embed", "*.position", "*.input", "*.resid_*", "logits")
"""Globs over the tensors that the picture needs."""

SIDES = {"encoder": "src", "decoder": "tgt"}
"""The side whose tokens a stack reads."""

_AFTER = {"self_attn": ("resid_self",), "cross_attn": ("resid_cross",), "ffn": ("resid_post",)}
_SHOWN = {"self_attn": "self_attn.pattern", "cross_attn": "cross_attn.pattern", "ffn": "resid_post"}
_ORDER = tuple(_AFTER)

_BLOCK = {
    "pre": "x + f(LN(x))",
    "post": "LN(x + f(x))",
    "both": "x + LN(f(LN(x)))",
    "output": "x + LN(f(x))",
    "parallel": "x + f(LN(x)) + g(LN(x))",
}
"""What each sublayer f computes, by where its layer norm is; g: the feed-forward network beside attention."""


@dataclass(frozen=True)
class WholeModel:
    """What a browser draws the whole model from.

    Args:
        trace: with :data:`RECORD`, as far as the model has it.
        head: the stack, layer and head whose weights are drawn as lines at first.
    """

    trace: Trace
    head: tuple[str, int, int]


@dataclass(frozen=True)
class DrawnSublayer:
    """A sublayer of a layer.

    Args:
        kind: "self_attn", "cross_attn" or "ffn".
        norms: the length of each token's vector in the residual stream after it, (token,); None: not recorded.
        lacks: why it can only be named; None: its patterns, or the stream after it, are in the Trace.
    """

    kind: str
    norms: NDArray[np.floating] | None
    lacks: Message | None = None


@dataclass(frozen=True)
class DrawnLayer:
    """A layer, by its number in the model from 0, and its sublayers in order."""

    number: int
    sublayers: tuple[DrawnSublayer, ...]


@dataclass(frozen=True)
class Prediction:
    """What a row of the decoder predicts.

    Args:
        ids: the likeliest next tokens, best first, (n,).
        tokens: how they are displayed; (): the Trace does not tell.
        probabilities: of each, (n,): softmax of the logits.
        following: the probability of the token that follows in the Trace; None: its id is not known.
        chosen: the place of that token among the likeliest; None: it is not one of them.
    """

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    following: float | None
    chosen: int | None


def layers(trace: Trace, stack: str) -> tuple[DrawnLayer, ...]:
    """Return the layers of a stack that are in the Trace, in order; () if there is no such stack.

    A sublayer of attention is in it if its pattern is, the feed-forward network if the stream after it is. One that
    the model has and cannot show is there with the reason.
    """
    named = re.compile(rf"{stack}\.(\d+)\.(?:(self_attn|cross_attn)\.(?:pattern|map)|resid_post)")
    found: dict[int, dict[str, DrawnSublayer]] = {}
    told = _stack(trace, stack)
    for match in filter(None, map(named.fullmatch, trace)):
        kind = match[2] or "ffn"
        if kind == "ffn" and told and "ffn" not in told.sublayers:  # attention alone
            continue
        found.setdefault(int(match[1]), {})[kind] = _sublayer(trace, f"{stack}.{match[1]}", kind)
    for number, kind, why in _lacking(trace, stack) if found else ():
        found.setdefault(number, {}).setdefault(kind, DrawnSublayer(kind, None, why))
    return tuple(
        DrawnLayer(number, tuple(kinds[kind] for kind in _ORDER if kind in kinds))
        for number, kinds in sorted(found.items())
    )


def _stack(trace: Trace, stack: str) -> StackBlocks | None:
    return {"encoder": trace.blocks.encoder, "decoder": trace.blocks.decoder}[stack] if trace.blocks else None


def _lacking(trace: Trace, stack: str) -> Iterator[tuple[int, str, Message]]:
    """Yield layer, kind and reason of each sublayer that the model has and cannot show."""
    told = _stack(trace, stack)
    for number, kind in product(range(told.n_layers), told.sublayers) if told else ():
        why = trace.lacks(f"{stack}.{number}.{_SHOWN[kind]}")
        if why is not None:
            yield number, kind, why


def _sublayer(trace: Trace, path: str, kind: str) -> DrawnSublayer:
    names = [f"{path}.{name}" for name in _AFTER[kind] if f"{path}.{name}" in trace]
    return DrawnSublayer(kind, norms(trace[names[0]].value) if names else None)


def norms(rows: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the Euclidean length of each row of (token, d_model), (token,)."""
    lengths: NDArray[np.floating] = np.linalg.norm(rows.astype(np.float64), axis=-1)
    return lengths


def steps(trace: Trace) -> tuple[Prediction, ...]:
    """Return what each row of the decoder predicts; () if the model has no decoder or no logits were recorded."""
    if "logits" not in trace or "tgt" not in trace.tokens:
        return ()
    ids: Sequence[int] = trace.meta.get("ids", {}).get("next", ())
    named: Sequence[Sequence[str]] = trace.meta.get("likeliest", ())
    return tuple(
        _step(row, named[i] if i < len(named) else (), ids[i] if i < len(ids) else None)
        for i, row in enumerate(trace["logits"].value)
    )


def _step(logits: NDArray[np.floating], named: Sequence[str], following: int | None) -> Prediction:
    shifted = np.exp(logits.astype(np.float64) - logits.max())  # (vocab,)
    probabilities = shifted / shifted.sum()
    ids = likeliest(logits)
    known = following is not None and following < len(probabilities)
    return Prediction(
        ids=ids,
        tokens=tuple(named),
        probabilities=tuple(probabilities[[*ids]].tolist()),
        following=float(probabilities[following]) if known else None,
        chosen=ids.index(following) if following in ids else None,
    )


def added(trace: Trace, side: str) -> dict[str, NDArray[Any]]:
    """Return what enters the first layer: of "embed", "position" and "input" those recorded, (token, d_model) each."""
    return {name: trace[f"{side}.{name}"].value for name in ("embed", "position", "input") if f"{side}.{name}" in trace}


def block(trace: Trace, stack: str) -> str:
    """Return what a sublayer of the stack computes, as a formula; "" if the Trace does not tell."""
    told = _stack(trace, stack)
    if not told:
        return ""
    return _BLOCK["parallel"] if told.parallel and told.norm == "pre" else _BLOCK.get(told.norm, "")


def drawn(setting: Setting) -> WholeModel:
    """Collect what the browser draws."""
    return WholeModel(setting.trace, (setting["stack"], setting["layer"], setting["head"]))


def heading(trace: Trace) -> Message:
    """Say what a model does with a text or a picture."""
    if "grid" in trace.meta:
        describes = N_("How a Transformer describes a picture")
        return describes if "tgt" in trace.tokens else N_("How a Transformer reads a picture")
    if {"src", "tgt"} <= trace.tokens.keys():
        translates = N_("How a Transformer translates a sentence")
        return translates if trace.meta.get("to") else N_("How a Transformer turns one text into another")
    return N_("How a Transformer continues a text") if "tgt" in trace.tokens else N_("How a Transformer reads a text")


MAP = Picture(
    name="map", live=True, needs=RECORD, options=SELECTED[:3], draw=drawn,
    look_for=N_("A Transformer with your sentence in it, from the bottom up: press Play to see it run."),
)  # fmt: skip
PAGE = Page(
    name="",
    script="map",
    section="see",
    order=5,
    title=N_("The whole model"),
    about=N_("A Transformer with your sentence in it: press Play, or zoom in down to a single weight."),
    views=(MAP,),
    where="model",
)
