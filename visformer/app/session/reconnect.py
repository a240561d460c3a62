"""A browser whose server is gone goes on at another one, or a new one, and may bring more than its address.

Streamlit's page connects again by itself, and has the script run with everything that stands in the boxes.
"""

from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.common import user_key_from_element_id


def brought() -> dict[str, str]:
    """In a session's first run: the texts and choices that the browser already had, by key; else none.

    Choices are as they are written on the page.
    """
    context = get_script_run_ctx(suppress_warning=True)
    found: dict[str, str] = {}
    # Under its own key a box is known only once it has been drawn.
    for state in context.session_state.get_widget_states() if context else ():
        key = user_key_from_element_id(state.id)
        values = [state.string_value] if state.HasField("string_value") else state.string_array_value.data
        if key is not None and values:
            found[key] = values[0]
    return found
