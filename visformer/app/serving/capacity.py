"""How many visitors are here, and when there is no room for one more."""

from streamlit.runtime import exists, get_instance
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY, GaugeStat

from visformer.errors import N_, BusyError
from visformer.system import limits


def sessions() -> int:
    """Browsers that are connected to this process."""
    if not exists():  # a page without a server, as tests run it
        return 0
    stats = get_instance().stats_mgr.get_stats(family_names=[ACTIVE_SESSIONS_FAMILY])
    return sum(stat.value for family in stats.values() for stat in family if isinstance(stat, GaugeStat))


def no_room() -> BusyError | None:
    """What a visitor is told who comes when as many as there may be are here."""
    if sessions() <= limits.SESSIONS:  # this one is counted already
        return None
    return BusyError(
        N_("There are {limit} visitors here, and no more can be taken at once. Try again in a minute."),
        limit=limits.SESSIONS,
    )
