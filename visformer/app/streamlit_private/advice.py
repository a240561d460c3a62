"""What Streamlit tells developers on their own machine.

A visitor loses: a picture without an offer to install things for coding agents over it.
"""

from streamlit.web import skills


def keep_quiet() -> None:
    """From now on in this process."""
    skills.nudge_suppression_reason = lambda app_dir=None: "dismissed"
    skills.are_skills_installed = lambda: True
