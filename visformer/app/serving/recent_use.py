"""The recent computing time of each session, which decides whose turn it is."""

from collections.abc import Iterable

from visformer.system import limits

FORGOTTEN = 0.001  # seconds; a session with less is as good as new


class RecentUse:
    """Seconds of computing by session, with a half-life of limits.RECENT_SECONDS. Its owner holds a lock."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}  # as of the last addition
        self._added = 0.0

    def at(self, now: float) -> dict[str, float]:
        """Return the seconds by session, decayed until ``now``, in seconds of a monotonic clock."""
        kept = 0.5 ** ((now - self._added) / limits.RECENT_SECONDS)
        return {session: seconds * kept for session, seconds in self._seconds.items()}

    def add(self, sessions: Iterable[str], seconds: float, now: float) -> None:
        """Charge these sessions."""
        self._seconds = {session: used for session, used in self.at(now).items() if used > FORGOTTEN}
        self._added = now
        for session in {*sessions}:
            self._seconds[session] = self._seconds.get(session, 0.0) + seconds
