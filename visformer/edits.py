"""Edits of a running model: frozen, hashable and JSON-serialisable, so that they can be cache keys and parts of links.

``where`` is the path of an attention, such as "decoder.0.cross_attn", or a glob that matches several. Layers, heads and
token positions count from 0. In a notebook, a plain function ``(name, tensor) -> tensor`` is an edit, too: it is called
with each tensor, (batch, ...), may change it in place, and returns it, also where it changes nothing.
"""

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from visformer.errors import N_, EditError


@dataclass(frozen=True)
class _Edit:
    """Base class of all edits: where they apply, and how they are serialised."""

    where: str
    tensor: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.where, str):
            raise EditError(
                N_("where={where!r} is not the path of an attention, such as 'decoder.0.cross_attn'."), where=self.where
            )

    def applies(self, name: str) -> bool:
        """Whether this edit changes the tensor with this full name."""
        return fnmatchcase(name, f"{self.where}.{self.tensor}")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, which :func:`from_json` reads."""
        return {"edit": type(self).__name__, **asdict(self)}

    def _set(self, name: str, value: object) -> None:
        """Replace what was given for a field by its normal form: equal edits have equal hashes."""
        object.__setattr__(self, name, value)


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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("head", _heads(self.head))
        self._set("scale", _number("scale", self.scale))

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, d_v)."""
        factor = torch.ones(tensor.shape[1], dtype=tensor.dtype, device=tensor.device)
        factor[_chosen(name, self.head, tensor.shape[1])] = self.scale
        return tensor * factor[:, None, None]


@dataclass(frozen=True)
class _MaskEdit(_Edit):
    """Set a rectangle of the mask's cells.

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
    tensor: ClassVar[str] = "mask"
    value: ClassVar[bool]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head is not None:
            self._set("head", _heads(self.head))
        for axis in ("query", "key"):
            self._set(axis, _span(axis, getattr(self, axis)))

    def _spans(self) -> Iterator[tuple[int, str, int, int]]:
        """Dimension, name, first and end of query and key, of each that does not name all."""
        for dim, (axis, index) in enumerate((("query", self.query), ("key", self.key)), start=2):
            if index is not None:
                yield dim, axis, *(index if isinstance(index, tuple) else (index, index + 1))

    def within(self, shape: tuple[int, ...]) -> Self | None:
        """The part inside a mask (batch, head, query, key), None: nothing; while decoding, the rest may come yet."""
        inside = {axis: (first, min(end, shape[dim])) for dim, axis, first, end in self._spans()}
        if any(first >= end for first, end in inside.values()):
            return None
        return replace(self, **inside)  # type: ignore[arg-type]

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is bool (batch, head, query, key), True = may attend."""
        cells: list[slice | list[int]] = [slice(None)] * tensor.ndim
        if self.head is not None:
            cells[1] = _chosen(name, self.head, tensor.shape[1])
        for dim, axis, first, end in self._spans():
            _require(name, axis, first, tensor.shape[dim])
            _require(name, axis, end - 1, tensor.shape[dim])
            cells[dim] = slice(first, end)
        changed = tensor.clone()
        changed[tuple(cells)] = self.value
        return changed


@dataclass(frozen=True)
class Block(_MaskEdit):
    """Prevent these queries from attending to these keys."""

    value: ClassVar[bool] = False


@dataclass(frozen=True)
class Open(_MaskEdit):
    """Allow these queries to attend to these keys, whatever the mask says."""

    value: ClassVar[bool] = True


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
        self._set("head", _heads(self.head))
        try:
            rows = tuple(tuple(map(float, row)) for row in self.pattern)
        except (TypeError, ValueError) as error:
            raise EditError(N_("pattern={given!r} is not a table of numbers."), given=self.pattern) from error
        if not rows or len({len(row) for row in rows}) > 1:
            raise EditError(N_("pattern={given!r}: all rows need the same number of weights."), given=self.pattern)
        self._set("pattern", rows)

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, key)."""
        heads = _chosen(name, self.head, tensor.shape[1])
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


Edit = _Edit | Callable[[str, Tensor], Tensor]
_KINDS: dict[str, type[_Edit]] = {kind.__name__: kind for kind in (Silence, Block, Open, SetPattern)}


def from_json(data: dict[str, Any]) -> _Edit:
    """Read an edit from the output of its ``to_json``.

    Args:
        data: a parsed JSON object.

    Returns:
        An edit equal to the original.

    Raises:
        EditError: ``data`` is not an edit.
    """
    try:
        fields = dict(data)
        return _KINDS[fields.pop("edit")](**fields)
    except (KeyError, TypeError, ValueError) as error:
        raise EditError(N_("{data} is not an edit: {reason}"), data=data, reason=error) from error


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool):
        raise EditError(N_("{name}={value!r} is not a whole number."), name=name, value=value)
    try:
        return operator.index(value)
    except TypeError as error:
        raise EditError(N_("{name}={value!r} is not a whole number."), name=name, value=value) from error


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise EditError(N_("{name}={value!r} must be a number."), name=name, value=value) from error
    if not math.isfinite(number):
        raise EditError(N_("{name}={value!r} must be a number."), name=name, value=value)
    return number


def _heads(given: Any) -> int | tuple[int, ...]:
    """One head, or several, as they are stored."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        return _whole("head", given)
    heads = tuple(_whole("head", head) for head in given)
    if not heads:
        raise EditError(N_("head={value!r} names no head: give one, or several, such as (0, 3)."), value=given)
    return heads


def _span(axis: str, given: Any) -> int | tuple[int, int] | None:
    """One row or column, or the first and the end of several, as they are stored."""
    if given is None:
        return None
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        return _whole(axis, given)
    span = tuple(_whole(axis, end) for end in given)
    if len(span) != 2 or not span[0] < span[1]:
        raise EditError(
            N_("{axis}={value!r} must be one position, or (first, end) with first below end."), axis=axis, value=given
        )
    return span


def _chosen(name: str, head: int | Sequence[int], n_heads: int) -> list[int]:
    """The heads as indices, each of which there is."""
    heads = [head] if isinstance(head, int) else [*head]
    for one in heads:
        _require(name, "head", one, n_heads)
    return heads


def _require(name: str, axis: str, index: int, size: int) -> None:
    if not 0 <= index < size:
        raise EditError(
            N_("{name} has {size} entries along its {axis} axis; {index} is not in 0 to {last}."),
            name=name,
            size=size,
            axis=axis,
            index=index,
            last=size - 1,
        )
