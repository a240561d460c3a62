"""Token embeddings (section 3.4) and positional encodings (section 3.5)."""

import math
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

from visformer.errors import N_, ConfigError, TextError
from visformer.model.config import TransformerConfig
from visformer.model.taps import Tap

_READY_POSITIONS = 512  # sinusoids kept ready; longer sequences compute theirs on the spot


def sinusoidal_encoding(
    n_positions: int, d_model: int, base: float = 10000.0, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """PE(pos, 2i) = sin(pos / base^(2i/d)), PE(pos, 2i+1) = cos(the same angle) (section 3.5).

    Computed in float64 and rounded once. With an odd d_model the last column is a sine without its cosine.

    Args:
        n_positions: number of rows; position 0 first.
        d_model: number of columns.
        base: the longest wavelength is 2 pi base.
        dtype: of the result.

    Returns:
        (n_positions, d_model).

    Raises:
        ConfigError: a size below 1, or a base that is not above 0.
    """
    if n_positions < 0 or d_model < 1 or not base > 0:
        raise ConfigError(
            N_("No positional encoding for n_positions={n}, d_model={d}, base={base}: sizes and base must be above 0."),
            n=n_positions,
            d=d_model,
            base=base,
        )
    position = torch.arange(n_positions, dtype=torch.float64)[:, None]  # (position, 1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # the paper's 2i
    angle = position * base ** (-even / d_model)  # (position, ceil(d_model / 2))
    table = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)  # sine, cosine, sine, cosine, ...
    return table[:, :d_model].to(dtype)


class Embedding(nn.Module):
    """Token ids to the stack's input: embedding times sqrt(d_model), plus position, dropout (3.4, 3.5, 5.4)."""

    position: Tensor  # (position, d_model)

    def __init__(self, vocab: int, config: TransformerConfig) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.max_len = config.max_len if config.position == "learned" else None
        self.token = nn.Embedding(vocab, config.d_model)
        nn.init.normal_(self.token.weight, std=config.d_model**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        if self.max_len is None:
            table = sinusoidal_encoding(_READY_POSITIONS, config.d_model, dtype=self.token.weight.dtype)
            self.register_buffer("position", table, persistent=False)
        else:
            self.position = nn.Parameter(torch.randn(self.max_len, config.d_model) * 0.02)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """``.to(dtype)`` computes the sinusoids anew: a rounded table, cast to float64, would stay a rounded one."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if self.max_len is None:
            table = sinusoidal_encoding(_READY_POSITIONS, self.position.shape[1], dtype=self.token.weight.dtype)
            self.position = table.to(self.token.weight.device)
        return self

    def forward(self, ids: Tensor, *, tap: Tap, start: int = 0) -> Tensor:
        """Embed ``ids``, the first of which stands at position ``start``.

        Args:
            ids: integer (batch, token).
            tap: sees embed, position, input.
            start: tokens that the decoder's cache already holds.

        Returns:
            (batch, token, d_model).

        Raises:
            TextError: more tokens than a learned position table has rows.
        """
        embed = tap("embed", self.token(ids) * self.scale)  # (batch, token, d_model)
        position = tap("position", self._positions(start, start + ids.shape[1], embed))  # (token, d_model)
        x: Tensor = self.dropout(tap("input", embed + position))
        return x

    def _positions(self, start: int, end: int, like: Tensor) -> Tensor:
        if end <= self.position.shape[0]:
            return self.position[start:end]
        if self.max_len is not None:
            raise TextError(
                N_("{given} tokens, but this model has learned only {limit} positions: shorten the sentence."),
                given=end,
                limit=self.max_len,
            )
        table = sinusoidal_encoding(end, like.shape[-1], dtype=like.dtype)
        return table[start:].to(like.device)
