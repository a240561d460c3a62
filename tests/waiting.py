"""Waiting for what other threads and processes do."""

import time


def until(condition, *, seconds=60):
    """Wait until the condition holds; the bound only ends a test that hangs, on a machine however busy."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} seconds"
        time.sleep(0.005)
