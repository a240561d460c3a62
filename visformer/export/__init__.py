"""What people keep: one file of a Trace, or of a picture, in the format that its name asks for. No torch, no streamlit.

``save`` writes a file. What it writes can also be had as text or bytes: ``page`` (HTML), ``attention_svg``,
``panels_svg`` and ``figure_svg``, ``to_png``, ``to_csv`` and ``to_json``, likewise ``panels_csv`` and so on;
safetensors of a Trace is :meth:`visformer.trace.Trace.to_bytes`.

The functions are loaded on first use: the command line and the pages read :mod:`visformer.export.formats` before any
NumPy.
"""

import importlib
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "arcs_svg": "visformer.export.views",
    "attention_svg": "visformer.export.attention",
    "figure_csv": "visformer.export.tables",
    "figure_json": "visformer.export.tables",
    "figure_svg": "visformer.export.curves",
    "heads_svg": "visformer.export.svg",
    "page": "visformer.web.page",
    "panels_csv": "visformer.export.tables",
    "panels_json": "visformer.export.tables",
    "panels_svg": "visformer.export.svg",
    "panels_tensors": "visformer.export.tables",
    "save": "visformer.export.saving",
    "to_csv": "visformer.export.tables",
    "to_json": "visformer.export.tables",
    "to_png": "visformer.export.png",
    "tokens_svg": "visformer.export.views",
}

__all__ = [
    "arcs_svg",
    "attention_svg",
    "figure_csv",
    "figure_json",
    "figure_svg",
    "heads_svg",
    "page",
    "panels_csv",
    "panels_json",
    "panels_svg",
    "panels_tensors",
    "save",
    "to_csv",
    "to_json",
    "to_png",
    "tokens_svg",
]

if TYPE_CHECKING:
    from visformer.export.attention import attention_svg
    from visformer.export.curves import figure_svg
    from visformer.export.png import to_png
    from visformer.export.saving import save
    from visformer.export.svg import heads_svg, panels_svg
    from visformer.export.tables import (
        figure_csv,
        figure_json,
        panels_csv,
        panels_json,
        panels_tensors,
        to_csv,
        to_json,
    )
    from visformer.export.views import arcs_svg, tokens_svg
    from visformer.web.page import page


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'visformer.export' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
