"""Security headers of every response: no foreign scripts, no embedding by other sites, no guessing of file types."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from visformer.app.streamlit_private.first_page import inline_scripts
from visformer.system import settings


def policy() -> str:
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


class Protected:
    """ASGI middleware: adds the headers to every response, and refuses bodies of unknown length."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = {"content-security-policy": policy(), "x-content-type-options": "nosniff"}

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
