"""Token embeddings (section 3.4) and positional encodings (section 3.5)."""

import math
from functools import lru_cache

import torch
from torch import Tensor, nn

from visformer import formulas
from visformer.errors import N_, TextError
from visformer.model import taps
from visformer.model.config import LayerConfig
from visformer.model.positions import Position
from visformer.model.taps import Tap
from visformer.system.arguments import checked_class, require_whole

_ROWS = 512  # positions computed at once


def sinusoidal_encoding(
    n_positions: int, d_model: int, base: float = 10000.0, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """PE(pos, 2i) = sin(pos / base^(2i/d)), PE(pos, 2i+1) = cos(the same angle) (section 3.5).

    Computed in float64 and rounded once. With an odd d_model the last column is a sine without its cosine.

    Args:
        n_positions: number of rows; position 0 first.
        d_model: number of columns.
        base: the longest wavelength is 2 pi base.
        dtype: dtype of the result.

    Returns:
        (n_positions, d_model).

    Raises:
        ConfigError: a size below 1, or a base that is not above 0.
    """
    return torch.from_numpy(formulas.sinusoidal_encoding(n_positions, d_model, base)).to(dtype)


@checked_class
class Embedding(nn.Module):
    """Turns token ids into a stack's input: embedding times sqrt(d_model), plus position, dropout (3.4, 3.5, 5.4).

    Args:
        vocab: number of token ids.
        config: d_model, positional encoding and dropout, such as a :class:`visformer.TransformerConfig`.
        scale: factor of the embedding; None: sqrt(d_model).
    """

    def __init__(self, vocab: int, config: LayerConfig, *, scale: float | None = None) -> None:
        super().__init__()
        require_whole("vocab", vocab)
        self.scale = math.sqrt(config.d_model) if scale is None else scale
        self.positions = config.positions
        self.token = nn.Embedding(vocab, config.d_model)
        nn.init.normal_(self.token.weight, std=config.d_model**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        self.max_len = self.positions.rows(config.max_len)
        if self.max_len is not None:
            self.position = nn.Parameter(torch.empty(self.max_len, config.d_model))  # (position, d_model)
            nn.init.normal_(self.position, std=0.02)

    def forward(self, ids: Tensor, *, tap: Tap = taps.CLOSED, start: int = 0) -> Tensor:
        """Embed ``ids``, the first of which is at position ``start``.

        Args:
            ids: integer (batch, token).
            tap: receives embed, position (if one is added) and input.
            start: tokens that the decoder's cache already holds.

        Returns:
            (batch, token, d_model).

        Raises:
            TextError: more tokens than a learned position table has rows.
        """
        x = tap("embed", self.token(ids) * self.scale)  # (batch, token, d_model)
        end = start + ids.shape[1]
        if self.positions.adds:
            x = x + tap("position", self._rows(end, x)[start:end])  # (token, d_model)
        embedded: Tensor = self.dropout(tap("input", x))
        return embedded

    def _rows(self, end: int, like: Tensor) -> Tensor:
        """Return at least ``end`` rows of the table, (position, d_model)."""
        if self.max_len is None:
            rows = math.ceil(end / _ROWS) * _ROWS
            return _computed(self.positions, rows, like.shape[-1], dtype=like.dtype, device=like.device)
        if end > self.max_len:
            raise TextError(
                N_("{given} tokens, but this model has learned only {limit} positions: shorten the sentence."),
                given=end,
                limit=self.max_len,
            )
        return self.position


@lru_cache(maxsize=8)
def _computed(position: Position, n: int, d_model: int, *, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Cached, since decoding needs them for each token. No inference tensors, since training may use them too."""
    with torch.inference_mode(mode=False):
        return torch.from_numpy(position.added(n, d_model)).to(device, dtype)
