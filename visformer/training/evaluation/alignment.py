"""Word alignment by cross-attention: which source word each target word reads most, compared with gold links."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.adapters.own import Translator
from visformer.analysis.heads import row_entropy, same_place
from visformer.training import grammar
from visformer.training.evaluation.intervals import counts, percentiles
from visformer.training.supplement import read_rows

Links = frozenset[tuple[int, int]]

READINGS = {"prediction": 0, "input": 1}
"""The row that is read for a token: the one that predicts it, or the next one, whose input it is."""

HALVINGS = 50
GRAMMAR_SENTENCES, GRAMMAR_SEED = 500, 0


@dataclass(frozen=True)
class Aligned:
    """A pair with gold links; links are (source word, target word), counted from 0."""

    source: tuple[str, ...]  # words
    target: tuple[str, ...]
    source_text: str
    target_text: str
    sure: Links  # links that an alignment must have (Och & Ney 2003)
    possible: Links  # links that it may have, including the sure ones

    def reversed(self) -> "Aligned":
        """Return the pair for the other direction of translation."""
        sure, possible = (frozenset((j, i) for i, j in links) for links in (self.sure, self.possible))
        return Aligned(self.target, self.source, self.target_text, self.source_text, sure, possible)

    @property
    def hits(self) -> NDArray[np.intp]:
        """(target word, source word): in how many of the sure and the possible links a link between them is."""
        hits = np.zeros((len(self.target), len(self.source)), dtype=np.intp)
        for links in (self.sure, self.possible):
            for i, j in links:
                hits[j, i] += 1
        return hits

    @property
    def size(self) -> int:
        """|A| + |S| of an alignment A with one link for each target word."""
        return len(self.target) + len(self.sure)


def read_aligned(path: Path) -> list[Aligned]:
    """Read ``alignment.tsv``: English, the source, segmented Chinese, sure links, further possible links."""
    result = []
    for en, zh, *links in read_rows(path, columns=4):
        words = tuple(re.findall(r"[A-Za-z0-9]+(?:'[A-Za-z]+)?|[^\sA-Za-z0-9]", en))
        sure, further = map(_links, links)
        result.append(Aligned(words, tuple(zh.split()), en, zh.replace(" ", ""), sure, sure | further))
    return result


def _links(text: str) -> Links:
    return frozenset((int(i), int(j)) for i, j in (link.split("-") for link in text.split()))


def from_grammar(folder: Path) -> list[Aligned]:
    """Draw 500 sentences, the same ones each time, each with a rule or a word that training never sees.

    All links are sure. ``folder``: with the grammar.
    """
    drawn = grammar.sample(grammar.load(folder), GRAMMAR_SENTENCES, seed=GRAMMAR_SEED, held_out=True)
    gold = [(one, frozenset(one.links)) for one in drawn]
    return [Aligned(one.en_words, one.zh_words, one.en, one.zh, links, links) for one, links in gold]


@dataclass(frozen=True)
class Heads:
    """What every head aligns, by one reading.

    Args:
        names: of the heads.
        hits: (head, pair), |A and S| + |A and P|.
        sizes: (pair,), |A| + |S|.
        entropies: (head,), mean entropy of a row of cross-attention, nats.
    """

    names: tuple[str, ...]
    hits: NDArray[np.float64]
    sizes: NDArray[np.float64]
    entropies: NDArray[np.float64]

    @property
    def error_rates(self) -> NDArray[np.float64]:
        """(head,): AER of each head on all pairs."""
        return self._error_rates(np.ones(len(self.sizes)))

    def chosen_and_scored(self) -> dict[str, Any]:
        """Choose the head with the lowest AER on one half of the pairs, score it on the other; see :func:`align`."""
        n, rng = len(self.sizes), np.random.default_rng(0)
        half = np.stack([rng.permutation(n) < n // 2 for _ in range(HALVINGS)])  # (halving, pair)
        rates, chosen = self._halved(half, np.ones(n))
        best = int(np.bincount(chosen).argmax())
        low, high = percentiles(np.array([self._halved(half, weights)[0].mean() for weights in counts(n)]))
        return {
            "aer": float(rates.mean()),
            "low": low,
            "high": high,
            "head": self.names[best],
            "chosen": float(np.mean(chosen == best)),
            "entropy": float(self.entropies[best]),
        }

    def _halved(self, half: NDArray[np.bool_], weights: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """For each halving the AER of the head chosen on ``half``, on the other; and its number.

        ``weights`` (pair,): how often a pair counts. A resampled pair is in the same half each time.
        """
        one, other = (self._error_rates(side * weights.astype(float)) for side in (half, ~half))  # (halving, head)
        chosen = one.argmin(axis=1)
        return other[np.arange(len(half)), chosen], chosen

    def _error_rates(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """AER (Och & Ney 2003, equation 21) of each head, with each row of weights (…, pair)."""
        return np.asarray(error_rate(weights @ self.hits.T, np.maximum(weights @ self.sizes, 1)[..., None]))


def error_rate(hits: Any, size: Any) -> Any:
    """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|); 0 is perfect."""
    return 1 - hits / size


def align(model: Translator, gold: Sequence[Aligned], *, to: str) -> dict[str, Any]:
    """Link each target word to the source word with the most weight in its row; the gold target is forced.

    Weights are summed over the sub-words of a source word and averaged over those of a target word; special tokens are
    left out.

    Args:
        model: the translator.
        gold: pairs in the direction of translation; with fewer than a dozen, halves and intervals mean nothing.
        to: the target language, "en" or "zh".

    Returns:
        "pairs"; for both :data:`READINGS` of a row: "aer", the alignment error rate of the head that is best on one
        half of the pairs, on the other, mean over 50 random halvings; "low" and "high", its interval (bootstrap over
        pairs); "head", the one chosen most often, the share of halvings that chose it ("chosen"), and the mean entropy
        of its rows in nats. Beside them the error rates of links to random words ("uniform", expected), to the word at
        the same relative position ("diagonal"), and of the best single link of each word ("best possible").
    """
    size = sum(pair.size for pair in gold)

    def rate(*hits: float) -> float:
        return float(error_rate(sum(hits), size))

    return {
        "pairs": len(gold),
        **{reading: heads.chosen_and_scored() for reading, heads in heads_by_reading(model, gold, to=to).items()},
        "uniform": rate(*(pair.hits.mean(axis=1).sum() for pair in gold)),
        "diagonal": rate(*(_diagonal(pair) for pair in gold)),
        "best possible": rate(*(pair.hits.max(axis=1).sum() for pair in gold)),
    }


def heads_by_reading(model: Translator, gold: Sequence[Aligned], *, to: str) -> dict[str, Heads]:
    """Return what every head aligns, by both :data:`READINGS`; arguments as for :func:`align`."""
    hits: dict[str, list[NDArray[np.float64]]] = {reading: [] for reading in READINGS}  # (layer, head) each
    entropies = []
    for pair in gold:
        pattern = forced_pattern(model, pair, to=to)
        entropies.append(row_entropy(pattern))
        for reading, words in by_words(model, pattern, pair).items():
            reads = words.argmax(axis=-1)
            hits[reading].append(pair.hits[np.arange(len(pair.target)), reads].sum(axis=-1, dtype=float))
    sizes = np.array([pair.size for pair in gold], dtype=float)
    entropy = np.concatenate(entropies, axis=-1).mean(axis=-1)  # (layer, head)
    names = tuple(f"layer {layer + 1} head {head + 1}" for layer, head in np.ndindex(entropy.shape))
    return {
        reading: Heads(names, np.stack(hits[reading], axis=-1).reshape(len(names), -1), sizes, entropy.ravel())
        for reading in READINGS
    }


def forced_pattern(model: Translator, pair: Aligned, *, to: str) -> NDArray[np.float32]:
    """Return the cross-attention of a pair whose target is forced: (layer, head, tgt token, src token)."""
    trace = model.trace(pair.source_text, pair.target_text, to=to, record=("decoder.*.cross_attn.pattern",))
    return trace.stack("decoder", "cross_attn")


def by_words(model: Translator, pattern: NDArray[np.float32], pair: Aligned) -> dict[str, NDArray[np.float64]]:
    """Pool a forced pattern, by both :data:`READINGS`, to (layer, head, target word, source word)."""
    source = _word_matrix(model, pair.source_text, pair.source)
    target = _word_matrix(model, pair.target_text, pair.target)
    return {
        reading: _pool(pattern[..., first : first + target.shape[1], :], source, target)
        for reading, first in READINGS.items()
    }


def _diagonal(pair: Aligned) -> int:
    """Return the hits of linking each target word to the source word at the same relative position."""
    n = len(pair.target)
    return int(pair.hits[np.arange(n), same_place(n, len(pair.source))].sum())


def _word_matrix(model: Translator, text: str, words: Sequence[str]) -> NDArray[np.float64]:
    """(word, token): the share of a token's characters that belongs to each word; the end token belongs to none."""
    tokens = model.tokenizer.spans(text)
    matrix = np.zeros((len(words), len(tokens)))
    start = 0
    for i, word in enumerate(words):
        start = text.index(word, start)
        for j, (a, b) in enumerate(tokens):
            matrix[i, j] = max(0, min(b, start + len(word)) - max(a, start)) / max(1, b - a)
        start += len(word)
    return matrix


def _pool(rows: NDArray[np.float32], source: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pool (…, tgt token, src token) to (…, tgt word, src word): sum over keys, mean over queries, without specials."""
    shares = target / np.maximum(target.sum(axis=1, keepdims=True), 1e-9)
    return np.asarray(shares @ (rows[..., : source.shape[1]] @ source.T))
