"""Streamlit's advice to developers on their own machine.

A visitor loses: a picture that is not covered by an offer to install skills for coding agents.
"""

from streamlit.web import skills


def keep_quiet() -> None:
    """Turn the advice off in this process."""
    skills.nudge_suppression_reason = lambda app_dir=None: "dismissed"
