"""Middleware around Streamlit's server where it runs app.py, which has no place to name it.

A visitor loses: in an app started by ``visformer run``, what headers, the gate and the served messages protect from;
and the server, which one browser keeps from all others with thousands of empty messages.
"""

import asyncio
from typing import Any

from streamlit.web.server.starlette import starlette_server

_SERVER: Any = starlette_server


def put_around_app(*middleware: Any) -> None:
    """Have ``streamlit run app.py`` put these around its app, the first outermost; ``st.App`` takes them itself."""
    create = _SERVER.create_starlette_app

    def created(*given: Any) -> Any:
        app = create(*given)
        for each in reversed(middleware):
            app.add_middleware(each)
        return app

    _SERVER.create_starlette_app = created


def speak_through(websocket: type[asyncio.Protocol]) -> None:
    """Have ``streamlit run`` speak to browsers through this; plain uvicorn has the option ``--ws``."""
    _SERVER._get_websocket_protocol = lambda: websocket
