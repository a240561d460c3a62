"""How far a long computation is: whoever starts it listens, and the work reports, also from another process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[int, int], None]
"""Takes the runs done and all runs."""

CURRENT: ContextVar[Listener | None] = ContextVar("visformer_progress", default=None)
"""What hears of the work that this thread does; None: nobody listens."""


@contextmanager
def reporting_to(listener: Listener) -> Iterator[None]:
    """Let :func:`report` tell this listener of what this thread does within this block."""
    before = CURRENT.set(listener)
    try:
        yield
    finally:
        CURRENT.reset(before)


class Progress:
    """A listener that remembers the share of the runs that are done, for a page to look at."""

    share = 0.0

    def __call__(self, done: int, total: int) -> None:
        """Take the runs done and all runs."""
        self.share = done / max(1, total)


def report(done: int, total: int) -> None:
    """Tell whoever listens how far this thread's work is."""
    listener = CURRENT.get()
    if listener is not None:
        listener(done, total)
