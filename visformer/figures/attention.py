"""Attention as heatmaps: one head large, or a stack's heads as small multiples."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from visformer.errors import N_, TraceError
from visformer.figures.theme import BACKGROUND, FAINT, FONTS, SEQUENTIAL, TEXT, visible
from visformer.names import Axis
from visformer.trace import Trace, TracedTensor

Theme = Literal["light", "dark"]

_TICKS = (0.0, 0.05, 0.25, 0.5, 1.0)
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
    tensor = trace[name]
    weights = _head(tensor, head)
    labels = [_labels(trace, axis) for axis in tensor.axes[1:]]
    figure = go.Figure(_heatmap(weights, *labels, theme=theme))
    figure.update_layout(
        title=_title(f"{name}, head {head + 1}"),
        xaxis={"title": _COLUMNS, **_axis(labels[1]), "side": "top", "tickangle": -45},
        yaxis={"title": _ROWS, **_axis(labels[0]), "autorange": "reversed"},
        **_look(theme),
    )
    return figure


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

    Raises:
        MissingTensor: the trace holds no pattern of this stack.
    """
    tensor = trace.stack(stack, attention)
    weights = np.asarray(tensor.value, dtype=np.float32)  # (layer, head, query, key)
    n_layers, n_heads, n_queries, n_keys = weights.shape
    tiles = np.full((n_layers, n_heads, n_queries + 1, n_keys + 1), np.nan, dtype=np.float32)  # a gap after each
    tiles[:, :, :n_queries, :n_keys] = weights
    mosaic = tiles.transpose(0, 2, 1, 3).reshape(n_layers * (n_queries + 1), n_heads * (n_keys + 1))
    figure = go.Figure(_heatmap(mosaic, None, None, theme=theme))
    figure.update_layout(
        title=_title(f"{stack}.{attention}: a row {_ROWS}, a column {_COLUMNS}"),
        xaxis={**_tiles("Head", n_heads, n_keys), "side": "top"},
        yaxis={**_tiles("Layer", n_layers, n_queries), "autorange": "reversed"},
        **_look(theme),
    )
    return figure


def _head(tensor: TracedTensor, head: int) -> npt.NDArray[np.float32]:
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
    return np.asarray(tensor.value[head], dtype=np.float32)  # (query, key)


def _labels(trace: Trace, axis: Axis) -> list[str]:
    """Tokens with their places, which tell two equal ones apart; on the decoder's rows also what each predicts."""
    tokens = [visible(token) for token in trace.tokens[axis.side or "src"]]
    if axis.name == "query" and axis.side == "tgt":
        following = [visible(token) for token in trace.tokens["next"]]
        tokens = [f"{token} → {after}" for token, after in zip(tokens, following, strict=True)]
    # plotly reads a little HTML in labels: what was typed must not be taken for it
    return [f"{_literal(token)} {i + 1}" for i, token in enumerate(tokens)]


def _literal(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _heatmap(
    weights: npt.NDArray[np.float32], rows: list[str] | None, columns: list[str] | None, *, theme: Theme
) -> go.Heatmap:
    named = rows is not None and columns is not None
    where = "%{customdata[0]} reads %{customdata[1]}<br>" if named else ""
    stops = SEQUENTIAL[theme]
    custom: Any = None
    if rows is not None and columns is not None:
        custom = np.stack(np.meshgrid(rows, columns, indexing="ij"), axis=-1)
    return go.Heatmap(
        z=np.sqrt(np.clip(weights, 0.0, 1.0)),
        text=weights,
        customdata=custom,
        zmin=0.0,
        zmax=1.0,
        colorscale=[[i / (len(stops) - 1), colour] for i, colour in enumerate(stops)],
        colorbar={"title": "weight", "tickvals": [t**0.5 for t in _TICKS], "ticktext": [f"{t:g}" for t in _TICKS]},
        hovertemplate=where + "%{text:.4f}<extra></extra>",
        hoverongaps=False,
        xgap=1 if named else 0,
        ygap=1 if named else 0,
    )


def _title(text: str) -> dict[str, Any]:
    return {"text": text, "font": {"size": 15}, "x": 0.01, "y": 0.98, "yanchor": "top"}


def _axis(labels: list[str]) -> dict[str, Any]:
    return {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": labels, "showgrid": False}


def _tiles(word: str, count: int, size: int) -> dict[str, Any]:
    middles = [i * (size + 1) + (size - 1) / 2 for i in range(count)]
    names = [f"{word} {i + 1}" for i in range(count)]
    return {"tickmode": "array", "tickvals": middles, "ticktext": names, "showgrid": False, "zeroline": False}


def _look(theme: Theme) -> dict[str, Any]:
    return {
        "font": {"family": FONTS, "color": TEXT[theme], "size": 13},
        "title_font_color": FAINT[theme],
        "paper_bgcolor": BACKGROUND[theme],
        "plot_bgcolor": BACKGROUND[theme],
        "margin": {"l": 20, "r": 20, "t": 120, "b": 20},
    }
