"""What all edits share: where they apply, how they are serialised, and the checks of their fields."""

import math
import operator
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from torch import Tensor

from visformer.errors import N_, EditError


class CheckedEdit(Protocol):
    """An edit as a pass applies it."""

    @property
    def by_row(self) -> bool:
        """Whether it changes each position alike and alone."""
        ...

    @property
    def by_head(self) -> bool:
        """Whether it changes each head alone."""
        ...

    def applies(self, name: str) -> bool:
        """Whether it changes the tensor with this full name."""
        ...

    def __call__(self, name: str, tensor: Tensor, /) -> Tensor:
        """Return the tensor, (batch, ...), as it is changed; the same one where nothing is."""
        ...


@dataclass(frozen=True)
class _Edit:
    """Base class of all edits: where they apply, and how they are serialised."""

    where: str
    tensor: ClassVar[str]
    by_row: ClassVar[bool] = False
    """Whether it changes each position alike and alone: a decoder may keep what it has computed of those before."""
    by_head: ClassVar[bool] = False
    """Whether it changes each head alone, see :meth:`of_head`."""

    def __post_init__(self) -> None:
        if not isinstance(self.where, str):
            raise EditError(
                N_("where={where!r} is not the path of an attention, such as 'decoder.0.cross_attn'."), where=self.where
            )

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """See :class:`CheckedEdit`."""
        raise NotImplementedError

    def applies(self, name: str) -> bool:
        """Whether this edit changes the tensor with this full name."""
        return fnmatchcase(name, f"{self.where}.{self.tensor}")

    def within(self, shape: tuple[int, ...]) -> Self | None:
        """The part inside a tensor of this shape, None: nothing; while decoding, the rest may come yet."""
        return self

    def of_head(self, head: int) -> Self | None:
        """This edit of a tensor that holds one head alone, (batch, 1, ...); None: it leaves that head as it is."""
        heads = self.head  # type: ignore[attr-defined]
        if heads is None:
            return self
        return replace(self, head=0) if head in ([heads] if isinstance(heads, int) else heads) else None  # type: ignore[call-arg]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, which :func:`from_json` reads."""
        return {"edit": type(self).__name__, **asdict(self)}

    def _set(self, name: str, value: object) -> None:
        """Replace what was given for a field by its normal form: equal edits have equal hashes."""
        object.__setattr__(self, name, value)


def whole(name: str, value: Any) -> int:
    """A whole number, as it is stored."""
    if isinstance(value, bool):
        raise EditError(N_("{name}={value!r} is not a whole number."), name=name, value=value)
    try:
        return operator.index(value)
    except TypeError as error:
        raise EditError(N_("{name}={value!r} is not a whole number."), name=name, value=value) from error


def number(name: str, value: Any) -> float:
    """A finite number, as it is stored."""
    try:
        given = float(value)
    except (TypeError, ValueError) as error:
        raise EditError(N_("{name}={value!r} must be a number."), name=name, value=value) from error
    if not math.isfinite(given):
        raise EditError(N_("{name}={value!r} must be a number."), name=name, value=value)
    return given


def head_indices(given: Any) -> int | tuple[int, ...]:
    """One head, or several, as they are stored."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        return whole("head", given)
    heads = tuple(whole("head", head) for head in given)
    if not heads:
        raise EditError(N_("head={value!r} names no head: give one, or several, such as (0, 3)."), value=given)
    return heads


def span(axis: str, given: Any) -> int | tuple[int, int] | None:
    """One row or column, or the first and the end of several, as they are stored."""
    if given is None:
        return None
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        return whole(axis, given)
    ends = tuple(whole(axis, end) for end in given)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise EditError(
            N_("{axis}={value!r} must be one position, or (first, end) with first below end."), axis=axis, value=given
        )
    return ends


def chosen(name: str, head: int | Sequence[int], n_heads: int) -> list[int]:
    """The heads as indices, each of which there is."""
    heads = [head] if isinstance(head, int) else [*head]
    for one in heads:
        require(name, "head", one, n_heads)
    return heads


def numbers(name: str, given: Any) -> tuple[Any, ...]:
    """Nested sequences or an array of finite numbers, as they are stored: nested tuples, all rows of one length.

    Raises:
        EditError: it is something else.
    """
    try:
        array = np.asarray(given.tolist() if hasattr(given, "tolist") else given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EditError(N_("{name}={given!r} is not a table of numbers."), name=name, given=given) from error
    if not array.size or not array.ndim or not np.isfinite(array).all():
        raise EditError(N_("{name}={given!r} is not a table of numbers."), name=name, given=given)
    return _nested(array.tolist())


def _nested(values: list[Any]) -> tuple[Any, ...]:
    return tuple(_nested(each) if isinstance(each, list) else each for each in values)


def require(name: str, axis: str, index: int, size: int) -> None:
    """Refuse an index that this axis of the tensor does not have."""
    if not 0 <= index < size:
        raise EditError(
            N_("{name} has {size} entries along its {axis} axis; {index} is not in 0 to {last}."),
            name=name,
            size=size,
            axis=axis,
            index=index,
            last=size - 1,
        )
