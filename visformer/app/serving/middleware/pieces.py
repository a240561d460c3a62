"""Sends large files in pieces and uncompressed, so that fetching one keeps nobody else waiting."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PIECE = 2**16
"""Bytes handed to the server at a time; it waits until the browser has taken most of them."""


class InPieces:
    """ASGI middleware for generated files.

    In one piece, a file of 90 MB would be copied for each browser that stops reading. And Streamlit would compress it,
    which takes four seconds, in which nobody else gets a response.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; anything but a generated file passes unchanged."""
        if scope["type"] != "http" or "/media/" not in scope["path"]:
            await self._app(scope, receive, send)
            return

        async def send_pieces(message: Message) -> None:
            body = message.get("body", b"")
            for at in range(0, len(body) - PIECE, PIECE):
                await send({**message, "body": body[at : at + PIECE], "more_body": True})
            await send({**message, "body": body[(len(body) - 1) // PIECE * PIECE :]} if body else message)

        scope = {**scope, "headers": [*scope["headers"]]}
        del MutableHeaders(scope=scope)["accept-encoding"]
        await self._app(scope, receive, send_pieces)
