"""The app's server: its routes, its middleware, its start and end. Importing this configures Streamlit's part of it."""

import runpy
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import click
import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from visformer.app.serving import uploaded_pictures
from visformer.app.serving.connections import BACKLOG, OPENINGS, Crowd, Http, Websocket
from visformer.app.serving.middleware import Gate, InPieces, SecurityHeaders
from visformer.app.serving.workers import close_all
from visformer.app.streamlit_private import files, logs, messages, server_options
from visformer.app.streamlit_private.first_page import FirstPage
from visformer.pictures.registry.picture import pages
from visformer.system import limits, settings
from visformer.system.sockets import send_at_once

SCRIPT = Path(__file__).parents[1] / "script" / "main.py"
"""What Streamlit runs."""

MIDDLEWARE = [Middleware(each) for each in (SecurityHeaders, Gate, Crowd, InPieces, messages.Messages, FirstPage)]
"""The middleware around Streamlit, outermost first."""


def serve(app: Path, **options: Any) -> None:
    """Serve app.py until the process is told to stop; ``options``: Streamlit's, without the prefix ``server.``."""
    sys.argv = [str(app)]  # as `streamlit run app.py` has it
    runpy.run_path(str(app))["app"].run(config={f"server.{name}": value for name, value in options.items()})


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[dict[str, Any]]:
    """Be ready for browsers, without waiting for the model; at the end, leave no process."""
    if settings.PROCESSES() != 0:
        from visformer.app.serving.workbench import serve_a_room

        serve_a_room()
    Thread(target=import_app, name="imports", daemon=True).start()
    if Path(sys.argv[0]).name == "app.py" and not st.get_option("server.headless"):  # uvicorn has options of its own
        address = st.get_option("server.address")
        host = "localhost" if address in ("0.0.0.0", "::") else address
        click.launch(f"http://{host}:{st.get_option('server.port')}")
    send_at_once()
    OPENINGS.begin()
    yield {}
    close_all()


def import_app() -> None:
    """Import what the first run would import while a visitor looks at an empty page."""
    for name in (
        "visformer.web.payload",
        "visformer.app.widgets.locator",
        "visformer.app.shell.screen",
    ):
        import_module(name)
    pages()


async def _healthz(_request: Request) -> Response:
    """Return 200 while sentences are computed, also by processes that are replaced; else 503, and try to load again."""
    from visformer.app.serving.admission import ADMISSION
    from visformer.app.serving.models import MODEL, can_be_loaded_again
    from visformer.app.serving.workbench import workbench

    bench = workbench()
    if ADMISSION.stuck_seconds > 2 * limits.GRACE_SECONDS:
        return PlainTextResponse("nothing gets through: a computation does not end", status_code=503)
    if bench.is_loaded and not can_be_loaded_again(MODEL):
        return PlainTextResponse("the model's weights cannot be read any more", status_code=503)
    if bench.is_loaded:
        return PlainTextResponse("ready")
    bench.load()
    status = "loading" if bench.problem is None else f"the model cannot be loaded, trying again: {bench.problem}"
    return PlainTextResponse(status, status_code=503)


async def _metrics(_request: Request) -> Response:
    """Return the metrics in Prometheus' text format."""
    from visformer.app.serving.metrics import report

    return Response(await run_in_threadpool(report), media_type="text/plain; version=0.0.4; charset=utf-8")


ROUTES = [Route("/healthz", _healthz), Route("/metrics", _metrics)]
"""For operators: a readiness probe, and numbers for Prometheus."""

server_options.hide_advice()
server_options.use_protocols(Http, Websocket, backlog=BACKLOG)
messages.ignore_pages_that_were_left()
messages.ignore_invalid_values()
files.keep_few_uploads(on_end=uploaded_pictures.forget)
files.keep_few_downloads()
logs.keep_typed_text_out()
