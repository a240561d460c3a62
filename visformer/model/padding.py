"""Rows of ids as one tensor: shorter ones are filled up with the pad id, 0."""

from collections.abc import Sequence

import torch
from torch import Tensor


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of ids to one int64 tensor (batch, longest), padded with 0 at the end."""
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
