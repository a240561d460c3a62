"""What the rows of a decoder predict: their likeliest next tokens."""

import numpy as np
from numpy.typing import NDArray

CANDIDATES = 5
"""How many of the likeliest next tokens have a name in a Trace, and are shown."""


def likeliest(logits: NDArray[np.floating]) -> tuple[int, ...]:
    """Return the ids of the :data:`CANDIDATES` largest logits of a row, (vocab,), largest first, then lowest id."""
    row = np.where(np.isnan(logits), -np.inf, logits)
    least = np.partition(row, -min(CANDIDATES, len(row)))[-min(CANDIDATES, len(row))]
    (ids,) = np.nonzero(row >= least)
    return tuple(ids[np.argsort(-row[ids], kind="stable")][:CANDIDATES].tolist())
