"""Work that ends early: at its deadline, or once nobody waits for its result.

Whoever starts work does so within :meth:`Cancellation.current`. The work calls :func:`check` between its steps. The
deadline limits the CPU time of the working thread: on a busy server, work at low priority takes many times as long in
wall-clock time.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from visformer.errors import N_, DeadlineError, VisformerError
from visformer.system import limits


def _nothing() -> None:
    """For work in this process, which calls :func:`check`."""


class Cancellation:
    """Whether one piece of work is to end, and why."""

    def __init__(self) -> None:
        self.reason: VisformerError | None = None
        self._lock = Lock()
        self._begun = 0.0  # CPU time of the working thread, in seconds
        self._since = 0.0  # when it was cancelled
        self._stop: Callable[[], object] = _nothing
        self._kill: Callable[[], object] = _nothing
        self.look: Callable[[], object] = _nothing  # called regularly while another process does the work

    def cancel(self, reason: VisformerError) -> None:
        """End the work. The first reason counts; each call asks again, after the grace period it kills the work."""
        with self._lock:
            if self.reason is None:
                self.reason, self._since = reason, time.monotonic()
            if time.monotonic() - self._since > limits.GRACE_SECONDS:
                self._kill()
            else:
                self._stop()

    @contextmanager
    def current(self) -> Iterator[None]:
        """Let :func:`check` end what this thread does within this block."""
        self._begun = time.thread_time()
        before = CURRENT.set(self)
        try:
            yield
        finally:
            CURRENT.reset(before)

    def check(self) -> None:
        """See :func:`check`."""
        if time.thread_time() - self._begun > limits.WORK_SECONDS:
            raise too_long(limits.WORK_SECONDS)
        if self.reason is not None:
            raise self.reason

    @contextmanager
    def notifying(
        self, *, stop: Callable[[], object], kill: Callable[[], object], look: Callable[[], object] = _nothing
    ) -> Iterator[None]:
        """Let another process do the work: ``stop`` tells it to stop, ``kill`` ends it if it does not.

        ``look`` is called several times a second meanwhile.
        """
        with self._lock:
            self._stop, self._kill, self.look = stop, kill, look
            if self.reason is not None:
                stop()
        try:
            yield
        finally:
            with self._lock:
                self._stop = self._kill = self.look = _nothing


CURRENT: ContextVar[Cancellation | None] = ContextVar("visformer_cancellation", default=None)
"""What ends the work that this thread does; None: nothing can."""


def check() -> None:
    """Raise an error if this thread's work is to end.

    Raises:
        VisformerError: why it ends.
    """
    current = CURRENT.get()
    if current is not None:
        current.check()


def too_long(seconds: float) -> DeadlineError:
    """Return the error of work that took too many seconds."""
    return DeadlineError(
        N_("This took longer than {seconds} seconds and was ended: shorten the text or undo changes of the model."),
        seconds=seconds,
    )
