"""The language and title of the empty page that Streamlit serves before its script has run.

A visitor loses: the language that screen readers and fonts need, and our name on the tab, until the first run is over.
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


class FirstPage:
    """ASGI middleware around a Streamlit app; responses other than HTML pages pass unchanged."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def adapt(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_page(message):
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
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_bytes()
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
    return body.replace(b"<title>Streamlit</title>", b"<title>Visformer</title>", 1)


def _relabel(headers: MutableHeaders, length: int) -> None:
    """Remove the validators, with which a browser would reuse a cached page in another language."""
    del headers["etag"], headers["last-modified"]
    headers["content-length"] = str(length)
