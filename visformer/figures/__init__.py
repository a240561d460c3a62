"""Pictures for notebooks and papers: a Trace in, a plotly Figure out. Neither torch nor streamlit here.

The functions are loaded on first use, because plotly is large and the pages' canvas only needs :mod:`theme`.
"""

import importlib
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "attention_head": "visformer.figures.attention",
    "attention_heads": "visformer.figures.attention",
    "beam_tree": "visformer.figures.decoding",
    "candidate_bars": "visformer.figures.decoding",
    "matrix": "visformer.figures.panels",
    "position_waves": "visformer.figures.positions",
    "rotation_circle": "visformer.figures.positions",
}

__all__ = [
    "attention_head",
    "attention_heads",
    "beam_tree",
    "candidate_bars",
    "matrix",
    "position_waves",
    "rotation_circle",
]

if TYPE_CHECKING:
    from visformer.figures.attention import attention_head, attention_heads
    from visformer.figures.decoding import beam_tree, candidate_bars
    from visformer.figures.panels import matrix
    from visformer.figures.positions import position_waves, rotation_circle


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'visformer.figures' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
