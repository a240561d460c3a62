"""Charts of one head of an atlas, beside the other heads of its attention."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from visformer.pictures.charts import go
from visformer.pictures.charts.panels import legend, literal, look, metadata
from visformer.pictures.style import CURVES, FAINT, LINE, TEXT, Theme

if TYPE_CHECKING:
    import pandas as pd


def statistics(table: "pd.DataFrame", *, selected: str, axis: str, title: str, theme: Theme = "light") -> go.Figure:
    """Draw a line for each statistic: the head as a dot with its deviation, the other heads as small ones.

    Args:
        table: statistic (its label), value, sd and others, see :func:`visformer.pictures.atlas.of_head`.
        selected: the statistic whose label is bold.
        axis: title of the axis, of shares from 0 to 1.
        title: title in a file.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.
    """
    figure, places = go.Figure(), list(range(len(table)))
    pairs = [(x, y) for y, others in zip(places, table["others"], strict=True) for x in others]
    figure.add_scatter(
        x=[x for x, _ in pairs],
        y=[y for _, y in pairs],
        mode="markers",
        marker={"size": 6, "color": FAINT[theme], "opacity": 0.45},
        hovertemplate="%{x:.3f}<extra></extra>",
    )
    ends = zip(table["value"] - table["sd"].fillna(0), table["value"] + table["sd"].fillna(0), strict=True)
    figure.add_scatter(
        x=[x for pair in ends for x in (*pair, None)],
        y=[each for y in places for each in (y, y, None)],
        mode="lines",
        line={"color": CURVES[theme][0], "width": 3},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=table["value"].tolist(),
        y=places,
        mode="markers",
        marker={"size": 11, "color": CURVES[theme][0]},
        customdata=table["sd"].tolist(),
        hovertemplate="%{x:.4f} ± %{customdata:.4f}<extra></extra>",
    )
    names = [f"<b>{literal(name)}</b>" if name == selected else literal(name) for name in table["statistic"]]
    _finish(figure, title=title, table=table.drop(columns="others").to_dict("list"), theme=theme)
    figure.update_layout(height=70 + 26 * len(table), margin={"l": 10, "r": 10, "t": 10, "b": 45})
    figure.update_yaxes(tickvals=places, ticktext=names, range=[len(table) - 0.4, -0.6], automargin=True)
    figure.update_xaxes(title=axis, range=[-0.02, 1.02])
    return figure


def by_position(
    x: Sequence[int],
    y: Sequence[float],
    others: Sequence[float],
    *,
    names: tuple[str, str],
    axes: tuple[str, str],
    title: str,
    theme: Theme = "light",
) -> go.Figure:
    """Draw a number by offset or position: of the head, and dotted of all heads.

    Args:
        x: offsets or positions, ascending.
        y: of the head.
        others: the mean of all heads.
        names: of both, in the legend.
        axes: axis titles.
        title: title in a file.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.
    """
    figure = go.Figure()
    hover = "%{x}: %{y:.4f}<extra></extra>"
    own, faint = {"color": CURVES[theme][0], "width": 3}, {"color": FAINT[theme], "width": 1.5, "dash": "dot"}
    figure.add_scatter(x=[*x], y=[*others], mode="lines", name=literal(names[1]), line=faint, hovertemplate=hover)
    look_of = {"mode": "lines+markers", "line": own, "marker": {"size": 5, "color": own["color"]}}
    figure.add_scatter(x=[*x], y=[*y], name=literal(names[0]), hovertemplate=hover, **look_of)
    _finish(figure, title=title, table={"x": [*x], "y": [*y], "others": [*others]}, theme=theme)
    figure.update_layout(height=320, margin={"l": 60, "r": 10, "t": 30, "b": 45}, legend=legend(), showlegend=True)
    figure.update_xaxes(title=axes[0])
    figure.update_yaxes(title=axes[1], rangemode="tozero")
    return figure


def over_texts(
    table: "pd.DataFrame", *, names: tuple[str, str, str], axes: tuple[str, str], title: str, theme: Theme = "light"
) -> go.Figure:
    """Draw how many texts have which value: bars, the mean of the values as a line, and dotted all heads.

    Args:
        table: from :func:`visformer.analysis.atlas.histogram`.
        names: of the bars and the dotted line, in the legend, and of the mean with its value.
        axes: axis titles.
        title: title in a file.
        theme: "light" or "dark".

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.
    """
    figure, color = go.Figure(), CURVES[theme][0]
    middles, widths = (table["begin"] + table["end"]) / 2, table["end"] - table["begin"]
    share = table["texts"] / max(1, table["texts"].sum())
    figure.add_bar(
        x=middles.tolist(),
        y=share.tolist(),
        width=(0.92 * widths).tolist(),
        name=literal(names[0]),
        marker={"color": color},
        customdata=table[["begin", "end", "texts"]].to_numpy().tolist(),
        hovertemplate="%{customdata[0]:.2f} – %{customdata[1]:.2f}: %{customdata[2]:,} (%{y:.1%})<extra></extra>",
    )
    edges = [*table["begin"], table["end"].iloc[-1]]
    others = {"shape": "hv", "color": FAINT[theme], "width": 2, "dash": "dot"}
    heights = [*table["others"], table["others"].iloc[-1]]
    figure.add_scatter(x=edges, y=heights, mode="lines", name=literal(names[1]), line=others, hoverinfo="skip")
    mean = table.attrs["mean"]
    figure.add_vline(x=mean, line={"color": TEXT[theme], "width": 2})
    figure.add_annotation(
        x=mean,
        y=1,
        yref="paper",
        yanchor="bottom",
        text=literal(names[2]),
        showarrow=False,
        xanchor="left" if mean < (edges[0] + edges[-1]) / 2 else "right",
    )
    _finish(figure, title=title, table=table.to_dict("list"), theme=theme)
    figure.update_layout(height=340, margin={"l": 60, "r": 10, "t": 60, "b": 45}, legend=legend(), showlegend=True)
    figure.update_xaxes(title=axes[0], range=[edges[0], edges[-1]])
    figure.update_yaxes(title=axes[1], tickformat=".0%", rangemode="tozero")
    return figure


def _finish(figure: go.Figure, *, title: str, table: dict[str, Any], theme: Theme) -> None:
    figure.update_layout(**look(theme), **metadata(title, table), showlegend=False)
    figure.update_xaxes(gridcolor=LINE[theme], zeroline=False)
    figure.update_yaxes(gridcolor=LINE[theme], zeroline=False)
