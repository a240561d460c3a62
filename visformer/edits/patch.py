"""Activation patching: values of another Trace in place of the model's own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from visformer.edits.base import _Edit, chosen, head_indices, numbers, require, span
from visformer.errors import N_, EditError
from visformer.system import limits
from visformer.trace import Trace


@dataclass(frozen=True)
class Patch(_Edit):
    """Put values of another run into a tensor, or into one token or head of it (Vig et al. 2020, Meng et al. 2022).

    :meth:`of` takes them from a Trace. The edit holds them: it needs the Trace no more.

    Args:
        where: full name of a tensor, such as "decoder.1.resid_pre" or "encoder.0.self_attn.heads"; no glob.
        values: those of the part, (token, width) or (head, token, width), without an axis of which one is named.
        token: one position, or (first, end) for several; None: all. Of a pattern its rows.
        head: one head, or several: ``(0, 3)``; None: all.

    Raises:
        EditError: a value is of the wrong kind.
    """

    values: Sequence[Any]
    token: int | tuple[int, int] | None = None
    head: int | Sequence[int] | None = None
    tensor: ClassVar[str] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("values", numbers("values", self.values))
        self._set("token", span("token", self.token))
        if self.head is not None:
            self._set("head", head_indices(self.head))

    @classmethod
    def of(
        cls,
        trace: Trace,
        name: str,
        *,
        token: int | tuple[int, int] | None = None,
        head: int | Sequence[int] | None = None,
    ) -> Self:
        """Take the values from a Trace.

        Args:
            trace: a Trace that holds the tensor.
            name: its full name.
            token: see the class.
            head: see the class.

        Returns:
            The edit.

        Raises:
            MissingTensor: the Trace does not hold it.
            EditError: it has no such token or head.
        """
        edit = cls(name, (0.0,), token, head)
        part = trace[name].value[None]
        return replace(edit, values=part[edit._cells(name, part.shape)].reshape(edit._part(part.shape)))

    def applies(self, name: str) -> bool:
        """Whether this is the tensor.

        Args:
            name: its full name.

        Returns:
            Whether the edit changes it.
        """
        return name == self.where

    def within(self, shape: tuple[int, ...]) -> Self | None:
        """Wait, while a target is being decoded, until all of the patch's positions are reached.

        Args:
            shape: of the tensor, the batch first.

        Returns:
            The patch of these positions; None: they are still to come.

        Raises:
            EditError: the tensor has no positions.
        """
        if len(shape) < 2:
            raise EditError(N_("{name} has no tokens: it has the shape {shape}."), name=self.where, shape=shape)
        first, end = self._span(1 if self.token is not None else np.asarray(self.values).shape[-2])
        return None if shape[-2] < end else self if self.token is not None else replace(self, token=(first, end))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, which :func:`from_json` reads.

        Returns:
            A JSON object.

        Raises:
            EditError: it holds too many values for a link or a saved state.
        """
        n = np.asarray(self.values).size
        if n > limits.PATCH_VALUES:
            raise EditError(
                N_(
                    "This patch of {name} holds {n:,} values, and at most {limit:,} can be saved or linked: "
                    "patch one token, or one head of it."
                ),
                name=self.where,
                n=n,
                limit=int(limits.PATCH_VALUES),
            )
        return super().to_json()

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, token, width) or (batch, head, token, width)."""
        values = torch.tensor(self.values, dtype=tensor.dtype, device=tensor.device)
        cells, wanted = self._cells(name, tensor.shape), self._part(tensor.shape)
        if values.shape != wanted:
            raise EditError(
                N_("{name}: the patch has shape {given}; the model's values there have {wanted}."),
                name=name,
                given=tuple(values.shape),
                wanted=wanted,
            )
        changed = tensor.clone()
        changed[cells] = values.reshape(changed[cells].shape[1:])
        return changed

    def _span(self, n_tokens: int) -> tuple[int, int]:
        token = (0, n_tokens) if self.token is None else self.token
        return token if isinstance(token, tuple) else (token, token + 1)

    def _cells(self, name: str, shape: Sequence[int]) -> tuple[Any, ...]:
        """Where the part is in a tensor (batch, [head,] token, width)."""
        first, end = self._span(shape[-2])
        for position in (first, end - 1):
            require(name, "token", position, shape[-2])
        if len(shape) == 4:
            heads = slice(None) if self.head is None else chosen(name, self.head, shape[1])
            return slice(None), heads, slice(first, end)
        if self.head is not None:
            raise EditError(N_("{name} has no heads: leave head out."), name=name)
        return slice(None), slice(first, end)

    def _part(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the part: an axis of which one is named is left out."""
        first, end = self._span(shape[-2])
        tokens = () if isinstance(self.token, int) else (end - first,)
        if len(shape) == 3 or isinstance(self.head, int):
            return *tokens, shape[-1]
        return (shape[1] if self.head is None else len(self.head)), *tokens, shape[-1]
