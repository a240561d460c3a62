"""Visformer's server: ``visformer run``, ``streamlit run app.py`` and ``uvicorn app:app`` start it (docs/deploy.md)."""

import streamlit as st
from starlette.middleware import Middleware

from visformer.app.lessons.step_links import StepLinks
from visformer.app.presentation import desk
from visformer.app.serving import parts, server
from visformer.app.streamlit_private import server_options
from visformer.errors import VisformerError
from visformer.system import settings

try:
    settings.check()
except VisformerError as error:  # one line instead of a traceback
    raise SystemExit(str(error)) from None
server_options.read_config_beside(__file__)
app = st.App(
    server.SCRIPT,
    lifespan=server.lifespan,
    middleware=[*server.MIDDLEWARE, Middleware(StepLinks)],
    routes=[*server.ROUTES, *desk.ROUTES, *parts.ROUTES],
)
