"""Streamlit's server for this app: ``python -m visformer.app.serving.server run app.py``; its options are Streamlit's.

Importing it is enough where the server is started otherwise (asgi.py).
"""

from importlib import import_module
from threading import Thread
from typing import Any

from streamlit.runtime.pages_manager import PagesManager
from streamlit.web import bootstrap, skills
from streamlit.web.cli import main as main

from visformer.app.serving import sockets
from visformer.pictures.picture import pages

# app.py names its pages. Until it has run once, Streamlit takes the folder pages/ for pages of an older kind, and the
# first deep link for the address of none (docs/adr/0001).
PagesManager.uses_pages_directory = False

# On a developer's machine Streamlit would offer to install things for coding agents: over the picture, and where it
# prints the app's address.
skills.nudge_suppression_reason = lambda app_dir=None: "dismissed"
skills.are_skills_installed = lambda: True

_told_that_it_is_up = bootstrap._on_server_start


def _begin(server: Any) -> None:
    """Before the first browser is answered: Streamlit's sixty scripts leave at once, the app is imported meanwhile."""
    sockets.send_at_once()
    Thread(target=_import_app, name="imports", daemon=True).start()
    _told_that_it_is_up(server)


def _import_app() -> None:
    """What the first run of app.py would import one by one while a visitor looks at an empty page."""
    for name in (
        "visformer.web.payload",
        "visformer.app.pages.attention",
        "visformer.app.shell.entrance",
        "visformer.app.shell.head",
        "visformer.app.shell.side_bar",
        "visformer.app.shell.surroundings",
    ):
        import_module(name)
    pages()


bootstrap._on_server_start = _begin

if __name__ == "__main__":
    main(prog_name="streamlit")
