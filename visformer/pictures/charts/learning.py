"""Curves over a training: losses, BLEU and alignment error, and the best heads, of a history or while it learns."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from visformer.adapters.checkpoints import head_scores, moments
from visformer.analysis.known_heads import LABELS, LEAST, appears
from visformer.errors import N_
from visformer.i18n import Gettext
from visformer.pictures.charts import go
from visformer.pictures.charts.panels import legend, literal, look, metadata
from visformer.pictures.style import BACKGROUND, CURVES, FAINT, TEXT

if TYPE_CHECKING:
    from visformer.adapters.learning.recipe import TrainingRecord
    from visformer.pictures.registry.setting import Setting


_HEAD = N_("L{layer} H{head}")
_TITLE, _SCORE = N_("Curves of a training"), N_("Score of the best head")
_X = N_("Step, on the scale of log(step + 1)")
_STEP, _MARK = N_("step {step}: {value}"), N_("L{layer} H{head}, step {step}")
_GRID = "rgba(128,128,128,0.18)"
_HIDDEN: dict[str, Any] = {"showlegend": False, "hoverinfo": "skip"}

_PANELS: tuple[tuple[str, tuple[tuple[str, str, float, int, str], ...]], ...] = (
    (
        N_("Loss, nats"),
        (
            ("loss", N_("loss on held-out text"), 1, 0, "solid"),
            ("train_loss", N_("loss in training"), 1, 0, "dash"),
        ),
    ),
    (
        N_("BLEU and AER, %"),
        (
            ("bleu_en_zh", N_("BLEU en→zh"), 1, 1, "solid"),
            ("bleu_zh_en", N_("BLEU zh→en"), 1, 1, "dash"),
            ("aer_en_zh", N_("AER en→zh"), 100, 7, "solid"),
            ("aer_zh_en", N_("AER zh→en"), 100, 7, "dash"),
        ),
    ),
)
"""Each panel's axis and its lines: the column of the moments, its name, a factor, the colour and the dash."""

_COLOURS = {"alignment": 2, "induction": 3, "previous token": 4, "duplicate token": 5, "positional": 6}
"""The colours of labels."""

_HEIGHTS, _GAP = (90, 115, 195), 20
"""Heights of the panels, and the gap between them, in CSS pixels."""


def history_curves(
    history: "str | Path | pd.DataFrame",
    setting: "Setting",
    moment: int | None = None,
    *,
    heads: "pd.DataFrame | None" = None,
) -> go.Figure:
    """Draw what is known of each moment of a training by step, and mark where heads appear.

    The steps are on the scale of log(step + 1), which has a place for step 0. Of each label the best head at each
    moment is drawn. Each head that :func:`visformer.analysis.appears` has a mark; of each label the first has words.

    Args:
        history: a model as for :func:`visformer.moments`, or what that returns.
        setting: theme and language.
        moment: number of a moment that a vertical line shows; -1 is the last one.
        heads: from :func:`visformer.analysis.head_history`; None: those recorded beside a bundled model, if any.

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.

    Raises:
        CheckpointError: there is no such model, or it has no history.
        IndexError: there is no such moment.
    """
    _, theme = setting.gettext, setting.source.theme
    table = history if isinstance(history, pd.DataFrame) else moments(history)
    if heads is None and not isinstance(history, pd.DataFrame):
        heads = head_scores(history)
    steps = [int(step) for step in table["step"]]
    numbers: dict[str, Sequence[float]] = {_(N_("step")): steps}
    figure, drawn = go.Figure(), []
    for axis, lines in _PANELS:
        held = [line for line in lines if line[0] in table and table[line[0]].notna().any()]
        if not held:
            continue
        drawn.append((axis, _top(table, held)))
        for column, name, factor, colour, dash in held:
            numbers[_(name)] = values = (table[column] * factor).tolist()
            line = {"color": CURVES[theme][colour], "width": 2, "dash": dash}
            told, named = _told(steps, values, _), len(held) > 1  # a single one is named by its axis
            _line(figure, steps, values, f"y{len(drawn)}", literal(_(name)), line, told, named=named)
    if heads is not None and len(heads):
        drawn.append((_SCORE, 1.0))
        numbers |= _heads(figure, heads, steps, f"y{len(drawn)}", setting)
    if moment is not None:
        for number, (_axis, top) in enumerate(drawn, start=1):
            figure.add_scatter(
                x=[_place(steps[moment])] * 2, y=[0, top], yaxis=f"y{number}", mode="lines", **_HIDDEN,
                line={"color": TEXT[theme], "width": 1.5},
            )  # fmt: skip
    figure.update_layout(**look(theme), **metadata(_(_TITLE), numbers))
    _axes(figure, drawn, steps, setting)
    return figure


def _heads(
    figure: go.Figure, heads: "pd.DataFrame", steps: Sequence[int], axis: str, setting: "Setting"
) -> dict[str, list[float]]:
    """Draw the best head of each label, and the marks; return the numbers by name."""
    _, theme, numbers = setting.gettext, setting.source.theme, {}
    colours = {label: CURVES[theme][colour] for label, colour in _COLOURS.items()}
    x = [_place(step) for step in steps]
    figure.add_scatter(
        x=[x[0], x[-1]], y=[LEAST, LEAST], yaxis=axis, mode="lines", **_HIDDEN,
        line={"color": FAINT[theme], "width": 1, "dash": "dot"},
    )  # fmt: skip
    for label, colour in colours.items():
        rows = heads[heads["label"] == label].reset_index(drop=True)
        if rows.empty:
            continue
        best = rows.loc[rows.groupby("moment")["score"].idxmax()]
        at = [steps[moment] for moment in best["moment"]]
        numbers[_(LABELS[label])] = values = best["score"].tolist()
        heads_at = [_(_HEAD).format(layer=row.layer + 1, head=row.head + 1) for row in best.itertuples()]
        told = [f"{words} ({head})" for words, head in zip(_told(at, values, _), heads_at, strict=True)]
        _line(figure, at, values, axis, literal(_(LABELS[label])), {"color": colour, "width": 2.5}, told)
    found = appears(heads)
    if not found.empty:
        at = [steps[moment] for moment in found["moment"]]
        words = [_(_MARK).format(layer=row.layer + 1, head=row.head + 1, step=f"{step:,}")
                 for row, step in zip(found.itertuples(), at, strict=True)]  # fmt: skip
        is_first = ~found["label"].duplicated()
        edge = BACKGROUND[theme]
        figure.add_scatter(
            x=[_place(step) for step in at], y=found["score"].tolist(), yaxis=axis, mode="markers+text",
            text=[each if first else "" for each, first in zip(words, is_first, strict=True)],
            textposition="middle left", cliponaxis=False, showlegend=False,
            textfont={"color": TEXT[theme], "shadow": ",".join([f"0 0 3px {edge}"] * 4)},
            marker={"opacity": 1, "size": [11 if first else 7 for first in is_first],
                    "color": [colours[label] for label in found["label"]], "line": {"color": edge, "width": 1.5}},
            customdata=[f"{_(LABELS[label])} · {each}" for label, each in zip(found["label"], words, strict=True)],
            hovertemplate="%{customdata}: %{y:.4f}<extra></extra>",
        )  # fmt: skip
    return numbers


def _line(
    figure: go.Figure,
    steps: Sequence[int],
    values: Sequence[float],
    axis: str,
    name: str,
    line: dict[str, Any],
    told: Sequence[str],
    *,
    named: bool = True,
) -> None:
    figure.add_scatter(
        x=[_place(step) for step in steps], y=values, yaxis=axis, mode="lines+markers", name=name, line=line,
        marker={"size": 5, "color": line["color"]}, customdata=told, hovertemplate="%{customdata}", showlegend=named,
    )  # fmt: skip


def _told(steps: Iterable[int], values: Iterable[float], gettext: Gettext) -> list[str]:
    """Return what hovering says of each moment."""
    return [
        gettext(_STEP).format(step=f"{step:,}", value=f"{value:.4g}") for step, value in zip(steps, values, strict=True)
    ]


def _place(step: int) -> float:
    return float(np.log10(step + 1))


def _top(table: "pd.DataFrame", lines: Iterable[tuple[str, str, float, int, str]]) -> float:
    """Return where the axis of a panel ends: of percentages at 100."""
    if any(column.startswith("bleu") for column, *_ in lines):
        return 100.0
    return 1.05 * max(float(table[column].max()) for column, *_ in lines)


def _axes(figure: go.Figure, drawn: Sequence[tuple[str, float]], steps: Sequence[int], setting: "Setting") -> None:
    """Lay the panels out below one another, on one axis of steps."""
    _, theme = setting.gettext, setting.source.theme
    heights = [*_HEIGHTS[: len(drawn) - 1], _HEIGHTS[-1]] if len(drawn) > 1 else [_HEIGHTS[-1]]
    whole = sum(heights) + _GAP * (len(heights) - 1)
    top, end = float(whole), _place(max(steps))
    for number, ((axis, most), height) in enumerate(zip(drawn, heights, strict=True), start=1):
        domain = [max(0.0, top - height) / whole, top / whole]
        figure.update_layout({f"yaxis{number if number > 1 else ''}": {
            "title": {"text": _(axis), "font": {"size": 12}}, "domain": domain, "range": [0, most * 1.02],
            "gridcolor": _GRID, "zerolinecolor": FAINT[theme], "nticks": 5,
        }})  # fmt: skip
        top -= height + _GAP
    ticks = [0, *(10**power for power in range(int(end) + 1))]
    margin = 0.02 * end or 0.1
    figure.update_layout(
        margin={"l": 52, "r": 8, "t": 20, "b": 42}, height=whole + 140, hovermode="closest",
        legend=legend(font={"size": 11}),
        xaxis={
            "title": {"text": _(_X), "font": {"size": 12}}, "anchor": f"y{len(drawn)}",
            "gridcolor": _GRID, "zeroline": False, "range": [-margin, end + margin],
            "tickvals": [_place(step) for step in ticks], "ticktext": [f"{step:,}" for step in ticks],
        },
    )  # fmt: skip


_DASHES = ("solid", "dash")  # of the first training and of the one beside it
_LOSS, _WEIGHT, _X_STEP = N_("Loss, nats a token"), N_("Weight of the best head"), N_("Step")


def training_curves(runs: "Sequence[TrainingRecord]", setting: "Setting") -> go.Figure:
    """Draw the losses and head scores of one or two trainings by step; the second one is dashed.

    Args:
        runs: the trainings, of one task.
        setting: theme and language.

    Returns:
        The figure, with hover; ``show()`` or the end of a cell draws it.
    """
    _, theme, about = setting.gettext, setting.source.theme, runs[0].recipe.about
    figure, colours, numbers = go.Figure(), CURVES[theme], {}
    for run, dash in zip(runs, _DASHES, strict=False):
        steps = [moment.step for moment in run.moments]
        variant = f"{_(run.recipe.options.label)} · " if len(runs) > 1 else ""
        lines = {
            _(about.trained): ("y", [moment.loss for moment in run.moments]),
            _(about.probed): ("y", [moment.probed for moment in run.moments]),
        }
        for look_at, label in enumerate(about.looks.values()):
            best = [float(moment.scores[look_at].max()) for moment in run.moments]
            if not look_at or max(best) > 0.02:  # others cannot be, such as the answer behind a causal mask
                lines[_(label)] = ("y2", best)
        for (name, (scale, values)), colour in zip(lines.items(), colours, strict=False):
            numbers[f"{variant}{name}"] = values
            figure.add_scatter(
                x=steps, y=values, yaxis=scale, mode="lines", name=literal(f"{variant}{name}"),
                line={"color": colour, "width": 2.5, "dash": dash}, hovertemplate="%{x}: %{y:.3f}",
            )  # fmt: skip
    figure.update_layout(**look(theme), **metadata(_(about.title), numbers))
    figure.update_layout(margin={"l": 60, "r": 10, "t": 20, "b": 40}, legend=legend(), height=460, hovermode="x")
    axis = {"gridcolor": _GRID, "zerolinecolor": FAINT[theme], "rangemode": "tozero"}
    figure.update_layout(
        xaxis={"title": _(_X_STEP), "gridcolor": _GRID, "zeroline": False, "anchor": "y2"},
        yaxis={"title": _(_LOSS), "domain": [0.55, 1.0], **axis},
        yaxis2={"title": _(_WEIGHT), "domain": [0.0, 0.45], "range": [0, 1.02], **axis},
    )
    return figure
