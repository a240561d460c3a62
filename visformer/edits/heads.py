"""Edits of the outputs of heads, before W_O."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from visformer.edits.base import _Edit, chosen, head_indices, number, numbers
from visformer.errors import N_, EditError


@dataclass(frozen=True)
class Silence(_Edit):
    """Scale the output of one head, or of several; 0 silences it.

    Args:
        where: path of an attention, or a glob.
        head: one head, or several: ``(0, 3)``.
        scale: factor of the output.

    Raises:
        EditError: a value is of the wrong kind.
    """

    head: int | Sequence[int]
    scale: float = 0.0
    tensor: ClassVar[str] = "heads"
    by_row: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("head", head_indices(self.head))
        self._set("scale", number("scale", self.scale))

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, d_v)."""
        factor = torch.ones(tensor.shape[1], dtype=tensor.dtype, device=tensor.device)
        factor[chosen(name, self.head, tensor.shape[1])] = self.scale
        return tensor * factor[:, None, None]


@dataclass(frozen=True)
class SetHeads(_Edit):
    """Set the output of one head, or of several, to given values, the same at every position.

    With a head's mean over many sentences this takes away what it says about one of them, and leaves the rest of the
    model the values that it is used to.

    Args:
        where: path of an attention, or a glob.
        head: one head, or several: ``(0, 3)``.
        values: (d_v,) for one head, (head, d_v) for several; nested sequences or an array.

    Raises:
        EditError: a value is of the wrong kind.
    """

    head: int | Sequence[int]
    values: Sequence[float] | Sequence[Sequence[float]]
    tensor: ClassVar[str] = "heads"
    by_row: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("head", head_indices(self.head))
        self._set("values", numbers("values", self.values))

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, d_v)."""
        heads = chosen(name, self.head, tensor.shape[1])
        values = torch.tensor(self.values, dtype=tensor.dtype, device=tensor.device)  # ([head,] d_v)
        wanted = (tensor.shape[3],) if isinstance(self.head, int) else (len(heads), tensor.shape[3])
        if values.shape != wanted:
            raise EditError(
                N_("{name}: the given values have shape {given}; the heads need {wanted}."),
                name=name,
                given=tuple(values.shape),
                wanted=wanted,
            )
        changed = tensor.clone()
        changed[:, heads] = values.reshape(len(heads), 1, -1)
        return changed
