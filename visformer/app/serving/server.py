"""The app's server, as ``visformer run`` starts it. Importing this is enough for one that is started in another way."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import click
import streamlit as st
from starlette.middleware import Middleware

from visformer.app.serving.connections import BACKLOG, OPENINGS, Crowd, Http, Websocket
from visformer.app.serving.middleware.gate import Gate
from visformer.app.serving.middleware.headers import Protected
from visformer.app.serving.middleware.pieces import InPieces
from visformer.app.serving.workers import close_all
from visformer.app.streamlit_private import addresses, advice, files, messages, protocols
from visformer.app.streamlit_private.first_page import FirstPage
from visformer.pictures.registry.picture import pages
from visformer.system.sockets import send_at_once

MIDDLEWARE = [Middleware(each) for each in (Protected, Gate, Crowd, InPieces, messages.Messages, FirstPage)]
"""The middleware around Streamlit, outermost first."""


def serve(script: Path, **options: Any) -> None:
    """Serve app.py until the process is told to stop; ``options``: Streamlit's, without the prefix ``server.``."""
    st.App(script, lifespan=_lifespan, middleware=MIDDLEWARE).run(
        config={f"server.{name}": value for name, value in options.items()}
    )


@contextmanager
def connections() -> Iterator[None]:
    """Be ready for browsers; at the end, leave no process."""
    send_at_once()
    OPENINGS.begin()
    yield
    close_all()


@asynccontextmanager
async def _lifespan(_app: st.App) -> AsyncIterator[dict[str, Any]]:
    Thread(target=import_app, name="imports", daemon=True).start()
    if not st.get_option("server.headless"):
        address = st.get_option("server.address")
        host = "localhost" if address in ("0.0.0.0", "::") else address
        click.launch(f"http://{host}:{st.get_option('server.port')}")
    with connections():
        yield {}


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
protocols.use(Http, Websocket, backlog=BACKLOG)
messages.ignore_pages_that_were_left()
messages.ignore_invalid_values()
files.keep_few_uploads()
files.keep_few_downloads()
