"""Masks, where True = may attend (section 3.2.3 sets all others to minus infinity), and padding."""

from collections.abc import Sequence

import torch
from torch import Tensor


def causal_mask(n: int, *, device: torch.device | str | None = None) -> Tensor:
    """Position i may attend to positions 0..i: "prevent leftward information flow" (section 3.2.3).

    Args:
        n: number of positions.
        device: device of the mask.

    Returns:
        bool (query n, key n), True on and below the diagonal.
    """
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def padding_mask(ids: Tensor, pad_id: int = 0) -> Tensor:
    """Allow attention to keys that are tokens, and none to padding.

    Args:
        ids: integer (batch, key).
        pad_id: the id of padding.

    Returns:
        bool (batch, 1, 1, key), ready to broadcast over heads and queries.
    """
    return (ids != pad_id)[:, None, None, :]


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Pad rows of ids with 0 at the end and return one int64 tensor (batch, longest)."""
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
