"""The order in which followers are drawn anew: a few at a time, each once for all that has changed meanwhile.

A presenter who turns fourteen pages would otherwise begin as many runs of each follower, all at once, and those who
follow nobody would wait behind them.
"""

import threading
import time
from collections.abc import Callable, Iterable

from visformer.app.streamlit_private import other_sessions
from visformer.system import limits

_PATIENCE = 5.0
"""Seconds after which a follower that waits for the model no longer keeps others waiting."""


class Waking:
    """Followers that are behind, in the order in which they fell behind.

    Args:
        wake: reruns a session.
        connected: whether the browser of a session is connected.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        wake: Callable[[str], None] = lambda session: other_sessions.wake([session]),
        connected: Callable[[str], bool] = other_sessions.is_connected,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wake, self._connected, self._clock = wake, connected, clock
        self._behind: dict[str, None] = {}
        self._woken: dict[str, float] = {}  # not drawn yet, since when
        self._lock = threading.Lock()

    def wake(self, sessions: Iterable[str]) -> None:
        """Rerun sessions when their turn comes; whoever is behind already keeps its place."""
        with self._lock:
            self._behind |= dict.fromkeys(sessions)
        self.go_on()

    def drawn(self, session: str) -> None:
        """End a session's run: the next one's turn has come."""
        with self._lock:
            was_woken = self._woken.pop(session, None) is not None
        if was_woken:
            self.go_on()

    def go_on(self) -> None:
        """Wake as many as may be drawn at a time; those that are gone do not count, nor do those that take too long."""
        with self._lock:
            late = self._clock() - _PATIENCE
            self._woken = {name: since for name, since in self._woken.items() if since > late and self._connected(name)}
            self._behind = {name: None for name in self._behind if self._connected(name)}
            waiting = [name for name in self._behind if name not in self._woken]
            turns = waiting[: max(0, limits.FOLLOWERS - len(self._woken))]
            for name in turns:
                del self._behind[name]
                self._woken[name] = self._clock()
        for name in turns:
            self._wake(name)


WAKING = Waking()
