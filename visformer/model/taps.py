"""Taps: the one mechanism to read and to change what a Transformer computes.

Every value worth seeing passes through a tap, ``tap(name, tensor) -> tensor``. With no session open a tap hands
its input back. A session lives in a ContextVar, opens and closes inside one call, and nothing is ever parked on
a module: any number of threads share one model with no lock. torch.jit and fullgraph compile are not supported.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from torch import Tensor


class Tap(Protocol):
    """What the model calls: read and possibly change one named tensor."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        """Return the tensor to go on with (the same object, unless an edit changes it)."""
        ...

    def at(self, name: str) -> "Tap":
        """The tap for everything below ``name``."""
        ...

    def wants(self, name: str) -> bool:
        """Whether anyone looks at ``name``: saves building a tensor that nobody reads."""
        ...


class _Closed:
    """The tap of a model that nobody watches."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        return tensor

    def at(self, name: str) -> Tap:
        return self

    def wants(self, name: str) -> bool:
        return False


class _Open:
    """A tap with a path; hands full names to the session's visitor."""

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
_current: ContextVar[Tap] = ContextVar("visformer_tap", default=CLOSED)


def current() -> Tap:
    """The tap of this context: an open session's, or one that does nothing."""
    return _current.get()


@contextmanager
def session(
    visit: Callable[[str, Tensor], Tensor], *, wanted: Callable[[str], bool] = lambda name: True
) -> Iterator[None]:
    """Let ``visit(full_name, tensor) -> tensor`` see every tapped value of forward passes inside the block.

    Args:
        visit: called for each tapped tensor; what it returns is what the model goes on with.
        wanted: tells which names are looked at at all (only consulted where building a value costs something).
    """
    token = _current.set(_Open("", visit, wanted))
    try:
        yield
    finally:
        _current.reset(token)
