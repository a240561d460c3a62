"""Scores that summarise a head: how sharp its attention is, how far it reaches, and which tokens it goes to.

Heads that attend to the previous or next position, the first token, themselves, or separators were found in BERT by
Clark et al. 2019 ("What Does BERT Look At?", sections 3.1 to 3.3: positions, separators, entropy), and in the encoder
of a translation model by Voita et al. 2019 ("Analyzing Multi-Head Self-Attention", section 5.1: positional heads).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from visformer.adapters.checkpoints import model_of, start_of
from visformer.errors import N_, TraceError
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import PREFIX
from visformer.trace.overview import PatternOnDemand
from visformer.trace.row_totals import ATTENDING, BY_ROW, COUNTED, RECEIVED, ROWS, Floats, Marks, Sums, Tokens
from visformer.trace.stacks import STACKS, Stack, ranges

_BLOCK = 1 << 16
"""Weights per block: few enough to fit the CPU cache, enough to amortise NumPy's call overhead."""


@dataclass(frozen=True)
class Score:
    """A statistic of each head; ``label`` and ``about``, its definition in one sentence, are message ids.

    ``cross``: whether it is meaningful for cross-attention, whose rows and columns are different sentences.
    """

    name: str
    label: str
    about: str
    cross: bool


SCORES = (
    Score(
        "entropy",
        N_("Entropy"),
        N_("Entropy of a row in nats: 0 if all weight is on one key, ln n if it is spread evenly over n."),
        cross=True,
    ),
    Score(
        "distance",
        N_("Distance"),
        N_("How many positions a row looks back, averaged by weight; negative if it looks ahead."),
        cross=False,
    ),
    Score(
        "previous",
        N_("Previous token"),
        N_("Weight on the position just before the row's own; not of the first row."),
        cross=False,
    ),
    Score(
        "next",
        N_("Next token"),
        N_("Weight on the position just after the row's own; not of the last row."),
        cross=False,
    ),
    Score("first", N_("First token"), N_("Weight on the first key."), cross=True),
    Score(
        "diagonal",
        N_("Diagonal"),
        N_(
            "Weight on the row's own position; in cross-attention, on the key at the same relative position in its "
            "sentence."
        ),
        cross=True,
    ),
    Score("same_token", N_("Same token"), N_("Weight on other positions with the same token as the row."), cross=False),
    Score(
        "separator",
        N_("Separator"),
        N_("Weight on special tokens and on tokens that are only punctuation."),
        cross=True,
    ),
)
"""All scores, in menu order. Each is a mean over the rows that are not fully masked and that can have it."""


def head_scores(
    layers: Sequence[Floats | TracedTensor] | Floats,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    special: Sequence[bool],
    cross: bool,
) -> Mapping[str, npt.NDArray[np.float64]]:
    """Compute every score of every head.

    Args:
        layers: for each layer its pattern, (head, query, key), probabilities; one on demand is not computed.
        queries: the tokens of the rows.
        keys: the tokens of the columns.
        special: which of ``keys`` are special tokens.
        cross: whether rows and columns are different sentences; scores that are then meaningless are left out.

    Returns:
        Score name to (layer, head) float64; NaN for a head without a row that is not masked and can have the score,
        and, where layers differ in heads, for heads that a layer does not have.
    """
    totals = _totals([*map(_of_one_text, layers)], Marks.of([queries], [keys], [special], cross))
    return _means({name: total[0] for name, total in totals.items()})


def mean_head_scores(
    traces: Trace | Iterable[Trace],
    stack: str,
) -> Mapping[str, npt.NDArray[np.float64]]:
    """Compute every score of every head over many texts: each is a mean over the rows of all Traces.

    Args:
        traces: one Trace, or any iterable of Traces of one model, such as ``model.trace_many(texts)``; each is read
            once and not kept.
        stack: the name of the attention, such as "decoder.cross_attn".

    Returns:
        As for :func:`head_scores`.

    Raises:
        MissingTensor: a Trace has no patterns of this attention.
        TraceError: there is no Trace, they differ in layers or heads, or hold maps.
    """
    sums: dict[str, npt.NDArray[np.float64]] = {}
    before = None
    for trace in [traces] if isinstance(traces, Trace) else traces:
        layers = trace.layers(stack)
        before = require_alike(layers, before)
        totals = row_totals([trace], layers, [_of_one_text(of_tokens(trace, layer)) for layer in layers.values()])
        for name in (BY_ROW, ATTENDING, RECEIVED):
            del totals[name]
        sums = {name: total[0] + sums.get(name, 0.0) for name, total in totals.items()}
    if not sums:
        raise TraceError(N_("There are no traces to score: none came, or an earlier loop has used them up."))
    return _means(sums)


def require_alike(layers: Mapping[int, TracedTensor], before: str | None) -> str:
    """Require attention weights with the layers and heads of the Trace before; return these in words.

    Raises:
        TraceError: they differ in layers or heads, or hold maps.
    """
    one = next(iter(layers.values()))
    if one.name.endswith(".map"):
        raise TraceError(N_("{name} holds any numbers: only attention weights have scores of heads."), name=one.name)
    heads = [len(layer) for layer in layers.values()]
    given = f"{ranges(layers)} × {', '.join(map(str, heads if len({*heads}) > 1 else heads[:1]))}"
    if before is not None and given != before:
        raise TraceError(
            N_("Traces of one model belong together: one has layers (from 0) × heads {given}, others {before}."),
            given=given,
            before=before,
        )
    return given


def row_totals(
    traces: Sequence[Trace], layers: Mapping[int, TracedTensor], patterns: Sequence[Floats | Sums]
) -> dict[str, npt.NDArray[np.float64]]:
    """Sum each score over the rows of each Trace, of those with as many tokens.

    Args:
        traces: their tokens.
        layers: the patterns of one attention of any of them, which the axes are taken from.
        patterns: for each layer (text, head, query, key), or what was added up of it.

    Returns:
        (text, layer, head) for each score, ROWS and what COUNTED names; (text, layer, head, query) for BY_ROW and
        ATTENDING; (text, layer, head, key) for RECEIVED.
    """
    queries, keys = (str(axis.side).removeprefix(PREFIX) for axis in next(iter(layers.values())).axes[1:])
    rows, columns = ([trace.tokens[side] for trace in traces] for side in (queries, keys))
    special = [trace.special[keys] for trace in traces]
    return _totals(patterns, Marks.of(rows, columns, special, queries != keys))


def of_tokens(trace: Trace, pattern: TracedTensor) -> TracedTensor | Floats:
    """Return a pattern's columns of its tokens, without keys before them: scores of positions are of tokens."""
    side = str(pattern.axes[2].side)
    if not side.startswith(PREFIX):
        return pattern
    columns: Floats = pattern.value[..., -len(trace.tokens[side.removeprefix(PREFIX)]) :]
    return columns


def is_word(token: str, special: bool = False) -> bool:
    """Whether a token is a word or a part of one: it has a letter or a digit, and stands for text."""
    return not special and any(map(str.isalnum, token))


def first_head(trace: Trace) -> tuple[str, int, int]:
    """Return the stack, layer and head that pages, files and notebooks begin with.

    For a bundled model the one chosen for it, see ``scripts/choose_heads.py``; otherwise the clearest head of the first
    attention in the Trace.
    """
    there = {stack.name: stack for stack in STACKS if stack.in_trace(trace)}
    chosen = start_of(model_of(str(trace.meta.get("model") or ""))[0])
    if chosen is not None and chosen[0] in there and chosen[1] in there[chosen[0]].layers(trace):
        return chosen
    first = next(iter(there.values()))
    return (first.name, *clearest_head(trace, first))


def clearest_head(trace: Trace, stack: Stack) -> tuple[int, int]:
    """Return the layer and head whose words read another word most: their largest weight on one, on average.

    Special tokens and punctuation count neither as readers nor as read. Without two words it is the first head. Where
    heads are computed on demand it is the most decided one, by the entropy of its rows, of those that give less than
    half of their weight to the first token and to the row's own position; of all, if there is none.
    """
    if any(isinstance(pattern, PatternOnDemand) for pattern in stack.layers(trace).values()):
        return _most_decided_head(trace, stack)
    readers, read = (
        np.array([*map(is_word, trace.tokens[side], trace.special[side])], dtype=bool) for side in stack.sides
    )
    others = readers[:, None] & read
    if stack.kind == "self_attn":
        np.fill_diagonal(others, False)
    best, most = (next(iter(stack.layers(trace))), 0), 0.0
    for layer, pattern in stack.layers(trace).items():
        means = (
            np.where(others, of_tokens(trace, pattern), 0.0).max(axis=-1).sum(axis=-1)
        )  # (head,), of as many words for every head
        if means.max() > most:
            best, most = (layer, int(means.argmax())), float(means.max())
    return best


def _most_decided_head(trace: Trace, stack: Stack) -> tuple[int, int]:
    """Return the layer and head of a long text to begin with, from what a pass has added up."""
    rows, columns = stack.sides
    layers = stack.layers(trace)
    scores = head_scores(
        [*layers.values()],
        queries=trace.tokens[rows],
        keys=trace.tokens[columns],
        special=trace.special[columns],
        cross=rows != columns,
    )  # each (layer, head)
    elsewhere = (scores["first"] + scores["diagonal"] < 0.5) | (not np.any(scores["first"] + scores["diagonal"] < 0.5))
    layer, head = np.unravel_index(np.nanargmin(np.where(elsewhere, scores["entropy"], np.inf)), elsewhere.shape)
    return [*layers][layer], int(head)


def strongest_word(
    pattern: npt.ArrayLike, queries: Tokens, keys: Tokens, special: tuple[Sequence[bool], Sequence[bool]]
) -> int | None:
    """Return the row of the word that reads another one most.

    Of the words whose largest weight lies on a word, the one with the largest; of equal ones, to two decimals, the one
    of the longest pair, so that a name goes before a pronoun. If none reads a word most, it is chosen among all words.

    Args:
        pattern: (query, key), the weights of one head.
        queries: the tokens, or words, that read.
        keys: those that are read.
        special: which of the queries and of the keys stand for no text.

    Returns:
        The row; None: there are no words.
    """
    weights = np.asarray(pattern)
    best: dict[int, tuple[bool, float, int]] = {}
    for row, token in enumerate(queries):
        if is_word(token, special[0][row]):
            key = int(weights[row].argmax())
            reads_word = is_word(keys[key], special[1][key])
            best[row] = (reads_word, round(float(weights[row, key]), 2), len(token) + len(keys[key]))
    return max(best, key=best.__getitem__, default=None)


def _blocks(layers: Sequence[Floats]) -> Iterator[Floats]:
    """Yield all heads in blocks (text, head, query, key) of limited size."""
    if len(layers) * layers[0].size <= _BLOCK:
        yield np.concatenate([*layers], axis=1)
        return
    for layer in layers:
        n_heads, of_head = layer.shape[1], layer[:, 0].size
        step = max(1, _BLOCK // max(1, of_head))
        for head in range(0, n_heads, step):
            yield layer[:, head : head + step]


def _of_one_text(layer: Floats | TracedTensor) -> Floats | Sums:
    """A pattern (head, query, key) with an axis of texts, or what a pass has added up of it."""
    if isinstance(layer, PatternOnDemand):
        return layer.overview.sums.of_one_text()
    return np.asarray(layer)[None]


def _totals(layers: Sequence[Floats | Sums], marks: Marks) -> dict[str, npt.NDArray[np.float64]]:
    """Compute what :func:`row_totals` returns; ``layers``: for each (text, head, query, key), or its sums."""
    known = [layer for layer in layers if isinstance(layer, Sums)]
    arrays = [layer for layer in layers if not isinstance(layer, Sums)]
    sums = known if not arrays else [Sums.of(block, marks) for block in _blocks(arrays)]
    if known and arrays:  # an edit by a function has one layer computed whole
        sums = [layer if isinstance(layer, Sums) else Sums.of(layer, marks) for layer in layers]
    blocks = [each.totals(marks) for each in sums]
    joined = {name: np.concatenate([block[name] for block in blocks], axis=1) for name in blocks[0]}
    heads = [(layer.mass if isinstance(layer, Sums) else layer).shape[1] for layer in layers]
    has = np.arange(max(heads)) < np.array(heads)[:, None]  # (layer, head)
    return {name: _by_layer(total, has) for name, total in joined.items()}


def _by_layer(totals: npt.NDArray[np.float64], has: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Turn (text, all heads, ...) into (text, layer, head, ...), NaN for heads that a layer does not have."""
    table = np.full((len(totals), *has.shape, *totals.shape[2:]), np.nan)
    table[:, has] = totals
    return table


def _means(totals: Mapping[str, npt.NDArray[np.float64]]) -> dict[str, npt.NDArray[np.float64]]:
    """Divide by the number of rows; NaN without one. Scores in menu order."""
    means = {}
    for name in (score.name for score in SCORES if score.name in totals):
        rows = totals[COUNTED.get(name, ROWS)]
        means[name] = np.divide(totals[name], rows, out=np.full(rows.shape, np.nan), where=rows > 0)
    return means
