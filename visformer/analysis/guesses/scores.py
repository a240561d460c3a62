"""How near people's guesses are to what a model does."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visformer.analysis.intervals import percentiles, resamples, wilson
from visformer.errors import N_, ShapeError

_EVEN = 1e-9  # differences of weights that are rounding errors


@dataclass(frozen=True)
class Agreement:
    """How much of the weights people's guesses cover; all are shares from 0 to 1.

    Args:
        n: people.
        covered: mean of the weight on the words that a person chose.
        low: lower end of its 95 % interval, by the bootstrap over people; NaN for fewer than two.
        high: the upper end.
        best: mean of the most that a person could have covered with as many words.
        chance: mean of what as many words, drawn at random, cover on average.
        each: each person's (covered - chance) / (best - chance), (person,): 1 is the best possible, 0 chance; NaN where
            every choice of as many words covers the same.
    """

    n: int
    covered: float
    low: float
    high: float
    best: float
    chance: float
    each: NDArray[np.float64]


def agreement(chosen: ArrayLike, weights: ArrayLike) -> Agreement:
    """Compare the words that people chose with the weights of these words.

    Args:
        chosen: bool (person, word); each person chose at least one word.
        weights: (word,), which sum to 1.

    Raises:
        ShapeError: the shapes do not match, or somebody chose nothing.
    """
    taps, row = np.asarray(chosen, dtype=bool), np.asarray(weights, dtype=np.float64)
    if row.ndim != 1 or taps.shape[1:] != row.shape or not len(taps) or not taps.any(axis=1).all():
        wrong = N_("chosen has the shape {given}; expected people who each chose at least one of {n} words.")
        raise ShapeError(wrong, given=taps.shape, n=row.size)
    count = taps.sum(axis=1)
    covered = taps @ row
    best = np.sort(row)[::-1].cumsum()[count - 1]
    chance = count / len(row)
    spread = best - chance
    each = np.where(spread > _EVEN, (covered - chance) / np.where(spread > _EVEN, spread, 1), np.nan)
    n = len(taps)
    low, high = percentiles(covered[resamples(n)].mean(axis=1)) if n > 1 else (np.nan, np.nan)
    return Agreement(n, float(covered.mean()), low, high, float(best.mean()), float(chance.mean()), each)


def share_right(chosen: ArrayLike, probabilities: ArrayLike) -> tuple[int, float, float]:
    """Return how many people chose the likeliest token, and the 95 % interval of their share (Wilson 1927).

    Args:
        chosen: bool (person, choice).
        probabilities: (choice,).
    """
    taps = np.asarray(chosen, dtype=bool)
    right = int(taps[:, int(np.argmax(probabilities))].sum())
    return right, *wilson(right, len(taps))


def nearest(chosen: ArrayLike, weights: ArrayLike) -> NDArray[np.intp]:
    """Return the people whose guess was nearest: the highest ``each`` of :func:`agreement`, then the most covered."""
    found = agreement(chosen, weights)
    covered = np.round(np.asarray(chosen, dtype=bool) @ np.asarray(weights, dtype=np.float64), 9)
    each = np.round(np.nan_to_num(found.each, nan=-np.inf), 9)
    best = each == each.max()
    return np.flatnonzero(best & (covered == covered[best].max()) & np.isfinite(each))
