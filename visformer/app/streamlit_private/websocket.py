"""What Streamlit speaks to browsers through, which only plain uvicorn has an option for (``--ws``).

A visitor loses: the server, which one browser keeps from all others with thousands of empty messages.
"""

import asyncio
from typing import Any

from streamlit.web.server.starlette import starlette_server

_SERVER: Any = starlette_server


def speak_through(websocket: type[asyncio.Protocol]) -> None:
    """Have Streamlit's server speak to browsers through this."""
    _SERVER._get_websocket_protocol = lambda: websocket
