"""What is drawn of a training. No torch here."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
