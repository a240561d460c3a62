"""Links to a lesson's steps that name no page: ``/?lesson=from-text-to-translation&step=5``, as people write them."""

from urllib.parse import parse_qsl, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from visformer.app.lessons import lesson_file
from visformer.app.session import url_state
from visformer.errors import VisformerError

_NAMED = f"{url_state.LESSON}=".encode()


class StepLinks:
    """ASGI middleware: such a link leads to the step's page at once.

    The page's own first run would lead there, too, but as a further entry of the browser's history: Back would come to
    the link, and be led on again.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer such a link; any other request passes unchanged."""
        link = None
        if scope["type"] == "http" and scope["method"] == "GET" and _NAMED in scope["query_string"]:
            link = await run_in_threadpool(page_link, scope["path"], scope["query_string"].decode("latin-1"))
        await (self._app if link is None else RedirectResponse(link))(scope, receive, send)


def page_link(path: str, query: str) -> str | None:
    """Return the address of a step's page, relative to the link; None: the link has no step, or a page already."""
    fields = dict(parse_qsl(query))
    try:
        steps = lesson_file.load(fields.get(url_state.LESSON, "")).steps
        number = int(fields.get(url_state.STEP, "1"))
    except (VisformerError, ValueError):
        return None  # the page says what is wrong
    page = steps[number - 1].state.page if 0 < number <= len(steps) else ""
    if not path.endswith("/") or not page:
        return None
    given = {url_state.VERSION_NAME: str(url_state.VERSION), **fields, url_state.STEP: str(number)}
    return f"{page}?{urlencode(given)}"
