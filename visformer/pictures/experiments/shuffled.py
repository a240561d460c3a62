"""How far the output moves when the weights of a head or a layer are shuffled."""

from typing import Any

import numpy as np

from visformer.analysis.effects import weight_effects
from visformer.errors import N_
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style.theme import visible
from visformer.system.progress import report


def moved(setting: Setting) -> weight_effects.ShuffleEffect:
    """Return how far the output moves when the weights of the selected head or layer are shuffled or made uniform."""
    whole = setting["scope"] == "layer"
    effect: weight_effects.ShuffleEffect = setting.source.measure(
        weight_effects.shuffle_effect,
        path=f"{setting.part}.{setting['layer']}.*" if whole else setting.path,
        head=None if whole else setting["head"],
        weights=setting["weights"],
        progress=report,
    )
    return effect


def rows_of(setting: Setting) -> list[str]:
    """Return a label for each row of the target: its token, and what it predicts."""
    tokens = setting.patterns.tokens
    return [f"{visible(a)} → {visible(b)}" for a, b in zip(tokens["tgt"], tokens["next"], strict=True)]


def shuffled(setting: Setting) -> Any:
    """Draw the median and the range of each row."""
    from visformer.pictures.charts.effects import moved_rows

    effect, _ = moved(setting), setting.gettext
    return moved_rows(
        rows_of(setting),
        effect.median.tolist(),
        effect.low.tolist(),
        effect.high.tolist(),
        title=_(N_("how far the output of each row moves")),
        axis=_(N_("total variation distance: 0 the same words, 1 entirely different ones")),
        theme=setting.source.theme,
    )


_MEANS = {
    "shuffled": N_(
        "Median of {n} shuffles: the row “{row}” moves most, by {most} (from {low} to {high}); half of the rows by at "
        "most {half}."
    ),
    "uniform": N_("With uniform weights, the row “{row}” moves most, by {most}; half of the rows by at most {half}."),
}
_NEAR_0 = N_("Near 0, this text needs no choice of keys there; the values still come through, so it need not be idle.")


def meaning(setting: Setting) -> str:
    """Say what the distances mean, in the visitor's language."""
    effect, _ = moved(setting), setting.gettext
    at = int(effect.median.argmax())
    numbers = {
        "most": effect.median[at],
        "low": effect.low[at],
        "high": effect.high[at],
        "half": np.median(effect.median),
    }
    said = _(_MEANS[setting["weights"]]).format(
        n=len(effect.draws), row=rows_of(setting)[at], **{name: f"{float(x):.3f}" for name, x in numbers.items()}
    )
    return f"{said} {_(_NEAR_0)}"
