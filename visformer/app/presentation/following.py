"""A room follows its presenter: what the presenter's session shows, every session with the room's link shows, too.

Nobody polls: when the presenter goes on, the sessions that follow are asked to run once, as after a click of their own.
"""

from collections.abc import Callable
from functools import partial

import streamlit as st

from visformer.app.presentation.rooms import ROOMS, Key
from visformer.app.session import address, url_state, visit
from visformer.app.session.address import ROOM
from visformer.app.session.boxes import gettext
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private.other_sessions import own_session, wake

_KEY: Slot[Key | None] = Slot("room", None)  # of the presenter's room; in this session's state and nowhere else
_SEEN = Slot("room_seen", 0)  # the version that a follower shows
_IS_ALONE = Slot("room_alone", False)  # a follower who looks around on their own
_IS_CLOSED = Slot("room_closed", False)  # the room that this session followed, or was to follow, is gone


def presented() -> str:
    """The code of the room that this session presents to; empty: none."""
    key = _KEY.get()
    return key.code if key is not None and ROOMS.is_open(key) else ""


def invite() -> bool:
    """Open a room for this session; False: there are too many."""
    if not presented():
        _KEY.set(ROOMS.open())
    return bool(presented())


def dismiss() -> None:
    """Close this session's room."""
    key = _KEY.pop()
    if key is not None:
        wake(ROOMS.close(key))


def publish(run: Run | None = None) -> None:
    """Show the room what a run shows, by default the run at hand; each follower keeps the language."""
    key = _KEY.get()
    if key is not None:
        shown = address.current(run)
        given = {url_state.PAGE: shown.page, **address.address(shown)}
        given.pop(url_state.LANGUAGE, None)
        wake(ROOMS.write(key, given))


def catch_up() -> None:
    """At the start of a run: show what the presenter shows, unless this session looks around on its own."""
    code = ROOM.get()
    if not code or _IS_ALONE.get():
        return
    found = ROOMS.follow(code, own_session())
    if found is None:
        ROOM.set("")
        _IS_CLOSED.set(True)
        return
    version, given = found
    if version and version != _SEEN.get():
        _SEEN.set(version)
        asked, wrong = url_state.read(given)
        visit.bring_back(asked, wrong)


def line() -> None:
    """Who follows whom, and a way out: of a room that follows this session, and of one that it follows."""
    _ = gettext()
    if presented():
        _tell(_("The audience follows: their phones show what you show."), _("Stop"), "following_stop", dismiss)
    if ROOM.get():
        alone = _IS_ALONE.get()
        said = _("You are browsing on your own.") if alone else _("You are following the presenter.")
        way = _("Follow the presenter again") if alone else _("Browse on my own")
        _tell(said, way, "following_turn", partial(_turn, not alone))
    elif _IS_CLOSED.get():
        said = _("The presenter has stopped and this room is closed. You are now browsing on your own.")
        _tell(said, _("Dismiss"), "following_closed", _IS_CLOSED.clear)


def _tell(said: str, way: str, key: str, act: Callable[[], None]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_line"):
        st.caption(said, width="content")
        st.button(way, type="tertiary", on_click=act, key=key)


def _turn(alone: bool) -> None:
    _IS_ALONE.set(alone)
    _SEEN.clear()
    if alone:
        ROOMS.leave(ROOM.get(), own_session())
