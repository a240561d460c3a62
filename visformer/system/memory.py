"""Memory: one error for running out of it, and freed memory kept for the next request.

A trace of 256 tokens holds 19 MB. If that memory is returned to the system and requested again, the kernel has to zero
thousands of pages, which costs a sixth of the forward pass (docs/adr/0010).
"""

import ctypes
import errno
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from visformer.errors import N_, ShortageError
from visformer.system import limits

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


@cache
def keep_freed_memory() -> bool:
    """Set glibc malloc's thresholds once: for trimming freed memory, and for allocations with a mapping of their own.

    Returns:
        Whether this system has the thresholds (Linux with glibc).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return all(mallopt(option, limits.FREED_BYTES) == 1 for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD))


def release_freed_memory() -> None:
    """Give freed memory back to the system, also what lies between arrays that are kept (Linux with glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def go_first() -> None:
    """Let Linux kill this process before the server with everybody's pages when memory runs out (proc(5))."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("500")


_MESSAGES = (
    "not enough memory",
    "out of memory",
    "cannot allocate memory",
    "bad_alloc",
    "bad allocation",
    "can't start new thread",
    "storage size calculation overflowed",
)
"""Parts of messages with which torch, safetensors, Python and the system report that memory ran out."""


@contextmanager
def enough_memory() -> Iterator[None]:
    """Turn every error that means that memory ran out into a ShortageError. Also a decorator.

    The failed work's memory is freed at once: the new error does not refer to its frames.

    Raises:
        ShortageError: there was not enough memory.
    """
    try:
        yield
    except Exception as error:
        if not is_shortage(error):
            raise
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        raise ShortageError(
            N_("There was not enough memory for this. Use a shorter sentence, or try again in a moment.")
        ) from None


def is_shortage(error: Exception) -> bool:
    """Whether an error means that memory ran out; one that says so already does not count."""
    if isinstance(error, ShortageError):
        return False
    message = str(error).lower()
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    # By message: safetensors has an error class of its own, and the hub's library wraps it.
    return not isinstance(error, ValueError) and any(part in message for part in _MESSAGES)
