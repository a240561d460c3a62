"""ASGI middleware before Streamlit: the gate, the headers of every response, large files in pieces."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from visformer.app.streamlit_private.first_page import inline_scripts
from visformer.system import settings

_STREAMLIT = "/_stcore/"
_NEEDED = ("stream", "health", "host-config", "upload_file")
"""The paths that the page requests; the rest (metrics, agents, component files) is not served."""

_PORTS = {"http": 80, "https": 443}


class Gate:
    """ASGI middleware: what it refuses reaches nothing behind it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request or a websocket on, or refuse it."""
        refusal = _refusal(HTTPConnection(scope)) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await refusal(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: status 403


def _refusal(request: HTTPConnection) -> PlainTextResponse | None:
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    name, port = _host_and_port(f"//{host}")
    if not is_allowed(name):
        return PlainTextResponse("This name is not served here: the operator allows it with VISFORMER_HOSTS.", 403)
    if origin is not None and _host_and_port(origin) != (name, port or _PORTS.get(urlsplit(origin).scheme)):
        return PlainTextResponse("This request comes from a page of another server.", 403)
    _before, found, wanted = request.scope["path"].partition(_STREAMLIT)
    if found and wanted.split("/")[0] not in _NEEDED:
        return PlainTextResponse("Not found", 404)
    return None


def is_allowed(name: str) -> bool:
    """Whether this host is served, see ``settings.HOSTS``; an IP address always is: DNS rebinding needs a name."""
    hosts = settings.HOSTS()
    try:
        ip_address(name)
    except ValueError:
        return "*" in hosts or any(name == host or (host[:2] == "*." and name.endswith(host[1:])) for host in hosts)
    return True


def _host_and_port(url: str) -> tuple[str, int | None]:
    """Return the host and port of a URL; the host is empty if the URL is invalid."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", None


def content_security_policy() -> str:
    """The Content-Security-Policy of the app's pages; docs/security.md says what it has to allow, and why."""
    parts = {
        "default-src": ("'none'",),
        "connect-src": ("'self'",),
        "script-src": ("'self'", "blob:", *inline_scripts()),  # Streamlit imports a component's script from a blob
        "style-src": ("'self'", "'unsafe-inline'"),  # Streamlit writes <style> elements, Plotly style attributes
        "img-src": ("'self'", "data:", "blob:"),  # Streamlit's icons; Plotly's picture on its way to a file
        "font-src": ("'self'", "data:"),  # KaTeX's
        "base-uri": ("'none'",),
        "form-action": ("'none'",),
        "frame-ancestors": ("'self'", *settings.FRAME_ANCESTORS()),
    }
    return "; ".join(" ".join((name, *sources)) for name, sources in parts.items())


class SecurityHeaders:
    """ASGI middleware: adds the headers to every response, and refuses bodies of unknown length."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = {"content-security-policy": content_security_policy(), "x-content-type-options": "nosniff"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def protect(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        if "transfer-encoding" in Headers(scope=scope):
            # Streamlit would accept twice the usual size, and write what exceeds 1 MB to a file.
            await PlainTextResponse("Length required", 411)(scope, receive, protect)
        else:
            await self._app(scope, receive, protect)


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
