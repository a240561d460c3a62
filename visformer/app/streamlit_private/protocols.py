"""The protocols of Streamlit's server, for which only plain uvicorn has options (``--http``, ``--ws``).

A visitor loses: the server, which one browser can keep busy with thousands of empty messages, or with connections that
send nothing until no file can be opened.
"""

import asyncio
from typing import Any

from streamlit.web.server.starlette import starlette_server

_SERVER: Any = starlette_server


def use(http: type[asyncio.Protocol], websocket: type[asyncio.Protocol], *, backlog: int) -> None:
    """Use these protocols for the connections of Streamlit's server, and take so many at once."""
    options, ours = _SERVER._get_uvicorn_config_kwargs, {"http": http, "ws": websocket, "backlog": backlog}
    _SERVER._get_uvicorn_config_kwargs = lambda: options() | ours
