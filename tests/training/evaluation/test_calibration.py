"""Whether confidence tells right from wrong: AUROC, threshold, reliability."""

import numpy as np
import pytest

from visformer.training.evaluation.calibration import KEPT, auroc, calibration, halves, reliability
from visformer.training.evaluation.judged import Judged, Judgement


def row(kind, *told):
    return Judged(kind, tuple(Judgement("source", "output", confidence, right) for confidence, right in told))


def test_the_area_is_that_of_hanley_and_mcneil_1982():
    """Ratings of 58 normal and 51 abnormal images, from definitely abnormal to definitely normal: table I."""
    normal, abnormal = (2, 11, 6, 6, 33), (33, 11, 2, 2, 3)
    ratings = [rating for counts in (normal, abnormal) for rating, n in enumerate(counts) for _ in range(n)]
    is_normal = np.arange(len(ratings)) < sum(normal)
    assert auroc(np.array(ratings, dtype=float), is_normal) == pytest.approx(0.893, abs=5e-4)


def test_halves_share_no_row_and_have_each_kind_alike():
    rows = [row("ordinary", (i / 100, True)) for i in range(30)] + [row("pairs", (0.5, True), (0.5, False))] * 10
    first, second = halves(rows)
    assert len(first) == len(second) == 20
    assert sorted(map(id, first + second)) == sorted(map(id, rows))
    for half in (first, second):
        assert sum(one.kind == "pairs" for one in half) == 5
    assert halves(rows) == (first, second)


def many(n, confidence_of):
    """Return rows of which every fourth is wrong."""
    rng = np.random.default_rng(0)
    return [row("ordinary", (float(confidence_of(i % 4 > 0, rng)), i % 4 > 0)) for i in range(n)]


def test_a_confidence_that_knows_is_perfect_and_the_threshold_leaves_nearly_all_right_ones():
    told = calibration(many(800, lambda right, rng: rng.uniform(0.5, 1) if right else rng.uniform(0, 0.4)))
    assert told["auroc"]["value"] == told["auroc"]["low"] == told["auroc"]["high"] == 1
    assert told["threshold"] == pytest.approx(0.515, abs=0.01)
    assert told["recall"]["share"] == 1
    assert told["kept"]["share"] == pytest.approx(KEPT, abs=0.03)
    assert told["kinds"] == {"ordinary": {"recall": told["recall"], "kept": told["kept"], "auroc": 1.0}}
    assert told["kept"]["n"] + told["recall"]["n"] == told["auroc"]["n"] == 400
    marked = told["precision"]
    assert marked["n"] == told["recall"]["right"] + told["kept"]["n"] - told["kept"]["right"]
    assert marked["right"] == told["recall"]["right"]


def test_a_confidence_that_knows_nothing_has_a_half_in_its_interval():
    told = calibration(many(800, lambda right, rng: rng.uniform()))["auroc"]
    assert told["low"] < 0.5 < told["high"]
    # Hanley & McNeil 1982: the standard error for 100 wrong and 300 right ones is 0.033.
    assert told["high"] - told["low"] == pytest.approx(2 * 1.96 * 0.033, rel=0.15)


def test_the_threshold_is_chosen_on_one_half_and_scored_on_the_other():
    rows = many(400, lambda right, rng: rng.uniform(0.3 * right, 0.7 + 0.3 * right))
    choosing, scoring = halves(rows)
    told = calibration(rows)
    right = [s.confidence for one in choosing for s in one.sentences if s.right]
    assert np.mean(np.array(right) < told["threshold"]) == pytest.approx(1 - KEPT, abs=1 / len(right))
    wrong = [s.confidence < told["threshold"] for one in scoring for s in one.sentences if not s.right]
    assert told["recall"] | {"low": 0, "high": 0} == {
        "n": len(wrong),
        "right": sum(wrong),
        "share": sum(wrong) / len(wrong),
        "low": 0,
        "high": 0,
    }


def test_nothing_can_be_said_if_all_is_right_or_all_is_wrong():
    for right in (True, False):
        assert calibration([row("ordinary", (0.5, right))] * 6) is None


def test_reliability_counts_what_is_in_each_tenth():
    confidence, right = np.array([0.05, 0.42, 0.48, 0.9, 1.0]), np.array([False, True, False, True, True])
    table = reliability(confidence, right)
    ends = [(one["from"], one["to"]) for one in table]
    assert ends == [(0.0, 0.1), (0.4, 0.5), (0.9, 1.0)]
    assert [(one["n"], one["right"], one["confidence"]) for one in table] == [
        (1, 0, pytest.approx(0.05)),
        (2, 1, pytest.approx(0.45)),
        (2, 2, pytest.approx(0.95)),
    ]
