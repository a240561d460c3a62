"""What the process of the trainings does, called through :class:`visformer.app.serving.workers.Workers`."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from visformer.adapters.learning.recipe import EVERY, Recipe, Snapshot, TrainingInfo

if TYPE_CHECKING:
    from visformer.adapters.learning.training import Training

_TRAININGS: "dict[str, list[Training]]" = {}
"""By the id of their run; the server decides which to drop."""

Moments = list[list[Snapshot]]
"""The moments since the last call, a list for each training of a run."""


def prepare() -> None:
    """Import what a training needs, before anybody waits for it."""
    from visformer.adapters.learning.training import keep_to_one_thread

    keep_to_one_thread()


def begin(run: str, recipes: Sequence[Recipe]) -> tuple[list[TrainingInfo], Moments]:
    """Draw the first weights of a run's trainings; return what they show and their first moments."""
    from visformer.adapters.learning.training import Training

    _TRAININGS[run] = trainings = [Training(recipe) for recipe in recipes]
    return [training.sight for training in trainings], [[training.moment()] for training in trainings]


def advance(run: str, seconds: float, steps: int) -> Moments:
    """Take up to so many steps in each training, in turn, in about so many seconds; the last step is a moment."""
    trainings, end = _TRAININGS[run], time.perf_counter() + seconds
    moments: Moments = [[] for _ in trainings]
    first = trainings[0]
    for taken in range(1, steps + 1 if not first.is_over else 1):
        for training in trainings:
            training.advance()
        if first.step % EVERY == 0 or taken == steps or first.is_over:
            for training, seen in zip(trainings, moments, strict=True):
                seen.append(training.moment())
            if first.is_over or time.perf_counter() > end:
                break
    return moments


def weights(run: str) -> list[dict[str, Any]]:
    """Return the weights of a run's trainings as they are now, NumPy arrays by name."""
    return [training.weights() for training in _TRAININGS[run]]


def forget(run: str) -> None:
    """Drop a run's trainings."""
    _TRAININGS.pop(run, None)
