"""The training data of each epoch: shares of a corpus, of sentences from the grammar, everyday pairs and names."""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from visformer.errors import N_, DataError
from visformer.training import grammar, refusals, supplement
from visformer.training.data import BOTH, Pair, read_pairs
from visformer.training.first_sentences import FirstSentences
from visformer.training.grammar import Grammar
from visformer.training.supplement import Supplement


@dataclass(frozen=True, kw_only=True)
class MixtureStage:
    """Shares of the pairs of an epoch, which sum to 1, and its BPE-dropout, up to a fraction of the training."""

    until: float
    corpus: float
    grammar: float
    everyday: float
    names: float
    first: float
    bpe_dropout: float


# The grammar teaches words first. More of the corpus follows: with the grammar alone BLEU falls. The last stage has no
# BPE-dropout: it splits words as they will be when somebody types.
SCHEDULE = (
    MixtureStage(until=0.25, corpus=0.29, grammar=0.20, everyday=0.22, names=0.16, first=0.13, bpe_dropout=0.1),
    MixtureStage(until=0.75, corpus=0.30, grammar=0.10, everyday=0.23, names=0.13, first=0.24, bpe_dropout=0.1),
    MixtureStage(until=1.00, corpus=0.40, grammar=0.04, everyday=0.18, names=0.10, first=0.28, bpe_dropout=0.0),
)

CONTINUED = (
    MixtureStage(until=1.0, corpus=0.30, grammar=0.03, everyday=0.17, names=0.06, first=0.44, bpe_dropout=0.0),
)
"""The shares of a training that continues from weights which know the rest."""

EVERYDAY = ("everyday.tsv", "everyday_words.tsv")

CAPITALS, LOWER_CASE, NO_STOP = 0.05, 0.06, 0.10
"""Shares of pairs in which English is read in capitals or in lower case, and in which both final marks are missing."""

GRAMMAR_TEXTS = 20_000
"""Sentences of the grammar that the tokenizer learns from: about as many as the corpus has."""


def stage_of(fraction: float, schedule: Sequence[MixtureStage] = SCHEDULE) -> MixtureStage:
    """Return the stage at a fraction of the training, at least 0 and below 1."""
    return next(stage for stage in schedule if fraction < stage.until)


@dataclass(frozen=True)
class Mixture:
    """The pairs that epochs are drawn from.

    Attributes:
        corpus: pairs of a file.
        everyday: pairs written by hand.
        sentences: the grammar.
        names: the lists of names and their frames.
        first: what people type first.
        judged: the sentences that translators are judged on, plain.
        left_out: number of pairs of the corpus that were left out because translators are judged on them.
    """

    corpus: Sequence[Pair]
    everyday: Sequence[Pair]
    sentences: Grammar
    names: Supplement
    first: FirstSentences
    judged: frozenset[str]
    left_out: int = 0

    @classmethod
    def load(cls, corpus: Path, folder: Path) -> "Mixture":
        """Read a corpus and the supplement, and leave out every pair that has a side in common with a judged sentence.

        Raises:
            DataError: a file is missing, damaged or empty; the message names it and the line.
        """
        judged = frozenset(map(supplement.plain, refusals.evaluation_texts(folder)))
        pairs = read_pairs(corpus)
        kept, everyday = (
            [pair for pair in some if not is_judged(pair, judged)]
            for some in (
                pairs,
                [Pair(*row) for name in EVERYDAY for row in supplement.read_rows(folder / name, columns=2)],
            )
        )
        if not kept:
            raise DataError(
                N_("{path} has no pair to train with, only sentences that translators are judged on: add others."),
                path=corpus,
            )
        sources = grammar.load(folder / "grammar"), supplement.load(folder)
        first = FirstSentences.load(folder).without(partial(is_judged, judged=judged))
        first = first.with_frames_of(kept, sources[1].given)
        return cls(kept, everyday, *sources, first, judged, left_out=len(pairs) - len(kept))

    def epoch(
        self, number: int, *, of: int, size: int, seed: int, schedule: Sequence[MixtureStage] = SCHEDULE
    ) -> tuple[list[Pair], float]:
        """Return the pairs of an epoch, unshuffled, and its BPE-dropout.

        Corpus and everyday pairs take turns over the epochs; all others are drawn afresh.

        Args:
            number: number of the epoch, from 0.
            of: number of epochs.
            size: pairs in an epoch; one whose two directions differ in case becomes two.
            seed: the same seed gives the same pairs.
            schedule: the shares.
        """
        stages = [stage_of(i / of, schedule) for i in range(number + 1)]
        now, fresh = stages[-1], seed * 1000 + number

        def turn(pairs: Sequence[Pair], share: Callable[[MixtureStage], float]) -> list[Pair]:
            *before, count = (round(share(stage) * size) for stage in stages)
            return taking_turns(pairs, sum(before), count, seed=seed)

        pairs = turn(self.corpus, lambda stage: stage.corpus) + turn(self.everyday, lambda stage: stage.everyday)
        drawn = grammar.sample(self.sentences, round(now.grammar * size), seed=fresh)
        pairs += [Pair(sentence.en, sentence.zh) for sentence in drawn]
        pairs += [Pair(*pair) for pair in supplement.sample(self.names, round(now.names * size), seed=fresh)]
        typed = [*as_typed(pairs, random.Random(fresh))]
        # These are written as people type already, and what is copied keeps its case.
        judged = partial(is_judged, judged=self.judged)
        typed += self.first.sample(self.names, round(now.first * size), seed=fresh, judged=judged)
        return typed, now.bpe_dropout

    def texts(self, *, seed: int) -> tuple[list[str], list[str]]:
        """Return what a tokenizer learns from: texts, and syllables that continue a word."""
        texts, syllables = supplement.vocabulary(self.names)
        drawn = grammar.sample(self.sentences, GRAMMAR_TEXTS, seed=seed)
        pairs = [*self.corpus, *self.everyday, *self.first.phrases]
        pairs += [Pair(sentence.en, sentence.zh) for sentence in drawn]
        return texts + [text for pair in as_typed(pairs, random.Random(seed)) for text in (pair.en, pair.zh)], syllables


def is_judged(pair: Pair, judged: Collection[str]) -> bool:
    """Return whether translators are judged on a side of this pair, whatever its case and punctuation."""
    return any(text in judged for text in map(supplement.plain, (pair.en, pair.zh)))


def taking_turns(pairs: Sequence[Pair], start: int, count: int, *, seed: int) -> list[Pair]:
    """Return ``count`` pairs, from index ``start``, of an endless sequence: all pairs, shuffled anew each time."""
    result: list[Pair] = []
    while len(result) < count:
        turn, place = divmod(start + len(result), len(pairs))
        result += random.Random(f"{seed} {turn}").sample(pairs, len(pairs))[place:]
    return result[:count]


def as_typed(pairs: Iterable[Pair], rng: random.Random) -> Iterator[Pair]:
    """Write some pairs as people type: in capitals, in lower case, without the final mark.

    English loses its case only as the source, so such a pair becomes one pair for each direction.
    """
    for pair in pairs:
        if rng.random() < NO_STOP and pair.en[-1] in ".?!" and pair.zh[-1] in "。？！":
            pair = replace(pair, en=pair.en[:-1], zh=pair.zh[:-1])
        typed = rng.random()
        if typed < CAPITALS + LOWER_CASE and pair.direction != "zh-en":
            english = pair.en.upper() if typed < CAPITALS else pair.en.lower()
            yield replace(pair, en=english, direction="en-zh")
            if pair.direction == BOTH:
                yield replace(pair, direction="zh-en")
        else:
            yield pair
