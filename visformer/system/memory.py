"""Memory: what happens when there is not enough, and freed memory is kept for the next request.

A trace of 256 tokens holds 19 MB. Handed back and asked for again, that memory arrives as thousands of fresh pages
that the kernel has to clear, which costs a sixth of the forward pass (docs/adr/0010).
"""

import ctypes
import errno
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from visformer.errors import N_, ShortageError
from visformer.system import limits

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


@cache
def keep_freed_memory() -> bool:
    """Set the thresholds of glibc's malloc once: how much freed memory stays, and what is mapped on its own.

    Returns:
        Whether this system has them (Linux with glibc).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return all(mallopt(option, limits.FREED_BYTES) == 1 for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD))


_SHORT = (
    "not enough memory",
    "out of memory",
    "cannot allocate memory",
    "bad_alloc",
    "bad allocation",
    "can't start new thread",
)
"""What torch, safetensors, Python and the system say in errors of several kinds."""


@contextmanager
def enough_memory() -> Iterator[None]:
    """Turn every way of saying that memory ran out into one error. Also a decorator.

    What the failed work held is freed at once: whoever keeps the error keeps none of it.

    Raises:
        ShortageError: there was not enough.
    """
    try:
        yield
    except Exception as error:
        if not _is_shortage(error):
            raise
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        raise ShortageError(
            N_("There was not enough memory for this. Use a shorter sentence, or try again in a moment.")
        ) from None


def _is_shortage(error: Exception) -> bool:
    if isinstance(error, ShortageError):
        return False
    said = str(error).lower()
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    # safetensors has an error of its own, the hub's library wraps it
    return not isinstance(error, ValueError) and any(sign in said for sign in _SHORT)
