"""What people can guess about a model: which words a row reads, and which token comes next.

People choose words, so the tokens of a word are one: its weight is the sum over its tokens as keys, and the mean of
their rows as queries, so that a row remains a distribution.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, TraceError
from visformer.trace.stacks import ranges
from visformer.trace.tokens import likeliest

if TYPE_CHECKING:
    from visformer.trace import Trace
    from visformer.trace.stacks import Stack

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Word:
    """A word of one side of a Trace, or one of its special tokens."""

    text: str
    places: tuple[int, ...]  # of its tokens
    following: str = ""  # the token that its last row predicts; "" where nothing is predicted


@dataclass(frozen=True)
class WordRow:
    """What one word reads."""

    words: tuple[Word, ...]  # those it can read
    weights: Floats  # of each, (word,); they sum to 1


def words_of(trace: "Trace", side: str) -> tuple[Word, ...]:
    """Return the words of a side, "src" or "tgt", special tokens among them, in order.

    Raises:
        MissingTensor: the Trace has no such side.
    """
    tokens, following = trace.tokens[side], trace.tokens.get("next", ()) if side == "tgt" else ()
    marks = [*zip(trace.words[side], trace.special[side], strict=True)]
    groups = [tuple(group) for _, group in groupby(range(len(tokens)), key=marks.__getitem__)]
    return tuple(
        Word("".join(tokens[i] for i in group), group, following[group[-1]] if following else "") for group in groups
    )


def word_row(trace: "Trace", stack: "Stack", word: int, *, layer: int | None = None, head: int = 0) -> WordRow:
    """Return what a word reads: in one head, or on average over all heads and layers of this attention.

    Args:
        trace: with the patterns.
        stack: the attention, of :data:`visformer.trace.stacks.STACKS`.
        word: place among :func:`words_of` the side that reads.
        layer: from 0; None: the mean over all heads and layers.
        head: from 0, in the layer.

    Raises:
        MissingTensor: the Trace has no patterns of this attention.
        TraceError: there is no such word, layer or head.
    """
    query, key = sides_of(stack)
    readers = words_of(trace, query)
    _require("word", word, range(len(readers)))
    rows = [*readers[word].places]
    patterns = {
        number: np.asarray(each.value)[:, rows].astype(np.float64) for number, each in stack.layers(trace).items()
    }
    if layer is not None:
        _require("layer", layer, patterns)
        _require("head", head, range(len(patterns[layer])))
    means = [pattern.mean(axis=(0, 1)) for pattern in patterns.values()]  # (key,)
    chosen = np.mean(means, axis=0) if layer is None else patterns[layer][head].mean(axis=0)
    visible = np.max(means, axis=0) > 0  # a masked key has no weight in any head
    words = [each for each in words_of(trace, key) if visible[[*each.places]].any()]
    weights = np.array([chosen[[*each.places]].sum() for each in words])
    return WordRow(tuple(words), weights / weights.sum())


def sides_of(stack: "Stack") -> tuple[str, str]:
    """Return the side that reads in an attention, and the one that is read."""
    query = "src" if stack.part == "encoder" else "tgt"
    return query, "src" if stack.kind == "cross_attn" else query


def _require(name: str, value: Any, known: Collection[Any]) -> None:
    if value not in known:
        raise TraceError(
            N_("{name}={value!r} is unknown: choose one of {choices}."),
            name=name,
            value=value,
            choices=ranges(known) if all(isinstance(each, int) for each in known) else ", ".join(known),
        )


def next_choices(trace: "Trace", place: int) -> tuple[tuple[str, ...], Floats]:
    """Return the likeliest tokens after a target token, in an order that tells nothing, and their probabilities.

    Args:
        trace: with the logits.
        place: of the target token, from 0.

    Returns:
        Texts and probabilities, (choice,); the others of the vocabulary have the rest.

    Raises:
        MissingTensor: the Trace has no logits.
        TraceError: there is no such token.
    """
    logits = trace["logits"].value
    _require("place", place, range(len(logits)))
    row = logits[place].astype(np.float64)
    ids = likeliest(row)
    shares = np.exp(row - np.nanmax(row))
    order = np.random.default_rng(ids).permutation(len(ids))
    names: Sequence[str] = trace.meta["likeliest"][place]
    return tuple(names[i] for i in order), (shares / np.nansum(shares))[[ids[i] for i in order]]
