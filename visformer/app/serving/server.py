"""Streamlit's server for this app: ``python -m visformer.app.serving.server run app.py``; its options are Streamlit's.

Importing it is enough where the server is started otherwise (asgi.py).
"""

from importlib import import_module
from threading import Thread
from typing import Any

from streamlit.web import bootstrap
from streamlit.web.cli import main as main

from visformer.app.serving import sockets
from visformer.app.streamlit_private import addresses, advice
from visformer.pictures.picture import pages

addresses.leave_pages_to_app()
advice.keep_quiet()

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
