"""Attention head by head in blocks of rows: of every head an overview is kept, and nothing that grows with n².

A block's weights stay in the CPU's cache; keys that no row of a block may attend to are not computed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from visformer.edits.base import _Edit
from visformer.model.taps import AttentionInputs
from visformer.system import cancellation
from visformer.trace.names import Axis
from visformer.trace.overview import Overview, PatternOnDemand, Rule, bins
from visformer.trace.row_totals import Sums, kinds_of, same_place

_BLOCK = 128
"""Rows of a block, about: whole runs of a thumbnail."""

CELLS = ("bias", "scores", "mask", "pattern")
"""Tensors (batch, head, query, key): what needs one of them whole is computed whole."""


@dataclass(frozen=True)
class _Rows:
    """A block of rows, and the keys before ``stop`` that at least one of them may attend to.

    From key ``at`` on it has ``hidden``, bool (row, key), where a row may not attend; None: nowhere before ``stop``.
    """

    first: int
    end: int
    stop: int
    at: int = 0
    hidden: Tensor | None = None
    blind: Tensor | None = None  # bool (row,), which rows may attend to nothing; None: no row

    @classmethod
    def under(cls, mask: Tensor, first: int) -> "_Rows":
        """The rows of a mask, bool (row, key), True = may attend, which begin with number ``first``."""
        seen, end = mask.any(dim=0).nonzero(), first + len(mask)
        stop = int(seen[-1]) + 1 if len(seen) else 1
        hidden = ~mask[:, :stop]
        some = hidden.any(dim=0).nonzero()
        if not len(some):
            return cls(first, end, stop)
        at, blind = int(some[0]), hidden.all(dim=1)
        return cls(first, end, stop, at, hidden[:, at:].contiguous(), blind if bool(blind.any()) else None)


class _Mask:
    """Where one head, or all, may attend."""

    def __init__(self, mask: Tensor | None, n_queries: int, n_keys: int) -> None:
        """Split the rows into blocks; ``mask``: bool (query, key), True = may attend."""
        starts = bins(n_queries)
        step = max(1, _BLOCK * (len(starts) - 1) // max(1, n_queries))  # runs in a block
        ends = [*starts[:-1:step].tolist(), n_queries]
        self.blocks = [
            _Rows(first, end, n_keys) if mask is None else _Rows.under(mask[first:end], first)
            for first, end in pairwise(ends)
        ]
        self.bits = None if mask is None else np.packbits(mask.cpu().numpy(), axis=-1)  # (query, key / 8)


@dataclass
class Shared:
    """What the layers of a pass have in common, so that it is worked out once.

    Args:
        tokens: returns the tokens of a side as displayed.
    """

    tokens: Callable[[str], Sequence[str]]
    # By id: the tensors are held, too, so that their ids stay theirs.
    masks: dict[tuple[int, int, int], tuple[Tensor | None, _Mask]] = field(default_factory=dict)
    lines: dict[int, tuple[Tensor, Tensor | None]] = field(default_factory=dict)

    def mask(self, given: Tensor | None, n_queries: int, n_keys: int) -> _Mask:
        """The blocks of a mask, broadcastable to (1, 1, query, key)."""
        key = (id(given), n_queries, n_keys)
        if key not in self.masks:
            self.masks[key] = given, _Mask(_plain(given, n_queries, n_keys), n_queries, n_keys)
        return self.masks[key][1]

    def diagonals(self, bias: Tensor) -> Tensor | None:
        """The numbers (head, query + key - 1) of a bias (1, head, query, key), if it is one of the distance alone."""
        if id(bias) not in self.lines:
            self.lines[id(bias)] = bias, _diagonals(bias[0])
        return self.lines[id(bias)][1]


def _plain(mask: Tensor | None, n_queries: int, n_keys: int) -> Tensor | None:
    """The mask (query, key) of all heads."""
    return None if mask is None else mask.expand(1, 1, n_queries, n_keys)[0, 0]


def _diagonals(bias: Tensor) -> Tensor | None:
    _, n_queries, n_keys = bias.shape
    if n_queries != n_keys:
        return None
    line = torch.cat([bias[:, -1], bias[:, 0, 1:]], dim=-1)  # the last row, and the first one after its first key
    is_line = all(torch.equal(bias[:, i], line[:, n_keys - 1 - i : 2 * n_keys - 1 - i]) for i in range(n_queries))
    return line if is_line else None


class _Totals:
    """What is added up of one head."""

    def __init__(self, n_queries: int, n_keys: int, like: Tensor) -> None:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.float32, device=like.device)

        self.log_sums, self.entropy, self.mass, self.own = (zeros(n_queries) for _ in range(4))
        self.received, self.shifted = zeros(n_keys), torch.zeros(3, dtype=torch.float64, device=like.device)
        self.largest = zeros(len(bins(n_queries)) - 1, n_keys)  # of each run of rows


@dataclass(frozen=True)
class _Places:
    """Where rows find their own position, and equal tokens."""

    own: Tensor  # int64 (query,)
    kinds: Tensor | None  # int64 (key,), equal tokens numbered alike; None: cross-attention
    runs: Sequence[int]  # where the runs of a thumbnail's rows begin, and the end


def attend_by_rows(
    name: str, axes: tuple[Axis, ...], inputs: AttentionInputs, edits: Sequence[_Edit], shared: Shared
) -> tuple[Tensor, Tensor | None, PatternOnDemand]:
    """Compute the attention of one text.

    Args:
        name: name of its pattern.
        axes: the pattern's.
        inputs: a batch of one.
        edits: named edits of masks, scores and patterns, whose heads are told (:meth:`_Edit.of_head`).
        shared: what the layers of the pass have in common.

    Returns:
        heads (1, head, query, d_v), the sink's mass (1, head, query) if there is one, and the pattern.
    """
    return _Layer(name, axes, inputs, edits, shared).run()


class _Layer:
    def __init__(
        self, name: str, axes: tuple[Axis, ...], inputs: AttentionInputs, edits: Sequence[_Edit], shared: Shared
    ) -> None:
        self.name, self.axes, self.inputs, self.edits, self.shared = name, axes, inputs, edits, shared
        self.q, self.k, self.v = (each[0] for each in (inputs.query, inputs.key, inputs.value))
        self.n_heads, self.n_queries, self.n_keys = len(self.q), self.q.shape[1], self.k.shape[1]
        self.bias = None if inputs.bias is None else inputs.bias[0].float()  # (1 or head, 1 or query, key)
        tokens = [shared.tokens(str(axis.side)) for axis in axes[1:]]
        crosses = axes[1].side != axes[2].side
        kinds = None if crosses else torch.from_numpy(kinds_of(tokens[1])).to(self.q.device)
        own = torch.from_numpy(same_place(self.n_queries, self.n_keys)).to(self.q.device)
        self.places = _Places(own, kinds, bins(self.n_queries).tolist())

    def run(self) -> tuple[Tensor, Tensor | None, PatternOnDemand]:
        """See :func:`attend_by_rows`."""
        common = self._mask_of(None)
        masks = [self._mask_of(head) if self._reach("mask", head) else common for head in range(self.n_heads)]
        totals = [_Totals(self.n_queries, self.n_keys, self.q) for _ in range(self.n_heads)]
        heads = self.v.new_zeros((1, self.n_heads, self.n_queries, self.v.shape[-1]))
        kept = {}
        edited = [self._reach("scores", head) or self._reach("pattern", head) for head in range(self.n_heads)]
        for block in zip(*(mask.blocks for mask in masks), strict=True):  # of each head: its rows are the same
            cancellation.check()
            alike = self._alike(block[0], max(rows.stop for rows in block))
            for head, rows in enumerate(block):
                if not edited[head]:
                    weights = self._weights(head, rows, totals[head])
                    self._add(rows, weights, alike, totals[head])
                    heads[0, head, rows.first : rows.end] = weights.to(self.v.dtype) @ self._value(head)[: rows.stop]
        for head in filter(edited.__getitem__, range(self.n_heads)):
            kept[head] = self._whole(head, masks[head], totals[head], heads[0, head])
        sums, thumbs = self._sums(totals), self._thumbs(totals)
        overview = Overview(thumbs, _array([each.log_sums for each in totals]), sums, kept)
        rule = self._rule(masks, common)
        pattern = PatternOnDemand(self.name, self.axes, overview, rule, _copy(self.q), _copy(self.k))
        sink = None if self.inputs.sinks is None else self._sink(totals)
        return heads, sink, pattern

    # One head ---------------------------------------------------------------------------------------------------------

    def _value(self, head: int) -> Tensor:
        return self.v[head * len(self.v) // self.n_heads]

    def _scores(self, head: int, first: int, end: int, stop: int) -> Tensor:
        """Scores (row, key) of some rows with the keys before ``stop``, in float32, before the mask."""
        q = self.q[head, first:end].float() * self.inputs.scale
        scores = q @ self.k[head * len(self.k) // self.n_heads, :stop].float().T
        if self.inputs.softcap:
            scores = torch.tanh(scores / self.inputs.softcap) * self.inputs.softcap
        if self.bias is not None:
            bias = self.bias[head % len(self.bias)]
            scores += bias[first:end, :stop] if len(bias) > 1 else bias[:, :stop]
        return scores

    def _softmax(self, scores: Tensor, head: int, rows: _Rows, totals: _Totals) -> Tensor:
        """Return the weights of rows, and take down each one's sum, its logarithm and the entropy."""
        sink = None if self.inputs.sinks is None else self.inputs.sinks[head].float()
        if rows.hidden is not None:
            scores[:, rows.at :].masked_fill_(rows.hidden, torch.finfo(scores.dtype).min)
        if sink is None:
            weights = scores.softmax(dim=-1)
        else:
            weights = torch.cat([scores, sink.expand(len(scores), 1)], dim=-1).softmax(dim=-1)[:, :-1]
        log_sums = scores.amax(dim=-1) - weights.amax(dim=-1).log()
        if rows.blind is not None:
            weights = weights.masked_fill(rows.blind[:, None], 0.0)
            log_sums[rows.blind] = torch.inf if sink is None else sink
        mass = weights.sum(dim=-1)
        # H = - sum p ln p, and ln p is the score less the logarithm of the sum.
        entropy = log_sums.nan_to_num(posinf=0.0) * mass - torch.linalg.vecdot(weights, scores)
        here = slice(rows.first, rows.end)
        totals.log_sums[here], totals.mass[here], totals.entropy[here] = log_sums, mass, entropy.clamp_(min=0.0)
        return weights

    def _weights(self, head: int, rows: _Rows, totals: _Totals) -> Tensor:
        return self._softmax(self._scores(head, rows.first, rows.end, rows.stop), head, rows, totals)

    def _alike(self, rows: _Rows, stop: int) -> Tensor | None:
        """float32 (row, key before stop): 1 where the tokens are equal; None for cross-attention."""
        kinds = self.places.kinds
        return None if kinds is None else (kinds[rows.first : rows.end, None] == kinds[None, :stop]).float()

    def _add(self, rows: _Rows, weights: Tensor, alike: Tensor | None, totals: _Totals) -> None:
        """Add weights (row, key) up."""
        first, stop, places = rows.first, rows.stop, self.places
        totals.received[:stop] += weights.new_ones(len(weights)) @ weights  # four times as fast as a sum
        own = places.own[first : rows.end]
        inside = own < stop
        found = weights.gather(1, own.clamp(max=stop - 1)[:, None])[:, 0] * inside
        totals.own[first : rows.end] = found
        if alike is not None:
            totals.shifted[0] += weights.diagonal(first - 1).sum()
            totals.shifted[1] += weights.diagonal(first + 1).sum() if first + 1 < stop else 0.0
            totals.shifted[2] += torch.dot(weights.flatten(), alike[:, :stop].flatten()) - found.sum()
        begin = np.searchsorted(places.runs, first)
        for run in range(int(begin), len(places.runs) - 1):
            start, end = places.runs[run], places.runs[run + 1]
            if start >= rows.end:
                break
            totals.largest[run, :stop] = weights[start - first : end - first].amax(dim=0)

    def _whole(self, head: int, mask: _Mask, totals: _Totals, heads: Tensor) -> np.ndarray:
        """Compute a head whose scores or pattern an edit changes; returns its pattern (query, key)."""
        path = self.name.removesuffix(".pattern")
        scores = self._edited("scores", f"{path}.scores", self._scores(head, 0, self.n_queries, self.n_keys), head)
        every = _Rows(0, self.n_queries, self.n_keys)
        if mask.bits is not None:
            seen = np.unpackbits(mask.bits, axis=-1, count=self.n_keys).astype(bool)
            hidden = torch.from_numpy(~seen).to(scores.device)
            every = replace(every, hidden=hidden, blind=hidden.all(dim=1))
        weights = self._softmax(scores.clone(), head, every, totals)
        weights = self._edited("pattern", self.name, weights, head)
        totals.mass[:] = weights.sum(dim=-1)
        totals.entropy[:] = -torch.special.xlogy(weights, weights).sum(dim=-1)
        for rows in mask.blocks:
            wide = replace(rows, stop=self.n_keys)  # an edit may put weight where the mask had none
            self._add(wide, weights[rows.first : rows.end], self._alike(wide, self.n_keys), totals)
        heads[:] = weights.to(self.v.dtype) @ self._value(head)
        pattern: np.ndarray = weights.cpu().numpy()
        return pattern

    # Edits ------------------------------------------------------------------------------------------------------------

    def _reach(self, tensor: str, head: int) -> bool:
        name = f"{self.name.removesuffix('.pattern')}.{tensor}"
        return any(edit.applies(name) and edit.of_head(head) is not None for edit in self.edits)

    def _edited(self, tensor: str, name: str, values: Tensor, head: int) -> Tensor:
        for edit in self.edits:
            if edit.applies(name) and (own := edit.of_head(head)) is not None:
                values = own(name, values[None, None])[0, 0]  # type: ignore[operator]
        return values

    def _mask_of(self, head: int | None) -> _Mask:
        """The mask of all heads or, with its edits, of one."""
        size = (self.n_queries, self.n_keys)
        if head is None:
            return self.shared.mask(self.inputs.mask, *size)
        plain = _plain(self.inputs.mask, *size)
        seen = torch.ones(size, dtype=torch.bool, device=self.q.device) if plain is None else plain
        return _Mask(self._edited("mask", f"{self.name.removesuffix('.pattern')}.mask", seen, head), *size)

    # The result -------------------------------------------------------------------------------------------------------

    def _rule(self, masks: Sequence[_Mask], common: _Mask) -> Rule:
        bias, diagonals = self.bias, None
        if self.bias is not None and self.bias.shape[1] > 1:
            assert self.inputs.bias is not None
            diagonals = self.shared.diagonals(self.inputs.bias)
            bias = None if diagonals is not None else bias
        bits = None
        if any(mask.bits is not None for mask in masks):
            full = np.packbits(np.ones((self.n_queries, self.n_keys), dtype=bool), axis=-1)
            each = masks if any(mask is not common for mask in masks) else [common]
            bits = np.stack([full if mask.bits is None else mask.bits for mask in each])
        return Rule(
            self.inputs.scale,
            self.inputs.softcap or 0.0,
            None if bias is None else _copy(bias),
            None if diagonals is None else _copy(diagonals),
            bits,
        )

    def _sums(self, totals: Sequence[_Totals]) -> Sums:
        of_rows = ("mass", "entropy", "received", "own")
        named = {name: _array([getattr(each, name) for each in totals]) for name in of_rows}
        shifted = _array([each.shifted for each in totals]).T
        return Sums(**named, **dict(zip(("previous", "next", "same"), shifted, strict=True)))

    def _thumbs(self, totals: Sequence[_Totals]) -> np.ndarray:
        """Pool the largest weight of each run of rows over runs of keys, too."""
        largest = _array([each.largest for each in totals])  # (head, run, key)
        pooled: np.ndarray = np.maximum.reduceat(largest, bins(self.n_keys)[:-1], axis=-1)
        return pooled

    def _sink(self, totals: Sequence[_Totals]) -> Tensor:
        assert self.inputs.sinks is not None
        log_sums = torch.stack([each.log_sums for each in totals])  # (head, query)
        return (self.inputs.sinks.float()[:, None] - log_sums).exp()[None]


def _array(tensors: Sequence[Tensor]) -> np.ndarray:
    stacked: np.ndarray = torch.stack([*tensors]).cpu().numpy()
    return stacked


def _copy(tensor: Tensor) -> np.ndarray:
    copied: np.ndarray = tensor.float().cpu().numpy().copy()  # a Trace outlives the pass
    return copied
