"""Attention (section 3.2): scaled dot-product attention as a pure function, and multi-head attention around it."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from visformer.errors import N_, ConfigError, ShapeError
from visformer.model import taps
from visformer.model.config import UNDIVIDED
from visformer.model.positions import Position
from visformer.model.taps import AttentionInputs, Tap
from visformer.system.arguments import checked_class, require_whole


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    tap: Tap | None = None,
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention: softmax(Q K^T / sqrt(d_k)) V (section 3.2.1, equation 1).

    Departs from the paper in one point: a row that may attend to nothing gives zeros, never NaN.

    Args:
        query: (..., query, d_k), floating.
        key: (..., key, d_k).
        value: (..., key, d_v).
        mask: bool, broadcastable to (..., query, key), True = may attend; None: no mask.
        bias: broadcastable to (..., query, key), added to the scores; the paper has none.
        tap: called as tap(name, tensor) -> tensor for "bias" (if any), "scores" (bias included), "mask", "pattern"
            and "heads".

    Returns:
        output (..., query, d_v) and pattern (..., query, key): probabilities, each row sums to 1, or is all
        zeros where the mask leaves nothing.

    Raises:
        ShapeError: widths of query and key differ, key and value differ in length, the mask is not bool, or mask or
            bias does not fit.
    """
    if query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise _misfit(query, key, value)
    tap = taps.CLOSED if tap is None else tap
    # Scale the queries rather than the scores: they are fewer numbers.
    scores = query * (1.0 / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)  # (..., query, key)
    if bias is not None:
        _check_fit(bias, scores, N_("A bias must broadcast to {scores}; given {dtype} {given}."))
        scores = scores + tap("bias", bias.expand(scores.shape))  # (..., query, key)
    scores = tap("scores", scores)
    if _wants(tap, "mask"):
        seen = torch.ones((), dtype=torch.bool, device=scores.device) if mask is None else mask
        mask = tap("mask", seen.expand(scores.shape))  # (..., query, key)
    if mask is None:
        pattern = scores.softmax(dim=-1)
    else:
        _check_fit(mask, scores, _MASK, dtype=torch.bool)
        # The lowest finite number, not -inf: a row with nothing to attend to then has no NaN, even in the gradient.
        pattern = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
        reads = mask.any(dim=-1, keepdim=True)  # (..., query, 1)
        if not bool(reads.all()):
            pattern = pattern.masked_fill(~reads, 0.0)
    pattern = tap("pattern", pattern)
    return tap("heads", pattern @ value), pattern  # (..., query, d_v)


def _wants(tap: Tap, name: str) -> bool:
    """Whether the tap reads ``name``; a plain function, which may serve as a tap too, reads all that is whole."""
    wants = getattr(tap, "wants", None)
    return name != "overview" if wants is None else bool(wants(name))


_MASK = N_("A mask must be bool (True = may attend) and broadcast to {scores}; given {dtype} {given}.")


def _check_fit(tensor: Tensor, scores: Tensor, message: str, *, dtype: torch.dtype | None = None) -> None:
    """Refuse what does not broadcast to the scores: a larger tensor would silently enlarge the pattern."""
    fits = tensor.dim() <= scores.dim() and all(
        m in (1, s) for m, s in zip(reversed(tensor.shape), reversed(scores.shape), strict=False)
    )
    if not fits or tensor.dtype != (dtype or tensor.dtype):
        raise ShapeError(message, scores=tuple(scores.shape), dtype=tensor.dtype, given=tuple(tensor.shape))


def _misfit(query: Tensor, key: Tensor, value: Tensor) -> ShapeError:
    return ShapeError(
        N_(
            "Attention needs query (..., n, d_k), key (..., m, d_k) and value (..., m, d_v); "
            "given {query}, {key} and {value}: the last sizes of query and key must agree, "
            "and the next-to-last of key and value."
        ),
        query=tuple(query.shape),
        key=tuple(key.shape),
        value=tuple(value.shape),
    )


@dataclass
class KeyValueCache:
    """Keys and values that one attention has already computed while decoding, (batch, head, key, d_k)."""

    key: Tensor | None = None
    value: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.key is None else self.key.shape[2]

    def extend(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append new positions and return all of them."""
        self.key = key if self.key is None else torch.cat([self.key, key], dim=2)
        self.value = value if self.value is None else torch.cat([self.value, value], dim=2)
        return self.key, self.value

    def reorder(self, rows: Tensor) -> None:
        """Keep these batch rows in this order (beam search)."""
        if self.key is not None and self.value is not None:
            self.key, self.value = self.key[rows], self.value[rows]


@dataclass(frozen=True)
class Order:
    """How positions enter self-attention; not at all by default.

    Args:
        angles: (token, pair), radians: by how much queries and keys are rotated.
        bias: (head, query, key), added to the scores.
    """

    angles: Tensor | None = None
    bias: Tensor | None = None

    @classmethod
    def of(cls, position: Position, x: Tensor, *, n_heads: int, start: int = 0) -> "Order":
        """Compute it for ``x``, (batch, token, d_model), which follows ``start`` cached tokens."""
        end = start + x.shape[1]
        angles, bias = position.angles(end, x.shape[2] // n_heads), position.bias(n_heads, end)
        return cls(
            None if angles is None else torch.from_numpy(angles[start:]).to(x.device),  # float64 until cos and sin
            None if bias is None else torch.from_numpy(bias[:, start:]).to(x),
        )

    def rotated(self, x: Tensor) -> Tensor:
        """Rotate queries or keys, (batch, head, token, d_k), each pair (i, i + d_k / 2) by its angle."""
        if self.angles is None:
            return x
        cos, sin = self.angles.cos().to(x), self.angles.sin().to(x)  # (token, pair)
        first, second = x.chunk(2, dim=-1)  # (batch, head, token, pair)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


NO_ORDER = Order()
"""Positions enter with the embeddings, if at all."""


@checked_class
class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O, each head on its own projections (section 3.2.2).

    ``w_q`` holds the paper's W_i^Q of all heads i side by side; ``w_k`` and ``w_v`` likewise. In torch it is
    ``nn.MultiheadAttention``, which keeps the three in one matrix, ``in_proj_weight``.

    Args:
        d_model: width of queries, keys and values.
        n_heads: must divide d_model.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        require_whole("d_model", d_model)
        require_whole("n_heads", n_heads)
        if d_model % n_heads:
            raise ConfigError(UNDIVIDED, d_model=d_model, n_heads=n_heads)
        self.n_heads = n_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        mask: Tensor | None = None,
        order: Order = NO_ORDER,
        tap: Tap = taps.CLOSED,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Each position of ``query`` reads ``value`` where ``key`` fits: all three are x in self-attention.

        Args:
            query: (batch, query, d_model), floating.
            key: (batch, key, d_model): in cross-attention the encoder's output.
            value: (batch, key, d_model): as key.
            mask: bool, broadcastable to (batch, head, query, key), True = may attend.
            order: how positions enter, in self-attention.
            tap: receives q and k (rotated), v, bias (if any), scores, mask, pattern, heads and out.
            cache: while generating. Self-attention appends to it; cross-attention, whose keys and values never
                change, fills it once.

        Returns:
            (batch, query, d_model).
        """
        q = tap("q", order.rotated(self._split(self.w_q(query))))  # (batch, head, query, d_k)
        if cache is not None and cache.key is not None and cache.value is not None and key is not query:
            k, v = cache.key, cache.value
        else:
            k = order.rotated(self._split(self.w_k(key)))  # (batch, head, key, d_k)
            v = self._split(self.w_v(value))  # (batch, head, key, d_v)
            if cache is not None:
                k, v = cache.extend(k, v)
        k, v = tap("k", k), tap("v", v)
        if _wants(tap, "overview"):
            bias = None if order.bias is None else order.bias[None]  # (batch, head, query, key)
            heads = tap("heads", tap.by_rows(AttentionInputs(q, k, v, 1.0 / math.sqrt(q.shape[-1]), mask, bias)))
        else:
            heads, _ = attention(q, k, v, mask=mask, bias=order.bias, tap=tap)
        concat = heads.transpose(1, 2).flatten(2)  # (batch, query, d_model)
        return tap("out", self.w_o(concat))

    def _split(self, x: Tensor) -> Tensor:
        batch, length, d_model = x.shape
        return x.view(batch, length, self.n_heads, d_model // self.n_heads).transpose(1, 2)  # (batch, head, token, d_k)
