"""How many visitors are here, and when there is no room for one more."""

from visformer.app.streamlit_private.other_sessions import count
from visformer.errors import N_, BusyError
from visformer.system import limits


def no_room() -> BusyError | None:
    """What a visitor is told who comes when as many as there may be are here."""
    if count() <= limits.SESSIONS:  # this one is counted already
        return None
    return BusyError(
        N_("The server is full: it takes at most {limit} visitors at once. Try again in a minute."),
        limit=limits.SESSIONS,
    )
