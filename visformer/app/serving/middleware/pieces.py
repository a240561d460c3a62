"""How a large file goes out: in pieces and uncompressed, so that who fetches one keeps nobody else waiting."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PIECE = 2**16
"""Bytes handed to the server at a time; it waits until the browser has taken most of them."""


class InPieces:
    """ASGI middleware around the app.

    As one piece, a file of 90 MB is copied for each browser that does not read on. And Streamlit would compress it
    between two answers to everybody else, which takes four seconds.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what is no file that was made goes out as it is."""
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
