"""Rooms that follow a presenter: the latest state of each, in this process's memory alone, and its followers."""

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from visformer.system import limits

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is mistaken for another when typed
_CODE_LENGTH = 6  # 800 million codes, too many to guess one


@dataclass(frozen=True)
class Key:
    """A key that permits writing to a room; only the presenter's session has it.

    Args:
        code: the room's name in links.
        secret: part of no link.
    """

    code: str
    secret: str


@dataclass
class _Room:
    secret: str
    used: float
    version: int = 0
    state: dict[str, str] = field(default_factory=dict)
    followers: set[str] = field(default_factory=set)


class Rooms:
    """A limited number of rooms; unused ones expire.

    Args:
        clock: monotonic, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rooms: dict[str, _Room] = {}
        self._lock = threading.Lock()

    def open(self) -> Key | None:
        """Open a room; return None if the limit is reached."""
        with self._lock:
            self._expire()
            if len(self._rooms) >= limits.ROOMS:
                return None
            key = Key("".join(secrets.choice(_LETTERS) for _ in range(_CODE_LENGTH)), secrets.token_urlsafe(16))
            self._rooms[key.code] = _Room(key.secret, self._clock())
            return key

    def write(self, key: Key, state: Mapping[str, str]) -> frozenset[str]:
        """Set the state that a room shows.

        Args:
            key: of the room; a wrong one has no effect.
            state: by name, as texts, see :mod:`visformer.app.session.url_state`.

        Returns:
            The followers who have not seen it.
        """
        with self._lock:
            room = self._room_of(key)
            if room is None:
                return frozenset()
            room.used = self._clock()
            if room.version and room.state == state:
                return frozenset()
            room.version, room.state = room.version + 1, dict(state)
            return frozenset(room.followers)

    def close(self, key: Key) -> frozenset[str]:
        """Remove a room; return its followers."""
        with self._lock:
            return frozenset(self._rooms.pop(key.code).followers if self._room_of(key) else ())

    def is_open(self, key: Key) -> bool:
        """Return whether the room exists and this is its key."""
        with self._lock:
            self._expire()
            return self._room_of(key) is not None

    def follow(self, code: str, follower: str) -> tuple[int, dict[str, str]] | None:
        """Return a room's version and state, and register the follower to be woken; None if there is no such room.

        Beyond the limit of followers, the state is returned, but the follower is not registered.
        """
        with self._lock:
            self._expire()
            room = self._rooms.get(code)
            if room is None:
                return None
            if len(room.followers) < limits.FOLLOWERS:
                room.followers.add(follower)
            return room.version, dict(room.state)

    def leave(self, code: str, follower: str) -> None:
        """Unregister a follower."""
        with self._lock:
            if code in self._rooms:
                self._rooms[code].followers.discard(follower)

    def _room_of(self, key: Key) -> _Room | None:
        room, secret = self._rooms.get(key.code), key.secret.encode("utf-8", "replace")
        return room if room is not None and secrets.compare_digest(room.secret.encode(), secret) else None

    def _expire(self) -> None:
        oldest = self._clock() - limits.ROOM_SECONDS
        for code in [code for code, room in self._rooms.items() if room.used < oldest]:
            del self._rooms[code]


ROOMS = Rooms()
