"""The texts in which a head is most itself: a sketch of bounded size that is merged in any order."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.atlas.records import Record
from visformer.analysis.heads import separators
from visformer.trace import Trace, TracedTensor

EXAMPLES = 20
"""Examples of each head."""

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

    def add(self, record: Record, number: int, trace: Trace, pattern: NDArray[np.float32], axes: TracedTensor) -> None:
        """Add a text; ``pattern``: (head, query, key) of all heads, ``axes``: the tensor whose axes they have."""
        queries, keys = (str(axis.side) for axis in axes.axes[1:])
        content = [~separators(trace.tokens[side], trace.special[side]) for side in (queries, keys)]
        allowed = np.outer(*content)  # (query, key): special tokens and punctuation would be most heads' best examples
        if queries == keys:
            np.fill_diagonal(allowed, False)
        if not allowed.any():
            return
        n_queries, n_keys = allowed.shape
        causal = axes.name.startswith("decoder.") and queries == keys
        even = 1 / np.arange(1, n_queries + 1) if causal else np.full(n_queries, 1 / n_keys)
        excess = np.where(allowed, pattern - even[:, None], -np.inf).reshape(len(pattern), -1)  # (head, query * key)
        cells = excess.argmax(axis=1)
        strengths = excess[np.arange(len(cells)), cells]
        for head in np.flatnonzero(strengths > self._least).tolist():
            query, key = (int(i) for i in divmod(cells[head], n_keys))
            tokens = trace.tokens[queries][query], trace.tokens[keys][key]
            weight = float(pattern[head, query, key])
            self.extend(head, [Example(float(strengths[head]), number, query, key, weight, *tokens, record)])

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
