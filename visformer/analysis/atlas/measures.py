"""What is summed over the rows of each head, beside the scores of the explorer. Each is a mean over its own rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.atlas.data import Record
from visformer.analysis.heads import SCORES, row_totals
from visformer.trace import Trace, TracedTensor
from visformer.trace.row_totals import ATTENDING, BY_ROW, COUNTED, RECEIVED, ROWS, separators

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measure:
    """A statistic of each head; ``about``: its definition. ``cross``, ``self``: the attention that it is told of."""

    name: str
    about: str
    self: bool = True
    cross: bool = True


MEASURES = (
    *(Measure(score.name, score.about, cross=score.cross) for score in SCORES),
    Measure("special", "Weight on special tokens."),
    Measure("punctuation", "Weight on tokens that are only punctuation."),
    Measure("sink", "Weight that all rows of a text together give to the key that they read most."),
    Measure(
        "induction",
        "Weight on tokens that followed the row's token earlier in the text; rows whose token has been there before.",
        cross=False,
    ),
    Measure("syntactic_head", "Weight on the syntactic head of the row's word; rows with one.", cross=False),
    Measure("dependents", "Weight on words whose syntactic head is the row's word; rows with such words.", cross=False),
    Measure(
        "alignment",
        "Weight on the source words that are aligned with the word that the row predicts; rows with such words.",
        self=False,
    ),
)
"""All statistics; those that the data or the attention do not give have no rows."""


BINS = 20
"""Bins of a histogram of texts."""

_ENDS = {"distance": (-9.5, 10.5)}
"""Where the bins of a statistic begin and end, if not at 0 and 1; whatever is beyond is in the outermost bin."""


def names(*, cross: bool) -> tuple[str, ...]:
    """Return the names of the statistics of cross-attention, or of self-attention."""
    return tuple(measure.name for measure in MEASURES if (measure.cross if cross else measure.self))


def edges(name: str) -> Floats:
    """Return where the bins of a statistic of texts are: the begin of each, and the end of the last, (BINS + 1,)."""
    return np.linspace(*_ENDS.get(name, (0.0, 1.0)), BINS + 1)


def histograms(names: Sequence[str], values: Floats, counted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count texts by bin.

    Args:
        names: of the statistics.
        values: (statistic, text, layer, head).
        counted: which of them there are.

    Returns:
        (statistic, layer, head, bin): numbers of texts.
    """
    begin, end = np.array([edges(name)[[0, -1]] for name in names]).T.reshape(2, -1, 1, 1, 1)
    counted = counted & np.isfinite(values)  # half precision may overflow
    share = ((values - begin) / (end - begin))[counted]
    shape = values.shape[0], *values.shape[2:]
    first = np.arange(0, BINS * np.prod(shape), BINS).reshape(shape)[:, None]  # of each head
    bins = np.clip(np.floor(share * BINS), 0, BINS - 1).astype(np.intp) + np.broadcast_to(first, values.shape)[counted]
    return np.bincount(bins, minlength=BINS * first.size).reshape(*shape, BINS)


@dataclass(frozen=True)
class Measured:
    """Sums over the rows of each of several texts, of all heads of one attention.

    Args:
        totals: by statistic, (text, layer, head): its total over rows, and its number of rows.
        entropy: (text, layer, head, query).
        rows: (text, layer, head, query): 1 for a row that is not fully masked.
        largest: (text, layer, head): the entropy of its rows together if each spread its weight evenly.
    """

    totals: Mapping[str, tuple[Floats, Floats]]
    entropy: Floats
    rows: Floats
    largest: Floats


def measured(
    records: Sequence[Record],
    traces: Sequence[Trace],
    layers: Mapping[int, TracedTensor],
    pattern: NDArray[np.float32],
) -> Measured:
    """Sum every statistic over the rows of texts with as many tokens.

    Args:
        records: with the tree or the links, if the data have them.
        traces: of their texts.
        layers: patterns of one attention of any of them, by layer.
        pattern: those of all, (text, layer, head, query, key).
    """
    scores = row_totals(traces, layers, [*np.moveaxis(pattern, 1, 0)])
    entropy, attending, received = (scores[name] for name in (BY_ROW, ATTENDING, RECEIVED))
    told = [score.name for score in SCORES if score.name in scores]
    totals, rows = {name: (scores[name], scores[COUNTED.get(name, ROWS)]) for name in told}, scores[ROWS]
    queries, keys = (str(axis.side) for axis in next(iter(layers.values())).axes[1:])
    special = np.array([trace.special[keys] for trace in traces], dtype=bool)  # (text, key)
    punctuation = np.stack([separators(trace.tokens[keys], trace.special[keys]) for trace in traces]) & ~special
    totals["special"] = np.einsum("tlhk,tk->tlh", received, special), rows
    totals["punctuation"] = np.einsum("tlhk,tk->tlh", received, punctuation), rows
    totals["sink"] = received.max(axis=-1), rows
    for i, (record, trace) in enumerate(zip(records, traces, strict=True)):
        for name, cells in _cells(record, trace, queries, keys).items():
            if cells is not None and cells.any():
                total, counted = totals.setdefault(name, (np.zeros(rows.shape), np.zeros(rows.shape)))
                total[i] = pattern[i].reshape(*rows.shape[1:], -1) @ cells.ravel().astype(np.float64)
                counted[i] = cells.any(axis=1).sum()
    even = even_weights(layers[min(layers)].name, queries, keys, *pattern.shape[-2:])
    return Measured(totals, entropy, attending, attending @ -np.log(even))


def even_weights(name: str, queries: str, keys: str, n_queries: int, n_keys: int) -> Floats:
    """Return the weight of each key, (query,), in rows that spread it evenly over the keys that they may attend to."""
    causal = name.startswith("decoder.") and queries == keys
    even: Floats = 1 / np.arange(1, n_queries + 1) if causal else np.full(n_queries, 1 / n_keys)
    return even


def _cells(record: Record, trace: Trace, queries: str, keys: str) -> dict[str, NDArray[np.bool_] | None]:
    """Return the cells (query, key) of statistics that are told of some rows only."""
    if queries != keys:
        return {"alignment": _aligned(record, trace)}
    cells = {"induction": _induction(trace.tokens[queries])}
    if record.heads is not None and queries == next(iter(trace.tokens)):
        cells["syntactic_head"] = _heads(record.heads, trace, queries)
        cells["dependents"] = None if cells["syntactic_head"] is None else cells["syntactic_head"].T
    return cells


def _induction(tokens: tuple[str, ...]) -> NDArray[np.bool_] | None:
    """Return the cells of keys whose previous token is the row's, before the row."""
    if len(set(tokens)) == len(tokens):
        return None
    number = {token: i for i, token in enumerate(tokens)}
    kind = np.array([number[token] for token in tokens])
    after = np.zeros((len(kind), len(kind)), dtype=bool)
    after[:, 1:] = kind[:, None] == kind[:-1]  # (query, key): the key before this one has the row's token
    after &= np.tri(len(kind), dtype=bool)  # the token that followed is not later than the row, itself at most
    return after


def _heads(heads: tuple[int, ...], trace: Trace, side: str) -> NDArray[np.bool_] | None:
    """Return the cells where the key's word is the syntactic head of the row's; None: the model has other words."""
    words = _words(trace, side)
    if len(words) != len(heads):
        return None
    tree = np.zeros((len(heads), len(heads)), dtype=bool)
    dependents = [i for i, head in enumerate(heads) if head]
    tree[dependents, [heads[i] - 1 for i in dependents]] = True
    return (words.T.astype(np.intp) @ tree @ words) > 0


def _aligned(record: Record, trace: Trace) -> NDArray[np.bool_] | None:
    """Return the cells where the source word is aligned with the word that the row predicts."""
    if record.alignment is None:
        return None
    source, target = _words(trace, "src"), _words(trace, "next")
    links = np.zeros((len(target), len(source)), dtype=bool)
    for i, j in record.alignment:
        if i >= len(source) or j >= len(target):
            return None
        links[j, i] = True
    return (target.T.astype(np.intp) @ links @ source) > 0


def _words(trace: Trace, side: str) -> NDArray[np.bool_]:
    """(word, token): whether a token belongs to a word; special tokens belong to none."""
    words, special = np.array(trace.words[side]), np.array(trace.special[side], dtype=bool)
    each = np.array([*dict.fromkeys(words[~special])])
    belongs: NDArray[np.bool_] = (each[:, None] == words) & ~special
    return belongs
