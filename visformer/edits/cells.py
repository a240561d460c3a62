"""Edits of cells: rectangles of a mask, or of the pattern."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from torch import Tensor

from visformer.edits.base import _Edit, chosen, head_indices, require, span


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
