"""Heatmaps as plotly figures: panels like those of panels.js, a single head, or all heads of a stack as tiles."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from plotly.subplots import make_subplots

from visformer.errors import N_, TraceError
from visformer.panel import (
    Labels,
    Panel,
    Speaker,
    kept_tokens,
    map_scale,
    numbered,
    stack_title,
    ticks,
    traced,
    without_roles,
)
from visformer.pictures.charts import go
from visformer.pictures.style import BACKGROUND, CURVES, FAINT, FONTS, RAMPS, TEXT, VEIL, Theme, visible
from visformer.trace import Trace
from visformer.trace.stacks import most_heads, stack_named

_NAMED = 10_000
"""Up to this many cells, hovering shows both labels; for more, the labels would take more memory than the numbers."""


class PanelFigure(go.Figure):  # type: ignore[misc]
    """A figure that was drawn from panels, which it is saved from."""

    panels: Sequence[Panel | Sequence[Panel]] = ()


def matrix(*panels: Panel, theme: Theme = "light") -> go.Figure:
    """Draw panels side by side.

    Weights are coloured on a square-root scale, signed values on a linear one; over a picture, the larger they are the
    thinner is its veil. Hovering shows the value itself. Beside the tokens of a chat stands the colour of their role.

    Args:
        panels: at least one.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.
    """
    titles = [literal(f"{panel.before} {panel.title}".strip()) for panel in panels]
    figure = PanelFigure()
    figure.panels = panels
    make_subplots(cols=len(panels), subplot_titles=titles if len(panels) > 1 else None, figure=figure)
    for i, panel in enumerate(panels, start=1):
        if panel.picture is not None:
            figure.add_trace(_below(panel), row=1, col=i)
        figure.add_trace(heatmap(panel, theme=theme, scale_shown=i == len(panels)), row=1, col=i)
        axes = {"title": panel.columns.title, **_axis(panel.columns, theme, mark="{mark} {text}"), "side": "top"}
        axes["tickangle"] = 0 if panel.columns.numeric else -45
        figure.update_xaxes(axes, row=1, col=i)
        down = {"title": panel.rows.title, **_axis(panel.rows, theme, mark="{text} {mark}"), "autorange": "reversed"}
        figure.update_yaxes(down, row=1, col=i)
    figure.update_layout(**look(theme))
    say_roles(
        figure, [said for panel in panels for side in (panel.rows, panel.columns) for said in side.speakers], theme
    )
    figure.update_annotations(yshift=55)  # titles, above the names of the columns
    if len(panels) == 1:
        figure.update_layout(title=title(titles[0]))
    return figure


def attention_head(
    trace: Trace, name: str, head: int = 0, *, without: Iterable[str] = (), theme: Theme = "light"
) -> go.Figure:
    """Draw one head's pattern: rows are queries, columns are keys, each row sums to 1; or its scores, or its map.

    Weights are coloured on a square-root scale, as on the pages, other numbers on a linear one; hovering shows the
    number itself. The title counts layer and head from 1.

    Args:
        trace: holds the pattern.
        name: name of the tensor, such as "decoder.0.cross_attn.pattern".
        head: counted from 0.
        without: of a chat, the roles whose rows and columns are left out, as for :func:`visformer.explorer`: the
            weights that remain stay as they are, so that a row no longer sums to 1.
        theme: "light" or "dark".

    Returns:
        A figure labelled by the pattern's axes.

    Raises:
        MissingTensor: the trace has no tensor of this name.
        TraceError: the tensor has other axes, or no such head, or the text no such role.
    """
    tensor = trace[name]
    axes = [axis.name for axis in tensor.axes]
    if axes != ["head", "query", "key"]:
        wanted = N_("{name} has the axes {axes}: a heatmap of a head needs head, query and key.")
        raise TraceError(wanted, name=name, axes=", ".join(axes))
    if not 0 <= head < len(tensor):
        known = N_("{name} has {n} heads, counted from 0; there is no head {head}.")
        raise TraceError(known, name=name, n=len(tensor), head=head)
    part, layer, kind, what = name.split(".")
    stack = stack_named(f"{part}.{kind}")
    spot = f"{stack.label} · Layer {int(layer) + 1} · Head {head + 1}"
    if what == "map":
        scale = map_scale(trace)
    else:
        scale = {"scale": "weight" if what in ("pattern", "mask") else "signed"}
        spot += "" if what == "pattern" else f" · {what}"
    panel = traced(trace, name, head, title=spot, **scale)
    return matrix(without_roles(trace, panel, tensor.axes[1:], without), theme=theme)


def attention_heads(trace: Trace, stack: str, *, without: Iterable[str] = (), theme: Theme = "light") -> go.Figure:
    """Draw every head of an attention: a row for each layer, a column for each head.

    All heads are tiles of one heatmap, so that dozens cost no more than one.

    Args:
        trace: holds the patterns.
        stack: the name of the attention, such as "decoder.cross_attn".
        without: of a chat, the roles whose rows and columns are left out, as for :func:`attention_head`.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.

    Raises:
        MissingTensor: the trace has no pattern of this attention.
        TraceError: there is no attention of this name, or the text has no such role.
    """
    layers = trace.layers(stack)
    first = next(iter(layers.values()))
    rows, columns = kept_tokens(trace, first.axes[1:], without)
    n_layers, n_heads, n_queries, n_keys = len(layers), most_heads(layers), len(rows), len(columns)
    tiles = np.full((n_layers, n_heads, n_queries + 1, n_keys + 1), np.nan, dtype=np.float32)  # a gap after each
    for row, layer in zip(tiles, layers.values(), strict=True):
        row[: len(layer), :n_queries, :n_keys] = layer.value[:, rows[:, None], columns]
    mosaic = tiles.transpose(0, 2, 1, 3).reshape(n_layers * (n_queries + 1), n_heads * (n_keys + 1))
    sides = [numbered(n) for n in mosaic.shape]
    panel = Panel(name="pattern", title="", values=mosaic, rows=sides[0], columns=sides[1], **map_scale(trace))
    figure = go.Figure(heatmap(panel, theme=theme))
    figure.update_traces(customdata=None, hovertemplate="%{text:.6g}<extra></extra>", xgap=0, ygap=0)
    figure.update_layout(
        title=title(literal(stack_title(trace, stack_named(stack)))),
        xaxis={**_tiles("Head", range(n_heads), n_keys), "side": "top"},
        yaxis={**_tiles("Layer", layers, n_queries), "autorange": "reversed"},
        **look(theme),
    )
    return figure


def heatmap(panel: Panel, *, theme: Theme, scale_shown: bool = True) -> go.Heatmap:
    """Draw one panel as a plotly trace; ``text`` holds the values, ``z`` the coloured quantity."""
    values = np.asarray(panel.values, dtype=np.float64)
    small = values.size <= _NAMED
    names = np.meshgrid(_spoken(panel.rows), _spoken(panel.columns), indexing="ij") if small else None
    veiled = panel.picture is not None
    z = np.sqrt(np.clip(values / panel.end if veiled else values, 0.0, 1.0))
    return go.Heatmap(
        z=z if veiled or panel.scale == "weight" else values,
        text=values,
        customdata=np.stack(names, axis=-1) if names else None,
        hovertemplate=("%{customdata[0]} · %{customdata[1]}<br>" if small else "") + "%{text:.6g}<extra></extra>",
        hoverongaps=False,
        xgap=1 if small else 0,
        ygap=1 if small else 0,
        **(_VEIL if veiled else colours(panel, theme)),
        showscale=scale_shown and not veiled,
    )


_VEIL = {"zmin": 0.0, "zmax": 1.0, "colorscale": [[i, f"rgba{(*VEIL[:3], (1 - i) * VEIL[3])}"] for i in (0, 1)]}
"""From where nothing is read to where most is."""


def _below(panel: Panel) -> go.Image:
    """Draw the picture below a panel's veil."""
    assert panel.picture is not None
    (rows, columns), (height, width) = np.shape(panel.values), panel.picture.shape[:2]
    dx, dy = columns / width, rows / height
    return go.Image(z=panel.picture, x0=(dx - 1) / 2, dx=dx, y0=(dy - 1) / 2, dy=dy, hoverinfo="skip")


def colours(panel: Panel, theme: Theme) -> dict[str, Any]:
    """Return the colour scale of a panel, its range and its ticks."""
    stops = RAMPS[panel.scale][theme]
    scale = [[i / (len(stops) - 1), colour] for i, colour in enumerate(stops)]
    low = panel.middle - panel.end if panel.scale == "signed" else 0.0
    high = panel.middle + panel.end
    texts, places = zip(*ticks(panel.scale, panel.end, panel.middle), strict=True)
    bar = {"tickvals": [low + place * (high - low) for place in places], "ticktext": texts}
    if panel.scale == "weight":
        bar["title"] = "weight"
    return {"zmin": low, "zmax": high, "colorscale": scale, "colorbar": bar}


def title(text: str) -> dict[str, Any]:
    """Return the layout of a figure's title."""
    return {"text": text, "font": {"size": 15}, "x": 0.01, "y": 0.98, "yanchor": "top"}


def metadata(title: str, table: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return what an exported file holds besides the drawing, as Plotly's ``meta``, which is not drawn.

    Args:
        title: title above the picture.
        table: column name to values; the numbers that are drawn, not their coordinates.
    """
    return {"meta": {"title": title, "table": {name: list(values) for name, values in table.items()}}}


def legend(**more: Any) -> dict[str, Any]:
    """Return the layout of a legend above the plot: from the figure's top, so that the plot gives way to its lines.

    A legend placed by the plot's own height would cover the plot where the figure is low, or its lines are many.
    """
    return {"orientation": "h", "yref": "container", "y": 1.0, "yanchor": "top", "traceorder": "normal", **more}


def look(theme: Theme) -> dict[str, Any]:
    """Return the fonts, colours and margins of all figures."""
    return {
        "font": {"family": FONTS, "color": TEXT[theme], "size": 13},
        "title_font_color": FAINT[theme],
        "paper_bgcolor": BACKGROUND[theme],
        "plot_bgcolor": BACKGROUND[theme],
        "margin": {"l": 20, "r": 20, "t": 120, "b": 20},
    }


_MARK = "■"


def marked(
    texts: Sequence[str], speakers: Sequence[Speaker | None], theme: Theme, *, mark: str = "{text} {mark}"
) -> list[str]:
    """Add to each label of a chat, already escaped, the colour of who says it; labels of other texts stay as they are.

    Args:
        texts: the labels.
        speakers: of each; empty: it is no chat.
        theme: "light" or "dark".
        mark: where the mark stands, such that it is nearest to the cells.
    """
    if not speakers:
        return [*texts]
    coloured = '<span style="color:{colour}">' + _MARK + "</span>"
    return [
        text if said is None else mark.format(text=text, mark=coloured.format(colour=CURVES[theme][said.colour]))
        for text, said in zip(texts, speakers, strict=True)
    ]


def say_roles(figure: go.Figure, speakers: Collection[Speaker | None], theme: Theme) -> None:
    """Say in a legend below the figure whose colour is which; of a text that is no chat nothing."""
    known = sorted({said for said in speakers if said is not None}, key=lambda said: said.colour)
    if not known:
        return
    figure.update_traces(showlegend=False)
    for said in known:
        marker = {"symbol": "square", "size": 11, "color": CURVES[theme][said.colour]}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=literal(said.label), showlegend=True)
    below = legend(y=0.0, yanchor="bottom", itemclick=False, itemdoubleclick=False)  # there is nothing to hide
    figure.update_layout(showlegend=True, legend=below)
    figure.update_xaxes(zeroline=False)  # which points would bring along
    figure.update_yaxes(zeroline=False)


def _names(labels: Labels) -> list[str]:
    """Return tokens with their positions, which distinguish equal ones; for decoder rows also the predicted token."""
    texts = [visible(text) for text in labels.texts]
    if labels.after:
        texts = [f"{text} → {visible(after)}" for text, after in zip(texts, labels.after, strict=True)]
    # plotly interprets some HTML in labels: the visitor's text has to be escaped
    return [f"{literal(text)} {number}".rstrip() for text, number in zip(texts, labels.numbers, strict=True)]


def _spoken(labels: Labels) -> list[str]:
    """Return the names that hovering shows: of a chat with the role."""
    said = [f" ({literal(said.label)})" if said else "" for said in labels.speakers] or [""] * len(labels)
    return [name + role for name, role in zip(_names(labels), said, strict=True)]


def _axis(labels: Labels, theme: Theme, *, mark: str) -> dict[str, Any]:
    if labels.numeric and len(labels) > 24:
        return {"showgrid": False}
    names = marked(_names(labels), labels.speakers, theme, mark=mark)
    return {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": names, "showgrid": False}


def _tiles(word: str, indices: Collection[int], size: int) -> dict[str, object]:
    middles = [i * (size + 1) + (size - 1) / 2 for i in range(len(indices))]
    names = [f"{word} {index + 1}" for index in indices]
    return {"tickmode": "array", "tickvals": middles, "ticktext": names, "showgrid": False, "zeroline": False}


def literal(text: str) -> str:
    """Escape text for plotly, which interprets a subset of HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
