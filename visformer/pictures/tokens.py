"""From letters to tokens: what each token is, and how letters were merged into it (section 5.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from visformer.errors import N_
from visformer.trace import Trace

SPECIAL_IDS = 4
BYTE_IDS = 256
MEANINGS = {
    "<pad>": N_("fills a shorter sentence up"),
    "</s>": N_("the sentence ends here"),
    "<en>": N_("begins a target in English"),
    "<zh>": N_("begins a target in Chinese"),
}


@dataclass(frozen=True)
class Row:
    """A token in words.

    Args:
        position: from 0, as in the positional encoding.
        token: as shown.
        id: in the vocabulary.
        meaning: message id.
    """

    position: int
    token: str
    id: int
    meaning: str


def rows(trace: Trace, side: str) -> list[Row]:
    """Every token of a side."""
    tokens, ids, words = trace.tokens[side], trace.meta["ids"][side], trace.words[side]
    return [
        Row(place, token, int(i), _meaning(token, int(i), alone=words.count(words[place]) == 1))
        for place, (token, i) in enumerate(zip(tokens, ids, strict=True))
    ]


def _meaning(token: str, i: int, *, alone: bool) -> str:
    if i < SPECIAL_IDS:
        return MEANINGS[token]
    if i < SPECIAL_IDS + BYTE_IDS:
        return N_("one byte of a character that the vocabulary does not hold")
    return N_("a word, a character or a mark") if alone else N_("part of a word")


def merges(steps: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """For each step the pair that went together; nothing at first."""
    joined: list[tuple[str, ...]] = [()]
    for before, after in pairwise(steps):
        at = next(i for i, part in enumerate(after) if part != before[i])
        joined.append((before[at], before[at + 1]))
    return joined
