"""A room follows its presenter: what the presenter's session shows, every session with the room's link shows, too.

Nobody polls: when the presenter goes on, the sessions that follow are asked to run once, as after a click of their own.
"""

from collections.abc import Callable, Iterable
from functools import partial

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from visformer.app.presentation.rooms import ROOMS, Key
from visformer.app.session import state, url_state

_KEY = "room"  # of the presenter's room; in this session's state and nowhere else
_SEEN = "room_seen"  # the version that a follower shows
_ALONE = "room_alone"  # a follower who looks around on their own
_CLOSED = "room_closed"  # the room that this session followed, or was to follow, is gone


def presented() -> str:
    """The code of the room that this session presents to; empty: none."""
    key: Key | None = st.session_state.get(_KEY)
    return key.code if key is not None and ROOMS.is_open(key) else ""


def invite() -> bool:
    """Open a room for this session; False: there are too many."""
    if not presented():
        st.session_state[_KEY] = ROOMS.open()
    return bool(presented())


def dismiss() -> None:
    """Close this session's room."""
    key: Key | None = st.session_state.pop(_KEY, None)
    if key is not None:
        _wake(ROOMS.close(key))


def publish() -> None:
    """At the end of a run: what is shown now, for the room; each follower keeps the language."""
    key: Key | None = st.session_state.get(_KEY)
    if key is not None:
        shown = state.current()
        given = {url_state.PAGE: shown.page, **state.address(shown)}
        given.pop(url_state.LANGUAGE, None)
        _wake(ROOMS.write(key, given))


def catch_up() -> None:
    """At the start of a run: show what the presenter shows, unless this session looks around on its own."""
    code = st.session_state.get(state.FOLLOW)
    if not code or st.session_state.get(_ALONE):
        return
    found = ROOMS.follow(code, _me())
    if found is None:
        st.session_state[state.FOLLOW], st.session_state[_CLOSED] = "", True
        return
    version, given = found
    if version and version != st.session_state.get(_SEEN):
        st.session_state[_SEEN] = version
        asked, wrong = url_state.read(given)
        state.bring_back(asked, [*wrong])
        state.go_to(asked.page)


def line() -> None:
    """Who follows whom, and a way out: of a room that follows this session, and of one that it follows."""
    _ = state.gettext()
    if presented():
        _tell(_("A room follows: its phones show what you show."), _("Stop"), "following_stop", dismiss)
    if st.session_state.get(state.FOLLOW):
        alone = bool(st.session_state.get(_ALONE))
        said = _("You look around on your own.") if alone else _("You follow the presenter.")
        way = _("Follow the presenter again") if alone else _("Look around on my own")
        _tell(said, way, "following_turn", partial(_turn, not alone))
    elif st.session_state.get(_CLOSED):
        said = _("The presenter has stopped and this room is closed. You look around on your own.")
        _tell(said, _("Put away"), "following_closed", _put_away)


def _tell(said: str, way: str, key: str, act: Callable[[], None]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_line"):
        st.caption(said, width="content")
        st.button(way, type="tertiary", on_click=act, key=key)


def _put_away() -> None:
    st.session_state[_CLOSED] = False


def _turn(alone: bool) -> None:
    st.session_state[_ALONE] = alone
    st.session_state.pop(_SEEN, None)
    if alone:
        ROOMS.leave(st.session_state[state.FOLLOW], _me())


def _me() -> str:
    context = get_script_run_ctx()
    return context.session_id if context else ""


def _wake(sessions: Iterable[str]) -> None:
    """Have sessions run once more, as Streamlit does when a script has changed; those that are gone are left."""
    if not runtime.exists():
        return
    manager = runtime.get_instance()._session_mgr
    for name in sessions:
        found = manager.get_active_session_info(name)
        if found is not None:
            session = found.session
            session._event_loop.call_soon_threadsafe(session.request_rerun, session._client_state)
