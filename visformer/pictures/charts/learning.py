"""Curves of trainings: the losses, and below them the weight of the best head."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from visformer.errors import N_
from visformer.pictures.charts import go
from visformer.pictures.charts.panels import legend, literal, look, metadata
from visformer.pictures.style.theme import CURVES, FAINT

if TYPE_CHECKING:
    from visformer.adapters.learning.recipe import TrainingRecord
    from visformer.pictures.registry.setting import Setting

_GRID = "rgba(128,128,128,0.18)"
_DASHES = ("solid", "dash")  # of the first training and of the one beside it
_LOSS, _WEIGHT, _STEP = N_("Loss, nats a token"), N_("Weight of the best head"), N_("Step")


def curves(runs: "Sequence[TrainingRecord]", setting: "Setting") -> go.Figure:
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
        xaxis={"title": _(_STEP), "gridcolor": _GRID, "zeroline": False, "anchor": "y2"},
        yaxis={"title": _(_LOSS), "domain": [0.55, 1.0], **axis},
        yaxis2={"title": _(_WEIGHT), "domain": [0.0, 0.45], "range": [0, 1.02], **axis},
    )
    return figure
