"""95 % intervals: of a share by its score, of anything else by the bootstrap."""

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000
SEED = 12345
"""Those of sacreBLEU."""


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return the interval of a share, by its score (Wilson 1927); of nothing, all of [0, 1]."""
    if not n:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.975)
    middle, half = right + z * z / 2, z * (right * (n - right) / n + z * z / 4) ** 0.5
    return (middle - half) / (n + z * z), (middle + half) / (n + z * z)


def share(right: int, n: int) -> dict[str, Any]:
    """Return a share of n with its interval, as JSON values; the share of nothing is None."""
    low, high = wilson(right, n)
    return {"n": n, "right": right, "share": right / n if n else None, "low": low, "high": high}


def resamples(n: int) -> NDArray[np.intp]:
    """Draw n of n with replacement, (1000, n), as sacreBLEU does: the same for all that is compared."""
    return np.random.default_rng(SEED).choice(n, size=(RESAMPLES, n), replace=True)


def counts(n: int) -> NDArray[np.intp]:
    """Return how often each of n is in each of the :func:`resamples`, (1000, n)."""
    return np.stack([np.bincount(drawn, minlength=n) for drawn in resamples(n)])


def percentiles(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return the interval that 95 % of the resampled values are in."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
