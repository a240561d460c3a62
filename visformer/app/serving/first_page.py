"""The empty page that Streamlit serves, in the visitor's language and under our name before its script has run."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from visformer import i18n

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Any, Send], Awaitable[None]]

_ENGLISH, _NAMELESS = b'<html lang="en">', b"<title>Streamlit</title>"


class FirstPage:
    """ASGI middleware around a Streamlit app; what is no page of HTML passes as it is."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        begin: MutableMapping[str, Any] = {}
        parts: list[bytes] = []

        async def adapt(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                if not _is_page(message):
                    await send(message)
                    return
                begin.update(message)
            elif begin:
                parts.append(message.get("body", b""))
                if not message.get("more_body"):
                    body = _adapted(b"".join(parts), wanted(scope))
                    await send({**begin, "headers": _headers(begin["headers"], len(body))})
                    await send({**message, "body": body})
            else:
                await send(message)

        await self._app(scope, receive, adapt)


def wanted(scope: Scope) -> str:
    """The language that the address asks for, else the first that the browser prefers."""
    asked = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("lang", [""])[-1]
    headers = dict(scope["headers"])
    preferred = headers.get(b"accept-language", b"").decode("latin-1").split(",")[0].split(";")[0].strip()
    return i18n.spoken(asked) or i18n.closest(preferred)


def _is_page(message: MutableMapping[str, Any]) -> bool:
    headers = dict(message["headers"])
    plain = b"content-encoding" not in headers
    return message["status"] == 200 and plain and headers.get(b"content-type", b"").startswith(b"text/html")


def _adapted(body: bytes, lang: str) -> bytes:
    return body.replace(_ENGLISH, f'<html lang="{lang}">'.encode(), 1).replace(
        _NAMELESS, b"<title>Visformer</title>", 1
    )


def _headers(headers: list[tuple[bytes, bytes]], length: int) -> list[tuple[bytes, bytes]]:
    """Without the marks by which a browser would take the page of another language as unchanged."""
    kept = [pair for pair in headers if pair[0] not in (b"content-length", b"etag", b"last-modified")]
    return [*kept, (b"content-length", str(length).encode()), (b"vary", b"accept-language")]
