"""How the server has a worker process give up what it computes. No torch in here."""

import signal

STOP = getattr(signal, "SIGUSR1", signal.SIGTERM)
"""Windows has no signal of our own: there the process ends, and is replaced."""


class Stopped(Exception):
    """What the process answers: it has given up."""
