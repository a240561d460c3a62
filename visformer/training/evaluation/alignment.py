"""Word alignment by cross-attention: which source word each target word reads most, compared with gold links."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.adapters.own import Translator
from visformer.analysis.word_alignment import READINGS, Aligned, Candidates, Links, by_words, error_rate, head_names
from visformer.trace.row_totals import row_entropy
from visformer.training import grammar
from visformer.training.supplement import read_rows

GRAMMAR_SENTENCES, GRAMMAR_SEED = 500, 0


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
    """Draw 500 sentences, the same ones each time, each with a rule or a word that those for training never use.

    All links are sure. ``folder``: with the grammar.
    """
    drawn = grammar.sample(grammar.load(folder), GRAMMAR_SENTENCES, seed=GRAMMAR_SEED, held_out=True)
    gold = [(one, frozenset(one.links)) for one in drawn]
    return [Aligned(one.en_words, one.zh_words, one.en, one.zh, links, links) for one, links in gold]


@dataclass(frozen=True)
class Heads(Candidates):
    """What every head aligns, by one reading.

    Args:
        entropies: (head,), mean entropy of a row of cross-attention, nats.
    """

    entropies: NDArray[np.float64]

    def chosen_and_scored(self) -> dict[str, Any]:
        """Choose the head with the lowest AER on one half of the pairs, score it on the other; see :func:`align`."""
        chosen = self.chosen()
        return {
            "aer": chosen.error,
            "low": chosen.low,
            "high": chosen.high,
            "head": self.names[chosen.best],
            "chosen": chosen.share,
            "entropy": float(self.entropies[chosen.best]),
        }


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
        "diagonal": rate(*(pair.diagonal for pair in gold)),
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
    names = tuple(head_names(entropy.shape))
    return {
        reading: Heads(names, np.stack(hits[reading], axis=-1).reshape(len(names), -1), sizes, entropy.ravel())
        for reading in READINGS
    }


def forced_pattern(model: Translator, pair: Aligned, *, to: str) -> NDArray[np.float32]:
    """Return the cross-attention of a pair whose target is forced: (layer, head, tgt token, src token)."""
    trace = model.trace(pair.source_text, pair.target_text, to=to, record=("decoder.*.cross_attn.pattern",))
    return trace.stack("decoder.cross_attn")
