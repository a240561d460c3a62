"""Two passes compared: which tokens belong together, how far apart their heads are, and which heads match."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.needs import Floats
from visformer.analysis.word_alignment import alignment
from visformer.errors import N_, TraceError
from visformer.trace import Trace
from visformer.trace.stacks import ranges, shape_of

if TYPE_CHECKING:
    import pandas as pd


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
        patterns = trace.layers("decoder.cross_attn").values()
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


def row_distances(first: NDArray[Any], second: NDArray[Any], rows: Partners, columns: Partners) -> Floats:
    """Total variation distance of aligned rows, TV(p, q) = 1/2 sum_k |p_k - q_k|: from 0 (equal) to 1.

    Weight on a column that only one side has counts in full.

    Args:
        first: (..., query, key), weights.
        second: the same of the other pass, whose leading axes broadcast.
        rows: the partners among the queries.
        columns: the partners among the keys.

    Returns:
        (..., pair of rows), in the order of ``rows.pairs``.
    """
    p, q = (np.asarray(each, dtype=np.float64) for each in (first, second))
    p, q = (each[..., _at(rows.pairs, i), :] for i, each in enumerate((p, q)))  # (..., pair, key)
    shared = np.abs(p[..., _at(columns.pairs, 0)] - q[..., _at(columns.pairs, 1)]).sum(axis=-1)
    alone = [each[..., list(of)].sum(axis=-1) for each, of in zip((p, q), columns.alone, strict=True)]
    return np.asarray((shared + alone[0] + alone[1]) / 2)


def partners_of(first: Trace, second: Trace, stack: str, *, by_source: bool = False) -> tuple[Partners, Partners]:
    """Return the partners among the queries and among the keys of an attention, see :func:`token_partners`.

    Raises:
        MissingTensor: a pass has no patterns of this attention.
        TraceError: no row has a partner.
    """
    axes = next(iter(first.layers(stack).values())).axes[1:]
    second.layers(stack)
    sides = [str(axis.side) for axis in axes]
    rows, columns = (
        token_partners(first, second, side, by_source=by_source and side == "tgt")  # type: ignore[arg-type]
        for side in sides
    )
    if not rows.pairs:
        raise TraceError(N_("These two have no token in common, so that no row can be compared with another."))
    return rows, columns


def head_differences(first: Trace, second: Trace, stack: str, *, by_source: bool = False) -> Floats:
    """Measure how far apart each head's rows are in two passes: the mean of :func:`row_distances` over aligned rows.

    It says that a head reads elsewhere, not what the model makes of it.

    Args:
        first: one pass.
        second: another one of the same model, or of one with as many layers and heads.
        stack: the name of the attention, such as "decoder.cross_attn".
        by_source: see :func:`token_partners`.

    Returns:
        (layer, head), from 0 to 1.

    Raises:
        MissingTensor: a pass has no patterns of this attention.
        TraceError: no row has a partner, or the passes differ in layers or heads: see :func:`match_heads`.
    """
    rows, columns = partners_of(first, second, stack, by_source=by_source)
    ones, others = (trace.layers(stack) for trace in (first, second))
    sizes = [f"{ranges(layers)} × {shape_of(layers)[1]}" for layers in (ones, others)]
    if sizes[0] != sizes[1]:
        raise TraceError(
            N_("One has layers (from 0) × heads {given}, the other {other}: match heads by their patterns."),
            given=sizes[0],
            other=sizes[1],
        )
    pairs = zip(ones.values(), others.values(), strict=True)
    return np.stack([row_distances(one.value, other.value, rows, columns).mean(axis=-1) for one, other in pairs])


def head_similarity(
    first: Trace | Iterable[Trace],
    second: Trace | Iterable[Trace],
    stack: str,
) -> Floats:
    """Measure how similar each head of one model is to each of another: 1 - mean TV over the aligned rows of all texts.

    Args:
        first: a Trace, or several of one model.
        second: Traces of the other model, of the same texts in the same order.
        stack: the name of the attention, such as "decoder.cross_attn".

    Returns:
        (layer, head, other layer, other head), from 0 to 1.

    Raises:
        MissingTensor: a pass has no patterns of this attention.
        TraceError: no row has a partner, there are no Traces, or not as many of both.
    """
    ones, others = _listed(first), _listed(second)
    if not ones or len(ones) != len(others):
        raise TraceError(
            N_("Heads are matched on the same texts: there are {given} and {other} traces."),
            given=len(ones),
            other=len(others),
        )
    total: Any = 0.0
    n_rows = 0
    for one, other in zip(ones, others, strict=True):
        rows, columns = partners_of(one, other, stack)
        patterns, there = one.stack(stack), other.stack(stack)
        flat = patterns.reshape(-1, *patterns.shape[2:])  # (head of all layers, query, key)
        sums = [row_distances(head, there, rows, columns).sum(axis=-1) for head in flat]
        total = total + np.reshape(sums, (*patterns.shape[:2], *there.shape[:2]))
        n_rows += len(rows.pairs)
    return np.asarray(1 - total / n_rows)


def match_heads(
    first: Trace | Iterable[Trace],
    second: Trace | Iterable[Trace],
    stack: str,
) -> "pd.DataFrame":
    """Find for each head of one model the most similar one of another, among all heads of the same attention.

    Numbers of heads mean nothing across trainings, so heads are matched by their patterns alone. The best of many is
    similar by selection: compare with "floor", and with two trainings that differ in their seed only ("mini-gpt" and
    "mini-gpt-2").

    Args:
        first: a Trace, or several of one model.
        second: Traces of the other model, of the same texts in the same order.
        stack: the name of the attention, such as "decoder.cross_attn".

    Returns:
        One row for each head of the first: layer, head, other_layer, other_head (from 0), similarity (from 0 to 1),
        floor (its mean similarity to all heads of the other), mutual (whether it is also the best match of its match).

    Raises:
        MissingTensor: a pass has no patterns of this attention.
        TraceError: no row has a partner, there are no Traces, or not as many of both.
    """
    import pandas as pd

    traces = _listed(first), _listed(second)
    similarity = head_similarity(*traces, stack)
    shape, there = similarity.shape[:2], similarity.shape[2:]
    table = similarity.reshape(np.prod(shape), np.prod(there))  # (head, other head)
    best, back = table.argmax(axis=1), table.argmax(axis=0)
    layers, heads = np.unravel_index(np.arange(len(table)), shape)
    other_layers, other_heads = np.unravel_index(best, there)
    ones, others = (each[0].layers(stack) for each in traces)
    return pd.DataFrame(
        {
            "layer": np.array([*ones])[layers],
            "head": heads,
            "other_layer": np.array([*others])[other_layers],
            "other_head": other_heads,
            "similarity": table.max(axis=1),
            "floor": table.mean(axis=1),
            "mutual": back[best] == np.arange(len(table)),
        }
    )


def _listed(traces: Trace | Iterable[Trace]) -> list[Trace]:
    return [traces] if isinstance(traces, Trace) else list(traces)


def _at(pairs: Sequence[tuple[int, int]], which: int) -> list[int]:
    return [pair[which] for pair in pairs]
