"""A cache whose limit is a number of bytes: the least recently used makes room."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from visformer.errors import N_, BudgetError
from visformer.system import limits, settings


def _nothing() -> None:
    """For items that need no cleaning up."""


@dataclass
class _Item:
    what: Any
    nbytes: int
    gone: Callable[[], object]
    users: int = 0


class Cache:
    """A cache of what can be made again; the least recently used item that is not in use makes room."""

    def __init__(self, most: Callable[[], int]) -> None:
        """Start empty; ``most`` returns the limit in bytes."""
        self.most = most
        self.nbytes = 0
        self._items: OrderedDict[Hashable, _Item] = OrderedDict()  # used longest ago first
        self._lock = threading.RLock()

    def get(self, key: Hashable) -> Any:
        """Return what is kept under this key, now the most recently used, or None."""
        with self._lock:
            if key not in self._items:
                return None
            self._items.move_to_end(key)
            return self._items[key].what

    def put(self, key: Hashable, what: Any, nbytes: int, gone: Callable[[], object] = _nothing) -> None:
        """Keep something, unless it is kept already.

        Args:
            key: for :meth:`get`.
            what: to return.
            nbytes: its size.
            gone: called once it is no longer kept, or cannot be; with the lock held, so it must not wait for another.

        Raises:
            BudgetError: there is no room for it, so it is not kept.
        """
        with self._lock:
            if self.get(key) is not None:
                return
            try:
                self.make_room(nbytes)
            except BudgetError:
                gone()
                raise
            self._items[key] = _Item(what, nbytes, gone)
            self.nbytes += nbytes

    def make_room(self, nbytes: int) -> None:
        """Drop the least recently used items until this many bytes are free.

        Raises:
            BudgetError: they would not be; nothing was dropped.
        """
        with self._lock:
            most = self.most()
            free = most - sum(item.nbytes for item in self._items.values() if item.users)
            if nbytes > free:
                raise BudgetError(
                    N_(
                        "This takes {size} of memory, and {free} of {most} are free for it. The operator "
                        "can set more: VISFORMER_MEMORY."
                    ),
                    size=limits.size(nbytes),
                    free=limits.size(max(0, free)),
                    most=limits.size(most),
                )
            for key in [key for key, item in self._items.items() if not item.users]:
                if self.nbytes + nbytes <= most:
                    break
                self.drop(key)

    def drop(self, key: Hashable) -> None:
        """Drop an item, if it is kept."""
        with self._lock:
            item = self._items.pop(key, None)
            if item is not None:
                self.nbytes -= item.nbytes
                item.gone()

    @contextmanager
    def using(self, key: Hashable, nbytes: int, gone: Callable[[], object]) -> Iterator[None]:
        """Count something that is kept elsewhere, and do not drop it within this block; see :meth:`put`."""
        with self._lock:
            self.put(key, nbytes, nbytes, gone)
            item = self._items[key]
            item.users += 1
        try:
            yield
        finally:
            with self._lock:
                item.users -= 1


CACHE = Cache(settings.MEMORY)
"""Models besides the first one, uploads and generated files, of this process and its process for long computations."""
