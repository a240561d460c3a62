"""The edits of one call: which of them reach something, and what a plain function returns."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from visformer.edits import EachRow, Edit
from visformer.edits.base import _Edit
from visformer.errors import N_, EditError

_SHOWN = 8  # names in a message


def checked_edits(edits: Any, names: Sequence[str], *, fixed: frozenset[str] = frozenset()) -> tuple[Edit, ...]:
    """Check edits before a call of the model; :func:`require_changes` checks plain functions after it.

    Args:
        edits: one edit, or a sequence of them.
        names: names of the model's tensors.
        fixed: those that can be read but not changed.

    Returns:
        The edits to pass on.

    Raises:
        EditError: an edit reaches nothing, or a fixed tensor: edits are never silently ignored.
    """
    given = (edits,) if isinstance(edits, _Edit) or callable(edits) else edits
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise EditError(_NO_EDIT, edit=given)
    return tuple(_checked(edit, names, fixed) for edit in given)


def may_cache(edits: Sequence[Edit]) -> bool:
    """Whether a decoder may keep what it has computed of earlier positions: each edit changes a row by itself."""
    return all(isinstance(edit, _Edit | _Function) and edit.by_row for edit in edits)


def require_changes(edits: Sequence[Edit]) -> None:
    """Check after a call that each plain function has changed something.

    Args:
        edits: what :func:`checked_edits` returned.

    Raises:
        EditError: a function has returned every tensor as it was.
    """
    for edit in edits:
        if isinstance(edit, _Function):
            edit.require_change()


def renewed(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """Return checked edits for another call, in which no function has been called yet."""
    return tuple(_Function(edit.function) if isinstance(edit, _Function) else edit for edit in edits)


_NO_EDIT = N_("{edit!r} is not an edit: pass one of visformer.edits, or a function (name, tensor) -> tensor.")


def _checked(edit: Any, names: Sequence[str], fixed: frozenset[str]) -> Edit:
    if not isinstance(edit, _Edit):
        if not callable(edit):
            raise EditError(_NO_EDIT, edit=edit)
        return _Function(edit)
    reached = _reached(edit, tuple(names))
    if not reached:
        raise EditError(N_("{edit} matches nothing in this model: check the layer and the name."), edit=edit)
    for name in fixed.intersection(reached):
        raise EditError(
            N_("{edit} cannot be applied: this model shows {name}, but does not let it be changed."),
            edit=edit,
            name=name,
        )
    return edit


@lru_cache(maxsize=64)  # the same edit often comes with many texts, one after another
def _reached(edit: _Edit, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if edit.applies(name))


class _Function:
    """A plain function as an edit of one call."""

    def __init__(self, function: Callable[[str, Tensor], Any]) -> None:
        self.function = function
        self.by_row = isinstance(function, EachRow)
        inner = function.function if isinstance(function, EachRow) else function
        self._label = getattr(inner, "__name__", type(inner).__name__)
        self._called: dict[str, None] = {}
        self._changed = False

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Call the function with a copy, which it may change in place; return ``tensor`` itself if it is unchanged."""
        self._called[name] = None
        copy = tensor.clone()
        result = self.function(name, copy)
        if not isinstance(result, Tensor):
            raise EditError(
                N_("The edit {label} returned {kind} for {name}: return the tensor, also where it changes nothing."),
                label=self._label,
                kind=type(result).__name__,
                name=name,
            )
        if _kind(result) != _kind(tensor):
            raise EditError(
                N_("The edit {label} returned {given} for {name}: return a tensor of the same kind, {wanted}."),
                label=self._label,
                given=_kind(result),
                name=name,
                wanted=_kind(tensor),
            )
        if result is copy and torch.equal(copy, tensor):
            return tensor
        self._changed = True
        return result

    def require_change(self) -> None:
        """Refuse a function that has returned every tensor as it was."""
        if not self._changed:
            raise EditError(
                N_(
                    "The edit {label} reached nothing: it returned each of {n} tensors as it was. The first of their "
                    "names are {names}."
                ),
                label=self._label,
                n=len(self._called),
                names=", ".join([*self._called][:_SHOWN]),
            )


def _kind(tensor: Tensor) -> str:
    """A tensor's dtype, shape and device, for a message."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)} ({tensor.device.type})"
