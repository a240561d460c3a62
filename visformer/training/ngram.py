"""An n-gram model with interpolated Kneser-Ney smoothing: what a language model's perplexity is compared with.

Kneser and Ney 1995, in the interpolated form of Chen and Goodman 1999 (section 2.7), with one discount for each order,
n1 / (n1 + 2 n2), where n1 and n2 n-grams occur once and twice (equation 18). The lowest order continues to the uniform
distribution.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

Gram = tuple[int, ...]


class KneserNey:
    """Predicts an id from the ``order`` - 1 before it; the first id of a row is given, and repeated before it."""

    def __init__(self, rows: Iterable[Sequence[int]], *, order: int, vocab: int) -> None:
        self.order, self.vocab = order, vocab
        counts: Counter[Gram] = Counter()
        for row in rows:
            padded = self._padded(row)
            counts.update(tuple(padded[end - order : end]) for end in range(order, len(padded) + 1))
        self._orders: list[tuple[Counter[Gram], Counter[Gram], Counter[Gram], float]] = []
        for _ in range(order):
            totals: Counter[Gram] = Counter()  # of each history
            kinds: Counter[Gram] = Counter()  # ids that follow each history
            for gram, count in counts.items():
                totals[gram[:-1]] += count
                kinds[gram[:-1]] += 1
            once, twice = (sum(count == n for count in counts.values()) for n in (1, 2))
            self._orders.insert(0, (counts, totals, kinds, once / (once + 2 * twice) if once else 0.5))
            counts = Counter(gram[1:] for gram in counts)  # lower orders count the histories, not the occurrences

    def probability(self, history: Sequence[int], following: int) -> float:
        """The probability of ``following`` after at least ``order`` - 1 ids."""
        probability = 1 / self.vocab
        for n, (counts, totals, kinds, discount) in enumerate(self._orders):
            before = tuple(history[len(history) - n :])
            if total := totals[before]:
                kept = max(counts[*before, following] - discount, 0.0)
                probability = (kept + discount * kinds[before] * probability) / total
        return probability

    def loss(self, rows: Iterable[Sequence[int]]) -> float:
        """Mean negative log-likelihood of the ids after each row's first, in nats."""
        total, count = 0.0, 0
        for row in map(self._padded, rows):
            for end in range(self.order, len(row) + 1):
                total -= math.log(self.probability(row[: end - 1], row[end - 1]))
                count += 1
        return total / count

    def _padded(self, row: Sequence[int]) -> list[int]:
        return [row[0]] * (self.order - 2) + list(row)
