"""Options of Streamlit's server that it has no setting for: its protocols, its advice, where its settings are.

Only plain uvicorn has options for the protocols (``--http``, ``--ws``), and it looks for ``.streamlit/config.toml``
beside the script inside the package.

A visitor loses: the server, which one browser can keep busy with thousands of empty messages, or with connections that
send nothing until no file can be opened; a picture that is not covered by an offer to install skills for coding agents;
and, on a server that uvicorn runs from another folder, our colours, fonts and limits on messages.
"""

import asyncio
from typing import Any

from streamlit import config
from streamlit.web import skills
from streamlit.web.server.starlette import starlette_server


def read_config_beside(app: str) -> None:
    """Read the options that lie beside app.py, as ``streamlit run app.py`` does."""
    config._main_script_path = app


_SERVER: Any = starlette_server


def use_protocols(http: type[asyncio.Protocol], websocket: type[asyncio.Protocol], *, backlog: int) -> None:
    """Use these protocols for the connections of Streamlit's server, and take so many at once."""
    options, ours = _SERVER._get_uvicorn_config_kwargs, {"http": http, "ws": websocket, "backlog": backlog}
    _SERVER._get_uvicorn_config_kwargs = lambda: options() | ours


def hide_advice() -> None:
    """Turn the advice off in this process."""
    skills.nudge_suppression_reason = lambda app_dir=None: "dismissed"
