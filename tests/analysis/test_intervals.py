"""Intervals: of shares, and by the bootstrap."""

import numpy as np
import pytest

from visformer.analysis.intervals import RESAMPLES, counts, percentiles, resamples, share, wilson


def test_wilsons_interval_is_the_one_in_newcombe_1998_and_nothing_is_known_of_the_share_of_nothing():
    for right, n, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611)):
        assert wilson(right, n) == pytest.approx((low, high), abs=5e-5)
    assert wilson(1, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)
    assert share(0, 0) == {"n": 0, "right": 0, "share": None, "low": 0.0, "high": 1.0}


def test_each_resample_has_as_many_as_there_are_and_counts_count_them():
    drawn, counted = resamples(7), counts(7)
    assert drawn.shape == (RESAMPLES, 7)
    assert (counted.sum(axis=1) == 7).all()
    assert counted[3, 2] == np.sum(drawn[3] == 2)


def test_the_bootstrap_of_a_mean_has_its_standard_error():
    values = np.random.default_rng(0).normal(size=400)
    low, high = percentiles((counts(400) @ values) / 400)
    assert (high - low) / 2 == pytest.approx(1.96 * values.std() / 400**0.5, rel=0.1)
