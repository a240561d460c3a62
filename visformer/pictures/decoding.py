"""Decoding as it goes: the cross-attention of the tokens so far."""

from dataclasses import replace

import numpy as np

from visformer.errors import N_
from visformer.panel import Panel, traced
from visformer.trace import Trace

FIRST_TEXT_ID = 260
"""Ids below stand for no text, or for a byte that may be half of a character: a sentence cannot go on from one."""


def growing(trace: Trace, layer: int, step: int) -> Panel:
    """Cross-attention, mean over the heads of a layer: the rows that have been generated up to ``step``."""
    path = f"decoder.{layer}.cross_attn.pattern"
    panel = traced(trace, path, 0, title=N_("cross-attention so far, mean of the heads"), scale="weight")
    values = np.asarray(trace[path].value, dtype=np.float64).mean(axis=0)
    values[step + 1 :] = np.nan
    return replace(panel, values=values)
