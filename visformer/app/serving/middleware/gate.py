"""Admits requests to an allowed host, from its own pages, and for those Streamlit paths that the app needs."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

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
