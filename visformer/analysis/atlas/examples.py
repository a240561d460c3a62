"""The texts in which a head is most itself: a sketch of bounded size that is merged in any order."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.atlas.measures import even_weights
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
