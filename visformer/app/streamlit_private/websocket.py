"""The websocket protocol of Streamlit's server, for which only plain uvicorn has an option (``--ws``).

A visitor loses: the server, which one browser can keep busy with thousands of empty messages.
"""

import asyncio
from typing import Any

from streamlit.web.server.starlette import starlette_server

_SERVER: Any = starlette_server


def use_protocol(protocol: type[asyncio.Protocol]) -> None:
    """Use this protocol for the websockets of Streamlit's server."""
    _SERVER._get_websocket_protocol = lambda: protocol
