"""Rooms that follow a presenter: the latest state of each, in this process's memory alone, and who follows."""

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from visformer.app.streamlit_private.other_sessions import is_connected
from visformer.errors import N_, BusyError
from visformer.system import limits

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is taken for another when it is typed
_LONG = 10  # letters: among a thousand rooms, trying as often as limits.WRONG_CODES allows finds one in 1,500 years
_MINUTE = 60.0
_KEY_CHARACTERS = 100  # more than any of ours has


@dataclass(frozen=True)
class Key:
    """Opens a room for writing; only the presenter's session has it, and the tab of the presenter's browser.

    Args:
        code: names the room in links.
        secret: is in no link.
    """

    code: str
    secret: str

    def __str__(self) -> str:
        """As the browser keeps it."""
        return f"{self.code}.{self.secret}"

    @classmethod
    def from_browser(cls, value: object) -> "Key | None":
        """The key that a browser sends; None: it cannot be one."""
        if not isinstance(value, str) or len(value) > _KEY_CHARACTERS:
            return None
        code, _, secret = value.partition(".")
        return cls(code, secret)


class Seen(NamedTuple):
    """What a follower sees of a room.

    Args:
        version: grows with what is shown; 0: nothing yet.
        given: a state as texts, see :mod:`visformer.app.session.url_state`.
        is_presented: whether the presenter's browser is connected.
    """

    version: int
    given: dict[str, str]
    is_presented: bool


@dataclass
class _Room:
    secret: str
    presenter: str
    seen: float  # when the presenter was connected last
    is_presented: bool = True
    version: int = 0
    given: dict[str, str] = field(default_factory=dict)
    followers: set[str] = field(default_factory=set)


class Rooms:
    """At most so many rooms, each for as long as its presenter is there, or comes back soon.

    Sessions are given by their names, see :func:`visformer.app.streamlit_private.other_sessions.own_session`.

    Args:
        connected: whether the browser of a session is.
        clock: seconds that only grow.
    """

    def __init__(
        self, connected: Callable[[str], bool] = is_connected, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connected = connected
        self._clock = clock
        self._rooms: dict[str, _Room] = {}
        self._wrong: deque[float] = deque()  # when wrong codes came
        self._lock = threading.Lock()

    def open(self, presenter: str) -> Key | None:
        """A new room; None: there are as many as there may be. One whose presenter is gone makes way."""
        with self._lock:
            if len(self._rooms) >= limits.ROOMS and not self._make_way():
                return None
            key = Key("".join(secrets.choice(_LETTERS) for _ in range(_LONG)), secrets.token_urlsafe(16))
            self._rooms[key.code] = _Room(key.secret, presenter, self._clock())
            return key

    def take_up(self, key: Key, presenter: str) -> bool:
        """Have a room be this session's, and no other's any more; whether it is there, and this is its key."""
        with self._lock:
            room = self._of(key)
            if room is not None:
                room.presenter, room.seen = presenter, self._clock()
            return room is not None

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
            if room is None or (room.version and room.given == given):
                return frozenset()
            room.version, room.given = room.version + 1, dict(given)
            return frozenset(room.followers)

    def close(self, key: Key) -> frozenset[str]:
        """Take a room away; gives who followed."""
        with self._lock:
            return frozenset(self._rooms.pop(key.code).followers if self._of(key) else ())

    def is_presented_by(self, key: Key, presenter: str) -> bool:
        """Whether the room is there, this is its key, and this session the one that presents."""
        with self._lock:
            room = self._of(key)
            return room is not None and room.presenter == presenter

    def follow(self, code: str, follower: str, *, is_new: bool = True) -> Seen | None:
        """What a room shows, and word of the next for this follower; None: there is no room.

        Args:
            code: of the room.
            follower: a session.
            is_new: whether it may be guessing; else it was given the state of this room before.

        Raises:
            BusyError: new ones have tried too many wrong codes; no other is looked up for now.
        """
        with self._lock:
            if is_new:
                self._refuse_guesses()
            room = self._rooms.get(code)
            if room is None:
                if is_new:
                    self._wrong.append(self._clock())
                return None
            room.followers.add(follower)
            return Seen(room.version, dict(room.given), room.is_presented)

    def leave(self, code: str, follower: str) -> None:
        """No more word for this follower."""
        with self._lock:
            if code in self._rooms:
                self._rooms[code].followers.discard(follower)

    def check(self) -> frozenset[str]:
        """Take off who is gone; gives the followers whose presenter left, came back, or is gone for good."""
        affected: set[str] = set()
        with self._lock:
            now = self._clock()
            for code, room in [*self._rooms.items()]:
                room.followers = {follower for follower in room.followers if self._connected(follower)}
                was_presented, room.is_presented = room.is_presented, self._connected(room.presenter)
                if room.is_presented:
                    room.seen = now
                is_over = now - room.seen > limits.ROOM_SECONDS
                if is_over:
                    del self._rooms[code]
                if is_over or room.is_presented != was_presented:
                    affected |= room.followers
        return frozenset(affected)

    def _of(self, key: Key) -> _Room | None:
        room, secret = self._rooms.get(key.code), key.secret.encode("utf-8", "replace")
        return room if room is not None and secrets.compare_digest(room.secret.encode(), secret) else None

    def _make_way(self) -> bool:
        """Take away the room whose presenter has been gone for longest; whether there is one."""
        gone = [code for code, room in self._rooms.items() if not self._connected(room.presenter)]
        if gone:
            del self._rooms[min(gone, key=lambda code: self._rooms[code].seen)]
        return bool(gone)

    def _refuse_guesses(self) -> None:
        while self._wrong and self._wrong[0] <= self._clock() - _MINUTE:
            self._wrong.popleft()
        if len(self._wrong) >= limits.WRONG_CODES:
            raise BusyError(N_("Too many wrong codes were tried just now. Reload this page in a minute."))


ROOMS = Rooms()
