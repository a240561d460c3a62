"""Attention in blocks of rows of a few heads: of every head an overview is kept, and nothing that grows with n².

A block's weights stay in the CPU's cache; keys that no row of a block may attend to are not computed. A short text has
many heads in a block: each step over a block costs a meeting of all threads, which may take long on a busy machine.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from visformer.edits.base import _Edit
from visformer.model.taps import AttentionInputs
from visformer.system import cancellation
from visformer.system.memory import release_freed_memory
from visformer.trace.names import Axis
from visformer.trace.overview import Overview, PatternOnDemand, Rule, bins
from visformer.trace.row_totals import Sums, kinds_of, same_place

_BLOCK = 64
"""Rows of a block, about: whole runs of a thumbnail."""

_WEIGHTS = 1 << 19
"""Weights of a block, about, in which there are as many heads as that: torch gives each thread heads of its own."""

_LONG = 1024
"""Tokens from which on freed memory goes back to the system after each layer, which takes a millisecond."""

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


@dataclass(frozen=True)
class _Places:
    """Where rows find their own position, and equal tokens."""

    own: Tensor  # int64 (query,)
    kinds: Tensor | None  # int64 (key,), equal tokens numbered alike; None: cross-attention
    runs: Sequence[int]  # where the runs of a thumbnail's rows begin, and the end


class _Totals:
    """What is added up of all heads of a layer, float32."""

    def __init__(self, n_heads: int, n_queries: int, n_keys: int, device: torch.device) -> None:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros((n_heads, *shape), device=device)

        self.tops, self.log_sums, self.entropy, self.mass, self.own = (zeros(n_queries) for _ in range(5))
        self.received, self.previous, self.next, self.same = zeros(n_keys), zeros(), zeros(), zeros()
        self.largest = zeros(len(bins(n_queries)) - 1, n_keys)  # of each run of rows


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
    layer = _Layer(name, axes, inputs, edits, shared).run()
    if inputs.query.shape[2] >= _LONG:
        release_freed_memory()  # what a layer frees lies between the arrays that it leaves behind
    return layer


class _Layer:
    """One attention; ``heads``, here and below, is a slice of its heads."""

    def __init__(
        self, name: str, axes: tuple[Axis, ...], inputs: AttentionInputs, edits: Sequence[_Edit], shared: Shared
    ) -> None:
        self.name, self.axes, self.inputs, self.edits, self.shared = name, axes, inputs, edits, shared
        self.q = inputs.query[0].float()  # (head, query, d_k)
        self.n_heads, self.n_queries, self.n_keys = len(self.q), self.q.shape[1], inputs.key.shape[2]
        group = self.n_heads // inputs.key.shape[1]
        self.k, self.v = (
            (each.repeat_interleave(group, dim=1) if group > 1 else each)[0].float()
            for each in (inputs.key, inputs.value)
        )  # (head, key, d_k), (head, key, d_v)
        self.bias = None if inputs.bias is None else inputs.bias[0].float()  # (1 or head, 1 or query, key)
        self.sinks = None if inputs.sinks is None else inputs.sinks.float()  # (head,)
        tokens = [shared.tokens(str(axis.side)) for axis in axes[1:]]
        crosses = axes[1].side != axes[2].side
        kinds = None if crosses else torch.from_numpy(kinds_of(tokens[1])).to(self.q.device)
        own = torch.from_numpy(same_place(self.n_queries, self.n_keys)).to(self.q.device)
        self.places = _Places(own, kinds, bins(self.n_queries).tolist())
        self.totals = _Totals(self.n_heads, self.n_queries, self.n_keys, self.q.device)
        self.output = torch.empty((1, self.n_heads, self.n_queries, self.v.shape[-1]), device=self.q.device)

    def run(self) -> tuple[Tensor, Tensor | None, PatternOnDemand]:
        """See :func:`attend_by_rows`."""
        common, kept = self.shared.mask(self.inputs.mask, self.n_queries, self.n_keys), {}
        masks = [common] * self.n_heads
        for head in range(self.n_heads):
            if self._reach("mask", head):
                masks[head] = self._edited_mask(head)
            if self._reach("scores", head) or self._reach("pattern", head):
                kept[head] = self._whole(head, masks[head])
        plain = [head for head in range(self.n_heads) if head not in kept]
        for first, end in _alike(plain, masks):
            self._by_rows(slice(first, end), masks[first])
        tops, log_sums = (_array(each) for each in (self.totals.tops, self.totals.log_sums))
        overview = Overview(self._thumbs(), tops, log_sums, self._sums(), kept)
        vectors = (_copy(each[0]) for each in (self.inputs.query, self.inputs.key))
        pattern = PatternOnDemand(self.name, self.axes, overview, self._rule(masks, common), *vectors)
        return self.output.to(self.inputs.value.dtype), self._sink(), pattern

    def _by_rows(self, heads: slice, mask: _Mask) -> None:
        """Compute heads that have the same mask."""
        for rows in mask.blocks:
            cancellation.check()
            alike = self._equal(rows)
            step = -(-_WEIGHTS // ((rows.end - rows.first) * rows.stop))
            for first in range(heads.start, heads.stop, step):
                some = slice(first, min(first + step, heads.stop))
                weights = self._softmax(self._scores(some, rows.first, rows.end, rows.stop), some, rows)
                self._add(some, rows, weights, alike)
                self.output[0, some, rows.first : rows.end] = weights @ self.v[some, : rows.stop]

    # A block of a few heads -------------------------------------------------------------------------------------------

    def _scores(self, heads: slice, first: int, end: int, stop: int) -> Tensor:
        """Scores (head, row, key) of some rows with the keys before ``stop``, before the mask."""
        scores = (self.q[heads, first:end] * self.inputs.scale) @ self.k[heads, :stop].transpose(1, 2)
        if self.inputs.softcap:
            scores = torch.tanh(scores / self.inputs.softcap) * self.inputs.softcap
        if self.bias is not None:
            bias = self.bias[heads] if len(self.bias) > 1 else self.bias
            scores += bias[:, first:end, :stop] if bias.shape[1] > 1 else bias[..., :stop]
        return scores

    def _softmax(self, scores: Tensor, heads: slice, rows: _Rows) -> Tensor:
        """Return the weights, and take down each row's sum, its logarithm and the entropy."""
        sinks = None if self.sinks is None else self.sinks[heads, None].expand(scores.shape[:2])  # (head, row)
        if rows.hidden is not None:
            scores[..., rows.at :].masked_fill_(rows.hidden, torch.finfo(scores.dtype).min)
        if sinks is None:
            weights = scores.softmax(dim=-1)
        else:
            weights = torch.cat([scores, sinks[..., None]], dim=-1).softmax(dim=-1)[..., :-1]
        top = scores.amax(dim=-1)
        log_sums = -weights.amax(dim=-1).log()
        mass = torch.ones_like(top) if sinks is None else weights.sum(dim=-1)
        # H = - sum p ln p, and ln p is the score less the top and the logarithm of the sum.
        entropy = (top + log_sums) * mass - torch.linalg.vecdot(weights, scores)
        if rows.blind is not None:  # the softmax of equal scores
            weights = weights.masked_fill(rows.blind[:, None], 0.0)
            top = top.masked_fill(rows.blind, torch.inf)
            mass, entropy, log_sums = (each.masked_fill(rows.blind, 0.0) for each in (mass, entropy, log_sums))
        here, totals = (heads, slice(rows.first, rows.end)), self.totals
        totals.tops[here], totals.log_sums[here], totals.mass[here] = top, log_sums, mass
        totals.entropy[here] = entropy.clamp_(min=0.0)
        return weights

    def _equal(self, rows: _Rows) -> Tensor | None:
        """float32 (row, key): 1 where the tokens are equal; None for cross-attention."""
        kinds = self.places.kinds
        return None if kinds is None else (kinds[rows.first : rows.end, None] == kinds[None, : rows.stop]).float()

    def _add(self, heads: slice, rows: _Rows, weights: Tensor, equal: Tensor | None) -> None:
        """Add weights (head, row, key) up."""
        totals, first, stop = self.totals, rows.first, rows.stop
        totals.received[heads, :stop] += (weights.new_ones(1, weights.shape[1]) @ weights)[:, 0]
        own = self.places.own[first : rows.end]
        at = own.clamp(max=stop - 1).expand(len(weights), -1)[..., None]
        found = weights.gather(2, at)[..., 0] * (own < stop)
        totals.own[heads, first : rows.end] = found
        if equal is not None:
            totals.previous[heads] += weights.diagonal(first - 1, 1, 2).sum(dim=-1)
            if first + 1 < stop:
                totals.next[heads] += weights.diagonal(first + 1, 1, 2).sum(dim=-1)
            totals.same[heads] += torch.linalg.vecdot(weights, equal).sum(dim=-1) - found.sum(dim=-1)
        runs = self.places.runs
        for run in range(bisect_left(runs, first), bisect_left(runs, rows.end)):
            these = weights[:, runs[run] - first : runs[run + 1] - first]
            totals.largest[heads, run, :stop] = these.amax(dim=1)

    # Edits ------------------------------------------------------------------------------------------------------------

    def _name(self, tensor: str) -> str:
        return f"{self.name.removesuffix('.pattern')}.{tensor}"

    def _reach(self, tensor: str, head: int) -> bool:
        return any(edit.applies(self._name(tensor)) and edit.of_head(head) is not None for edit in self.edits)

    def _edited(self, tensor: str, values: Tensor, head: int) -> Tensor:
        """Apply the edits of a tensor to one head, (query, key)."""
        for edit in self.edits:
            if edit.applies(self._name(tensor)) and (own := edit.of_head(head)) is not None:
                values = own(self._name(tensor), values[None, None])[0, 0]
        return values

    def _edited_mask(self, head: int) -> _Mask:
        size = (self.n_queries, self.n_keys)
        plain = _plain(self.inputs.mask, *size)
        seen = torch.ones(size, dtype=torch.bool, device=self.q.device) if plain is None else plain
        return _Mask(self._edited("mask", seen, head), *size)

    def _whole(self, head: int, mask: _Mask) -> np.ndarray:
        """Compute a head whose scores or pattern an edit changes; returns its pattern (query, key)."""
        one, every = slice(head, head + 1), _Rows(0, self.n_queries, self.n_keys)
        scores = self._edited("scores", self._scores(one, 0, self.n_queries, self.n_keys)[0], head)
        if mask.bits is not None:
            seen = np.unpackbits(mask.bits, axis=-1, count=self.n_keys).astype(bool)
            hidden = torch.from_numpy(~seen).to(scores.device)
            every = replace(every, hidden=hidden, blind=hidden.all(dim=1))
        weights = self._edited("pattern", self._softmax(scores[None].clone(), one, every)[0], head)
        self.totals.mass[head] = weights.sum(dim=-1)
        self.totals.entropy[head] = -torch.special.xlogy(weights, weights).sum(dim=-1)
        for rows in mask.blocks:
            wide = replace(rows, stop=self.n_keys)  # an edit may put weight where the mask had none
            self._add(one, wide, weights[None, rows.first : rows.end], self._equal(wide))
        self.output[0, head] = weights @ self.v[head]
        pattern: np.ndarray = weights.cpu().numpy()
        return pattern

    # The result -------------------------------------------------------------------------------------------------------

    def _rule(self, masks: Sequence[_Mask], common: _Mask) -> Rule:
        bias, diagonals = self.bias, None
        if self.bias is not None and self.bias.shape[1] > 1:
            assert self.inputs.bias is not None
            diagonals = self.shared.diagonals(self.inputs.bias)
            bias = None if diagonals is not None else bias
        bits = None if common.bits is None else common.bits[None]  # layers share it
        if any(mask is not common for mask in masks):
            full = np.packbits(np.ones((self.n_queries, self.n_keys), dtype=bool), axis=-1)
            bits = np.stack([full if mask.bits is None else mask.bits for mask in masks])
        return Rule(
            self.inputs.scale,
            self.inputs.softcap or 0.0,
            None if bias is None else _copy(bias),
            None if diagonals is None else _copy(diagonals),
            bits,
        )

    def _sums(self) -> Sums:
        sums = {each.name: _array(getattr(self.totals, each.name)) for each in fields(Sums)}
        if (sums["mass"] == 1.0).all():
            sums["mass"] = np.broadcast_to(np.float32(1.0), sums["mass"].shape)  # takes no memory
        return Sums(**sums)

    def _sink(self) -> Tensor | None:
        if self.sinks is None:
            return None
        mass = (self.sinks[:, None] - self.totals.tops - self.totals.log_sums).exp()
        return mass.masked_fill(self.totals.tops.isinf(), 1.0)[None]  # all of a row that may attend to nothing

    def _thumbs(self) -> np.ndarray:
        """Pool the largest weight of each run of rows over runs of keys, too."""
        pooled: np.ndarray = np.maximum.reduceat(_array(self.totals.largest), bins(self.n_keys)[:-1], axis=-1)
        return pooled


def _alike(heads: Sequence[int], masks: Sequence[_Mask]) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of each run of these heads that have the same mask."""
    first = None
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        first = head if first is None else first
        if following != head + 1 or masks[following] is not masks[head]:
            yield first, head + 1
            first = None


def _array(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.cpu().numpy()
    return array


def _copy(tensor: Tensor) -> np.ndarray:
    return _array(tensor.float()).copy()  # a Trace outlives the pass
