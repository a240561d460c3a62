"""Streamlit's server for this app. Where it is started in another way (asgi.py), importing this module is enough."""

from importlib import import_module

from streamlit.web.cli import main as main

from visformer.app.serving.middleware.gate import Gate
from visformer.app.serving.middleware.headers import Protected
from visformer.app.serving.middleware.pieces import InPieces
from visformer.app.serving.websocket import Websocket
from visformer.app.streamlit_private import addresses, advice, around, files, messages, warm_start
from visformer.pictures.registry.picture import pages


def import_app() -> None:
    """Import what the first run of app.py would import while a visitor looks at an empty page."""
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


addresses.leave_pages_to_app()
advice.keep_quiet()
around.put_around_app(Protected, Gate, InPieces, messages.Messages)
around.speak_through(Websocket)
messages.leave_out_what_no_widget_holds()
files.keep_few_uploads()
files.keep_few_downloads()
warm_start.run_once_up(import_app)
