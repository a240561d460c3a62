"""One encoder block and one decoder block: sublayers wrapped in residual sums and layer norms (section 3.1)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor, nn
from torch.nn import functional as F

from visformer.model.attention import KeyValueCache, MultiHeadAttention, Order
from visformer.model.config import TransformerConfig
from visformer.model.taps import Tap


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same for every position (section 3.3, equation 2)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)
        self.activation = F.relu if config.activation == "relu" else F.gelu

    def forward(self, x: Tensor, *, tap: Tap) -> Tensor:
        """(batch, token, d_model) to the same shape; tap sees hidden (after the activation) and out."""
        hidden = tap("hidden", self.activation(self.w_1(x)))  # (batch, token, d_ff)
        return tap("out", self.w_2(hidden))


@dataclass
class LayerCache:
    """What one decoder layer keeps between steps of generation."""

    self_attn: KeyValueCache = field(default_factory=KeyValueCache)
    cross_attn: KeyValueCache = field(default_factory=KeyValueCache)


class _Block(nn.Module):
    """What both blocks share: how a sublayer is wrapped."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.dropout = nn.Dropout(config.dropout)

    def _add(
        self, x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: nn.Module, names: tuple[str, str], tap: Tap
    ) -> Tensor:
        """LayerNorm(x + Sublayer(x)) (section 3.1), or x + Sublayer(LayerNorm(x)) with pre-norm.

        ``names`` are those of the sum and of the norm's output. The dropout is section 5.4's.
        """
        name_sum, name_norm = names
        if self.pre_norm:
            return tap(name_sum, x + self.dropout(sublayer(tap(name_norm, norm(x)))))
        return tap(name_norm, norm(tap(name_sum, x + self.dropout(sublayer(x)))))


class EncoderLayer(_Block):
    """Self-attention, then feed-forward (section 3.1, figure 1 left)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.self_attn = MultiHeadAttention(config.d_model, config.n_heads)
        self.ffn = FeedForward(config)
        self.norm_self = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.norm_ffn = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)

    def forward(self, x: Tensor, *, mask: Tensor | None, order: Order, tap: Tap) -> Tensor:
        """(batch, src, d_model) to the same shape; mask broadcastable to (batch, head, query, key)."""

        def self_attn(y: Tensor) -> Tensor:
            out: Tensor = self.self_attn(y, y, mask=mask, order=order, tap=tap.at("self_attn"))
            return out

        def ffn(y: Tensor) -> Tensor:
            out: Tensor = self.ffn(y, tap=tap.at("ffn"))
            return out

        x = tap("resid_pre", x)
        x = tap("resid_self", self._add(x, self_attn, self.norm_self, ("attn_sum", "norm_self"), tap))
        return tap("resid_post", self._add(x, ffn, self.norm_ffn, ("ffn_sum", "norm_ffn"), tap))


class DecoderLayer(_Block):
    """Masked self-attention, attention over the encoder's output, feed-forward (section 3.1, figure 1 right)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.self_attn = MultiHeadAttention(config.d_model, config.n_heads)
        self.cross_attn = MultiHeadAttention(config.d_model, config.n_heads)
        self.ffn = FeedForward(config)
        self.norm_self = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.norm_cross = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.norm_ffn = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)

    def forward(
        self,
        y: Tensor,
        memory: Tensor,
        *,
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        order: Order,
        tap: Tap,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """(batch, tgt, d_model) to the same shape, reading memory (batch, src, d_model)."""

        def self_attn(z: Tensor) -> Tensor:
            kept = None if cache is None else cache.self_attn
            out: Tensor = self.self_attn(z, z, mask=self_mask, order=order, tap=tap.at("self_attn"), cache=kept)
            return out

        def cross_attn(z: Tensor) -> Tensor:
            kept = None if cache is None else cache.cross_attn
            out: Tensor = self.cross_attn(z, memory, mask=cross_mask, tap=tap.at("cross_attn"), cache=kept)
            return out

        def ffn(z: Tensor) -> Tensor:
            out: Tensor = self.ffn(z, tap=tap.at("ffn"))
            return out

        y = tap("resid_pre", y)
        y = tap("resid_self", self._add(y, self_attn, self.norm_self, ("attn_sum", "norm_self"), tap))
        y = tap("resid_cross", self._add(y, cross_attn, self.norm_cross, ("cross_sum", "norm_cross"), tap))
        return tap("resid_post", self._add(y, ffn, self.norm_ffn, ("ffn_sum", "norm_ffn"), tap))
