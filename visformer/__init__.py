"""Visformer: type a sentence; see every number that a Transformer computes on it.

The public names below are imported on first use (PEP 562), so that ``import visformer`` does not import torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from visformer import trace
from visformer.system.arguments import public
from visformer.system.version import VERSION

__version__ = VERSION

_PUBLIC = {
    "TransformerConfig": "visformer.model.config",
    "Transformer": "visformer.model.transformer",
    "GPT": "visformer.model.gpt",
    "GPTConfig": "visformer.model.config",
    "attention": "visformer.model.attention",
    "sinusoidal_encoding": "visformer.model.embedding",
    "causal_mask": "visformer.model.masks",
    "padding_mask": "visformer.model.masks",
    "compare": "visformer.export.notebook",
    "explorer": "visformer.export.notebook",
    "link": "visformer.export.notebook",
    "load": "visformer.adapters.load",
    "moments": "visformer.adapters.checkpoints",
    "untrained": "visformer.adapters.load",
    "wrap": "visformer.adapters.load",
    "Trace": "visformer.trace",
    "TracedTensor": "visformer.trace",
}
_MODULES = ("analysis", "edits", "errors", "export", "figures", "formulas", "model")

__all__ = [
    "GPT",
    "GPTConfig",
    "Trace",
    "TracedTensor",
    "Transformer",
    "TransformerConfig",
    "analysis",
    "attention",
    "causal_mask",
    "compare",
    "edits",
    "errors",
    "explorer",
    "export",
    "figures",
    "formulas",
    "link",
    "load",
    "model",
    "moments",
    "padding_mask",
    "sinusoidal_encoding",
    "untrained",
    "wrap",
]

if TYPE_CHECKING:
    from visformer import analysis, edits, errors, export, figures, formulas, model
    from visformer.adapters.checkpoints import moments
    from visformer.adapters.load import load, untrained, wrap
    from visformer.export.notebook import compare, explorer, link
    from visformer.model.attention import attention
    from visformer.model.config import GPTConfig, TransformerConfig
    from visformer.model.embedding import sinusoidal_encoding
    from visformer.model.gpt import GPT
    from visformer.model.masks import causal_mask, padding_mask
    from visformer.model.transformer import Transformer
    from visformer.trace import Trace, TracedTensor


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return public(getattr(importlib.import_module(_PUBLIC[name]), name), __name__)
    if name in _MODULES:
        return importlib.import_module(f"visformer.{name}")
    raise AttributeError(f"module 'visformer' has no attribute {name!r}")


def _as_html(trace: "Trace") -> str:
    from html import escape

    from visformer.errors import VisformerError
    from visformer.export.notebook import explorer

    try:
        return explorer(trace).html
    except VisformerError as error:
        return f"<p>{escape(str(error))}</p>"


trace.as_html = _as_html


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
