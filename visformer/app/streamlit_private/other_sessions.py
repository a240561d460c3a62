"""Sessions: whose this one is, counting all of them, and rerunning some of them.

A visitor loses: a room that follows its presenter, and the notice that a server is full.
"""

from collections.abc import Iterable

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY, GaugeStat

from visformer.system.sockets import network_of


def own_session() -> str:
    """Return the id of the session that is running; "" outside a run."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def address_of(session: str) -> str:
    """Return the address of a session's browser, of IPv6 its network; "": it is not connected, or nobody's."""
    client = runtime.get_instance().get_client(session) if runtime.exists() else None
    context = client.client_context if client is not None else None
    return network_of((context and context.remote_ip) or "")


def own_address() -> str:
    """Return the address of the session that is running."""
    return address_of(own_session())


def count() -> int:
    """Return the number of browsers connected to this process."""
    if not runtime.exists():  # tests run pages without a server
        return 0
    stats = runtime.get_instance().stats_mgr.get_stats(family_names=[ACTIVE_SESSIONS_FAMILY])
    return sum(stat.value for family in stats.values() for stat in family if isinstance(stat, GaugeStat))


def is_connected(session: str) -> bool:
    """Return whether the browser of this session is connected."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def wake(sessions: Iterable[str]) -> None:
    """Rerun these sessions, as Streamlit does when a script has changed; sessions that have ended are skipped."""
    if not runtime.exists():
        return
    manager = runtime.get_instance()._session_mgr
    for name in sessions:
        info = manager.get_active_session_info(name)
        if info is not None:
            session = info.session
            session._event_loop.call_soon_threadsafe(session.request_rerun, session._client_state)
