"""Widget values that a browser sends after it lost its server: all of them arrive with its first run on another.

A visitor loses: after a restart, or on another replica, the last inputs, which are not in the address yet.
"""

from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.common import user_key_from_element_id


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
