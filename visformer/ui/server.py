"""Streamlit's server for this app: ``python -m visformer.ui.server run app.py``; its options are Streamlit's.

Importing it is enough where the server is started otherwise (asgi.py).
"""

from streamlit.runtime.pages_manager import PagesManager
from streamlit.web import skills
from streamlit.web.cli import main as main

# app.py names its pages. Until it has run once, Streamlit takes the folder pages/ for pages of an older kind, and the
# first deep link for the address of none (docs/adr/0001).
PagesManager.uses_pages_directory = False

# On a developer's machine Streamlit would lay an offer to install things for coding agents over the picture.
skills.nudge_suppression_reason = lambda app_dir=None: "dismissed"

if __name__ == "__main__":
    main(prog_name="streamlit")
