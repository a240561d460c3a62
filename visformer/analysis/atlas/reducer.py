"""The sums of an atlas: added to text by text, and merged in any order. float64; no Trace is kept."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.atlas.examples import Sketch
from visformer.analysis.atlas.measures import measured as measure
from visformer.analysis.atlas.measures import names
from visformer.analysis.atlas.records import Record
from visformer.analysis.atlas.schemas import FIELDS
from visformer.analysis.heads import require_alike
from visformer.trace import Trace
from visformer.trace.stacks import STACKS, Stack, shape_of

OFFSETS = 16
"""Distances from -16 to 16 have sums of their own; those beyond are in the outermost ones."""

POSITIONS = 64
"""Positions with an entropy of their own; the last has all later ones, too."""

Floats = NDArray[np.float64]


@dataclass
class Sums:
    """The sums of all heads of one attention.

    Args:
        stack: its name, such as "decoder.cross_attn".
        layers: numbers of its layers.
        n_heads: heads of each layer.
    """

    stack: str
    layers: tuple[int, ...]
    n_heads: int
    texts: int = 0
    measures: Floats = field(init=False)  # (measure, field, layer, head), see FIELDS
    offsets: Floats = field(init=False)  # (weight | cells, layer, head, offset); cross-attention has none
    positions: Floats = field(init=False)  # (entropy | rows, layer, head, position)
    examples: Sketch = field(init=False)

    def __post_init__(self) -> None:
        shape = len(self.layers), self.n_heads
        self.names = names(cross=self.stack.endswith("cross_attn"))
        self.measures = np.zeros((len(self.names), len(FIELDS), *shape))
        self.offsets = np.zeros((2, *shape, 2 * OFFSETS + 1))
        self.positions = np.zeros((2, *shape, POSITIONS))
        self.examples = Sketch(shape[0] * shape[1])

    def add(self, number: int, record: Record, trace: Trace) -> None:
        """Add one text; see :meth:`Reducer.add`."""
        part, kind = self.stack.split(".")
        layers = trace.layers(part, kind)  # type: ignore[arg-type]
        one = next(iter(layers.values()))
        pattern = np.stack([layer.value for layer in layers.values()])  # (layer, head, query, key)
        self.texts += 1
        found = measure(record, trace, layers, pattern)
        totals = np.zeros((len(self.names), 2, len(self.layers), self.n_heads))
        for name, both in found.totals.items():
            totals[self.names.index(name)] = both
        total, rows = totals[:, 0], totals[:, 1]  # each (measure, layer, head)
        mean = total / np.maximum(rows, 1)
        for i, values in enumerate((rows, total, (rows > 0).astype(np.float64), mean, mean * mean)):
            self.measures[:, i] += values
        self._at(self.positions, np.stack([found.entropy, found.rows]))
        if kind == "self_attn":
            self.offsets += _by_offset(pattern)
        self.examples.add(record, number, trace, pattern.reshape(-1, *pattern.shape[2:]), one)

    def merge(self, other: "Sums") -> None:
        """Add the sums of another part of the data."""
        self.texts += other.texts
        self.measures += other.measures
        self.offsets += other.offsets
        self.positions += other.positions
        self.examples.merge(other.examples)

    @staticmethod
    def _at(sums: Floats, rows: Floats) -> None:
        """Add (…, query) to (…, position)."""
        n = min(rows.shape[-1], POSITIONS)
        sums[..., :n] += rows[..., :n]
        sums[..., -1] += rows[..., n:].sum(axis=-1)


def _by_offset(pattern: NDArray[np.float32]) -> Floats:
    """Sum a pattern (layer, head, token, token) by how far the key is from the row, and count such cells.

    Returns:
        (2, layer, head, offset): weight and cells.
    """
    *heads, n, _ = pattern.shape
    padded = np.concatenate([pattern[..., ::-1, :], np.zeros_like(pattern)], axis=-1)  # (layer, head, n, 2 n)
    width = 2 * n - 1  # as many to a row: each is one further to the right, keys at one offset are in one column
    shifted = padded.reshape(*heads, -1)[..., : n * width].reshape(*heads, n, width)
    offset = np.arange(1 - n, n)
    result = np.zeros((2, *heads, 2 * OFFSETS + 1))
    for sums, each in zip(result, (shifted.sum(axis=-2, dtype=np.float64), n - abs(offset)), strict=True):
        middle = each[..., abs(offset) <= OFFSETS]
        first = OFFSETS - middle.shape[-1] // 2
        sums[..., first : first + middle.shape[-1]] = middle
        sums[..., 0] += each[..., offset < -OFFSETS].sum(axis=-1)
        sums[..., -1] += each[..., offset > OFFSETS].sum(axis=-1)
    return result


class Reducer:
    """Sums of every attention of a model: what an atlas is made of."""

    def __init__(self) -> None:
        self.sums: dict[str, Sums] = {}
        self._shapes: dict[str, str] = {}

    def add(self, number: int, record: Record, trace: Trace) -> None:
        """Add one text.

        Args:
            number: of the record, in the order of the data, from 0; examples are ordered by it.
            record: the text, with what is known about it.
            trace: its patterns.

        Raises:
            TraceError: the Trace has other layers or heads than those before, or holds maps.
        """
        for stack in STACKS:
            if stack.in_trace(trace):
                self._sums(stack, trace).add(number, record, trace)

    def merge(self, other: "Reducer") -> None:
        """Add another part of the data, in any order; bit for bit the same in the same order."""
        for name, sums in other.sums.items():
            if name not in self.sums:
                self.sums[name] = Sums(name, sums.layers, sums.n_heads)
            self.sums[name].merge(sums)

    def _sums(self, stack: Stack, trace: Trace) -> Sums:
        layers = stack.layers(trace)
        self._shapes[stack.name] = require_alike(layers, self._shapes.get(stack.name))
        if stack.name not in self.sums:
            self.sums[stack.name] = Sums(stack.name, tuple(layers), shape_of(layers)[1])
        return self.sums[stack.name]
