"""The page that an address names, whether or not it exists.

A visitor loses: our translated remark that a page does not exist, instead of which Streamlit opens an English dialog.
"""

from streamlit.runtime.scriptrunner import get_script_run_ctx


def typed_page() -> str:
    """Return the name of the page in the address, whether or not there is such a page."""
    context = get_script_run_ctx()
    return (context.pages_manager.intended_page_name if context else None) or ""
