"""Masks, where True = may attend (section 3.2.3 sets the others to minus infinity), and the padding they hide."""

from collections.abc import Sequence

import torch
from torch import Tensor


def causal_mask(n: int, *, device: torch.device | str | None = None) -> Tensor:
    """Position i may attend to positions 0..i: "prevent leftward information flow" (section 3.2.3).

    Args:
        n: number of positions.
        device: where the mask is made.

    Returns:
        bool (query n, key n), True on and below the diagonal.
    """
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def padding_mask(ids: Tensor, pad_id: int = 0) -> Tensor:
    """Keys that are tokens may be attended to, keys that are padding may not.

    Args:
        ids: integer (batch, key).
        pad_id: the id that stands for "no token".

    Returns:
        bool (batch, 1, 1, key), ready to broadcast over heads and queries.
    """
    return (ids != pad_id)[:, None, None, :]


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of ids to one int64 tensor (batch, longest), padded with 0 at the end."""
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
