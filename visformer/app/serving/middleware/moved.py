"""In links of version 1, "/" was the explorer: they open that page, at its present address."""

from collections.abc import Mapping
from dataclasses import fields

from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from visformer.web.selection import Selection

EXPLORER = "attention"
"""The page that was first in version 1."""
VERSION_NAME = "v"
ZOOM = "zoom"
"""The place in the whole model, which version 1 did not have."""
_TEXTS, _SELECTED = {"text", "target"}, {one.name for one in fields(Selection)}


def page_of(page: str, texts: Mapping[str, str]) -> str:
    """Return the page that a link or file names, whose other texts are these.

    A link without a version is older still, or written by hand: it is the explorer's if it says what is shown there and
    nothing that only the whole model has.
    A text alone may be that of a lesson's step.
    """
    shown = _SELECTED if "lesson" in texts else _SELECTED | _TEXTS
    is_unversioned_old = ZOOM not in texts and not shown.isdisjoint(texts)
    is_old = texts[VERSION_NAME] == "1" if VERSION_NAME in texts else is_unversioned_old
    return EXPLORER if is_old and not page else page


class Moved:
    """ASGI middleware: redirects, so that going back never leads to the old address."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Redirect a request, or pass it on."""
        is_first = scope["type"] == "http" and scope["path"] == "/"
        if is_first and page_of("", (request := Request(scope)).query_params):
            # Relative: a proxy may serve the app below a path of its own.
            await RedirectResponse(f"{EXPLORER}?{request.url.query}")(scope, receive, send)
        else:
            await self._app(scope, receive, send)
