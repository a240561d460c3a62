"""Thumbnails of patterns, of bounded size: the overview costs the same for 60 tokens as for 1,024."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from visformer.panel import Scale

OVERVIEW_BYTES = 180_000
"""Budget for all thumbnails: 50 by 50 cells each for 72 heads, a quarter of a second on a slow connection."""

LARGEST_SIDE, SMALLEST_SIDE = 64, 16
"""In cells: more would be invisible at the size at which thumbnails are drawn, fewer would show nothing."""


def thumbnail_side(shapes: Sequence[tuple[int, int, int, int]]) -> int:
    """Return the largest side of thumbnails of stacks (layer, head, query, key) that fit into OVERVIEW_BYTES."""
    for side in range(LARGEST_SIDE, SMALLEST_SIDE, -1):
        if sum(n * h * min(side, q) * min(side, k) for n, h, q, k in shapes) <= OVERVIEW_BYTES:
            return side
    return SMALLEST_SIDE


def thumbnails(
    layers: Sequence[npt.NDArray[np.float32]], *, side: int, scale: Scale = "weight", limit: float = 1.0
) -> npt.NDArray[np.uint8]:
    """Return thumbnails as 8-bit steps of their colour ramp, at most ``side`` cells high and wide.

    Cells are pooled by maximum, of signed numbers by the largest magnitude: a mean would wash out a single strong one.

    Args:
        layers: (head, query, key) each, probabilities or maps.
        side: maximum height and width, in cells.
        scale: as of :class:`visformer.panel.Panel`; a step of weights is 255 * sqrt(weight).
        limit: the end of another scale.

    Returns:
        (layer, head, rows, columns).
    """
    small = np.stack([_pooled(layer, side) for layer in layers])
    shares: npt.NDArray[np.floating]
    if scale == "signed":
        below = -np.stack([_pooled(-layer, side) for layer in layers])
        shares = 0.5 + np.where(small >= -below, small, below) / (2 * limit)
    else:
        shares = np.sqrt(np.clip(small, 0.0, 1.0)) if scale == "weight" else small / limit
    steps: npt.NDArray[np.uint8] = np.rint(255 * shares).astype(np.uint8)
    return steps


def _pooled(layer: npt.NDArray[np.float32], side: int) -> npt.NDArray[np.float32]:
    return _merge(_merge(layer, side, axis=1), side, axis=2)


def _merge(pattern: npt.NDArray[np.float32], side: int, *, axis: int) -> npt.NDArray[np.float32]:
    """Max-pool an axis into ``side`` runs; np.maximum.reduceat takes six times as long."""
    size = pattern.shape[axis]
    if size <= side:
        return pattern
    first = np.arange(side) * size // side
    last = np.append(first[1:], size) - 1
    merged: npt.NDArray[np.float32] = pattern.take(first, axis=axis)
    for step in range(1, int((last - first).max()) + 1):
        np.maximum(merged, pattern.take(np.minimum(first + step, last), axis=axis), out=merged)
    return merged
