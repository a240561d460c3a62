"""Which tokens of two passes belong together, so that their attention can be compared cell by cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal

import numpy as np

from visformer.analysis.word_alignment import alignment
from visformer.trace import Trace

Side = Literal["src", "tgt"]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Partners:
    """The tokens of two passes, on one side, that are compared with each other; each has at most one partner.

    Args:
        sizes: number of tokens of the first and of the second pass.
        equal: (index in the first, index in the second) of equal tokens, ascending.
        replaced: the same of different tokens in the same place between equal ones.
        aligned: the same of words of the target that belong to the same source word.
    """

    sizes: tuple[int, int]
    equal: tuple[Pair, ...]
    replaced: tuple[Pair, ...] = ()
    aligned: tuple[Pair, ...] = ()
    pairs: tuple[Pair, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple(sorted((*self.equal, *self.replaced, *self.aligned))))

    @property
    def alone(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The tokens of the first and of the second pass that have no partner, ascending."""
        taken = ({i for i, _ in self.pairs}, {j for _, j in self.pairs})
        first, second = (
            tuple(i for i in range(n) if i not in known) for n, known in zip(self.sizes, taken, strict=True)
        )
        return first, second

    @property
    def union(self) -> tuple[tuple[int | None, int | None], ...]:
        """All tokens of both, those of the first in order: (first, second), None where there is no partner.

        A token of the second alone follows the one before it, and those of the first alone in the same place.
        """
        partner = dict(self.pairs)
        entries: list[tuple[int | None, int | None]] = [(i, partner.get(i)) for i in range(self.sizes[0])]
        for j in self.alone[1]:
            at = next((at for at, (_, other) in enumerate(entries) if j and other == j - 1), -1) + 1
            while at < len(entries) and entries[at][1] is None:
                at += 1
            entries.insert(at, (None, j))
        return tuple(entries)


def token_partners(first: Trace, second: Trace, side: Side, *, by_source: bool = False) -> Partners:
    """Align the tokens of two passes on one side.

    Equal tokens are partners, in the order of the longest common blocks; between them, runs of different tokens are, if
    both have the same number. If both models cut one and the same text into different tokens, partners are those that
    cover the same characters, and special tokens in the same place; no others.

    Args:
        first: one pass.
        second: the other.
        side: "src" or "tgt".
        by_source: whether words of the target without a partner also get one through the source: both take most from
            the same source word, by the mean weight of all cross-attention heads (:func:`alignment`, in the rows whose
            input is the word). For two targets of one source, in place of ``replaced``.

    Returns:
        The partners; none if a pass lacks the side.
    """
    one, other = (trace.tokens.get(side, ()) for trace in (first, second))
    keys = [_keys(trace, side) for trace in (first, second)]
    is_recut = one != other and keys[0][1] == keys[1][1]
    rows: Sequence[Sequence[object]] = (keys[0][0], keys[1][0]) if is_recut else (one, other)
    equal: list[Pair] = []
    replaced: list[Pair] = []
    for what, i, i_end, j, j_end in SequenceMatcher(a=rows[0], b=rows[1], autojunk=False).get_opcodes():
        for pair in zip(range(i, i_end), range(j, j_end), strict=False):
            if what == "equal" and not (first.special[side][pair[0]] and one[pair[0]] != other[pair[1]]):
                equal.append(pair)
            elif what == "equal" or (what == "replace" and i_end - i == j_end - j and not is_recut):
                replaced.append(pair)
    sizes = (len(one), len(other))
    if by_source:
        aligned = tuple(_by_source(first, second, Partners(sizes, tuple(equal))))
        return Partners(sizes, tuple(equal), aligned=aligned)
    return Partners(sizes, tuple(equal), tuple(replaced))


def _keys(trace: Trace, side: Side) -> tuple[Sequence[object], str]:
    """Return for each token the characters that it covers, of a special token where it is; and all characters.

    Spaces and case do not count: tokenizers differ in them.
    """
    keys = []
    text = ""
    for token, special in zip(trace.tokens.get(side, ()), trace.special.get(side, ()), strict=True):
        plain = "" if special else token.strip(" ␣").casefold()
        keys.append((len(text), len(text) + len(plain), special))
        text += plain
    return keys, text


def _by_source(first: Trace, second: Trace, known: Partners) -> Iterator[Pair]:
    """Pair the words of two targets, as far as they have no partner, that take most from the same source word."""
    left = known.alone
    words: list[dict[int, list[Sequence[int]]]] = []
    for trace, alone in zip((first, second), left, strict=True):
        patterns = trace.layers("decoder", "cross_attn").values()
        links = alignment(np.mean([layer.value.mean(axis=0) for layer in patterns], axis=0), trace, row="input")
        numbers = trace.words["tgt"]
        own = dict.fromkeys(word for word, special in zip(numbers, trace.special["tgt"], strict=True) if not special)
        tokens = [[i for i, word in enumerate(numbers) if word == number and i in alone] for number in own]
        by_word: dict[int, list[Sequence[int]]] = {}
        for source, target in sorted(links, key=lambda link: link[1]):
            if tokens[target]:
                by_word.setdefault(source, []).append(tokens[target])
        words.append(by_word)
    for source in sorted(words[0].keys() & words[1].keys()):
        for one, other in zip(words[0][source], words[1][source], strict=False):
            yield from zip(one, other, strict=False)
