"""Whether a translator's confidence tells right translations from wrong ones, on the judged sentences.

The judged rows are split into two halves, each with its share of every kind. The threshold is chosen on one half; all
that is said of it is measured on the other. The geometric mean was taken, before the model was trained, because it did
better than the least probable step on an earlier model; the weight of reading back is chosen on the first half, too.
"""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.intervals import counts, percentiles, share
from visformer.training.evaluation.judged import Judged

KEPT = 0.97
"""Share of the right translations that the threshold leaves unmarked: who greets the model should not see a doubt."""

BINS = 10
HALVING_SEED = 0


def calibration(results: Sequence[Judged]) -> dict[str, Any] | None:
    """Choose the threshold, and measure how well confidence and threshold do.

    Args:
        results: of the judged lists. A sentence counts alone; the two of a minimal pair are drawn together.

    Returns:
        "threshold"; "auroc" with its interval (bootstrap over rows): the probability that a wrong translation has a
        lower confidence than a right one; of the marked translations, below the threshold: "precision", the share that
        is wrong, "recall", the share of the wrong that is marked, and "kept", the share of the right that is not, each
        with its interval; "kinds": recall, kept and auroc (a number) of each list alone; "reliability": the share that
        is right among all judged sentences, by confidence. None if a half has no right translation or no wrong one.
    """
    choosing, scoring = halves(results)
    if not all({True, False} <= {s.right for row in half for s in row.sentences} for half in (choosing, scoring)):
        return None
    fitted, is_right, _ = _arrays(choosing)
    threshold = float(np.quantile(fitted[is_right], 1 - KEPT))
    confidence, right, rows = _arrays(scoring)
    marked = confidence < threshold
    low, high = percentiles(_resampled_auroc(confidence, right, rows))
    everything, all_right, _ = _arrays(results)
    return {
        "threshold": threshold,
        "auroc": {"n": len(right), "value": auroc(confidence, right), "low": low, "high": high},
        "precision": share(int((marked & ~right).sum()), int(marked.sum())),
        "recall": share(int((marked & ~right).sum()), int((~right).sum())),
        "kept": share(int((~marked & right).sum()), int(right.sum())),
        "kinds": {
            kind: _of_kind([row for row in scoring if row.kind == kind], threshold)
            for kind in dict.fromkeys(row.kind for row in scoring)
        },
        "reliability": reliability(everything, all_right),
    }


def _of_kind(results: Sequence[Judged], threshold: float) -> dict[str, Any]:
    confidence, right, _ = _arrays(results)
    marked = confidence < threshold
    return {
        "recall": share(int((marked & ~right).sum()), int((~right).sum())) if not right.all() else None,
        "kept": share(int((~marked & right).sum()), int(right.sum())) if right.any() else None,
        "auroc": auroc(confidence, right) if right.any() and not right.all() else None,
    }


def halves(results: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Split at random into two halves, each kind alike, the same ones for every model."""
    rng, first, second = random.Random(HALVING_SEED), [], []
    for kind in dict.fromkeys(row.kind for row in results):
        rows = [row for row in results if row.kind == kind]
        rng.shuffle(rows)
        first += rows[: len(rows) // 2]
        second += rows[len(rows) // 2 :]
    return first, second


def _arrays(results: Sequence[Judged]) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.intp]]:
    """Return confidence, whether right, and row of each sentence."""
    told = [(s.confidence, s.right, i) for i, row in enumerate(results) for s in row.sentences]
    confidence, right, rows = zip(*told, strict=True)
    return np.array(confidence), np.array(right), np.array(rows)


def auroc(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve: P(a wrong one is below a right one), ties by half (Hanley & McNeil 1982)."""
    return float(_below(confidence, right).mean())


def _below(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(wrong, right): 1 where the wrong one has the lower confidence, 1/2 where both have the same."""
    wrong, rights = confidence[~right, None], confidence[right]
    return np.asarray((wrong < rights) + (wrong == rights) / 2)


def _resampled_auroc(
    confidence: NDArray[np.float64], right: NDArray[np.bool_], rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """The AUROC of resampled rows, of those that hold right and wrong ones."""
    below, weights = _below(confidence, right), counts(int(rows.max()) + 1)[:, rows]  # (resample, sentence)
    wrong, rights = weights[:, ~right], weights[:, right]
    both = wrong.sum(axis=1) * rights.sum(axis=1)
    areas = np.einsum("iw,wr,ir->i", wrong, below, rights, optimize=True)
    return np.asarray(areas[both > 0] / both[both > 0])


def reliability(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Return, for each tenth of the confidence that occurs, its ends, the mean in it and the share that is right."""
    places = np.minimum((confidence * BINS).astype(int), BINS - 1)
    table = []
    for place, (start, end) in enumerate(pairwise(np.linspace(0, 1, BINS + 1).round(1).tolist())):
        here = places == place
        if here.any():
            told = {"from": start, "to": end, "confidence": float(confidence[here].mean())}
            table.append(told | share(int(right[here].sum()), int(here.sum())))
    return table
