"""Streamlit's server for this app: ``python -m visformer.app.serving.server run app.py``, with Streamlit's options.

Where the server is started in another way (asgi.py), importing this module is enough.
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

_streamlit_on_server_start = bootstrap._on_server_start


def _on_server_start(server: Any) -> None:
    """Prepare for the first browser: turn off Nagle's algorithm, import the app while Streamlit's scripts load."""
    sockets.send_at_once()
    Thread(target=_import_app, name="imports", daemon=True).start()
    _streamlit_on_server_start(server)


def _import_app() -> None:
    """Import what the first run of app.py would otherwise import while a visitor looks at an empty page."""
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


bootstrap._on_server_start = _on_server_start

if __name__ == "__main__":
    main(prog_name="streamlit")
