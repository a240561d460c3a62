"""What a room guessed, as bars beside the weights of a head or the probabilities of a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from visformer.pictures.charts import go
from visformer.pictures.charts.panels import legend, literal, look, metadata
from visformer.pictures.style import CURVES, TEXT, Theme

_BAR = 15  # pixels of a word's bar, before a presentation enlarges it


def guess_bars(
    options: Sequence[str],
    chosen: ArrayLike,
    shares: ArrayLike,
    *,
    names: tuple[str, str],
    title: str = "",
    theme: Theme = "light",
) -> go.Figure:
    """Draw for each option the share of people who chose it, and below it the option's weight or probability.

    Args:
        options: words or tokens.
        chosen: bool (person, option); nobody may have answered.
        shares: (option,), from 0 to 1.
        names: of the two bars, the room and the model.
        title: title in a file.
        theme: "light" or "dark".

    Returns:
        The figure, with hover.
    """
    taps = np.asarray(chosen, dtype=np.float64)
    room = taps.mean(axis=0) if len(taps) else np.full(len(options), np.nan)
    rows = [[float(share) for share in room], [float(share) for share in np.asarray(shares)]]
    figure = go.Figure()
    for name, values, colour in zip(names, rows, CURVES[theme][1::-1], strict=True):
        figure.add_bar(
            y=[*range(len(options))],
            x=values,
            name=name,
            orientation="h",
            marker_color=colour,
            text=["" if not value or np.isnan(value) else f"{value:.0%}" for value in values],
            textposition="outside",
            textfont={"size": 12, "color": TEXT[theme]},
            cliponaxis=False,
            constraintext="none",
            hovertemplate="%{x:.4f}<extra>" + name + "</extra>",
        )
    table: dict[str, Sequence[Any]] = {"option": [*options], "room": rows[0], "model": rows[1]}
    figure.update_layout(**look(theme), **metadata(title, table))
    figure.update_layout(
        margin={"l": 10, "r": 50, "t": 30, "b": 2}, height=30 + 2 * _BAR * len(options), bargap=0.3, legend=legend()
    )
    figure.update_xaxes(range=[0, 1], visible=False)
    labels = [literal(option) for option in options]
    axis = {"tickvals": [*range(len(options))], "ticktext": labels, "autorange": "reversed", "tickfont": {"size": 16}}
    figure.update_yaxes(axis, automargin=True)
    return figure
