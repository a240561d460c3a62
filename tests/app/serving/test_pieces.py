"""Generated files are sent in pieces and uncompressed."""

import asyncio

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.routing import Route

from visformer.app.serving.middleware import PIECE, InPieces


def response(content, path="/media/generated.csv", **headers):
    """Return the messages of a response: its start, and the pieces of its body."""
    app = Starlette(
        routes=[Route(path, lambda request: Response(content, media_type="text/csv"))],
        middleware=[Middleware(InPieces), Middleware(GZipMiddleware)],
    )
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request"}

    names = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": path, "headers": names, "query_string": b""}
    asyncio.run(app(scope, receive, send))
    return sent


def test_a_generated_file_is_sent_in_pieces():
    for size in (0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 3 * PIECE + 7):
        content = bytes(i % 251 for i in range(size))
        start, *pieces = response(content)
        assert b"".join(piece["body"] for piece in pieces) == content, size
        assert max(len(piece["body"]) for piece in pieces) <= PIECE, size
        assert [piece.get("more_body", False) for piece in pieces] == [True] * (len(pieces) - 1) + [False], size
        assert (b"content-length", str(size).encode()) in start["headers"]


def test_a_generated_file_is_not_compressed():
    start, *pieces = response(b"0.5," * PIECE, **{"accept-encoding": "gzip"})
    assert b"content-encoding" not in dict(start["headers"])
    assert sum(len(piece["body"]) for piece in pieces) == 4 * PIECE


def test_other_responses_are_compressed():
    start, *pieces = response(b"0.5," * PIECE, path="/other", **{"accept-encoding": "gzip"})
    assert dict(start["headers"])[b"content-encoding"] == b"gzip"
    assert sum(len(piece["body"]) for piece in pieces) < PIECE
