"""Edits of a running model: frozen, hashable and JSON-serialisable, so that they can be cache keys and parts of links.

``where`` is the path of an attention, such as "decoder.0.cross_attn", or a glob that matches several. Layers, heads and
token positions count from 0. In a notebook, a plain function ``(name, tensor) -> tensor`` is an edit, too.
"""

from collections.abc import Callable, Iterator
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

    def applies(self, name: str) -> bool:
        """Whether this edit changes the tensor with this full name."""
        return fnmatchcase(name, f"{self.where}.{self.tensor}")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, which :func:`from_json` reads."""
        return {"edit": type(self).__name__, **asdict(self)}


@dataclass(frozen=True)
class Silence(_Edit):
    """Scale one head's output; 0 silences the head."""

    head: int
    scale: float = 0.0
    tensor: ClassVar[str] = "heads"

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, d_v)."""
        _require(name, "head", self.head, tensor.shape[1])
        factor = torch.ones(tensor.shape[1], dtype=tensor.dtype, device=tensor.device)
        factor[self.head] = self.scale
        return tensor * factor[:, None, None]


@dataclass(frozen=True)
class _MaskEdit(_Edit):
    """Set a rectangle of the mask's cells.

    Args:
        head: None: all heads.
        query: one row, or (first, end) for rows first to end - 1; None: all.
        key: one column, or (first, end) for columns first to end - 1; None: all.
    """

    head: int | None = None
    query: int | tuple[int, int] | None = None
    key: int | tuple[int, int] | None = None
    tensor: ClassVar[str] = "mask"
    value: ClassVar[bool]

    def _spans(self) -> Iterator[tuple[int, str, int, int]]:
        """Dimension, name, first and end of each axis of which it does not name all."""
        for dim, (axis, index) in enumerate((("head", self.head), ("query", self.query), ("key", self.key)), start=1):
            if index is not None:
                yield dim, axis, *(index if isinstance(index, tuple) else (index, index + 1))

    def within(self, shape: tuple[int, ...]) -> Self | None:
        """The part inside a mask (batch, head, query, key), None: nothing; while decoding, the rest may come yet."""
        inside = {axis: (first, min(end, shape[dim])) for dim, axis, first, end in self._spans() if axis != "head"}
        if any(first >= end for first, end in inside.values()):
            return None
        return replace(self, **inside)  # type: ignore[arg-type]

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is bool (batch, head, query, key), True = may attend."""
        cells = [slice(None)] * tensor.ndim
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
    """Replace one head's pattern; rows are queries and are not renormalised."""

    head: int
    pattern: tuple[tuple[float, ...], ...]
    tensor: ClassVar[str] = "pattern"

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """``tensor`` is (batch, head, query, key)."""
        _require(name, "head", self.head, tensor.shape[1])
        pattern = torch.tensor(self.pattern, dtype=tensor.dtype, device=tensor.device)
        if pattern.shape != tensor.shape[2:]:
            raise EditError(
                N_("{name}: the given pattern has shape {given}; the model's has {wanted}."),
                name=name,
                given=tuple(pattern.shape),
                wanted=tuple(tensor.shape[2:]),
            )
        changed = tensor.clone()
        changed[:, self.head] = pattern
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
    fields = dict(data)
    try:
        kind = _KINDS[fields.pop("edit")]
        if "pattern" in fields:
            fields["pattern"] = tuple(tuple(row) for row in fields["pattern"])
        for axis in ("query", "key"):
            if isinstance(fields.get(axis), list):
                fields[axis] = tuple(fields[axis])
        return kind(**fields)
    except (KeyError, TypeError) as error:
        raise EditError(N_("{data} is not an edit: {reason}"), data=data, reason=error) from error


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
