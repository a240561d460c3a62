"""Following a presenter: every session that opened a room's link shows what the presenter's session shows.

There is no polling: when the presenter moves on, the following sessions are rerun, as after a click of their own.
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

_KEY: Slot[Key | None] = Slot("room", None)  # of the presenter's room; kept only in this session's state
_SEEN = Slot("room_seen", 0)  # the version that this follower shows
_IS_ALONE = Slot("room_alone", False)  # whether this follower explores alone
_IS_CLOSED = Slot("room_closed", False)  # whether the room that this session followed, or tried to, is gone


def presented() -> str:
    """Return the code of the room that this session presents to; "" if there is none."""
    key = _KEY.get()
    return key.code if key is not None and ROOMS.is_open(key) else ""


def invite() -> bool:
    """Open a room for this session; return False if there are too many."""
    if not presented():
        _KEY.set(ROOMS.open())
    return bool(presented())


def dismiss() -> None:
    """Close this session's room."""
    key = _KEY.pop()
    if key is not None:
        wake(ROOMS.close(key))


def publish(run: Run | None = None) -> None:
    """Send the room what a run shows, by default the current one; followers keep their own language."""
    key = _KEY.get()
    if key is not None:
        shown = address.current(run)
        state = {url_state.PAGE: shown.page, **address.address(shown)}
        state.pop(url_state.LANGUAGE, None)
        wake(ROOMS.write(key, state))


def catch_up() -> None:
    """Apply the presenter's state at the start of a run, unless this follower explores alone."""
    code = ROOM.get()
    if not code or _IS_ALONE.get():
        return
    followed = ROOMS.follow(code, own_session())
    if followed is None:
        ROOM.set("")
        _IS_CLOSED.set(True)
        return
    version, texts = followed
    if version and version != _SEEN.get():
        _SEEN.set(version)
        state, remarks = url_state.read(texts)
        visit.bring_back(state, remarks)


def line() -> None:
    """Draw who follows whom, each with a button to end it: the room of this session, and the one that it follows."""
    _ = gettext()
    if presented():
        _notice(_("The audience follows: their phones show what you show."), _("Stop"), "following_stop", dismiss)
    if ROOM.get():
        alone = _IS_ALONE.get()
        said = _("You are browsing on your own.") if alone else _("You are following the presenter.")
        way = _("Follow the presenter again") if alone else _("Browse on my own")
        _notice(said, way, "following_turn", partial(_turn, not alone))
    elif _IS_CLOSED.get():
        said = _("The presenter has stopped and this room is closed. You are now browsing on your own.")
        _notice(said, _("Dismiss"), "following_closed", _IS_CLOSED.clear)


def _notice(text: str, label: str, key: str, act: Callable[[], None]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_line"):
        st.caption(text, width="content")
        st.button(label, type="tertiary", on_click=act, key=key)


def _turn(alone: bool) -> None:
    _IS_ALONE.set(alone)
    _SEEN.clear()
    if alone:
        ROOMS.leave(ROOM.get(), own_session())
