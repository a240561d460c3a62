"""Parts of a head of a long text, computed where the browser asks for them: tiles of a map, edges, sums of rows.

A head of four thousand tokens has 17 million weights. The browser draws it like a map: from tiles of 256 by 256 cells
in levels, each of which pools 2 by 2 cells of the one below, by maximum and by mean.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.panel import remaining
from visformer.trace import Trace, TracedTensor
from visformer.trace.overview import PatternOnDemand
from visformer.trace.stacks import STACKS
from visformer.trace.tokens import sentences_of
from visformer.web.codes import encode

Floats = NDArray[np.float32]

SIDE = 256
"""Cells of a tile along each side, at most."""

_PATH = re.compile(
    r"(?P<stack>[a-z_.]{1,32})/(?P<layer>\d{1,4})/(?P<head>\d{1,4})"
    r"(?P<hiding>;hiding)?(?P<renormalising>;renormalising)?"
    r"(?:;without=(?P<without>[a-z0-9_-]{1,32}(?:\.[a-z0-9_-]{1,32}){0,7}))?"
    r"/(?P<part>tile|edges|sentences|hidden|rows)(?P<numbers>(?:/\d{1,7}){0,3})"
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

    Where tokens are hidden, a part is that of the matrix of those that are left, as the explorer shows it: its rows and
    columns are counted among these, and its numbers are computed from them, not from cells that were pooled before.

    Args:
        trace: holds the head's weights, or q and k.
        path: "stack/layer/head/" and one of "tile/level/row/column": 16-bit codes of the largest weight of each cell
            and, above level 0, then of the mean; "edges": float32, what each query gives to other tokens, then what
            each key gets; "sentences": float32 (query's sentence, key's sentence), the mean over rows of what they
            give; "hidden": float32 (query,), the share of its weight that hidden keys have; "rows/first/end": float32
            (key,), the sum of these rows. The head may have ";hiding" after it, where special tokens are hidden,
            ";renormalising", where the weights of a row that are left are then divided by their sum, and
            ";without=system.template", where those of these roles are hidden; in this order.

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
    number, numbers = int(match["head"]), tuple(map(int, match["numbers"].split("/")[1:]))
    if pattern is None or number >= len(pattern):
        return None
    make, n_numbers = _PARTS[match["part"]]
    without = tuple((match["without"] or "").split("."))
    head = _Head(trace, pattern, number, without, bool(match["hiding"]), bool(match["renormalising"]))
    return make(head, *numbers) if len(numbers) == n_numbers else None


class _Head:
    """The weights of a head between the tokens that are shown."""

    def __init__(
        self,
        trace: Trace,
        pattern: TracedTensor,
        head: int,
        without: tuple[str, ...],
        hiding: bool,
        renormalising: bool,
    ) -> None:
        self.pattern, self.head, self._trace = pattern, head, trace
        self.sides = [str(axis.side) for axis in pattern.axes[1:]]
        self.kept = [remaining(trace, side, without=without, hiding=hiding) for side in self.sides]
        self.shape = (len(self.kept[0]), len(self.kept[1]))
        self.is_whole = self.shape == pattern.shape[1:]
        self._renormalising = renormalising and not self.is_whole

    def strips(self) -> Iterator[slice]:
        """Its rows, as many at a time as a tile has."""
        for first in range(0, self.shape[0], SIDE):
            yield slice(first, min(first + SIDE, self.shape[0]))

    def block(self, rows: slice, columns: slice) -> Floats:
        """Some rows and columns of those that are shown, (query, key)."""
        keys = self.kept[1][columns]
        if not self._renormalising:
            return self._read(rows, slice(int(keys[0]), int(keys[-1]) + 1))[:, keys - keys[0]]
        weights = self.rows(rows)
        left = weights[:, self.kept[1]].sum(axis=1, keepdims=True)
        left[left == 0] = 1
        shares: Floats = weights[:, keys] / left
        return shares

    def rows(self, rows: slice) -> Floats:
        """Some rows of those that are shown, with all keys: (query, key)."""
        return self._read(rows, slice(0, self.pattern.shape[2]))

    def _read(self, rows: slice, keys: slice) -> Floats:
        """Read each run of neighbouring queries at once: what lies between them may be long."""
        queries = self.kept[0][rows]
        runs = np.split(queries, np.flatnonzero(np.diff(queries) > 1) + 1)
        spans = [slice(int(run[0]), int(run[-1]) + 1) for run in runs]
        return np.concatenate([_block(self.pattern, self.head, span, keys) for span in spans])

    def starts(self, axis: int) -> list[int]:
        """Where the sentences begin, among the tokens that are shown along an axis."""
        side = self.sides[axis]
        numbers = np.array(sentences_of(self._trace.tokens[side], self._trace.special[side]))[self.kept[axis]]
        return [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist()]


def _tile(head: _Head, level: int, row: int, column: int) -> bytes | None:
    n_queries, n_keys = head.shape
    side = SIDE << level
    if level >= levels_of(n_queries, n_keys) or row * side >= n_queries or column * side >= n_keys:
        return None
    rows = slice(row * side, min(n_queries, (row + 1) * side))
    columns = slice(column * side, min(n_keys, (column + 1) * side))
    largest, mean = _pooled(head, rows, columns, 1 << level)
    return encode(largest).tobytes() + (encode(mean).tobytes() if level else b"")


def _pooled(head: _Head, rows: slice, columns: slice, step: int) -> tuple[Floats, Floats]:
    """Return the maximum and the mean of cells of ``step`` by ``step`` weights; the last may have fewer."""
    across = np.arange(0, columns.stop - columns.start, step)
    strip = step * max(1, SIDE // step)  # rows computed at a time
    largest, means = [], []
    for first in range(rows.start, rows.stop, strip):
        weights = head.block(slice(first, min(first + strip, rows.stop)), columns)
        down = np.arange(0, len(weights), step)
        largest.append(np.maximum.reduceat(np.maximum.reduceat(weights, down, axis=0), across, axis=1))
        means.append(np.add.reduceat(np.add.reduceat(weights, down, axis=0), across, axis=1))
    counts = _runs(rows.stop - rows.start, step)[:, None] * _runs(columns.stop - columns.start, step)
    return np.concatenate(largest), np.concatenate(means) / counts


def _runs(size: int, step: int) -> Floats:
    """The lengths of the runs that an axis is pooled into."""
    return np.diff(np.append(np.arange(0, size, step), size)).astype(np.float32)


def _block(pattern: TracedTensor, head: int, rows: slice, columns: slice) -> Floats:
    if isinstance(pattern, PatternOnDemand):
        return pattern.block(rows.start, rows.stop, columns.start, columns.stop, head=head)
    block: Floats = pattern.value[head, rows, columns]
    return block


def _edges(head: _Head) -> bytes:
    pattern, (n_queries, n_keys) = head.pattern, head.shape
    if head.is_whole and isinstance(pattern, PatternOnDemand):
        return _bytes(pattern.gives[head.head], pattern.gets[head.head])
    gives, gets = np.zeros(n_queries, dtype=np.float64), np.zeros(n_keys, dtype=np.float64)
    for rows in head.strips():
        weights = head.block(rows, slice(0, n_keys))
        if head.sides[0] == head.sides[1]:
            places = np.arange(rows.stop - rows.start)
            weights = weights.copy()
            weights[places, rows.start + places] = 0.0
        gives[rows] = weights.sum(axis=1)
        gets += weights.sum(axis=0)
    return _bytes(gives, gets)


def _sentences(head: _Head) -> bytes:
    starts, (n_queries, n_keys) = [head.starts(axis) for axis in (0, 1)], head.shape
    means = []
    for first, end in zip(starts[0], [*starts[0][1:], n_queries], strict=True):
        rows = head.block(slice(first, end), slice(0, n_keys))
        means.append(np.add.reduceat(rows.mean(axis=0), starts[1]))
    return _bytes(np.stack(means))


def _hidden(head: _Head) -> bytes:
    shares = np.zeros(head.shape[0], dtype=np.float64)
    for rows in head.strips():
        weights = head.rows(rows).astype(np.float64)
        whole, left = weights.sum(axis=1), weights[:, head.kept[1]].sum(axis=1)
        shares[rows] = np.where(whole > 0, np.maximum(0.0, 1 - left / np.where(whole > 0, whole, 1.0)), 0.0)
    return _bytes(shares)


def _rows(head: _Head, first: int, end: int) -> bytes | None:
    n_queries, n_keys = head.shape
    if not 0 <= first < end <= n_queries:
        return None
    total = np.zeros(n_keys, dtype=np.float64)
    for row in range(first, end, SIDE):
        total += head.block(slice(row, min(row + SIDE, end)), slice(0, n_keys)).sum(axis=0)
    return _bytes(total)


def _bytes(*numbers: NDArray[Any]) -> bytes:
    return b"".join(np.asarray(each, dtype="<f4").tobytes() for each in numbers)


_PARTS: Mapping[str, tuple[Callable[..., bytes | None], int]] = {
    "tile": (_tile, 3),
    "edges": (_edges, 0),
    "sentences": (_sentences, 0),
    "hidden": (_hidden, 0),
    "rows": (_rows, 2),
}
"""Part to what computes it, and to how many numbers its path ends in."""


def describe() -> dict[str, Any]:
    """Return a header's entry for the tiles of a stack."""
    return {"side": SIDE}
