"""Runs that the browser's Back and Forward ask for.

A visitor loses: after Back, the page and the sentence of the address, in place of which those of the next entry stay.
"""

from streamlit.runtime.scriptrunner import get_script_run_ctx


def is_back_or_forward() -> bool:
    """Whether the browser asked for this run to show another entry of its history."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation
