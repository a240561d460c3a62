"""Parts of a head of a long text over HTTP: the browser fetches them by a key that cannot be guessed.

A key belongs to a session and ends with it. Another replica does not know it and answers 404; the browser then asks
over its websocket, which always leads to the right one.
"""

import secrets
from collections.abc import Callable
from weakref import WeakValueDictionary

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from visformer.errors import VisformerError
from visformer.web.tiles import Ask

PATH = "parts"


class Offer:
    """What one session may fetch: parts of one Trace."""

    def __init__(self, ask: Ask) -> None:
        self.key, self.ask = secrets.token_urlsafe(16), ask
        _OFFERS[self.key] = self

    @property
    def address(self) -> str:
        """Where the parts are, relative to the app's root."""
        return f"{PATH}/{self.key}"


_OFFERS: "WeakValueDictionary[str, Offer]" = WeakValueDictionary()
"""By key; each is held by its session, which has one at a time."""


async def _part(request: Request) -> Response:
    offer = _OFFERS.get(request.path_params["key"])
    if offer is None:
        return PlainTextResponse("Not found", 404)
    answer: Callable[[str], bytes | None] = offer.ask
    try:
        part = await run_in_threadpool(answer, request.path_params["part"])
    except VisformerError as error:  # the queue is full, or it took too long: the browser asks again
        return PlainTextResponse(str(error), 503)
    if part is None:
        return PlainTextResponse("Not found", 404)
    return Response(part, media_type="application/octet-stream", headers={"cache-control": "private, max-age=3600"})


ROUTES = [Route(f"/{PATH}/{{key}}/{{part:path}}", _part)]
