"""One cell of a head: the sum behind a single weight (section 3.2.1), from the products of q and k to the softmax."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_
from visformer.pictures.head import Place, key_head, products_of, score_of, weight_of
from visformer.trace import Trace

RECORD = tuple(f"{{path}}.{name}" for name in ("q", "k", "scores", "mask", "pattern", "bias", "sink"))
"""Globs over the tensors of one attention that the sum needs; ``{path}``: such as "decoder.2.cross_attn"."""

MOST_TERMS = 6
"""The largest products that are shown one by one."""

MOST_KEYS = 8
"""The largest weights of the row that are shown one by one."""


@dataclass(frozen=True)
class Term:
    """What one dimension, from 0, adds to q · k."""

    dimension: int
    q: float
    k: float

    @property
    def product(self) -> float:
        """The summand q · k."""
        return self.q * self.k


@dataclass(frozen=True)
class Sum:
    """How the score of a cell is computed.

    Args:
        terms: the largest products, by their size.
        others: the sum of all others.
        d_k: the number of dimensions.
        product: q · k.
        score: before the mask.
        written: the score as lines of text, or a message id, see :func:`visformer.pictures.head.score_of`.
        hidden: whether the mask hides the key.
        masked: a message id that says what the mask does.
        softmax: the weight as lines of text.
    """

    terms: tuple[Term, ...]
    others: float
    d_k: int
    product: float
    score: float
    written: str
    hidden: bool
    masked: str
    softmax: str


@dataclass(frozen=True)
class Key:
    """A key of the row: its place from 0, its score, -inf if masked and None if unknown, and its weight."""

    place: int
    score: float | None
    weight: float


@dataclass(frozen=True)
class Cell:
    """A weight, and what it is computed from.

    Args:
        weight: of the cell, a probability.
        sum: None: the model does not give its queries and keys.
        keys: those of the row with the largest weights, and the cell's own, in their order.
        n_others: the number of the row's other keys.
        others: the sum of their weights.
        sink: the weight that goes to no key; None: the model has no sink.
    """

    weight: float
    sum: Sum | None
    keys: tuple[Key, ...]
    n_others: int
    others: float
    sink: float | None


def cell(trace: Trace, place: Place, key: int) -> Cell:
    """Return what a cell's weight is computed from.

    Args:
        trace: with :data:`RECORD`, as far as the model has it; at least the pattern.
        place: the attention, head and query.
        key: the place of the key, from 0.
    """
    weights = place.row(trace, "pattern").astype(np.float64)  # (key,)
    known = f"{place.path}.scores" in trace
    scores = _masked(trace, place) if known else None
    shown = np.union1d(np.argsort(-weights, kind="stable")[:MOST_KEYS], [key])
    return Cell(
        weight=float(weights[key]),
        sum=_sum(trace, place, key) if known and f"{place.path}.q" in trace else None,
        keys=tuple(Key(int(i), None if scores is None else float(scores[i]), float(weights[i])) for i in shown),
        n_others=len(weights) - len(shown),
        others=float(np.delete(weights, shown).sum()),
        sink=float(place.row(trace, "sink")) if f"{place.path}.sink" in trace else None,
    )


def _masked(trace: Trace, place: Place) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = np.where(_mask(trace, place), place.row(trace, "scores"), -np.inf)
    return scores


def _mask(trace: Trace, place: Place) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = place.row(trace, "mask")
    return mask


def _sum(trace: Trace, place: Place, key: int) -> Sum:
    q = place.row(trace, "q").astype(np.float64)  # (d_k,)
    k = trace[f"{place.path}.k"].value[key_head(trace, place), key].astype(np.float64)  # (d_k,)
    each = q * k
    largest = np.argsort(-np.abs(each), kind="stable")[:MOST_TERMS]
    total = float(products_of(trace, place)[key])
    softmax = weight_of(trace, place, key, float(place.row(trace, "pattern")[key])).split("\n")
    softmax[2:3] = [f"{line.partition(' / ')[0]} / Σ exp" for line in softmax[2:3]]  # not those of all keys
    return Sum(
        terms=tuple(Term(int(i), float(q[i]), float(k[i])) for i in largest),
        others=float(np.delete(each, largest).sum()),
        d_k=len(q),
        product=total,
        score=float(place.row(trace, "scores")[key]),
        written=score_of(trace, place, key, total),
        hidden=not _mask(trace, place)[key],
        masked=_said(_mask(trace, place), key),
        softmax="\n".join(softmax),
    )


def _said(mask: NDArray[np.bool_], key: int) -> str:
    if not mask[key]:
        return N_("The mask sets this score to −∞.")
    return N_("No key is masked for this query.") if mask.all() else N_("This key is not masked, others are.")
