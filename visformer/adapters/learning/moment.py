"""What is drawn of a training. No torch here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.adapters.learning.recipe import Recipe

EVERY = 4
"""Steps between two moments."""


@dataclass(frozen=True)
class Moment:
    """What is drawn of a step.

    Args:
        step: of the optimizer, from 0.
        loss: on what it was trained on since the last moment, nats a token; at step 0 that of the first batch.
        probed: on the probe, which it is never trained on.
        right: share of the probe's scored tokens that are the likeliest.
        scores: mean weight of each head on the cells of each look, (look, layer, head), float32.
        patterns: weights of each head on the first sequence of the probe, in 255ths, (layer, head, query, key), uint8.
    """

    step: int
    loss: float
    probed: float
    right: float
    scores: NDArray[np.float32]
    patterns: NDArray[np.uint8]


@dataclass(frozen=True)
class Sight:
    """What is the same at all moments of a training.

    Args:
        queries: the tokens of the rows of :attr:`Moment.patterns`.
        keys: the tokens of its columns.
        n_weights: how many parameters the model has.
    """

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    n_weights: int


@dataclass(frozen=True)
class Watched:
    """A training and its moments, oldest first."""

    recipe: Recipe
    moments: Sequence[Moment]


def weights_at(
    patterns: NDArray[np.floating[Any]], rows: NDArray[np.int64], queries: NDArray[np.int64], keys: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the weight that each head puts on given cells, such as those of the token before: a mean over the queries.

    Args:
        patterns: (row, layer, head, query, key), each query's weights sum to 1.
        rows: the sequence of each cell, (cell,).
        queries: its query, (cell,); the weights of one query's cells are added.
        keys: its key, (cell,).

    Returns:
        (layer, head), from 0 to 1.
    """
    cells = patterns[rows, :, :, queries, keys]  # (cell, layer, head)
    n_queries = len(np.unique(np.stack([rows, queries]), axis=1).T)
    weights: NDArray[np.float32] = cells.sum(axis=0, dtype=np.float32) / np.float32(n_queries)
    return weights
