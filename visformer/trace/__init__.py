"""The record of one computation: frozen, labelled, NumPy only. The names below are loaded on first use."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["Trace", "TracedTensor"]

if TYPE_CHECKING:
    from visformer.trace.tensor import TracedTensor
    from visformer.trace.trace import Trace

as_html: Callable[[Any], str] | None = None
"""Renders a Trace as self-contained HTML for a notebook; set by :mod:`visformer`: a Trace knows nothing of pictures."""


def __getattr__(name: str) -> Any:
    if name in __all__:  # names and axes alone need no NumPy
        return getattr(importlib.import_module("visformer.trace.trace"), name)
    raise AttributeError(f"module 'visformer.trace' has no attribute {name!r}")
