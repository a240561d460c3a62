"""The limit on the number of visitors."""

from visformer.app.streamlit_private.other_sessions import count
from visformer.errors import N_, BusyError
from visformer.system import limits


def no_room() -> BusyError | None:
    """Return the error for a visitor who arrives when the server is full; None: there is room."""
    if count() <= limits.SESSIONS:  # the count includes this visitor
        return None
    return BusyError(
        N_("There are {limit} visitors here, and no more can be taken at once. Try again in a minute."),
        limit=limits.SESSIONS,
    )
