"""Edits of attention: cells of a mask or of the pattern, whole rows of the pattern, and the outputs of heads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from visformer.edits.base import _Edit, chosen, head_indices, number, numbers, require, span, whole
from visformer.errors import N_, EditError


@dataclass(frozen=True)
class _CellEdit(_Edit):
    """Set a rectangle of cells of the mask, or of the pattern.

    Args:
        where: path of an attention, or a glob.
        head: one head, or several: ``(0, 3)``; None: all.
        query: one row, or (first, end) for rows first to end - 1; None: all.
        key: one column, or (first, end) for columns first to end - 1; None: all.

    Raises:
        EditError: a value is of the wrong kind.
    """

    head: int | Sequence[int] | None = None
    query: int | tuple[int, int] | None = None
    key: int | tuple[int, int] | None = None
    value: ClassVar[bool | float]
    by_head: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head is not None:
            self._set("head", head_indices(self.head))
        for axis in ("query", "key"):
            self._set(axis, span(axis, getattr(self, axis)))

    def _spans(self) -> Iterator[tuple[int, str, int, int]]:
        """Dimension, name, first and end of query and key, of each that does not name all."""
        for dim, (axis, index) in enumerate((("query", self.query), ("key", self.key)), start=2):
            if index is not None:
                yield dim, axis, *(index if isinstance(index, tuple) else (index, index + 1))

    def within(self, shape: tuple[int, ...]) -> Self | None:
        """See :class:`_Edit`; ``shape`` is (batch, head, query, key)."""
        inside = {axis: (first, min(end, shape[dim])) for dim, axis, first, end in self._spans()}
        if any(first >= end for first, end in inside.values()):
            return None
        return replace(self, **inside)  # type: ignore[arg-type]

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, key); a mask is bool, True = may attend."""
        cells: list[slice | list[int]] = [slice(None)] * tensor.ndim
        if self.head is not None:
            cells[1] = chosen(name, self.head, tensor.shape[1])
        for dim, axis, first, end in self._spans():
            require(name, axis, first, tensor.shape[dim])
            require(name, axis, end - 1, tensor.shape[dim])
            cells[dim] = slice(first, end)
        changed = tensor.clone()
        changed[tuple(cells)] = self.value
        return changed


@dataclass(frozen=True)
class Block(_CellEdit):
    """Prevent these queries from attending to these keys."""

    tensor: ClassVar[str] = "mask"
    value: ClassVar[bool] = False


@dataclass(frozen=True)
class Open(_CellEdit):
    """Allow these queries to attend to these keys, whatever the mask says."""

    tensor: ClassVar[str] = "mask"
    value: ClassVar[bool] = True


@dataclass(frozen=True)
class Zero(_CellEdit):
    """Set weights to 0 after the softmax; the rest of the row stays as it is, and then sums to less than 1.

    :class:`Block` is the other choice: the key is masked before the softmax, and the other keys share its weight.
    """

    tensor: ClassVar[str] = "pattern"
    value: ClassVar[float] = 0.0


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
    by_head: ClassVar[bool] = True

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
    by_head: ClassVar[bool] = True

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
    _first: ClassVar[int] = 0  # the number, in its layer, of the first head of the tensor

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("seed", whole("seed", self.seed))

    def of_head(self, head: int) -> Self | None:
        """See :class:`_Edit`; what is drawn depends on the head's number.

        Args:
            head: the one that the tensor holds.

        Returns:
            The edit of a tensor (batch, 1, query, key); None: it leaves that head as it is.
        """
        if (own := super().of_head(head)) is None:
            return None
        own = replace(own)
        own._set("_first", head)
        return own

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, key)."""
        heads = self._heads(name, tensor)
        rows = tensor[:, heads]  # (batch, head, query, key)
        allowed = rows > 0
        numbers = [self._first + head for head in heads]
        drawn = _random(self.seed, name, numbers, tensor.shape[2:]).to(tensor.device)  # (head, query, key)
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
