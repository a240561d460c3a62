"""Waiting for what other threads and processes do."""

import time


def until(condition, *, seconds=20):
    """Wait until the condition holds, and fail if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} seconds"
        time.sleep(0.005)
