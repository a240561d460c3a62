"""One encoder block and one decoder block: sublayers wrapped in residual sums and layer norms (section 3.1)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from visformer.model import taps
from visformer.model.attention import NO_ORDER, KeyValueCache, MultiHeadAttention, Order
from visformer.model.config import LayerConfig
from visformer.model.taps import Tap
from visformer.system.arguments import checked_class, require_whole


@checked_class
class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same for every position (section 3.3, equation 2).

    Args:
        d_model: width of its input and output.
        d_ff: its units between them.
        activation: "relu" (the paper) or "gelu".
    """

    def __init__(self, d_model: int, d_ff: int, activation: Literal["relu", "gelu"] = "relu") -> None:
        super().__init__()
        require_whole("d_model", d_model)
        require_whole("d_ff", d_ff)
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.activation = F.relu if activation == "relu" else F.gelu

    def forward(self, x: Tensor, *, tap: Tap = taps.CLOSED) -> Tensor:
        """Compute each position by itself.

        Args:
            x: (batch, token, d_model).
            tap: receives hidden, (batch, token, d_ff), after the activation, and out.

        Returns:
            (batch, token, d_model).
        """
        hidden = tap("hidden", self.activation(self.w_1(x)))  # (batch, token, d_ff)
        return tap("out", self.w_2(hidden))


@dataclass
class LayerCache:
    """The key-value caches of one decoder layer."""

    self_attn: KeyValueCache = field(default_factory=KeyValueCache)
    cross_attn: KeyValueCache = field(default_factory=KeyValueCache)


class _Block(nn.Module):
    """Base of both blocks: wraps a sublayer in its residual sum and layer norm."""

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.dropout = nn.Dropout(config.dropout)

    def _add(self, kind: str, x: Tensor, sublayer: Callable[[Tensor], Tensor], tap: Tap) -> Tensor:
        """LayerNorm(x + Sublayer(x)) (section 3.1), or x + Sublayer(LayerNorm(x)) with pre-norm; dropout: section 5.4.

        ``kind``, "self", "cross" or "ffn", selects the norm and the names given to the tap.
        """
        name_norm, (name_sum, name_end) = f"norm_{kind}", _NAMES[kind]
        norm: nn.Module = getattr(self, name_norm)
        if self.pre_norm:
            x = tap(name_sum, x + self.dropout(sublayer(tap(name_norm, norm(x)))))
        else:
            x = tap(name_norm, norm(tap(name_sum, x + self.dropout(sublayer(x)))))
        return tap(name_end, x)


_NAMES = {"self": ("attn_sum", "resid_self"), "cross": ("cross_sum", "resid_cross"), "ffn": ("ffn_sum", "resid_post")}
"""Names of the residual sum and of the output of each kind of sublayer."""


@checked_class
class EncoderLayer(_Block):
    """Self-attention, then feed-forward (section 3.1, figure 1 left); with a d_ff of 0 attention alone.

    In torch it is ``nn.TransformerEncoderLayer``.
    """

    def __init__(self, config: LayerConfig) -> None:
        super().__init__(config)
        self.self_attn = MultiHeadAttention(config.d_model, config.n_heads)
        self.feeds_forward = config.d_ff > 0
        if self.feeds_forward:
            self.ffn = FeedForward(config.d_model, config.d_ff, config.activation)
        self.norm_self = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        if self.feeds_forward:
            self.norm_ffn = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        order: Order = NO_ORDER,
        tap: Tap = taps.CLOSED,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Read each position of a sentence from all that it may attend to.

        Args:
            x: (batch, token, d_model).
            mask: bool, broadcastable to (batch, head, query, key), True = may attend.
            order: how positions enter attention.
            tap: receives what is computed on the way.
            cache: while generating.

        Returns:
            (batch, token, d_model).
        """
        tap = taps.full(tap)
        attend = partial(self.self_attn, mask=mask, order=order, tap=tap.at("self_attn"), cache=cache)
        x = tap("resid_pre", x)
        x = self._add("self", x, lambda y: attend(y, y, y), tap)
        if not self.feeds_forward:
            return tap("resid_post", x)
        return self._add("ffn", x, lambda y: self.ffn(y, tap=tap.at("ffn")), tap)


@checked_class
class DecoderLayer(_Block):
    """Masked self-attention, attention over the encoder's output, feed-forward (section 3.1, figure 1 right).

    In torch it is ``nn.TransformerDecoderLayer``.
    """

    def __init__(self, config: LayerConfig) -> None:
        super().__init__(config)
        self.self_attn = MultiHeadAttention(config.d_model, config.n_heads)
        self.cross_attn = MultiHeadAttention(config.d_model, config.n_heads)
        self.ffn = FeedForward(config.d_model, config.d_ff, config.activation)
        self.norm_self = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.norm_cross = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.norm_ffn = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)

    def forward(
        self,
        y: Tensor,
        memory: Tensor,
        *,
        self_mask: Tensor | None = None,
        cross_mask: Tensor | None = None,
        order: Order = NO_ORDER,
        tap: Tap = taps.CLOSED,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """Read the target so far, and the encoder's output.

        Args:
            y: (batch, tgt, d_model).
            memory: (batch, src, d_model): keys and values of cross-attention are computed from it.
            self_mask: bool, broadcastable to (batch, head, tgt, tgt), True = may attend.
            cross_mask: bool, broadcastable to (batch, head, tgt, src).
            order: how positions enter self-attention.
            tap: receives what is computed on the way.
            cache: while generating.

        Returns:
            (batch, tgt, d_model).
        """
        tap = taps.full(tap)
        own, read = (None, None) if cache is None else (cache.self_attn, cache.cross_attn)
        y = tap("resid_pre", y)
        y = self._add(
            "self",
            y,
            lambda z: self.self_attn(z, z, z, mask=self_mask, order=order, tap=tap.at("self_attn"), cache=own),
            tap,
        )
        y = self._add(
            "cross",
            y,
            lambda z: self.cross_attn(z, memory, memory, mask=cross_mask, tap=tap.at("cross_attn"), cache=read),
            tap,
        )
        return self._add("ffn", y, lambda z: self.ffn(z, tap=tap.at("ffn")), tap)
