"""The sums of an atlas and each head's best examples: added to text by text, and merged in any order.

float64; no Trace is kept. The examples are a sketch of bounded size.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.atlas.data import Record
from visformer.analysis.atlas.measures import BINS, even_weights, histograms, names
from visformer.analysis.atlas.measures import measured as measure
from visformer.analysis.heads import require_alike
from visformer.trace import Trace, TracedTensor
from visformer.trace.row_totals import separators
from visformer.trace.stacks import STACKS, Stack, shape_of, stack_named

EXAMPLES = 20
"""Examples of each head."""

OFFSETS = 16
"""Distances from -16 to 16 have sums of their own; those beyond are in the outermost ones."""

POSITIONS = 64
"""Positions with an entropy of their own; the last has all later ones, too."""

Text = tuple[int, Record, Trace]

FIELDS = ("rows", "total", "texts", "means", "squares", "values")
"""The sums that each statistic has in a part: rows, their total, texts with such rows; of these texts the means, their
squares, and the values that are counted in bins: the means, of the entropy as a share of the largest possible."""

_TOGETHER = 1 << 20
"""Bytes of the patterns that are summed together: few enough to stay in a processor's cache."""

Floats = NDArray[np.float64]


class Example(NamedTuple):
    """A text and the cell of it in which the head exceeds equal weights most."""

    strength: float  # weight - 1 / (number of keys that the row may attend to)
    number: int  # of the record, in the order of the data
    query: int
    key: int
    weight: float
    query_token: str
    key_token: str
    record: Record


def best(examples: Iterable[Example]) -> list[Example]:
    """Return the 20 strongest; of equal ones, and of those with the same text, the first in the data."""
    kept: dict[tuple[str, str | None, str | None], Example] = {}
    for example in sorted(examples, key=lambda each: (-each.strength, each.number)):
        kept.setdefault(example.record.texts, example)
        if len(kept) == EXAMPLES:
            break
    return list(kept.values())


class Sketch:
    """The best examples of each of so many heads."""

    def __init__(self, n_heads: int) -> None:
        self._kept: list[list[Example]] = [[] for _ in range(n_heads)]
        self._least = np.full(n_heads, -np.inf)  # the strength that a new example needs at least

    def __getitem__(self, head: int) -> list[Example]:
        return self._kept[head]

    def add(
        self,
        records: Sequence[Record],
        numbers: Sequence[int],
        traces: Sequence[Trace],
        pattern: NDArray[np.float32],
        axes: TracedTensor,
    ) -> None:
        """Add texts; ``pattern``: (text, layer, head, query, key), ``axes``: a tensor whose axes they have."""
        queries, keys = (str(axis.side) for axis in axes.axes[1:])
        n_texts, *_, n_queries, n_keys = pattern.shape
        content = (
            np.stack([~separators(trace.tokens[side], trace.special[side]) for trace in traces])
            for side in (queries, keys)
        )
        rows, columns = content  # special tokens and punctuation would be most heads' best examples
        even = even_weights(axes.name, queries, keys, n_queries, n_keys)
        least = np.where(rows[:, :, None] & columns[:, None], even[:, None], np.inf)  # (text, query, key)
        if queries == keys:
            least[:, np.arange(n_keys), np.arange(n_keys)] = np.inf
        patterns = pattern.reshape(n_texts, -1, n_queries * n_keys)
        excess = patterns - least.reshape(n_texts, 1, -1)
        cells = excess.argmax(axis=-1)  # (text, head)
        strengths = np.take_along_axis(excess, cells[..., None], axis=-1)[..., 0]
        new = strengths > self._least
        for head in np.flatnonzero(new.any(axis=0)).tolist():
            examples = []
            for i in np.flatnonzero(new[:, head]).tolist():
                query, key = divmod(int(cells[i, head]), n_keys)
                tokens = traces[i].tokens[queries][query], traces[i].tokens[keys][key]
                weight = float(patterns[i, head, cells[i, head]])
                strength = float(strengths[i, head])
                examples.append(Example(strength, numbers[i], query, key, weight, *tokens, records[i]))
            self.extend(head, examples)

    def merge(self, other: "Sketch") -> None:
        """Add the examples of another part of the data."""
        for head, examples in enumerate(other._kept):
            self.extend(head, examples)

    def extend(self, head: int, examples: list[Example]) -> None:
        """Add examples of one head."""
        kept = self._kept[head] = best([*self._kept[head], *examples])
        # Equal ones that come earlier in the data replace the last: parts are merged in any order.
        if len(kept) == EXAMPLES:
            self._least[head] = np.nextafter(kept[-1].strength, -np.inf)


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
    bins: NDArray[np.int64] = field(init=False)  # (measure, layer, head, bin), see edges: numbers of texts
    offsets: Floats = field(init=False)  # (weight | cells, layer, head, offset); cross-attention has none
    positions: Floats = field(init=False)  # (entropy | rows, layer, head, position)
    examples: Sketch = field(init=False)

    def __post_init__(self) -> None:
        shape = len(self.layers), self.n_heads
        self.names = names(cross=self.stack.endswith("cross_attn"))
        self.measures = np.zeros((len(self.names), len(FIELDS), *shape))
        self.bins = np.zeros((len(self.names), *shape, BINS), dtype=np.int64)
        self.offsets = np.zeros((2, *shape, 2 * OFFSETS + 1))
        self.positions = np.zeros((2, *shape, POSITIONS))
        self.examples = Sketch(shape[0] * shape[1])

    def add(self, texts: Sequence[Text]) -> None:
        """Add texts with as many tokens; see :meth:`Reducer.add`."""
        numbers, records, traces = zip(*texts, strict=True)
        stack = stack_named(self.stack)
        layers = stack.layers(traces[0])
        names = [layer.name for layer in layers.values()]
        pattern = np.stack([[trace.tensors[name].value for name in names] for trace in traces])
        self.texts += len(texts)
        found = measure(records, traces, layers, pattern)
        totals = np.zeros((len(self.names), 2, len(texts), len(self.layers), self.n_heads))
        for name, both in found.totals.items():
            totals[self.names.index(name)] = both
        total, rows = totals[:, 0], totals[:, 1]  # each (measure, text, layer, head)
        mean = total / np.maximum(rows, 1)
        values = mean.copy()
        entropy = self.names.index("entropy")
        values[entropy] = total[entropy] / np.where(found.largest > 0, found.largest, 1)  # texts of any length compare
        for i, each in enumerate((rows, total, rows > 0, mean, mean * mean, values)):
            self.measures[:, i] += each.sum(axis=1)
        self.bins += histograms(self.names, values, rows > 0)
        self._at(self.positions, np.stack([found.entropy.sum(axis=0), found.rows.sum(axis=0)]))
        if stack.kind == "self_attn":
            self.offsets += _by_offset(pattern)
        self.examples.add(records, numbers, traces, pattern, layers[self.layers[0]])

    def merge(self, other: "Sums") -> None:
        """Add the sums of another part of the data."""
        self.texts += other.texts
        self.measures += other.measures
        self.bins += other.bins
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
    """Sum patterns (text, layer, head, token, token) by how far the key is from the row, and count such cells."""
    n_texts, *heads, n, _ = pattern.shape
    padded = np.zeros((*heads, n, 2 * n))
    pattern[..., ::-1, :].sum(axis=0, dtype=np.float64, out=padded[..., :n])
    width = 2 * n - 1  # as many to a row: each is one further to the right, keys at one offset are in one column
    shifted = padded.reshape(*heads, -1)[..., : n * width].reshape(*heads, n, width)
    offset = np.arange(1 - n, n)
    result = np.zeros((2, *heads, 2 * OFFSETS + 1))
    for sums, each in zip(result, (shifted.sum(axis=-2), n_texts * (n - abs(offset))), strict=True):
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

    def add(self, texts: Iterable[Text]) -> None:
        """Add texts: those with as many tokens together, which takes a fraction of the time.

        Args:
            texts: for each its number in the order of the data, from 0, by which examples are ordered; the record, with
                what is known about it; and its patterns.

        Raises:
            TraceError: a Trace has other layers or heads than those before, or holds maps.
        """
        alike: dict[tuple[Any, ...], list[Text]] = {}
        for text in texts:
            trace = text[2]
            for stack in STACKS:
                if stack.in_trace(trace):
                    self._require_alike(stack, trace)
            alike.setdefault((*trace.tensors, *map(len, trace.tokens.values())), []).append(text)
        for group in alike.values():
            size = max(1, _TOGETHER // group[0][2].nbytes)
            for stack in STACKS:
                for i in range(0, len(group) if stack.in_trace(group[0][2]) else 0, size):
                    self.sums[stack.name].add(group[i : i + size])

    def merge(self, other: "Reducer") -> None:
        """Add another part of the data, in any order; bit for bit the same in the same order."""
        for name, sums in other.sums.items():
            if name not in self.sums:
                self.sums[name] = Sums(name, sums.layers, sums.n_heads)
            self.sums[name].merge(sums)

    def _require_alike(self, stack: Stack, trace: Trace) -> None:
        layers = stack.layers(trace)
        self._shapes[stack.name] = require_alike(layers, self._shapes.get(stack.name))
        if stack.name not in self.sums:
            self.sums[stack.name] = Sums(stack.name, tuple(layers), shape_of(layers)[1])
