"""Taps: the one mechanism to read and to change what a Transformer computes.

Every value worth seeing passes through a tap, ``tap(name, tensor) -> tensor``. Outside a session a tap returns
its input. A session lives in a ContextVar, opens and closes inside one call, and stores nothing on a module: any
number of threads share one model without a lock. torch.jit and fullgraph compile are not supported.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, cast

from torch import Tensor


@dataclass(frozen=True, eq=False)
class AttentionInputs:
    """What attention is computed from, where nobody needs all of its weights at once: softmax(Q K^T scale + bias) V.

    Args:
        query: (batch, head, query, d_k).
        key: (batch, kv_head, key, d_k); head / kv_head heads share each one.
        value: (batch, kv_head, key, d_v).
        scale: factor of the scores.
        mask: bool, broadcastable to (batch, 1, query, key), True = may attend; None: no mask. Layers that share a mask
            pass the same tensor.
        bias: (batch, 1 or head, 1 or query, key), added to the scores.
        softcap: c in c tanh(scores / c); None: none.
        sinks: (head,), a score of each head that belongs to no key; None: none.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    scale: float
    mask: Tensor | None = None
    bias: Tensor | None = None
    softcap: float | None = None
    sinks: Tensor | None = None


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

    def by_rows(self, inputs: AttentionInputs) -> Tensor:
        """Compute heads (batch, head, query, d_v) in place of the layer, where "overview" is wanted."""
        ...


class _Closed:
    """The tap outside a session."""

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        return tensor

    def at(self, name: str) -> Tap:
        return self

    def wants(self, name: str) -> bool:
        return False

    def by_rows(self, inputs: AttentionInputs) -> Tensor:
        raise NotImplementedError  # it wants no overview


ByRows = Callable[[str, AttentionInputs], Tensor]
"""Computes the attention at a path."""


class _Open:
    """A tap with a path; passes full names to the session's ``visit``."""

    __slots__ = ("_by_rows", "_path", "_visit", "_wanted")

    def __init__(
        self,
        path: str,
        visit: Callable[[str, Tensor], Tensor],
        wanted: Callable[[str], bool],
        by_rows: ByRows | None = None,
    ) -> None:
        self._path, self._visit, self._wanted, self._by_rows = path, visit, wanted, by_rows

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        return self._visit(self._path + name, tensor)

    def at(self, name: str) -> Tap:
        return _Open(f"{self._path}{name}.", self._visit, self._wanted, self._by_rows)

    def wants(self, name: str) -> bool:
        return self._wanted(self._path + name) and (name != "overview" or self._by_rows is not None)

    def by_rows(self, inputs: AttentionInputs) -> Tensor:
        assert self._by_rows is not None  # "overview" is wanted
        return self._by_rows(self._path.removesuffix("."), inputs)


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
    visit: Callable[[str, Tensor], Tensor],
    *,
    wanted: Callable[[str], bool] = lambda name: True,
    by_rows: ByRows | None = None,
) -> Iterator[None]:
    """Let ``visit(full_name, tensor) -> tensor`` see every tapped value of forward passes inside the block.

    Args:
        visit: called for each tapped tensor; the model continues with what it returns.
        wanted: whether a name is read at all (only consulted where building a value costs something).
        by_rows: computes attention where the name "<path>.overview" is wanted.
    """
    token = _current.set(_Open("", visit, wanted, by_rows))
    try:
        yield
    finally:
        _current.reset(token)
