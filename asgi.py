"""The app for a whole lecture room: app.py, a readiness probe (/healthz) and metrics (/metrics).

``python -m visformer.app.serving run asgi.py`` from this folder; docs/deploy.md has the options. Loads the model at
startup.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from visformer.app.serving.server import MIDDLEWARE, connections
from visformer.app.streamlit_private import logs
from visformer.errors import VisformerError
from visformer.system import limits, settings


@asynccontextmanager
async def lifespan(_app: st.App) -> AsyncIterator[dict[str, Any]]:
    """Start loading the model without delaying startup: early visitors see the first picture meanwhile."""
    from prometheus_client import REGISTRY

    from visformer.app.serving.metrics import Report
    from visformer.app.serving.workbench import serve_a_room

    REGISTRY.register(Report(serve_a_room()))
    with connections():
        yield {}


async def healthz(_request: Request) -> Response:
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


async def metrics(_request: Request) -> Response:
    """Return the metrics in Prometheus' text format."""
    from prometheus_client import generate_latest

    return Response(await run_in_threadpool(generate_latest), media_type="text/plain; version=0.0.4; charset=utf-8")


try:
    settings.check()
except VisformerError as error:  # one line instead of a traceback
    raise SystemExit(str(error)) from None
logs.keep_typed_text_out()
app = st.App(
    Path(__file__).with_name("app.py"),
    lifespan=lifespan,
    middleware=MIDDLEWARE,
    routes=[Route("/healthz", healthz), Route("/metrics", metrics)],
)
