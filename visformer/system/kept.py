"""What is kept in memory because it may be wanted again, and never more than a number of bytes of it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from visformer.errors import N_, BudgetError
from visformer.system import limits, settings


def _nothing() -> None:
    """For what goes by not being kept any more."""


@dataclass
class _Item:
    what: Any
    nbytes: int
    gone: Callable[[], object]
    users: int = 0


class Kept:
    """A number of bytes for what can be made again: what was used longest ago, and is not in use, makes room."""

    def __init__(self, most: Callable[[], int]) -> None:
        """Keep nothing yet; ``most`` returns the number of bytes."""
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
            gone: called when it is not kept any more; may only drop what has no other lock.

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
        """Drop what was used longest ago until so many bytes are free.

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
        """Keep this no longer, if it is kept at all."""
        with self._lock:
            item = self._items.pop(key, None)
            if item is not None:
                self.nbytes -= item.nbytes
                item.gone()

    @contextmanager
    def using(self, key: Hashable, nbytes: int, gone: Callable[[], object]) -> Iterator[None]:
        """Keep something of which only the size is needed here, for as long as this lasts at least; see :meth:`put`."""
        with self._lock:
            self.put(key, nbytes, nbytes, gone)
            item = self._items[key]
            item.users += 1
        try:
            yield
        finally:
            with self._lock:
                item.users -= 1


KEPT = Kept(settings.MEMORY)
"""Models besides the first one, uploads and made files, of all sessions of this process and of its long work."""
