"""Charts of effects: how far the output of each row moves, the logit lens, and what is lost without heads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from visformer.panel import Speaker
from visformer.pictures.charts import go
from visformer.pictures.charts.panels import legend, literal, look, marked, metadata, say_roles
from visformer.pictures.style import CURVES, FAINT, LINE, TEXT, Theme

if TYPE_CHECKING:
    import pandas as pd


_MOST = 12
"""Layers side by side: more would overlap."""


def moved_rows(
    rows: Sequence[str],
    median: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    title: str,
    axis: str,
    down: str,
    speakers: Sequence[Speaker | None] = (),
    theme: Theme = "light",
) -> go.Figure:
    """Draw for each row the median of several distances as a dot, and their range as a line.

    Args:
        rows: labels.
        median: from 0 to 1.
        low: the smallest of each row.
        high: the largest.
        title: title in a file.
        axis: title of the axis.
        down: title of the rows.
        speakers: of a chat, who says the token of each row, in the reader's language; empty: it is no chat.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.
    """
    places, colour = list(range(len(rows))), CURVES[theme][0]
    figure = go.Figure()
    figure.add_scatter(
        x=[x for pair in zip(low, high, strict=True) for x in (*pair, None)],
        y=[each for y in places for each in (y, y, None)],
        mode="lines",
        line={"color": colour, "width": 3},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[*median],
        y=places,
        mode="markers",
        marker={"size": 11, "color": colour},
        customdata=[*zip(low, high, strict=True)],
        hovertemplate="%{x:.4f} (%{customdata[0]:.4f}–%{customdata[1]:.4f})<extra></extra>",
    )
    table: dict[str, list[Any]] = {"row": [*rows], "median": [*median], "least": [*low], "most": [*high]}
    _down(figure, rows, down, title=title, table=table, speakers=speakers, theme=theme)
    end = min(1.0, max([*high, 0.01]) * 1.05)
    figure.update_xaxes(title=axis, range=[-0.02 * end, end], gridcolor=LINE[theme], zeroline=False, rangemode="tozero")
    return figure


def top_tokens(
    rows: Sequence[str],
    tokens: Sequence[Sequence[str]],
    scores: Sequence[Sequence[float]],
    *,
    layer: str,
    title: str,
    down: str,
    speakers: Sequence[Speaker | None] = (),
    theme: Theme = "light",
) -> go.Figure:
    """Draw the top token of each row after each layer; what the last layer says too is coloured. Hover has scores.

    Args:
        rows: labels.
        tokens: (layer, row), as displayed.
        scores: (layer, row).
        layer: label of a layer, with ``{layer}`` from 1.
        title: title in a file.
        down: title of the rows.
        speakers: of a chat, who says the token of each row, in the reader's language; empty: it is no chat.
        theme: "light" or "dark".

    Returns:
        The figure; of more than twelve layers, it draws twelve at even distances, the last among them.
    """
    count = len(tokens)
    drawn = sorted({round(i * (count - 1) / max(min(count, _MOST) - 1, 1)) for i in range(min(count, _MOST))})
    figure = go.Figure()
    for last in (False, True):
        cells = [(x, y, i) for x, i in enumerate(drawn) for y in range(len(rows))]
        cells = [(x, y, i) for x, y, i in cells if (tokens[i][y] == tokens[-1][y]) is last]
        figure.add_scatter(
            x=[x for x, _, _ in cells],
            y=[y for _, y, _ in cells],
            text=[_bold(literal(tokens[i][y]), last) for _, y, i in cells],
            customdata=[scores[i][y] for _, y, i in cells],
            mode="text",
            textposition="middle center",
            textfont={"size": 14, "color": CURVES[theme][0] if last else TEXT[theme]},
            hovertemplate="%{customdata:.2f}<extra></extra>",
        )
    table: dict[str, list[Any]] = {
        "row": [row for _ in tokens for row in rows],
        "layer": [i + 1 for i in range(count) for _ in rows],
        "token": [token for each in tokens for token in each],
        "score": [score for each in scores for score in each],
    }
    _down(figure, rows, down, title=title, table=table, speakers=speakers, theme=theme)
    figure.update_xaxes(
        tickmode="array",
        tickvals=[*range(len(drawn))],
        ticktext=[layer.format(layer=i + 1) for i in drawn],
        range=[-0.5, len(drawn) - 0.5],
        showgrid=False,
        zeroline=False,
        side="top",
    )
    return figure


def _down(
    figure: go.Figure,
    rows: Sequence[str],
    down: str,
    *,
    title: str,
    table: dict[str, list[Any]],
    speakers: Sequence[Speaker | None],
    theme: Theme,
) -> None:
    """Put the rows one below the other, as in a panel, below their title ``down``."""
    figure.update_layout(**look(theme), **metadata(title, table))
    margin = {"l": 10, "r": 10, "t": 26, "b": 46}
    figure.update_layout(showlegend=False, margin=margin, height=106 + 26 * len(rows) + 30 * any(speakers))
    figure.update_layout(dragmode=False)  # a finger scrolls a wide picture
    texts = [f"<i>{literal(down)}</i>", *marked([*map(literal, rows)], speakers, theme)]
    places = {"tickmode": "array", "tickvals": [*range(-1, len(rows))], "ticktext": texts}
    figure.update_yaxes(places, range=[len(rows) - 0.5, -1.5], showgrid=False, zeroline=False, automargin=True)
    figure.update_yaxes(tickfont={"color": FAINT[theme]})
    say_roles(figure, speakers, theme)


def _bold(text: str, is_bold: bool) -> str:
    return f"<b>{text}</b>" if is_bold else text


_GRID = "rgba(128,128,128,0.18)"


def pruning_curves(
    table: "pd.DataFrame",
    *,
    names: tuple[str, str] = ("least important first", "random order"),
    axes: tuple[str, str] = ("heads silenced", "loss added (nats a token)"),
    title: str = "pruning",
    theme: Theme = "light",
) -> go.Figure:
    """Draw the rise of the loss over the number of silenced heads: ranked, and thin beside it each random order.

    Args:
        table: from :func:`visformer.analysis.pruning`.
        names: of the ranked order and the random ones.
        axes: axis titles.
        title: title in a file.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.
    """
    figure = go.Figure()
    for draw, rows in table[table["order"] == "random"].groupby("draw"):
        _curve(figure, rows, names[1], {"color": FAINT[theme], "width": 1.2, "dash": "dot"}, first=draw == 0)
    _curve(figure, table[table["order"] == "ranked"], names[0], {"color": CURVES[theme][0], "width": 3}, first=True)
    figure.update_layout(**look(theme), **metadata(title, table.to_dict("list")))
    figure.update_layout(margin={"l": 60, "r": 10, "t": 20, "b": 40}, legend=legend(), height=340)
    figure.update_xaxes(title=axes[0], gridcolor=_GRID, zeroline=False)
    figure.update_yaxes(title=axes[1], gridcolor=_GRID, zerolinecolor=FAINT[theme])
    return figure


def _curve(figure: go.Figure, rows: "pd.DataFrame", name: str, line: dict[str, object], *, first: bool) -> None:
    pruned: Sequence[int] = rows["pruned"].tolist()
    figure.add_scatter(
        x=pruned,
        y=rows["rise"].tolist(),
        mode="lines+markers",
        name=literal(name),
        legendgroup=name,
        showlegend=first,
        line=line,
        marker={"size": 4, "color": line["color"]},
        hovertemplate="%{x}: %{y:.4f}<extra>" + literal(name) + "</extra>",
    )
