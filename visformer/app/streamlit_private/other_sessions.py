"""Sessions: whose this one is, counting all of them, and rerunning some of them.

A visitor loses: a room that follows its presenter, and the notice that a server is full.
"""

from collections.abc import Iterable
from ipaddress import IPv6Address, IPv6Network, ip_address

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY, GaugeStat

_ADDRESS_CHARACTERS = 50  # more than any has


def own_session() -> str:
    """Return the id of the session that is running; "" outside a run."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.session_id if context else ""


def own_address() -> str:
    """Return the network address of the running session's browser; "" on this machine, and where there is no server.

    Of IPv6 it is the network: every browser has 2^64 addresses of its own.
    """
    text = st.context.ip_address or ""
    try:
        address = ip_address(text)
    except ValueError:  # a proxy in front may write any text
        return text[:_ADDRESS_CHARACTERS]
    return str(IPv6Network((address, 64), strict=False)) if isinstance(address, IPv6Address) else text


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
