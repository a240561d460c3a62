"""Decoding as it goes: how sure each step was, and the cross-attention of the tokens so far."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from visformer.errors import N_
from visformer.panel import Labels, Panel, traced
from visformer.trace import Trace


def kind(trace: Trace) -> Literal["self_attn", "cross_attn"]:
    """The attention that decoding is about: to the source, or of a decoder alone to what was written."""
    return "cross_attn" if "src" in trace.tokens else "self_attn"


def growing(trace: Trace, layer: int, step: int) -> Panel:
    """Cross-attention, mean over the heads of a layer: the rows that have been generated up to ``step``.

    Of a decoder alone its self-attention.
    """
    attention = kind(trace)
    path = f"decoder.{layer}.{attention}.pattern"
    title = N_("self-attention so far, mean of the heads")
    if attention == "cross_attn":
        title = N_("cross-attention so far, mean of the heads")
    panel = traced(trace, path, 0, title=title, scale="weight")
    values = np.asarray(trace[path].value, dtype=np.float64).mean(axis=0)
    values[step + 1 :] = np.nan
    return replace(panel, values=values)


def sureness(steps: Sequence[Any], at: int, *, title: str = "how sure of each step (least: {step}, {token})") -> Panel:
    """The probability under the model of what each step took, to be clicked; the step that is looked at is outlined.

    Args:
        steps: as of :class:`visformer.model.decoding.Step`.
        at: the step that is looked at, from 0.
        title: tells the step, from 1, whose choice had the least probability, and its token.
    """
    chances = np.array([[step.chosen.probability for step in steps]])
    least = int(chances.argmin())
    return Panel(
        name="sure",
        symbol="pattern",
        title=title.format(step=least + 1, token=steps[least].chosen.token),
        values=chances,
        rows=Labels(("P",)),
        columns=Labels(tuple(step.chosen.token for step in steps), N_("taken at step"), places=True),
        scale="weight",
        digits=3,
        outlined=np.arange(len(steps))[None] == at,
        click="tells",
    )
