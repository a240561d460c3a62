"""Rooms that follow a presenter: the latest state of each, in this process's memory alone, and who is drawn anew when.

Followers are drawn anew a few at a time, each once for all that has changed meanwhile. A presenter who turns fourteen
pages would otherwise begin as many runs of each follower, all at once, and those who follow nobody would wait behind
them.
"""

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from visformer.app.presentation.guesses import Guess
from visformer.app.streamlit_private import other_sessions
from visformer.app.streamlit_private.other_sessions import is_connected
from visformer.errors import N_, BusyError
from visformer.system import limits

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that is mistaken for another when typed
_CODE_LENGTH = 10  # at limits.WRONG_CODES, guessing one of a thousand rooms takes 1,500 years
_MINUTE = 60.0  # seconds


def code_of(key: str) -> str:
    """Return the code in links to the room of this key."""
    return key.partition(".")[0]


class Followed(NamedTuple):
    """What a follower sees of a room."""

    version: int  # grows with each new state; 0: there is none yet
    state: dict[str, str]  # by name, as texts, see visformer.app.session.url_state
    is_presented: bool  # whether the presenter's browser is connected


class Desk(NamedTuple):
    """What the presenter's own window shows of a room."""

    told: Mapping[str, object]  # by the presenter's session
    seconds: float  # since it was opened
    followers: int
    is_presented: bool
    guess: Guess | None


@dataclass
class _Room:
    key: str
    presenter: str
    seen: float  # when the presenter was last connected
    opened: float
    told: Mapping[str, object] = field(default_factory=dict)  # to the presenter's own window
    is_presented: bool = True
    version: int = 0
    state: dict[str, str] = field(default_factory=dict)
    followers: dict[str, str] = field(default_factory=dict)  # to the address of their network
    most: dict[str, int] = field(default_factory=dict)  # by address: followers at a time, where there were many
    guess: Guess | None = None  # the question that the room is asked


class Rooms:
    """A limited number of rooms, each kept until its presenter closes it or has been gone for too long.

    Presenters and followers are ids of sessions. A room is written with its key, "code.secret", which only the
    presenter's session and browser tab have; a wrong key has no effect.

    Args:
        connected: whether the browser of a session is connected.
        clock: monotonic, in seconds.
    """

    def __init__(
        self, connected: Callable[[str], bool] = is_connected, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connected = connected
        self._clock = clock
        self._rooms: dict[str, _Room] = {}
        self._wrong: deque[float] = deque()  # the times of wrong codes
        self._lock = threading.Lock()

    def open(self, presenter: str) -> str:
        """Open a room, if need be in place of one whose presenter is gone; return its key, "" at the limit."""
        with self._lock:
            if len(self._rooms) >= limits.ROOMS and not self._make_room():
                return ""
            code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_LENGTH))
            key = f"{code}.{secrets.token_urlsafe(16)}"
            self._rooms[code] = _Room(key, presenter, self._clock(), self._clock())
            return key

    def take_up(self, key: str, presenter: str) -> bool:
        """Make this session the room's only presenter; return whether the room exists and this is its key."""
        with self._lock:
            room = self._room_of(key)
            if room is not None:
                room.presenter, room.seen = presenter, self._clock()
            return room is not None

    def write(self, key: str, state: Mapping[str, str]) -> frozenset[str]:
        """Set the state that a room shows; return the followers who have not seen it."""
        with self._lock:
            room = self._room_of(key)
            if room is None or (room.version and room.state == state):
                return frozenset()
            room.version, room.state = room.version + 1, dict(state)
            return frozenset(room.followers)

    def tell(self, key: str, told: Mapping[str, object]) -> None:
        """Set what the presenter's own window shows."""
        with self._lock:
            room = self._room_of(key)
            if room is not None:
                room.told = told

    def desk(self, key: str) -> Desk | None:
        """Return what the presenter's own window shows; None: no room has this key."""
        with self._lock:
            room = self._room_of(key)
            if room is None:
                return None
            seconds = self._clock() - room.opened
            return Desk(room.told, seconds, len(room.followers), room.is_presented, room.guess)

    def followers(self, key: str) -> frozenset[str]:
        """Return the followers of a room, to be woken for what is not part of its state."""
        with self._lock:
            room = self._room_of(key)
            return frozenset(room.followers) if room is not None else frozenset()

    def ask(self, key: str, guess: Guess | None) -> frozenset[str]:
        """Begin a question to a room, in place of the one before, or end it (None); return the followers."""
        with self._lock:
            room = self._room_of(key)
            if room is None:
                return frozenset()
            room.guess = guess
            return frozenset(room.followers)

    def guess(self, code: str) -> Guess | None:
        """Return the question to a room; only for those who present to it or follow it."""
        with self._lock:
            room = self._rooms.get(code)
            return room.guess if room is not None else None

    def share(self, code: str, address: str) -> int:
        """Return how many people of a network may answer a question: as many as it has had followers at a time.

        So every answer takes a connection, and somebody who opens one after the other has a few.
        """
        with self._lock:
            room = self._rooms.get(code)
            most = room.most.get(address, 0) if room is not None else 0
            return min(max(limits.GUESSES_ALONE, most), limits.GUESSES_ADDRESS)

    def close(self, key: str) -> frozenset[str]:
        """Remove a room; return its followers."""
        with self._lock:
            return frozenset(self._rooms.pop(code_of(key)).followers if self._room_of(key) else ())

    def is_presented_by(self, key: str, presenter: str) -> bool:
        """Return whether the room exists, this is its key, and this session presents to it."""
        with self._lock:
            room = self._room_of(key)
            return room is not None and room.presenter == presenter

    def follow(self, code: str, follower: str, *, address: str = "", is_new: bool = True) -> Followed | None:
        """Return what a room shows, and register the follower to be woken; None if there is no such room.

        Args:
            code: of the room.
            follower: the session that follows.
            address: of its network.
            is_new: whether the session may be guessing the code; False: it has followed this room before.

        Raises:
            BusyError: too many wrong codes were tried; codes of new sessions are not looked up for now.
        """
        with self._lock:
            if is_new:
                self._refuse_guesses()
            room = self._rooms.get(code)
            if room is None:
                if is_new:
                    self._wrong.append(self._clock())
                return None
            room.followers[follower] = address
            self._count(room, address)
            return Followed(room.version, dict(room.state), room.is_presented)

    def leave(self, code: str, follower: str) -> None:
        """Unregister a follower."""
        with self._lock:
            if code in self._rooms:
                self._rooms[code].followers.pop(follower, None)

    def check(self) -> frozenset[str]:
        """Remove followers and rooms that are gone; return the followers whose presenter left, returned or is gone."""
        affected: set[str] = set()
        with self._lock:
            now = self._clock()
            for code, room in [*self._rooms.items()]:
                room.followers = {name: at for name, at in room.followers.items() if self._connected(name)}
                was_presented, room.is_presented = room.is_presented, self._connected(room.presenter)
                if room.is_presented:
                    room.seen = now
                is_over = now - room.seen > limits.ROOM_SECONDS
                if is_over:
                    del self._rooms[code]
                if is_over or room.is_presented != was_presented:
                    affected |= room.followers.keys()
        return frozenset(affected)

    def _room_of(self, key: str) -> _Room | None:
        room, given = self._rooms.get(code_of(key)), key.encode("utf-8", "replace")
        return room if room is not None and secrets.compare_digest(room.key.encode(), given) else None

    def _count(self, room: _Room, address: str) -> None:
        """Keep the largest number of followers that an address has had at a time, if it is worth keeping."""
        n = sum(at == address and self._connected(name) for name, at in room.followers.items())
        if n > max(limits.GUESSES_ALONE, room.most.get(address, 0)):
            room.most[address] = n

    def _make_room(self) -> bool:
        """Remove the room whose presenter has been gone longest; return whether there was one."""
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
