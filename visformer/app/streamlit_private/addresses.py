"""The page that an address names, whether or not it exists, and app.py as the only source of pages.

A visitor loses: the page of the first link after a restart, for which Streamlit shows "Page not found"; and our
translated remark that a page does not exist, instead of which Streamlit opens an English dialog.
"""

from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx


def leave_pages_to_app() -> None:
    """Keep Streamlit from serving the folder pages/ as its older kind of pages until the first run (ADR 0001)."""
    PagesManager.uses_pages_directory = False


def typed_page() -> str:
    """Return the name of the page in the address, whether or not there is such a page."""
    context = get_script_run_ctx()
    return (context.pages_manager.intended_page_name if context else None) or ""
