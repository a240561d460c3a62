"""A room follows its presenter: what the presenter's session shows, every session with the room's link shows, too.

Nobody polls: when the presenter goes on, the sessions that follow are asked to run once, as after a click of their own.
So they are when the presenter's browser leaves or comes back.
"""

import threading
from collections.abc import Callable
from functools import cache, partial

import streamlit as st

from visformer.app.presentation.rooms import ROOMS, Key
from visformer.app.session import address, url_state, visit
from visformer.app.session.address import ROOM
from visformer.app.session.boxes import gettext
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private.other_sessions import own_session, wake
from visformer.errors import N_, BusyError

_EVERY = 5  # seconds in which presenters and followers who left are noticed
_FOLLOWS = N_("You follow the presenter.")
_AWAY = N_("The presenter's browser is not connected: you see what was shown last.")
_CLOSED = N_("The presenter has stopped and this room is closed. You look around on your own.")
_UNKNOWN = N_("There is no room of this code, or not any more. You look around on your own.")
_KEY: Slot[Key | None] = Slot("room", None)  # of the presenter's room; one that is closed opens nothing
_SEEN = Slot("room_seen", 0)  # the version that a follower shows
_IS_ALONE = Slot("room_alone", False)  # a follower who looks around on their own
_SAID = Slot("room_said", "")  # what a follower was told last of the room


def presented() -> str:
    """The code of the room that this session presents to; empty: none."""
    key = _KEY.get()
    return key.code if key is not None and ROOMS.is_presented_by(key, own_session()) else ""


def room() -> dict[str, object] | None:
    """For the presenter's browser, which keeps the key for after a reload, as long as the room is "open"."""
    key = _KEY.get()
    return {"key": str(key), "open": bool(presented())} if key is not None else None


def invite() -> bool:
    """Open a room for this session; False: there are too many."""
    if not presented():
        _KEY.set(ROOMS.open(own_session()))
        _watch()
    return bool(presented())


def take_up(value: object) -> None:
    """The room of which the browser kept the key; a session presents to one room alone."""
    key = Key.from_browser(value)
    if key is not None and not presented():
        ROOMS.take_up(key, own_session())
        _KEY.set(key)


def dismiss() -> None:
    """Close this session's room."""
    key = _KEY.get()
    if key is not None and presented():
        wake(ROOMS.close(key))


def publish(run: Run | None = None) -> None:
    """Show the room what a run shows, by default the run at hand; each follower keeps the language."""
    key = _KEY.get()
    if key is not None and presented():
        shown = address.current(run)
        given = {url_state.PAGE: shown.page, **address.address(shown)}
        given.pop(url_state.LANGUAGE, None)
        wake(ROOMS.write(key, given))


def catch_up() -> None:
    """At the start of a run: show what the presenter shows, unless this session looks around on its own."""
    code = ROOM.get()
    if not code or _IS_ALONE.get() or presented():  # two who followed each other would never come to rest
        return
    was_in = _SAID.get() in (_FOLLOWS, _AWAY)
    try:
        found = ROOMS.follow(code, own_session(), is_new=not was_in)
    except BusyError as busy:
        _SAID.set(busy.message_id)
        return
    if found is None:
        ROOM.set("")
        _SAID.set(_CLOSED if was_in else _UNKNOWN)
        return
    version, given, is_presented = found
    _SAID.set(_FOLLOWS if is_presented else _AWAY)
    if version and version != _SEEN.get():
        _SEEN.set(version)
        asked, wrong = url_state.read(given)
        visit.bring_back(asked, wrong)


def line() -> None:
    """Who follows whom, and a way out: of a room that follows this session, and of one that it follows."""
    _ = gettext()
    if presented():
        _tell(_("A room follows: its phones show what you show."), _("Stop"), "following_stop", dismiss)
    if ROOM.get():
        alone = _IS_ALONE.get()
        said = _("You look around on your own.") if alone else _(_SAID.get() or _FOLLOWS)
        way = _("Follow the presenter again") if alone else _("Look around on my own")
        _tell(said, way, "following_turn", partial(_turn, not alone))
    elif _SAID.get():
        _tell(_(_SAID.get()), _("Put away"), "following_closed", _SAID.clear)


def _tell(said: str, way: str, key: str, act: Callable[[], None]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_line"):
        st.caption(said, width="content")
        st.button(way, type="tertiary", on_click=act, key=key)


def _turn(alone: bool) -> None:
    _IS_ALONE.set(alone)
    _SEEN.clear()
    if alone:
        ROOMS.leave(ROOM.get(), own_session())


def _look() -> None:
    timer = threading.Timer(_EVERY, _look)
    timer.daemon = True
    timer.start()
    wake(ROOMS.check())


_watch = cache(_look)  # begins once in a process
