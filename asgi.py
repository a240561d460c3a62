"""The app for a room full of people: app.py, and whether it is ready (/healthz) and how it does (/metrics).

``streamlit run asgi.py``, or ``uvicorn asgi:app --no-access-log`` from this folder. The model is loaded at the start.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from visformer.app.serving import (
    server,  # noqa: F401  what is otherwise in Streamlit's server
)
from visformer.app.serving.headers import Protected
from visformer.app.streamlit_private import logs
from visformer.app.streamlit_private.first_page import FirstPage
from visformer.errors import VisformerError
from visformer.system import settings


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[dict[str, Any]]:
    """Load the model without holding the start up: who comes early sees the first picture meanwhile."""
    from prometheus_client import REGISTRY

    from visformer.app.serving.metrics import Report
    from visformer.app.serving.workbench import serve_a_room

    REGISTRY.register(Report(serve_a_room()))
    yield {}


async def healthz(_request: Request) -> Response:
    """200 once sentences can be computed; 503 before, and where the model cannot be loaded, which is tried again."""
    from visformer.app.serving.workbench import workbench

    bench = workbench()
    if bench.is_loaded:
        return PlainTextResponse("ready")
    bench.load()
    said = "loading" if bench.problem is None else f"the model cannot be loaded, trying again: {bench.problem}"
    return PlainTextResponse(said, status_code=503)


async def metrics(_request: Request) -> Response:
    """In Prometheus' text format."""
    from prometheus_client import generate_latest

    return Response(await run_in_threadpool(generate_latest), media_type="text/plain; version=0.0.4; charset=utf-8")


try:
    settings.check()
except VisformerError as error:  # one line, not the traceback of a server that does not start
    raise SystemExit(str(error)) from None
logs.keep_typed_text_out()
app = st.App(
    Path(__file__).with_name("app.py"),
    lifespan=lifespan,
    middleware=[Middleware(Protected), Middleware(FirstPage)],
    routes=[Route("/healthz", healthz), Route("/metrics", metrics)],
)
