"""Small pictures of patterns, of bounded size: the overview costs the same for 60 tokens as for 1,024."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

OVERVIEW_BYTES = 180_000
"""All thumbnails together: 50 by 50 for 72 heads, a quarter of a second on a slow line."""

LARGEST_SIDE, SMALLEST_SIDE = 64, 16
"""More could not be seen at the size that a thumbnail is drawn, less says nothing."""


def thumbnail_side(shapes: Sequence[tuple[int, int, int, int]]) -> int:
    """How high and wide thumbnails of stacks, (layer, head, query, key), may be to fit into OVERVIEW_BYTES."""
    for side in range(LARGEST_SIDE, SMALLEST_SIDE, -1):
        if sum(n * h * min(side, q) * min(side, k) for n, h, q, k in shapes) <= OVERVIEW_BYTES:
            return side
    return SMALLEST_SIDE


def thumbnails(layers: Sequence[npt.NDArray[np.float32]], *, side: int) -> npt.NDArray[np.uint8]:
    """8-bit weights, 255 * sqrt(weight), at most ``side`` high and wide.

    Where cells are merged the largest counts: a mean would wash a single strong weight out.

    Args:
        layers: (head, query, key) each, probabilities.
        side: in cells.

    Returns:
        (layer, head, rows, columns).
    """
    small = np.stack([_merge(_merge(layer, side, axis=1), side, axis=2) for layer in layers])
    steps: npt.NDArray[np.uint8] = np.rint(255 * np.sqrt(np.clip(small, 0.0, 1.0))).astype(np.uint8)
    return steps


def _merge(pattern: npt.NDArray[np.float32], side: int, *, axis: int) -> npt.NDArray[np.float32]:
    """The largest of each of ``side`` runs along the axis; np.maximum.reduceat takes six times as long."""
    size = pattern.shape[axis]
    if size <= side:
        return pattern
    first = np.arange(side) * size // side
    last = np.append(first[1:], size) - 1
    merged: npt.NDArray[np.float32] = pattern.take(first, axis=axis)
    for step in range(1, int((last - first).max()) + 1):
        np.maximum(merged, pattern.take(np.minimum(first + step, last), axis=axis), out=merged)
    return merged
