"""Charts of positional encodings: curves, and points on a circle (section 3.5)."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from visformer import formulas
from visformer.errors import N_, ConfigError
from visformer.formulas import Floats
from visformer.pictures.charts import go
from visformer.pictures.charts.panels import legend, literal, look, metadata
from visformer.pictures.style import CURVES, FAINT, Theme

_GRID = "rgba(128,128,128,0.18)"
POINTS = 2000
"""Minimum number of points of a curve: sampled at the positions only, fast waves would be aliased."""


def position_waves(
    n: int,
    d_model: int,
    dimensions: Sequence[int],
    *,
    base: float = 10000.0,
    axes: tuple[str, str] = ("pos", "PE(pos, dimension)"),
    title: str = "positional encoding, d_model {d_model}",
    theme: Theme = "light",
) -> go.Figure:
    """Draw dimensions of the encoding as curves over positions: sines solid, cosines dotted, each pair in one colour.

    Args:
        n: number of positions.
        d_model: number of dimensions.
        dimensions: the dimensions to draw.
        base: of the wavelengths.
        axes: axis titles.
        title: title in a file; may contain ``{d_model}``.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.

    Raises:
        ConfigError: a dimension that d_model does not have.
    """
    figure = go.Figure()
    rates = formulas.frequencies(d_model, base)
    fine = np.linspace(0, max(n - 1, 1), max(POINTS, n))
    pairs = sorted({dimension // 2 for dimension in dimensions})
    for dimension in dimensions:
        if not 0 <= dimension < d_model:
            raise ConfigError(
                N_("There is no dimension {given}: with d_model={d} they go from 0 to {last}."),
                given=dimension,
                d=d_model,
                last=d_model - 1,
            )
        rate, wave = rates[dimension // 2], np.cos if dimension % 2 else np.sin
        colour = CURVES[theme][pairs.index(dimension // 2) % len(CURVES[theme])]
        name = f"{dimension}: {'cos' if dimension % 2 else 'sin'}, λ = {2 * math.pi / rate:,.1f}"
        line = {"color": colour, "width": 2, "dash": "dot" if dimension % 2 else "solid"}
        figure.add_scatter(x=fine, y=wave(rate * fine), mode="lines", name=name, line=line, hoverinfo="skip")
        if n <= 128:
            places = np.arange(n)
            figure.add_scatter(
                x=places,
                y=wave(rate * places),
                mode="markers",
                marker={"color": colour, "size": 6},
                name=name,
                showlegend=False,
                hovertemplate="PE(%{x}, " + str(dimension) + ") = %{y:.6f}<extra></extra>",
            )
    table: dict[str, list[Any]] = {
        "position": [place for _ in dimensions for place in range(n)],
        "dimension": [dimension for dimension in dimensions for _ in range(n)],
        "value": formulas.sinusoidal_encoding(n, d_model, base)[:, list(dimensions)].T.ravel().tolist(),
    }
    _frame(figure, axes, height=430, meta=metadata(title.format(d_model=d_model), table), theme=theme)
    figure.update_yaxes(range=[-1.08, 1.08])
    return figure


def curves_over(
    curves: Mapping[str, Floats],
    x: Floats,
    *,
    axes: tuple[str, str],
    title: str,
    log: str = "",
    theme: Theme = "light",
) -> go.Figure:
    """Draw curves over a number, such as the distance of two positions.

    Args:
        curves: name to one number for each of ``x``; NaN leaves a gap.
        x: the numbers, in ascending order.
        axes: axis titles.
        title: title in a file.
        log: the axes on a logarithmic scale: "x", "y" or both.
        theme: "light" or "dark".
    """
    figure = go.Figure()
    places, heights = (np.log10 if axis in log else np.asarray for axis in "xy")
    for (name, curve), colour in zip(curves.items(), cycle(CURVES[theme])):
        figure.add_scatter(
            x=places(x),
            y=heights(curve),
            mode="lines+markers" if "x" in log else "lines",
            name=literal(name),
            line={"color": colour, "width": 2},
            text=[f"{at:g}: {value:.6g}" for at, value in zip(x, curve, strict=True)],
            hovertemplate="%{text}<extra>" + literal(name) + "</extra>",
        )
    table: dict[str, list[Any]] = {
        "curve": [name for name, curve in curves.items() for _ in curve],
        axes[0]: [*map(float, x)] * len(curves),
        "value": [None if math.isnan(value) else value for curve in curves.values() for value in curve.tolist()],
    }
    _frame(figure, axes, height=380, meta=metadata(title, table), theme=theme)
    if "x" in log:
        figure.update_xaxes(tickvals=places(x), ticktext=[f"{at:g}" for at in x])
    if "y" in log:
        powers = _powers(np.concatenate([*map(heights, curves.values())]))
        figure.update_yaxes(
            zeroline=False, tickvals=powers, ticktext=[f"10{str(power).translate(_RAISED)}" for power in powers]
        )
    return figure


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def _powers(logarithms: Floats) -> list[int]:
    """Return the powers of ten among these logarithms, at most eight of them."""
    low, high = math.floor(np.nanmin(logarithms)), math.ceil(np.nanmax(logarithms))
    return [*range(low, high + 1, max(1, math.ceil((high - low) / 7)))]


def _frame(figure: go.Figure, axes: tuple[str, str], *, height: int, meta: dict[str, Any], theme: Theme) -> None:
    """Set the axes, the legend and the metadata of a figure of curves."""
    figure.update_layout(**look(theme), **meta)
    figure.update_layout(margin={"l": 50, "r": 10, "t": 20, "b": 40}, legend=legend(), height=height)
    figure.update_xaxes(title=axes[0], gridcolor=_GRID, zeroline=False)
    figure.update_yaxes(title=axes[1], gridcolor=_GRID, zerolinecolor=FAINT[theme])


def rotation_circle(
    position: int, offset: int, *, pair: int, d_model: int, base: float = 10000.0, theme: Theme = "light"
) -> go.Figure:
    """Draw one pair of dimensions as points on the unit circle, at ``position`` and ``offset`` positions further.

    Args:
        position: from 0.
        offset: number of positions further; may be negative.
        pair: index of the pair of dimensions 2 * pair and 2 * pair + 1.
        d_model: number of dimensions.
        base: of the wavelengths.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.

    Raises:
        ConfigError: a pair that d_model does not have.
    """
    rates = formulas.frequencies(d_model, base)
    if not 0 <= pair < len(rates):
        raise ConfigError(
            N_("There is no pair {given}: d_model={d} has {n}, counted from 0."), given=pair, d=d_model, n=len(rates)
        )
    rate = float(rates[pair])
    around = np.linspace(0, 2 * math.pi, 361)
    way = np.linspace(position * rate, (position + offset) * rate, 181)
    figure = go.Figure()
    figure.add_scatter(x=np.cos(around), y=np.sin(around), mode="lines", line={"color": FAINT[theme], "width": 1})
    figure.add_scatter(x=0.75 * np.cos(way), y=0.75 * np.sin(way), mode="lines", line={"color": CURVES[theme][0]})
    for place, colour in ((position, CURVES[theme][1]), (position + offset, CURVES[theme][2])):
        x, y = math.cos(place * rate), math.sin(place * rate)
        figure.add_scatter(
            x=[0, x],
            y=[0, y],
            mode="lines+markers+text",
            text=["", f"pos {place}"],
            textposition="top center",
            marker={"size": [0, 11], "color": colour},
            line={"color": colour, "width": 2},
            hovertemplate="cos %{x:.4f}, sin %{y:.4f}<extra></extra>",
        )
    ends = [position, position + offset]
    turned = {"sin": [math.sin(p * rate) for p in ends], "cos": [math.cos(p * rate) for p in ends]}
    table: dict[str, list[Any]] = {"position": ends, "pair": [pair, pair], **turned}
    figure.update_layout(**look(theme), **metadata(f"R({offset}) · PE({position}), i = {pair}", table))
    figure.update_layout(showlegend=False, margin={"l": 40, "r": 10, "t": 20, "b": 40}, height=300, width=320)
    figure.update_xaxes(range=[-1.3, 1.3], title=f"cos (2i+1 = {2 * pair + 1})", zeroline=False, showgrid=False)
    figure.update_yaxes(
        range=[-1.3, 1.3], title=f"sin (2i = {2 * pair})", scaleanchor="x", zeroline=False, showgrid=False
    )
    return figure
