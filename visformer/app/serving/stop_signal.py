"""The signal that makes a worker process give up its computation. Imports no torch."""

import signal

STOP = getattr(signal, "SIGUSR1", signal.SIGTERM)
"""Windows has no user-defined signals: there the process ends, and is replaced."""


class Stopped(Exception):
    """The response of a process that has given up its computation."""
