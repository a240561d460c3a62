"""What a decoder-only model is trained on: sentences one after another, some of them repeated, and random repeats.

And an n-gram model of the same, which its perplexity is compared with.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from visformer.model.masks import pad
from visformer.model.tokenizer import EOS, Tokenizer
from visformer.training.data import Batch, Pair
from visformer.training.mixture import Mixture
from visformer.training.recurring import COPIES, PERIODS, held_out_pairs, induction_report, pool_of, random_context
from visformer.training.train import validation_loss

RANDOM = 0.5
"""Share of contexts of random tokens that recur."""

REPEATED = 0.1
"""Share of sentences, among those of a trained period without held-out pairs, that are repeated at once."""

ORDER = 4
"""Order of the n-gram model that perplexity is compared with."""


def context_batches(tokenizer: Tokenizer, pairs: Iterable[Pair], *, length: int, tokens: int, seed: int) -> list[Batch]:
    """Make an epoch of contexts of both languages' sentences, and of random tokens, in batches.

    Args:
        tokenizer: for both languages.
        pairs: each sentence that a translator would read is taken.
        length: of a context, in tokens.
        tokens: in a batch.
        seed: of the order, and of the random tokens.
    """
    rng, start = random.Random(seed), tokenizer.token_id(EOS)
    texts = [source for pair in pairs for source, _, _ in pair.directed()]
    rng.shuffle(texts)
    contexts = [
        (ids[:-1], ids[1:]) for ids in _packed(rng, (tokenizer.encode(text) for text in texts), start, length + 1)
    ]
    for _ in range(round(len(contexts) * RANDOM / (1 - RANDOM))):
        contexts.append(random_context(rng, pool_of(tokenizer), start=start, length=length))
    rng.shuffle(contexts)
    rows = max(1, tokens // length)
    batches = []
    for first in range(0, len(contexts), rows):
        ids, targets = zip(*contexts[first : first + rows], strict=True)
        batches.append(Batch((torch.tensor(ids),), torch.tensor(targets)))
    return batches


def _packed(rng: random.Random, sentences: Iterable[list[int]], start: int, length: int) -> Iterator[list[int]]:
    """Fill contexts with sentences, the last one cut. One that would have a held-out pair twice there is left out."""
    ids, seen = [start], set[tuple[int, int]]()
    for sentence in sentences:
        pairs = held_out_pairs(sentence)
        if len(set(pairs)) < len(pairs) or not seen.isdisjoint(pairs):
            continue
        seen.update(pairs)
        recurs = not pairs and len(sentence) + 1 in PERIODS and rng.random() < REPEATED
        ids += [*sentence, start] * (rng.choice(COPIES) if recurs else 1)
        if len(ids) >= length:
            yield ids[:length]
            ids, seen = [start], set()


def sentence_rows(tokenizer: Tokenizer, texts: Iterable[str]) -> list[list[int]]:
    """Ids of each sentence alone, with </s> before and after it, the shortest first."""
    end = tokenizer.token_id(EOS)
    return sorted(([end, *tokenizer.encode(text), end] for text in texts), key=len)


def sentence_batches(rows: Sequence[list[int]], *, each: int = 64) -> list[Batch]:
    """Batch sentences; every token after the first is predicted."""
    groups = [pad(rows[first : first + each]) for first in range(0, len(rows), each)]
    return [Batch((ids[:, :-1],), ids[:, 1:]) for ids in groups]


def figures(
    model: nn.Module, tokenizer: Tokenizer, mixture: Mixture, pairs: Sequence[Pair], *, seed: int
) -> dict[str, Any]:
    """What is published of a trained model.

    Args:
        model: in evaluation mode.
        tokenizer: its tokenizer.
        mixture: what it was trained on; the n-gram model counts the same texts as the tokenizer did.
        pairs: held-out pairs; sentences that occur in training are left out, and a language of which none is left.
        seed: of the training.

    Returns:
        Perplexity a token on sentences of each language, each alone, with that of an n-gram model on the same tokens;
        and the best induction head.
    """
    texts, _ = mixture.texts(seed=seed)
    ngrams = KneserNey(sentence_rows(tokenizer, texts), order=ORDER, vocab=len(tokenizer))
    known = {text for pair in (*mixture.corpus, *mixture.everyday) for text in (pair.en, pair.zh)}
    perplexity = {}
    for language in ("en", "zh"):
        rows = sentence_rows(tokenizer, {getattr(pair, language) for pair in pairs} - known)
        if not rows:
            continue
        losses = {"model": validation_loss(model, sentence_batches(rows)), f"{ORDER}-gram": ngrams.loss(rows)}
        counts = {"sentences": len(rows), "tokens": sum(len(row) - 1 for row in rows)}
        perplexity[language] = counts | {name: math.exp(loss) for name, loss in losses.items()}
    return {"perplexity": perplexity, "induction": induction_report(model, tokenizer) | {"random_share": RANDOM}}


Gram = tuple[int, ...]


class KneserNey:
    """An n-gram model with interpolated Kneser-Ney smoothing.

    It predicts an id from the ``order`` - 1 before it; the first id of a row is given, and repeated before it. Kneser
    and Ney 1995, in the interpolated form of Chen and Goodman 1999 (section 2.7), with one discount for each order,
    n1 / (n1 + 2 n2), where n1 and n2 n-grams occur once and twice (equation 18). The lowest order continues to the
    uniform distribution.
    """

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
