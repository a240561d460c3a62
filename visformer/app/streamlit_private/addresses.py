"""Which page an address names, whether there is one or not, and that app.py alone says which pages there are.

A visitor loses: after a start, the page of the first link, for which Streamlit shows "Page not found"; and the sentence
that tells that there is no page of a name, for which Streamlit has an English dialog.
"""

from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx


def leave_pages_to_app() -> None:
    """Before the first run: Streamlit takes the folder pages/ for pages of an older kind until then (ADR 0001)."""
    PagesManager.uses_pages_directory = False


def typed_page() -> str:
    """The page that the address names, whether or not there is one."""
    context = get_script_run_ctx()
    return (context.pages_manager.intended_page_name if context else None) or ""
