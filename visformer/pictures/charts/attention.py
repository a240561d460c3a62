"""Attention as heatmaps: one head large, or a stack's heads as small multiples."""

from typing import Literal

import numpy as np

from visformer.errors import N_, TraceError
from visformer.panel import Panel, numbered, traced
from visformer.pictures.charts.drawing import go
from visformer.pictures.charts.panels import heatmap, look, matrix, title
from visformer.pictures.theme import Theme
from visformer.trace import Trace, TracedTensor

_ROWS, _COLUMNS = "reads (query)", "is read (key)"


def attention_head(trace: Trace, name: str, head: int = 0, *, theme: Theme = "light") -> go.Figure:
    """One head's pattern: rows read, columns are read, each row sums to 1.

    Colours are on a square-root scale, as on the pages; hovering tells the weight itself.

    Args:
        trace: where the pattern is.
        name: of a pattern, such as "decoder.0.cross_attn.pattern".
        head: counted from 0.
        theme: "light" or "dark".

    Returns:
        A figure whose labels come from the pattern's own axes.

    Raises:
        MissingTensor: the trace holds no tensor of this name.
        TraceError: it is no pattern, or has no such head.
    """
    _check_head(trace[name], head)
    panel = traced(trace, name, head, title=f"{name}, head {head + 1}", scale="weight")
    return matrix(panel, theme=theme)


def attention_heads(
    trace: Trace,
    stack: Literal["encoder", "decoder"],
    attention: Literal["self_attn", "cross_attn"] = "self_attn",
    *,
    theme: Theme = "light",
) -> go.Figure:
    """Every head of a stack: a row for each layer, a column for each head.

    All heads lie in one heatmap, so that dozens of them cost no more than one.

    Args:
        trace: where the patterns are.
        stack: "encoder" or "decoder".
        attention: which of the stack's attentions.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.

    Raises:
        MissingTensor: the trace holds no pattern of this stack.
    """
    tensor = trace.stack(stack, attention)
    weights = np.asarray(tensor.value, dtype=np.float32)  # (layer, head, query, key)
    n_layers, n_heads, n_queries, n_keys = weights.shape
    tiles = np.full((n_layers, n_heads, n_queries + 1, n_keys + 1), np.nan, dtype=np.float32)  # a gap after each
    tiles[:, :, :n_queries, :n_keys] = weights
    mosaic = tiles.transpose(0, 2, 1, 3).reshape(n_layers * (n_queries + 1), n_heads * (n_keys + 1))
    sides = [numbered(n) for n in mosaic.shape]
    panel = Panel(name="pattern", title="", values=mosaic, rows=sides[0], columns=sides[1], scale="weight")
    figure = go.Figure(heatmap(panel, theme=theme))
    figure.update_traces(customdata=None, hovertemplate="%{text:.4f}<extra></extra>", xgap=0, ygap=0)
    figure.update_layout(
        title=title(f"{stack}.{attention}: a row {_ROWS}, a column {_COLUMNS}"),
        xaxis={**_tiles("Head", n_heads, n_keys), "side": "top"},
        yaxis={**_tiles("Layer", n_layers, n_queries), "autorange": "reversed"},
        **look(theme),
    )
    return figure


def _check_head(tensor: TracedTensor, head: int) -> None:
    if [axis.name for axis in tensor.axes] != ["head", "query", "key"]:
        raise TraceError(
            N_("{name} has the axes {axes}: a heatmap of a head needs head, query and key."),
            name=tensor.name,
            axes=", ".join(axis.name for axis in tensor.axes),
        )
    n_heads = tensor.shape[0]
    if not 0 <= head < n_heads:
        raise TraceError(
            N_("{name} has {n} heads, counted from 0; there is no head {head}."), name=tensor.name, n=n_heads, head=head
        )


def _tiles(word: str, count: int, size: int) -> dict[str, object]:
    middles = [i * (size + 1) + (size - 1) / 2 for i in range(count)]
    names = [f"{word} {i + 1}" for i in range(count)]
    return {"tickmode": "array", "tickvals": middles, "ticktext": names, "showgrid": False, "zeroline": False}
