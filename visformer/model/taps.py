"""Taps: the one mechanism to read and to change what a Transformer computes.

Every value worth seeing passes through a tap, ``tap(name, tensor) -> tensor``. Outside a session a tap returns
its input. A session lives in a ContextVar, opens and closes inside one call, and stores nothing on a module: any
number of threads share one model without a lock. torch.jit and fullgraph compile are not supported.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, cast

from torch import Tensor


class Tap(Protocol):
    """Called by the model: reads, and possibly changes, one named tensor."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Return the tensor to continue with (the same object, unless an edit changes it)."""
        ...

    def at(self, name: str) -> "Tap":
        """Return the tap for everything below ``name``."""
        ...

    def wants(self, name: str) -> bool:
        """Whether ``name`` is read at all; if not, its tensor need not be built."""
        ...


class _Closed:
    """The tap outside a session."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        return tensor

    def at(self, name: str) -> Tap:
        return self

    def wants(self, name: str) -> bool:
        return False


class _Open:
    """A tap with a path; passes full names to the session's ``visit``."""

    __slots__ = ("_path", "_visit", "_wanted")

    def __init__(self, path: str, visit: Callable[[str, Tensor], Tensor], wanted: Callable[[str], bool]) -> None:
        self._path, self._visit, self._wanted = path, visit, wanted

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        return self._visit(self._path + name, tensor)

    def at(self, name: str) -> Tap:
        return _Open(f"{self._path}{name}.", self._visit, self._wanted)

    def wants(self, name: str) -> bool:
        return self._wanted(self._path + name)


CLOSED: Tap = _Closed()


def full(tap: "Tap | Callable[[str, Tensor], Tensor]") -> Tap:
    """Return a tap for all that a layer computes; a plain function is called with every name, from the layer on."""
    return cast(Tap, tap) if hasattr(tap, "at") else _Open("", tap, lambda name: True)


_current: ContextVar[Tap] = ContextVar("visformer_tap", default=CLOSED)


def current() -> Tap:
    """Return the tap of the open session, or one that does nothing."""
    return _current.get()


@contextmanager
def session(
    visit: Callable[[str, Tensor], Tensor], *, wanted: Callable[[str], bool] = lambda name: True
) -> Iterator[None]:
    """Let ``visit(full_name, tensor) -> tensor`` see every tapped value of forward passes inside the block.

    Args:
        visit: called for each tapped tensor; the model continues with what it returns.
        wanted: whether a name is read at all (only consulted where building a value costs something).
    """
    token = _current.set(_Open("", visit, wanted))
    try:
        yield
    finally:
        _current.reset(token)
