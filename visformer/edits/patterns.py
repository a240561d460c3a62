"""Edits of whole rows of the pattern."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from visformer.edits.base import _Edit, chosen, head_indices, whole
from visformer.errors import N_, EditError


@dataclass(frozen=True)
class SetPattern(_Edit):
    """Replace the pattern of one head, or of several; rows are queries and are not renormalised.

    Args:
        where: path of an attention, or a glob.
        head: one head, or several, which all get this pattern: ``(0, 3)``.
        pattern: (query, key), as nested sequences or an array.

    Raises:
        EditError: a value is of the wrong kind.
    """

    head: int | Sequence[int]
    pattern: Sequence[Sequence[float]]
    tensor: ClassVar[str] = "pattern"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("head", head_indices(self.head))
        try:
            rows = tuple(tuple(map(float, row)) for row in self.pattern)
        except (TypeError, ValueError) as error:
            raise EditError(N_("pattern={given!r} is not a table of numbers."), given=self.pattern) from error
        if not rows or len({len(row) for row in rows}) > 1:
            raise EditError(N_("pattern={given!r}: all rows need the same number of weights."), given=self.pattern)
        self._set("pattern", rows)

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, key)."""
        heads = chosen(name, self.head, tensor.shape[1])
        pattern = torch.tensor(self.pattern, dtype=tensor.dtype, device=tensor.device)
        if pattern.shape != tensor.shape[2:]:
            raise EditError(
                N_("{name}: the given pattern has shape {given}; the model's has {wanted}."),
                name=name,
                given=tuple(pattern.shape),
                wanted=tuple(tensor.shape[2:]),
            )
        changed = tensor.clone()
        changed[:, heads] = pattern
        return changed


@dataclass(frozen=True)
class _RowsEdit(_Edit):
    """Change what rows attend to, whatever the rows are.

    Args:
        where: path of an attention, or a glob.
        head: one head, or several: ``(0, 3)``; None: all.

    Raises:
        EditError: a value is of the wrong kind.
    """

    head: int | Sequence[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head is not None:
            self._set("head", head_indices(self.head))

    def _heads(self, name: str, tensor: Tensor) -> list[int]:
        return [*range(tensor.shape[1])] if self.head is None else chosen(name, self.head, tensor.shape[1])


@dataclass(frozen=True)
class Uniform(_RowsEdit):
    """Let each row attend to all keys that it may attend to, equally: its scores become 0."""

    tensor: ClassVar[str] = "scores"
    by_row: ClassVar[bool] = True

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, key)."""
        changed = tensor.clone()
        changed[:, self._heads(name, tensor)] = 0.0
        return changed


@dataclass(frozen=True)
class Shuffle(_RowsEdit):
    """Shuffle each row's weights among the keys that it may attend to, which are those with a weight above 0.

    The order depends on the seed, the head and the row alone, not on what else is in the batch.

    Args:
        where: path of an attention, or a glob.
        head: one head, or several: ``(0, 3)``; None: all.
        seed: another seed, another order.
    """

    seed: int = 0
    tensor: ClassVar[str] = "pattern"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("seed", whole("seed", self.seed))

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, key)."""
        heads = self._heads(name, tensor)
        rows = tensor[:, heads]  # (batch, head, query, key)
        allowed = rows > 0
        drawn = _random(self.seed, name, heads, tensor.shape[2:]).to(tensor.device)  # (head, query, key)
        places = (~allowed).to(torch.int8).argsort(dim=-1, stable=True)  # allowed keys first, in their order
        order = drawn.expand(rows.shape).masked_fill(~allowed, 2.0).argsort(dim=-1)  # and at random
        changed = tensor.clone()
        changed[:, heads] = torch.zeros_like(rows).scatter(-1, places, rows.gather(-1, order))
        return changed


def _random(seed: int, name: str, heads: Sequence[int], shape: Sequence[int]) -> Tensor:
    """Random numbers from 0 to 1, (head, query, key): those of a cell are the same whatever the shape."""
    n_queries, n_keys = shape
    drawn = np.empty((len(heads), n_queries, n_keys), dtype=np.float32)
    for i, head in enumerate(heads):
        for query in range(n_queries):
            drawn[i, query] = np.random.default_rng([abs(seed), seed < 0, crc32(name.encode()), head, query]).random(
                n_keys, dtype=np.float32
            )
    return torch.from_numpy(drawn)
