"""The places of the whole model to zoom in on, down to one cell and the sum behind its weight (section 3.2.1).

Numbers count from 0 here and from 1 in the text of a place, as browsers and links write it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, LinkError
from visformer.pictures import map as model_map
from visformer.pictures.head import Place, key_head, products_of, score_of, weight_of
from visformer.trace import Trace
from visformer.trace.stacks import ranges

_TEXT = re.compile(
    r"(encoder|decoder)\.([1-9][0-9]{0,3})"
    r"(?:\.(self_attn|cross_attn|ffn)(?:\.([1-9][0-9]{0,3})(?:\.([1-9][0-9]{0,4})\.([1-9][0-9]{0,4}))?)?)?"
)

RECORD = tuple(f"{{path}}.{name}" for name in ("q", "k", "scores", "mask", "pattern", "bias", "sink"))
"""Globs over the tensors of one attention that the sum needs; ``{path}``: such as "decoder.2.cross_attn"."""

INSIDE = (
    "{path}.hidden",
    "{path}.out",
    "{stack}.{layer}.resid_self",
    "{stack}.{layer}.resid_cross",
    "{stack}.{layer}.norm_ffn",
)
"""The tensors of one feed-forward network that its inside needs; ``{path}``: such as "encoder.2.ffn"."""

MOST_NUMBERS = 200_000
"""Of a long text, the inside has so many tokens that it has at most so many numbers."""

MOST_TERMS = 6
"""The largest products that are shown one by one."""

_EXACT = 0.01
"""A smooth activation gives hardly any exact zeros."""

MOST_KEYS = 8
"""The largest weights of the row that are shown one by one."""


@dataclass(frozen=True)
class Zoom:
    """A layer; a sublayer; a head; or one cell.

    Args:
        stack: "encoder" or "decoder".
        layer: its number in the model.
        kind: "self_attn", "cross_attn" or "ffn"; None: the whole layer.
        head: None: the whole sublayer.
        query: of a cell; None: the whole head.
        key: of a cell.
    """

    stack: str
    layer: int
    kind: str | None = None
    head: int | None = None
    query: int | None = None
    key: int | None = None

    @classmethod
    def read(cls, text: str) -> "Zoom":
        """Parse a text such as "decoder.2.cross_attn.3".

        Raises:
            LinkError: it is no place.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise LinkError(N_("a place is written such as decoder.2.cross_attn.3, with numbers from 1."))
        layer, *places = (None if number is None else int(number) - 1 for number in match.group(2, 4, 5, 6))
        assert layer is not None
        return cls(match[1], layer, match[3], *places)

    def __str__(self) -> str:
        numbers = [None if place is None else place + 1 for place in (self.head, self.query, self.key)]
        parts = (self.stack, self.layer + 1, self.kind, *numbers)
        return ".".join(str(part) for part in takewhile(lambda part: part is not None, parts))

    @property
    def path(self) -> str:
        """The sublayer in the names of tensors, such as "decoder.1.cross_attn"."""
        return f"{self.stack}.{self.layer}.{self.kind}"

    def require_in(self, trace: Trace) -> "Zoom":
        """Return this place if the Trace has it.

        Raises:
            LinkError: it has not; the message says what there is.
        """
        layers = {layer.number: layer for layer in model_map.layers(trace, self.stack)}
        if not layers:
            raise LinkError(N_("this model has no such stack."))
        if self.layer not in layers:
            raise LinkError(N_("the layers of this stack are {layers}."), layers=ranges(i + 1 for i in layers))
        shown = {one.kind: one for one in layers[self.layer].sublayers}
        if self.kind is not None and self.kind not in shown:
            raise LinkError(N_("this layer has no such sublayer."))
        if self.head is not None:
            self._require_head(trace)
        return self

    def _require_head(self, trace: Trace) -> None:
        name = next((f"{self.path}.{what}" for what in ("pattern", "map") if f"{self.path}.{what}" in trace), None)
        if name is None:
            raise LinkError(N_("this sublayer has no heads."))
        ends = {
            "head": N_("the heads of a layer are 1 to {n}."),
            "query": N_("the query tokens here are 1 to {n}."),
            "key": N_("the key tokens here are 1 to {n}."),
        }
        for (place, message), n in zip(ends.items(), trace[name].shape, strict=True):
            if (getattr(self, place) or 0) >= n:
                raise LinkError(message, n=n)

    def within(self, trace: Trace) -> "Zoom | None":
        """Return this place or, where another text or model has no such one, the closest around it; None: none."""
        for place in (self, replace(self, query=None, key=None), Zoom(self.stack, self.layer, self.kind),
                      Zoom(self.stack, self.layer)):  # fmt: skip
            try:
                return place.require_in(trace)
            except LinkError:
                continue
        return None


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


@dataclass(frozen=True)
class Inside:
    """What a feed-forward network computes, FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (section 3.3), of the first tokens.

    Args:
        rows: of "input" (x, where it is known), "hidden" (after the activation) and "out" (what is added to the stream)
            those in the Trace, (token, d_model) or (token, d_ff).
        active: the share of the hidden units that are not 0; None: the activation gives no exact zeros, as ReLU does.
    """

    rows: Mapping[str, NDArray[np.floating]]
    active: float | None


def inside(trace: Trace, zoom: Zoom, norm: str) -> Inside | None:
    """Return what a feed-forward network computes; None: its hidden units are not in the Trace.

    Args:
        trace: with :data:`INSIDE`, as far as the model has it.
        zoom: the place of the network.
        norm: where the stack normalises, see :class:`visformer.trace.blocks.StackBlocks`.
    """
    if f"{zoom.path}.hidden" not in trace or f"{zoom.path}.out" not in trace:
        return None
    enters = {"pre": ("norm_ffn",), "post": ("resid_cross", "resid_self"), "output": ("resid_cross", "resid_self")}
    before = [name for each in enters.get(norm, ()) if (name := f"{zoom.stack}.{zoom.layer}.{each}") in trace]
    names = {**({"input": before[0]} if before else {}), "hidden": f"{zoom.path}.hidden", "out": f"{zoom.path}.out"}
    values = {what: trace[name].value for what, name in names.items()}
    most = max(1, MOST_NUMBERS // sum(rows.shape[-1] for rows in values.values()))
    zeros = float((values["hidden"] == 0).mean())
    return Inside({what: rows[:most] for what, rows in values.items()}, 1 - zeros if zeros > _EXACT else None)


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
        masked=_mask_effect(_mask(trace, place), key),
        softmax="\n".join(softmax),
    )


def _mask_effect(mask: NDArray[np.bool_], key: int) -> str:
    if not mask[key]:
        return N_("The mask sets this score to −∞.")
    return N_("No key is masked for this query.") if mask.all() else N_("This key is not masked, others are.")
