"""Other visitors' sessions: how many there are, and having some of them run once more.

A visitor loses: a room that follows its presenter, and a server that says when it is full.
"""

from collections.abc import Iterable

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY, GaugeStat


def own_session() -> str:
    """The name of the session whose run this is; empty: there is none."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def count() -> int:
    """Browsers that are connected to this process."""
    if not runtime.exists():  # a page without a server, as tests run it
        return 0
    stats = runtime.get_instance().stats_mgr.get_stats(family_names=[ACTIVE_SESSIONS_FAMILY])
    return sum(stat.value for family in stats.values() for stat in family if isinstance(stat, GaugeStat))


def is_connected(session: str) -> bool:
    """Whether the browser of this session is."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def wake(sessions: Iterable[str]) -> None:
    """Have sessions run once more, as Streamlit does when a script has changed; those that are gone are left."""
    if not runtime.exists():
        return
    manager = runtime.get_instance()._session_mgr
    for name in sessions:
        found = manager.get_active_session_info(name)
        if found is not None:
            session = found.session
            session._event_loop.call_soon_threadsafe(session.request_rerun, session._client_state)
