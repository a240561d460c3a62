"""The browser's history: the entry that a run shows, and whether Back or Forward led to it.

A visitor loses: after Back, the page and the sentence of the address, in place of which those of the next entry stay.
"""

from typing import Any

from streamlit.runtime.scriptrunner import get_script_run_ctx


def is_back_or_forward() -> bool:
    """Whether the browser asked for this run to show another entry of its history."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def entry() -> str:
    """Return the query of the entry of the browser's history that this run shows, as the browser sent it."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.query_string if context else ""


def page() -> str | None:
    """Return the name of the page that Back or Forward led to, "" for the first; None: another kind of run."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or not is_back_or_forward():
        return None
    known: Any = context.pages_manager.get_pages().get(context.page_script_hash, {})
    return str(known.get("url_pathname", ""))
