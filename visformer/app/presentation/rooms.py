"""Rooms that follow a presenter: the latest state of each, in this process's memory alone, and who follows."""

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from visformer.system import limits

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is taken for another when it is typed
_LONG = 6  # letters: 800 million rooms, so nobody finds one by trying


@dataclass(frozen=True)
class Key:
    """Opens a room for writing; only the presenter's session has it.

    Args:
        code: names the room in links.
        secret: is in no link.
    """

    code: str
    secret: str


@dataclass
class _Room:
    secret: str
    used: float
    version: int = 0
    given: dict[str, str] = field(default_factory=dict)
    followers: set[str] = field(default_factory=set)


class Rooms:
    """At most so many rooms, each for as long as it is used.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rooms: dict[str, _Room] = {}
        self._lock = threading.Lock()

    def open(self) -> Key | None:
        """A new room; None: there are as many as there may be."""
        with self._lock:
            self._forget()
            if len(self._rooms) >= limits.ROOMS:
                return None
            key = Key("".join(secrets.choice(_LETTERS) for _ in range(_LONG)), secrets.token_urlsafe(16))
            self._rooms[key.code] = _Room(key.secret, self._clock())
            return key

    def write(self, key: Key, given: Mapping[str, str]) -> frozenset[str]:
        """Have a room show this from now on.

        Args:
            key: of the room; with a wrong one nothing happens.
            given: a state as texts, see :mod:`visformer.app.session.url_state`.

        Returns:
            The followers who have not seen it.
        """
        with self._lock:
            room = self._of(key)
            if room is None:
                return frozenset()
            room.used = self._clock()
            if room.version and room.given == given:
                return frozenset()
            room.version, room.given = room.version + 1, dict(given)
            return frozenset(room.followers)

    def close(self, key: Key) -> frozenset[str]:
        """Take a room away; gives who followed."""
        with self._lock:
            return frozenset(self._rooms.pop(key.code).followers if self._of(key) else ())

    def is_open(self, key: Key) -> bool:
        """Whether the room is there, and this is its key."""
        with self._lock:
            self._forget()
            return self._of(key) is not None

    def follow(self, code: str, follower: str) -> tuple[int, dict[str, str]] | None:
        """The version and the state of a room, and word of the next one for this follower; None: there is no room.

        Beyond so many followers the state is given, but no word of the next.
        """
        with self._lock:
            self._forget()
            room = self._rooms.get(code)
            if room is None:
                return None
            if len(room.followers) < limits.FOLLOWERS:
                room.followers.add(follower)
            return room.version, dict(room.given)

    def leave(self, code: str, follower: str) -> None:
        """No more word for this follower."""
        with self._lock:
            if code in self._rooms:
                self._rooms[code].followers.discard(follower)

    def _of(self, key: Key) -> _Room | None:
        room, secret = self._rooms.get(key.code), key.secret.encode("utf-8", "replace")
        return room if room is not None and secrets.compare_digest(room.secret.encode(), secret) else None

    def _forget(self) -> None:
        oldest = self._clock() - limits.ROOM_SECONDS
        for code in [code for code, room in self._rooms.items() if room.used < oldest]:
            del self._rooms[code]


ROOMS = Rooms()
