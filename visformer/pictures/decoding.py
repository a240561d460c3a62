"""Decoding as it goes: the cross-attention of the tokens so far, and candidates under another temperature."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visformer.errors import N_
from visformer.panel import Panel, traced
from visformer.trace import Trace

FIRST_TEXT_ID = 260
"""Ids below stand for no text, or for a byte that may be half of a character: a sentence cannot go on from one."""


@dataclass(frozen=True)
class Reshaped:
    """A candidate, and its share of the distribution that would be drawn from."""

    token: str
    id: int
    probability: float
    drawn_probability: float


def reshaped(step: Any, *, temperature: float, top_k: int | None, top_p: float) -> list[Reshaped]:
    """The candidates of a step under temperature, top-k and top-p, over the candidates that were kept.

    Args:
        step: of a :class:`visformer.decoding.Decoding`.
        temperature: divides the log-probabilities.
        top_k: only the k likeliest stay; None: all.
        top_p: only the likeliest stay that together reach it.
    """
    candidates: Sequence[Any] = step.candidates
    chances = np.array([candidate.probability for candidate in candidates], dtype=np.float64)
    rest = max(0.0, 1.0 - float(chances.sum()))
    powers = np.maximum(chances, 1e-300) ** (1.0 / temperature)
    if top_k is not None:
        powers[top_k:] = 0.0
        rest = 0.0 if top_k <= len(candidates) else rest
    share = powers / (powers.sum() + rest ** (1.0 / temperature))
    if top_p < 1:
        share[np.cumsum(share) - share >= top_p] = 0.0
        share = share / share.sum()
    return [
        Reshaped(c.token, c.id, c.probability, float(s) if math.isfinite(s) else 0.0)
        for c, s in zip(candidates, share, strict=True)
    ]


def growing(trace: Trace, layer: int, step: int) -> Panel:
    """Cross-attention, mean over the heads of a layer: the rows that have been generated up to ``step``."""
    path = f"decoder.{layer}.cross_attn.pattern"
    panel = traced(trace, path, 0, title=N_("cross-attention so far, mean of the heads"), scale="weight")
    values = np.asarray(trace[path].value, dtype=np.float64).mean(axis=0)
    values[step + 1 :] = np.nan
    return replace(panel, values=values)
