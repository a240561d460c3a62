"""The empty page that Streamlit serves before its script has run: its language, its title, and where its server is.

A visitor loses: the language that screen readers and fonts need, and our name on the tab, until the first run is over;
and the time of two requests that fail on every page but the first, with an error each in the browser's console, since
Streamlit looks for its server below the page first.
"""

import base64
import hashlib
import re
from pathlib import Path

import streamlit
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from visformer import i18n

_HEAD = b"<head>"
_WHERE = b"<script>window.__streamlit = { BACKEND_BASE_URL: new URL('.', location).href }</script>"
"""Its server is beside the page, also where a proxy serves the app below a path of its own."""


class FirstPage:
    """ASGI middleware around a Streamlit app; responses other than HTML pages pass unchanged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        scope = {**scope, "headers": [*scope["headers"]]}
        del MutableHeaders(scope=scope)["accept-encoding"]  # Streamlit compresses the page that it serves at a link
        start: Message | None = None
        body = b""

        async def adapt(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_page(message) and scope["method"] == "HEAD":
                headers = MutableHeaders(raw=message["headers"])
                _relabel(headers, int(headers["content-length"]) + len(_WHERE))  # the rest keeps its length
                await send(message)
            elif message["type"] == "http.response.start" and _is_page(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    body = _adapted(body, language_of(Request(scope)))
                    _relabel(MutableHeaders(raw=start["headers"]), len(body))
                    await send(start)
                    await send({**message, "body": body})

        await self._app(scope, receive, adapt)


def inline_scripts() -> list[str]:
    """Return the hash of each script inside the page itself, as a Content-Security-Policy writes it."""
    page = _adapted((Path(streamlit.__file__).parent / "static" / "index.html").read_bytes(), i18n.ENGLISH)
    scripts = re.findall(rb"<script>(.*?)</script>", page, re.DOTALL)
    return [f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in scripts]


def language_of(request: Request) -> str:
    """Return the language in the address, else the one closest to the browser's first choice."""
    preferred = request.headers.get("accept-language", "").split(",")[0].split(";")[0].strip()
    return i18n.spoken(request.query_params.get("lang", "")) or i18n.closest(preferred)


def _is_page(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    return start["status"] == 200 and headers.get("content-type", "").startswith("text/html")


def _adapted(body: bytes, lang: str) -> bytes:
    body = body.replace(b'<html lang="en">', f'<html lang="{lang}">'.encode(), 1)
    body = body.replace(_HEAD, _HEAD + _WHERE, 1)
    return body.replace(b"<title>Streamlit</title>", b"<title>Visformer</title>", 1)


def _relabel(headers: MutableHeaders, length: int) -> None:
    """Remove the validators, with which a browser would reuse a cached page in another language."""
    del headers["etag"], headers["last-modified"]
    headers["content-length"] = str(length)
