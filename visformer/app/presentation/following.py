"""Following a presenter: every session that opened a room's link shows what the presenter's session shows.

There is no polling: when the presenter moves on, the following sessions are rerun, a few at a time, as after a click of
their own, and so they are when the presenter's browser disconnects or comes back.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial

import streamlit as st

from visformer.app.presentation.guesses import Guess
from visformer.app.presentation.rooms import ROOMS, WAKING, code_of
from visformer.app.session import address, url_state
from visformer.app.session.address import ROOM
from visformer.app.session.boxes import gettext
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private.other_sessions import own_address, own_session
from visformer.errors import N_, BusyError

END_ROOM = N_("End the room")
"""The label of the button that ends it, beside its code and on the page."""

_KEY_CHARACTERS = 100  # more than any key has
_CHECK_SECONDS = 5  # until presenters and followers who left are noticed
_FOLLOWS = N_("You are following the presenter.")
_AWAY = N_("The presenter's browser is not connected: you see what was shown last.")
_CLOSED = N_("The presenter has stopped and this room is closed. You are now browsing on your own.")
_UNKNOWN = N_("No room has this code; it may have been closed. You are now browsing on your own.")
_KEY = Slot("room", "")  # of the presenter's room, also once that is closed
_SEEN = Slot("room_seen", 0)  # the version that this follower shows
_IS_ALONE = Slot("room_alone", False)  # whether this follower explores alone
_SAID = Slot("room_said", "")  # the last message about the room that this session follows, or tried to


def presented() -> str:
    """Return the code of the room that this session presents to; "" if there is none."""
    key = _KEY.get()
    return code_of(key) if key and ROOMS.is_presented_by(key, own_session()) else ""


def room() -> dict[str, object] | None:
    """Return the room's "key" for the presenter's browser, which keeps it for a reload, and whether it is "open"."""
    key = _KEY.get()
    return {"key": key, "open": bool(presented())} if key else None


def invite() -> bool:
    """Open a room for this session; return False if there are too many."""
    if not presented():
        _KEY.set(ROOMS.open(own_session()))
        _start_checks()
    return bool(presented())


def take_up(value: object) -> None:
    """Present to the room whose key the browser kept; a session presents to one room only."""
    if isinstance(value, str) and len(value) <= _KEY_CHARACTERS and not presented():
        ROOMS.take_up(value, own_session())
        _KEY.set(value)


def dismiss() -> None:
    """Close this session's room."""
    if presented():
        WAKING.wake(ROOMS.close(_KEY.get()))


def publish(run: Run | None = None) -> None:
    """Send the room what a run shows, by default the current one; followers keep their own language."""
    if presented():
        shown = address.current(run)
        state = {url_state.PAGE: shown.page, **address.to_query(shown)}
        state.pop(url_state.LANGUAGE, None)
        WAKING.wake(ROOMS.write(_KEY.get(), state))


def tell(told: Mapping[str, object]) -> None:
    """Tell the presenter's own window what is shown."""
    ROOMS.tell(_KEY.get(), told)


def shared() -> str:
    """Return the code of the room that this session presents to or follows; "": it is on its own."""
    return presented() or ("" if _IS_ALONE.get() else ROOM.get())


def owner() -> str:
    """Return to whom belongs what a room shares: the code of the room, or the session that is on its own."""
    return shared() or own_session() or "alone"


def redraw_followers() -> None:
    """Have the followers drawn anew, for what is not part of the state."""
    if presented():
        WAKING.wake(ROOMS.followers(_KEY.get()))


def guess() -> Guess | None:
    """Return the question to the room that this session presents to or follows."""
    follows = not _IS_ALONE.get() and _SAID.get() in (_FOLLOWS, _AWAY)  # otherwise its code may be a wrong one
    code = presented() or (ROOM.get() if follows else "")
    return ROOMS.guess(code) if code else None


def ask(guess: Guess | None) -> None:
    """Begin a question to this session's room, or end it (None)."""
    WAKING.wake(ROOMS.ask(_KEY.get(), guess))


def network() -> tuple[str, int]:
    """Return the address of this session's network, and how many of it may answer a question to the room it follows."""
    address = own_address()
    return address, ROOMS.share(ROOM.get(), address)


def count() -> int:
    """Return how many follow this session."""
    return len(ROOMS.followers(_KEY.get()))


def catch_up() -> None:
    """Apply the presenter's state at the start of a run, unless this follower explores alone."""
    code = ROOM.get()
    if not code or _IS_ALONE.get() or presented():  # two who follow each other would rerun each other forever
        return
    was_in = _SAID.get() in (_FOLLOWS, _AWAY)
    try:
        followed = ROOMS.follow(code, own_session(), address=own_address(), is_new=not was_in)
    except BusyError as busy:
        _SAID.set(busy.message_id)
        return
    if followed is None:
        ROOM.set("")
        _SAID.set(_CLOSED if was_in else _UNKNOWN)
        return
    version, texts, is_presented = followed
    _SAID.set(_FOLLOWS if is_presented else _AWAY)
    if guess() is not None:  # it takes the place of the page, which is brought back once it is over
        _SEEN.clear()
        return
    if version and version != _SEEN.get():
        _SEEN.set(version)
        state, remarks = url_state.read(texts)
        address.restore(state, remarks)


@contextmanager
def drawing() -> Iterator[None]:
    """Draw a page; when all of it is drawn, another follower's turn has come."""
    yield  # where the page is another one, this run ends here, and the next one draws it
    WAKING.drawn(own_session())


def line(beside: Callable[[], None] = lambda: None) -> None:
    """Draw who follows whom, each with a button to end it: the room of this session, and the one that it follows.

    ``beside``: draws what else the presenter of a room can do.
    """
    _ = gettext()
    if presented():
        said = _("The audience follows: their phones show what you show.")
        _notice(said, _(END_ROOM), "following_stop", dismiss, beside)
    if ROOM.get():
        alone = _IS_ALONE.get()
        said = _("You are browsing on your own.") if alone else _(_SAID.get() or _FOLLOWS)
        way = _("Follow the presenter again") if alone else _("Browse on my own")
        _notice(said, way, "following_turn", partial(_turn, not alone))
    elif _SAID.get():
        _notice(_(_SAID.get()), _("Dismiss"), "following_closed", _SAID.clear)


def _notice(
    text: str, label: str, key: str, act: Callable[[], None], beside: Callable[[], None] = lambda: None
) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_line"):
        st.caption(text, width="content")
        beside()
        st.button(label, type="tertiary", on_click=act, key=key)


def _turn(alone: bool) -> None:
    _IS_ALONE.set(alone)
    _SEEN.clear()
    if alone:
        ROOMS.leave(ROOM.get(), own_session())


def _check() -> None:
    timer = threading.Timer(_CHECK_SECONDS, _check)
    timer.daemon = True
    timer.start()
    WAKING.wake(ROOMS.check())


_start_checks = cache(_check)  # once per process
