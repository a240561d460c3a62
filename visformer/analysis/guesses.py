"""What people guess about a model, which words a row reads and which token comes next, compared with what it does.

People choose words, so the tokens of a word are one: its weight is the sum over its tokens as keys, and the mean of
their rows as queries, so that a row remains a distribution.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visformer.analysis.answers import Answer, asked
from visformer.analysis.heads import is_word, strongest_word
from visformer.analysis.intervals import percentiles, resamples, wilson
from visformer.analysis.needs import Floats
from visformer.errors import N_, ShapeError, TraceError
from visformer.system.arguments import check_public
from visformer.trace.stacks import ranges, stack_named
from visformer.trace.tokens import likeliest

if TYPE_CHECKING:
    from visformer.adapters.base import TracedModel
    from visformer.trace import Trace


__all__ = [
    "Agreement",
    "Word",
    "WordRow",
    "agreement",
    "nearest",
    "next_choices",
    "share_right",
    "to_ask",
    "word_row",
    "words_of",
]


@dataclass(frozen=True)
class Word:
    """A word of one side of a Trace, or one of its special tokens."""

    text: str
    places: tuple[int, ...]  # of its tokens
    is_special: bool = False

    @property
    def has_text(self) -> bool:
        """Whether it is a word, neither punctuation nor a special token."""
        return is_word(self.text, self.is_special)


@dataclass(frozen=True)
class WordRow:
    """What one word reads."""

    words: tuple[Word, ...]  # those it can read
    weights: Floats  # of each, (word,); they sum to 1

    @property
    def most(self) -> Word:
        """The word that it reads most."""
        return self.words[int(self.weights.argmax())]


def words_of(trace: "Trace", side: str) -> tuple[Word, ...]:
    """Return the words of a side, "src" or "tgt", special tokens among them, in order.

    Raises:
        MissingTensor: the Trace has no such side.
    """
    tokens, special = trace.tokens[side], trace.special[side]
    marks = [*zip(trace.words[side], special, strict=True)]
    groups = [tuple(group) for _, group in groupby(range(len(tokens)), key=marks.__getitem__)]
    return tuple(Word("".join(tokens[i] for i in group), group, bool(special[group[0]])) for group in groups)


def word_row(trace: "Trace", stack: str, word: int, *, layer: int | None = None, head: int = 0) -> WordRow:
    """Return what a word reads: in one head, or on average over all heads and layers of this attention.

    Args:
        trace: with the patterns.
        stack: the name of the attention, such as "decoder.cross_attn".
        word: place among :func:`words_of` the side that reads.
        layer: from 0; None: the mean over all heads and layers.
        head: from 0, in the layer.

    Raises:
        MissingTensor: the Trace has no patterns of this attention.
        TraceError: there is no such attention, word, layer or head.
    """
    of = stack_named(stack)
    query, key = of.sides
    readers = words_of(trace, query)
    _require("word", word, range(len(readers)))
    rows = [*readers[word].places]
    patterns = {number: np.asarray(each.value)[:, rows].astype(np.float64) for number, each in of.layers(trace).items()}
    if layer is not None:
        _require("layer", layer, patterns)
        _require("head", head, range(len(patterns[layer])))
    means = [pattern.mean(axis=(0, 1)) for pattern in patterns.values()]  # (key,)
    chosen = np.mean(means, axis=0) if layer is None else patterns[layer][head].mean(axis=0)
    visible = np.max(means, axis=0) > 0  # a masked key has no weight in any head
    words = [each for each in words_of(trace, key) if visible[[*each.places]].any()]
    weights = np.array([chosen[[*each.places]].sum() for each in words])
    return WordRow(tuple(words), weights / weights.sum())


def to_ask(readers: Sequence[Word], rows: Sequence[WordRow]) -> int | None:
    """Return the place of the word to ask about: that of :func:`visformer.analysis.heads.strongest_word`.

    Args:
        readers: the words that read.
        rows: what each reads.

    Returns:
        The place; None: every word reads punctuation or a special token most.

    Raises:
        ShapeError: there is not one row for each word.
    """
    if len(readers) != len(rows):
        raise ShapeError(
            N_("{words} words read, and there are {rows} rows: give one for each."), words=len(readers), rows=len(rows)
        )
    keys = [*dict.fromkeys(word for row in rows for word in row.words)]
    table = np.zeros((len(readers), len(keys)))
    for at, row in enumerate(rows):
        table[at, [keys.index(word) for word in row.words]] = row.weights
    queries, read = ([word.text for word in words] for words in (readers, keys))
    special = [word.is_special for word in readers], [word.is_special for word in keys]
    best = strongest_word(table, queries, read, special)
    return best if best is not None and rows[best].most.has_text else None


def _require(name: str, value: Any, known: Collection[Any]) -> None:
    if value not in known:
        raise TraceError(
            N_("{name}={value!r} is unknown: choose one of {choices}."),
            name=name,
            value=value,
            choices=ranges(known) if all(isinstance(each, int) for each in known) else ", ".join(known),
        )


def next_choices(
    trace: "Trace", place: int, *, between: Answer | None = None, model: "TracedModel | None" = None
) -> tuple[tuple[str, ...], Floats]:
    """Return tokens that may follow a target token, in an order that tells nothing, and their probabilities.

    Args:
        trace: with the logits.
        place: of the target token, from 0.
        between: a pair of tokens to choose from; None: the likeliest ones.
        model: the model, which knows tokens by their text.

    Returns:
        Texts and probabilities, (choice,). Of the likeliest, the others of the vocabulary have the rest; of a pair they
        sum to 1: the first has the logistic function of the difference of both logits.

    Raises:
        MissingTensor: the Trace has no logits.
        TraceError: there is no such place.
        VisformerError: there is no such token.
    """
    logits = trace["logits"].value
    _require("place", place, range(len(logits)))
    row = logits[place].astype(np.float64)
    if between is None:
        ids, names, among = likeliest(row), trace.meta["likeliest"][place], row
    else:
        of = asked(trace, between, place, model=model)
        ids, names, among = of.ids, of.names, row[[*of.ids]]
    shares = np.exp(row[[*ids]] - np.nanmax(row))
    shares /= np.nansum(np.exp(among - np.nanmax(row)))
    order = np.random.default_rng(ids).permutation(len(ids))
    return tuple(names[i] for i in order), shares[order]


_EVEN = 1e-9  # differences of weights that are rounding errors


@dataclass(frozen=True)
class Agreement:
    """How much of the weights people's guesses cover; all are shares from 0 to 1.

    Args:
        n: people.
        covered: mean of the weight on the words that a person chose.
        low: lower end of its 95 % interval, by the bootstrap over people; NaN for fewer than two.
        high: the upper end.
        best: mean of the most that a person could have covered with as many words.
        chance: mean of what as many words, drawn at random, cover on average.
        each: each person's (covered - chance) / (best - chance), (person,): 1 is the best possible, 0 chance; NaN where
            every choice of as many words covers the same.
    """

    n: int
    covered: float
    low: float
    high: float
    best: float
    chance: float
    each: NDArray[np.float64]


def agreement(chosen: ArrayLike, weights: ArrayLike) -> Agreement:
    """Compare the words that people chose with the weights of these words.

    Args:
        chosen: bool (person, word); each person chose at least one word.
        weights: (word,), which sum to 1.

    Raises:
        ShapeError: the shapes do not match, or somebody chose nothing.
    """
    taps, row = np.asarray(chosen, dtype=bool), np.asarray(weights, dtype=np.float64)
    if row.ndim != 1 or taps.shape[1:] != row.shape or not len(taps) or not taps.any(axis=1).all():
        wrong = N_("chosen has the shape {given}; expected people who each chose at least one of {n} words.")
        raise ShapeError(wrong, given=taps.shape, n=row.size)
    count = taps.sum(axis=1)
    covered = taps @ row
    best = np.sort(row)[::-1].cumsum()[count - 1]
    chance = count / len(row)
    spread = best - chance
    each = np.where(spread > _EVEN, (covered - chance) / np.where(spread > _EVEN, spread, 1), np.nan)
    n = len(taps)
    low, high = percentiles(covered[resamples(n)].mean(axis=1)) if n > 1 else (np.nan, np.nan)
    return Agreement(n, float(covered.mean()), low, high, float(best.mean()), float(chance.mean()), each)


def share_right(chosen: ArrayLike, probabilities: ArrayLike) -> tuple[int, float, float]:
    """Return how many people chose the likeliest token, and the 95 % interval of their share (Wilson 1927).

    Args:
        chosen: bool (person, choice).
        probabilities: (choice,).
    """
    taps = np.asarray(chosen, dtype=bool)
    right = int(taps[:, int(np.argmax(probabilities))].sum())
    return right, *wilson(right, len(taps))


def nearest(chosen: ArrayLike, weights: ArrayLike) -> NDArray[np.intp]:
    """Return the people whose guess was nearest: the highest ``each`` of :func:`agreement`, then the most covered."""
    found = agreement(chosen, weights)
    covered = np.round(np.asarray(chosen, dtype=bool) @ np.asarray(weights, dtype=np.float64), 9)
    each = np.round(np.nan_to_num(found.each, nan=-np.inf), 9)
    best = each == each.max()
    return np.flatnonzero(best & (covered == covered[best].max()) & np.isfinite(each))


check_public(__name__)
