"""Work that ends early: at its deadline, or once nobody waits for its result.

Whoever starts work sets :data:`CURRENT` around it. The work calls :func:`check` between its steps.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from visformer.errors import VisformerError
from visformer.system import limits


def _nothing() -> None:
    """For work that asks by itself."""


class Cancellation:
    """Whether one piece of work is to end, and why."""

    def __init__(self) -> None:
        self.reason: VisformerError | None = None
        self._lock = Lock()
        self._since = 0.0
        self._stop: Callable[[], object] = _nothing
        self._kill: Callable[[], object] = _nothing

    def cancel(self, reason: VisformerError) -> None:
        """End the work. The first reason counts; called again after the grace, what does not end is killed."""
        with self._lock:
            if self.reason is None:
                self.reason, self._since = reason, time.monotonic()
                self._stop()
            elif time.monotonic() - self._since > limits.GRACE_SECONDS:
                self._kill()

    @contextmanager
    def notifying(self, *, stop: Callable[[], object], kill: Callable[[], object]) -> Iterator[None]:
        """While another process does the work: how it is told to stop, and how it is ended if it does not."""
        with self._lock:
            self._stop, self._kill = stop, kill
            if self.reason is not None:
                stop()
        try:
            yield
        finally:
            with self._lock:
                self._stop = self._kill = _nothing


CURRENT: ContextVar[Cancellation | None] = ContextVar("visformer_cancellation", default=None)
"""Of the work that this thread does; None: nobody can end it."""


def check() -> None:
    """Raise the reason if this thread's work is to end.

    Raises:
        VisformerError: why it ends.
    """
    current = CURRENT.get()
    if current is not None and current.reason is not None:
        raise current.reason
