"""The training that the page on learning opens with, recorded: its curves and heads are there before torch is.

``python -m scripts.record_training`` records it anew.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from visformer.adapters.learning.recipe import Recipe, Snapshot, TrainingInfo

RECIPE = Recipe()
"""What is trained."""

FILE = Path(__file__).parent / "recorded.npz"


@cache
def recorded() -> tuple[TrainingInfo, tuple[Snapshot, ...]]:
    """Return what is the same at all moments, and the moments, oldest first."""
    with np.load(FILE, allow_pickle=False) as file:
        info = TrainingInfo(tuple(file["queries"].tolist()), tuple(file["keys"].tolist()), int(file["n_weights"]))
        curves = zip(*(file[name].tolist() for name in ("step", "loss", "probed", "right")), strict=True)
        moments = tuple(
            Snapshot(*at, *heads) for at, *heads in zip(curves, file["scores"], file["patterns"], strict=True)
        )
    return info, moments


def write(info: TrainingInfo, moments: Sequence[Snapshot]) -> None:
    """Write what :func:`recorded` returns."""
    np.savez_compressed(
        FILE,
        queries=info.queries,
        keys=info.keys,
        n_weights=info.n_weights,
        step=[moment.step for moment in moments],
        loss=[moment.loss for moment in moments],
        probed=[moment.probed for moment in moments],
        right=[moment.right for moment in moments],
        scores=np.stack([moment.scores for moment in moments]),
        patterns=np.stack([moment.patterns for moment in moments]),
    )
