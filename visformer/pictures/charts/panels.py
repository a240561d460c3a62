"""A panel as a plotly heatmap, or several beside each other. What panels.js draws on the pages, for a notebook."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from plotly.subplots import make_subplots

from visformer.panel import Labels, Panel
from visformer.pictures.charts.drawing import go
from visformer.pictures.theme import BACKGROUND, DIVERGING, FAINT, FONTS, SEQUENTIAL, TEXT, Theme, visible

_TICKS = (0.0, 0.05, 0.25, 0.5, 1.0)
_NAMED = 10_000
"""Cells up to which hovering names both labels: beyond, the names would be larger than the numbers."""


def matrix(*panels: Panel, theme: Theme = "light") -> go.Figure:
    """Draw panels beside each other.

    Weights are coloured on a square-root scale, signed values on a linear one; hovering tells the value itself.

    Args:
        panels: at least one.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.
    """
    titles = [literal(f"{panel.before} {panel.title}".strip()) for panel in panels]
    figure = make_subplots(cols=len(panels), subplot_titles=titles if len(panels) > 1 else None)
    for i, panel in enumerate(panels, start=1):
        figure.add_trace(heatmap(panel, theme=theme, scale_shown=i == len(panels)), row=1, col=i)
        axes = {"title": panel.columns.title, **_axis(panel.columns), "side": "top", "tickangle": _angle(panel.columns)}
        figure.update_xaxes(axes, row=1, col=i)
        figure.update_yaxes({"title": panel.rows.title, **_axis(panel.rows), "autorange": "reversed"}, row=1, col=i)
    figure.update_layout(**look(theme))
    if len(panels) == 1:
        figure.update_layout(title=title(titles[0]))
    return figure


def heatmap(panel: Panel, *, theme: Theme, scale_shown: bool = True) -> go.Heatmap:
    """One panel as a trace; ``text`` holds the values, ``z`` what is coloured."""
    values = np.asarray(panel.values, dtype=np.float64)
    small = values.size <= _NAMED
    custom: Any = None
    if small:
        custom = np.stack(np.meshgrid(_names(panel.rows), _names(panel.columns), indexing="ij"), axis=-1)
    return go.Heatmap(
        z=np.sqrt(np.clip(values, 0.0, 1.0)) if panel.scale == "weight" else values,
        text=values,
        customdata=custom,
        hovertemplate=("%{customdata[0]} · %{customdata[1]}<br>" if small else "") + "%{text:.6g}<extra></extra>",
        hoverongaps=False,
        xgap=1 if small else 0,
        ygap=1 if small else 0,
        **colours(panel, theme),
        showscale=scale_shown,
    )


def colours(panel: Panel, theme: Theme) -> dict[str, Any]:
    """Colour scale, its ends, and its ticks."""
    stops = (SEQUENTIAL if panel.scale == "weight" else DIVERGING)[theme]
    scale = [[i / (len(stops) - 1), colour] for i, colour in enumerate(stops)]
    if panel.scale == "signed":
        return {"zmin": panel.middle - panel.end, "zmax": panel.middle + panel.end, "colorscale": scale}
    bar = {"title": "weight", "tickvals": [t**0.5 for t in _TICKS], "ticktext": [f"{t:g}" for t in _TICKS]}
    return {"zmin": 0.0, "zmax": 1.0, "colorscale": scale, "colorbar": bar}


def title(text: str) -> dict[str, Any]:
    """A figure's title, above everything else."""
    return {"text": text, "font": {"size": 15}, "x": 0.01, "y": 0.98, "yanchor": "top"}


def kept(title: str, table: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """What a file of a figure holds besides the drawing, as Plotly's ``meta``, which is never drawn.

    Args:
        title: above the picture.
        table: names of columns to their values, one a row; the numbers that are drawn, not where they are drawn.
    """
    return {"meta": {"title": title, "table": {name: list(values) for name, values in table.items()}}}


def look(theme: Theme) -> dict[str, Any]:
    """Fonts, colours and margins of every figure."""
    return {
        "font": {"family": FONTS, "color": TEXT[theme], "size": 13},
        "title_font_color": FAINT[theme],
        "paper_bgcolor": BACKGROUND[theme],
        "plot_bgcolor": BACKGROUND[theme],
        "margin": {"l": 20, "r": 20, "t": 120, "b": 20},
    }


def _names(labels: Labels) -> list[str]:
    """Tokens with their places, which tell two equal ones apart; on the decoder's rows also what each predicts."""
    texts = [visible(text) for text in labels.texts]
    if labels.after:
        texts = [f"{text} → {visible(after)}" for text, after in zip(texts, labels.after, strict=True)]
    # plotly reads a little HTML in labels: what was typed must not be taken for it
    return [f"{literal(text)} {i + 1}" if labels.places else literal(text) for i, text in enumerate(texts)]


def _axis(labels: Labels) -> dict[str, Any]:
    if labels.numeric and len(labels) > 24:
        return {"showgrid": False}
    return {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": _names(labels), "showgrid": False}


def _angle(labels: Labels) -> int:
    return 0 if labels.numeric else -45


def literal(text: str) -> str:
    """Text that plotly does not take for its little HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
