"""What the browser sent with a run: the page, the entry of its history, the values of its widgets.

A visitor loses: our translated remark that a page does not exist, instead of which Streamlit opens an English dialog;
after Back, the page and the sentence of the address, in place of which those of the next entry stay; and after a
restart, or on another replica, the last inputs, which are not in the address yet.
"""

from typing import Any

from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.common import user_key_from_element_id


def typed_page() -> str:
    """Return the name of the page in the address, whether or not there is such a page."""
    context = get_script_run_ctx()
    return (context.pages_manager.intended_page_name if context else None) or ""


def is_back_or_forward() -> bool:
    """Whether the browser asked for this run to show another entry of its history."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.is_history_navigation


def history_entry() -> str:
    """Return the query of the entry of the browser's history that this run shows, as the browser sent it."""
    context = get_script_run_ctx(suppress_warning=True)
    return context.query_string if context else ""


def history_page() -> str | None:
    """Return the name of the page that Back or Forward led to, "" for the first; None: another kind of run."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or not is_back_or_forward():
        return None
    known: Any = context.pages_manager.get_pages().get(context.page_script_hash, {})
    return str(known.get("url_pathname", ""))


def widget_values() -> dict[str, str]:
    """Return the texts and choices that the browser sent with a session's first run, by key; else none.

    Choices are worded as on the page.
    """
    context = get_script_run_ctx(suppress_warning=True)
    sent: dict[str, str] = {}
    # Read from the raw states: by its key, a widget is known only once it has been drawn.
    for state in context.session_state.get_widget_states() if context else ():
        key = user_key_from_element_id(state.id)
        values = [state.string_value] if state.HasField("string_value") else state.string_array_value.data
        if key is not None and values:
            sent[key] = values[0]
    return sent
