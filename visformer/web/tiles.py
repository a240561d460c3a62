"""Parts of a head of a long text, computed where the browser asks for them: tiles of a map, edges, sums of rows.

A head of four thousand tokens has 17 million weights. The browser draws it like a map: from tiles of 256 by 256 cells
in levels, each of which pools 2 by 2 cells of the one below, by maximum and by mean.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from visformer.trace import Trace, TracedTensor
from visformer.trace.overview import PatternOnDemand
from visformer.trace.stacks import STACKS
from visformer.trace.tokens import sentences_of
from visformer.web.codes import encode

SIDE = 256
"""Cells of a tile along each side, at most."""

_PATH = re.compile(
    r"(?P<stack>[a-z_.]{1,32})/(?P<layer>\d{1,4})/(?P<head>\d{1,4})/(?P<part>tile|edges|sentences|rows)"
    r"(?P<numbers>(?:/\d{1,7}){0,3})"
)

Ask = Callable[[str], bytes | None]
"""Answers a path, such as "decoder.self_attn/3/5/tile/2/0/1"; None: there is no such part."""


def levels_of(n_queries: int, n_keys: int) -> int:
    """Return how many levels a head has; the last one is a single tile."""
    size, levels = max(n_queries, n_keys), 1
    while size > SIDE << (levels - 1):
        levels += 1
    return levels


def is_part(path: str) -> bool:
    """Whether this can be the path of a part."""
    return _PATH.fullmatch(path) is not None


def part_of(trace: Trace, path: str) -> bytes | None:
    """Compute a part of a head.

    Args:
        trace: holds the head's weights, or q and k.
        path: "stack/layer/head/" and one of "tile/level/row/column": 16-bit codes of the largest weight of each cell
            and, above level 0, then of the mean; "edges": float32, what each query gives to other tokens, then what
            each key gets; "sentences": float32 (query's sentence, key's sentence), the mean over rows of what they
            give; "rows/first/end": float32 (key,), the sum of these rows.

    Returns:
        Little-endian bytes; None: there is no such part.

    Raises:
        MissingTensor: the Trace holds neither.
    """
    match = _PATH.fullmatch(path)
    stack = next((each for each in STACKS if match and each.name == match["stack"] and each.in_trace(trace)), None)
    if match is None or stack is None:
        return None
    pattern = stack.layers(trace).get(int(match["layer"]))
    head, numbers = int(match["head"]), tuple(map(int, match["numbers"].split("/")[1:]))
    if pattern is None or head >= len(pattern):
        return None
    make, n_numbers = _PARTS[match["part"]]
    return make(trace, pattern, head, *numbers) if len(numbers) == n_numbers else None


def _tile(trace: Trace, pattern: TracedTensor, head: int, level: int, row: int, column: int) -> bytes | None:
    _, n_queries, n_keys = pattern.shape
    side = SIDE << level
    if level >= levels_of(n_queries, n_keys) or row * side >= n_queries or column * side >= n_keys:
        return None
    rows = slice(row * side, min(n_queries, (row + 1) * side))
    columns = slice(column * side, min(n_keys, (column + 1) * side))
    largest, mean = pooled(pattern, head, rows, columns, 1 << level)
    return encode(largest).tobytes() + (encode(mean).tobytes() if level else b"")


def pooled(
    pattern: TracedTensor, head: int, rows: slice, columns: slice, step: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the maximum and the mean of cells of ``step`` by ``step`` weights; the last may have fewer."""
    across = np.arange(0, columns.stop - columns.start, step)
    strip = step * max(1, SIDE // step)  # rows computed at a time
    largest, means = [], []
    for first in range(rows.start, rows.stop, strip):
        weights = _block(pattern, head, slice(first, min(first + strip, rows.stop)), columns)
        down = np.arange(0, len(weights), step)
        largest.append(np.maximum.reduceat(np.maximum.reduceat(weights, down, axis=0), across, axis=1))
        means.append(np.add.reduceat(np.add.reduceat(weights, down, axis=0), across, axis=1))
    counts = _runs(rows.stop - rows.start, step)[:, None] * _runs(columns.stop - columns.start, step)
    return np.concatenate(largest), np.concatenate(means) / counts


def _runs(size: int, step: int) -> npt.NDArray[np.float32]:
    """The lengths of the runs that an axis is pooled into."""
    return np.diff(np.append(np.arange(0, size, step), size)).astype(np.float32)


def _block(pattern: TracedTensor, head: int, rows: slice, columns: slice) -> npt.NDArray[np.float32]:
    if isinstance(pattern, PatternOnDemand):
        return pattern.block(rows.start, rows.stop, columns.start, columns.stop, head=head)
    block: npt.NDArray[np.float32] = pattern.value[head, rows, columns]
    return block


def _edges(trace: Trace, pattern: TracedTensor, head: int) -> bytes | None:
    if isinstance(pattern, PatternOnDemand):
        gives, gets = pattern.gives[head], pattern.gets[head]
    else:
        weights = pattern.value[head]
        own = np.diagonal(weights) if pattern.axes[1].side == pattern.axes[2].side else np.float32(0.0)
        gives, gets = weights.sum(axis=1) - own, weights.sum(axis=0) - own
    return b"".join(np.asarray(each, dtype="<f4").tobytes() for each in (gives, gets))


def _sentences(trace: Trace, pattern: TracedTensor, head: int) -> bytes | None:
    starts = [_starts(trace, str(axis.side)) for axis in pattern.axes[1:]]
    _, n_queries, n_keys = pattern.shape
    means = []
    for first, end in zip(starts[0], [*starts[0][1:], n_queries], strict=True):
        rows = _block(pattern, head, slice(first, end), slice(0, n_keys))
        means.append(np.add.reduceat(rows.mean(axis=0), starts[1]))
    return np.stack(means).astype("<f4").tobytes()


def _starts(trace: Trace, side: str) -> list[int]:
    """Where the sentences of a side begin."""
    numbers = sentences_of(trace.tokens[side], trace.special[side])
    return [i for i, number in enumerate(numbers) if not i or number != numbers[i - 1]]


def _rows(trace: Trace, pattern: TracedTensor, head: int, first: int, end: int) -> bytes | None:
    _, n_queries, n_keys = pattern.shape
    if not 0 <= first < end <= n_queries:
        return None
    total = np.zeros(n_keys, dtype=np.float64)
    for row in range(first, end, SIDE):
        total += _block(pattern, head, slice(row, min(row + SIDE, end)), slice(0, n_keys)).sum(axis=0)
    return total.astype("<f4").tobytes()


_PARTS: Mapping[str, tuple[Callable[..., bytes | None], int]] = {
    "tile": (_tile, 3),
    "edges": (_edges, 0),
    "sentences": (_sentences, 0),
    "rows": (_rows, 2),
}
"""Part to what computes it, and to how many numbers its path ends in."""


def describe(pattern_shape: tuple[int, ...]) -> dict[str, Any]:
    """Return a header's entry for the tiles of a stack, by the shape (layer, head, query, key)."""
    return {"side": SIDE, "levels": levels_of(*pattern_shape[2:])}
