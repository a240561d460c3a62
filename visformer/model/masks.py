"""Masks, where True = may attend (section 3.2.3 sets all others to minus infinity), and padding."""

from collections.abc import Sequence

import torch
from torch import Tensor

from visformer.errors import N_, ConfigError
from visformer.system.memory import is_shortage

PAD_ID = 0


def causal_mask(n: int, *, device: torch.device | str | None = None) -> Tensor:
    """Position i may attend to positions 0..i: "prevent leftward information flow" (section 3.2.3).

    Args:
        n: number of positions.
        device: device of the mask.

    Returns:
        bool (query n, key n), True on and below the diagonal.

    Raises:
        ConfigError: ``n`` is below 0, or the device cannot be used.
    """
    if n < 0:
        raise ConfigError(
            N_("{name}={value!r} must be a whole number of at least {least}."), name="n", value=n, least=0
        )
    try:
        return torch.ones(n, n, dtype=torch.bool, device=device).tril()
    except RuntimeError as error:
        if device is None or is_shortage(error):
            raise
        raise ConfigError(
            N_("device={value!r} cannot be used here ({reason}): leave it out to compute on the CPU."),
            value=device,
            reason=str(error).splitlines()[0].rstrip("."),
        ) from error


def padding_mask(ids: Tensor, pad_id: int = PAD_ID) -> Tensor:
    """Allow attention to keys that are tokens, and none to padding.

    Args:
        ids: integer (batch, key).
        pad_id: the id of padding.

    Returns:
        bool (batch, 1, 1, key), ready to broadcast over heads and queries.
    """
    return (ids != pad_id)[:, None, None, :]


def key_mask(ids: Tensor) -> Tensor | None:
    """The padding mask, or None if nothing is padded: the usual single sentence, and pictures, then need no masking."""
    if ids.is_floating_point():  # pixels
        return None
    mask = padding_mask(ids)  # (batch, 1, 1, key)
    return None if bool(mask.all()) else mask


def decoder_mask(ids: Tensor, start: int) -> Tensor | None:
    """Causal and padding mask of ``ids`` (batch, token). After ``start`` cached tokens, each sees those and itself."""
    new = ids.shape[1]
    if start:
        return None if new == 1 else causal_mask(start + new, device=ids.device)[start:]  # (query, key)
    causal = causal_mask(new, device=ids.device)  # (query, key)
    padding = key_mask(ids)
    return causal if padding is None else causal & padding  # (batch, 1, query, key)


def pad(rows: Sequence[Sequence[int]], pad_id: int = PAD_ID) -> Tensor:
    """Pad rows of ids at the end and return one int64 tensor (batch, longest)."""
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows])
