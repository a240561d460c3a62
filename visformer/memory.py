"""Memory that is freed is kept for the next request, instead of being handed back to the system.

A trace of 256 tokens holds 19 MB. Handed back and asked for again, that memory arrives as thousands of fresh pages
that the kernel has to clear, which costs a sixth of the forward pass (docs/adr/0010).
"""

import ctypes
import sys
from functools import cache

KEPT_BYTES = 256 * 2**20
"""At most so much freed memory stays with the process; also the size from which a block is mapped on its own."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h


@cache
def keep_freed_memory() -> bool:
    """Set the thresholds of glibc's malloc once. Returns whether this system has them (Linux with glibc)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is None:
        return False
    return all(mallopt(option, KEPT_BYTES) == 1 for option in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD))
