"""Charts of what a model loses with its heads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from visformer.pictures.charts import go
from visformer.pictures.charts.panels import legend, literal, look, metadata
from visformer.pictures.style.theme import CURVES, FAINT, Theme

if TYPE_CHECKING:
    import pandas as pd

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
