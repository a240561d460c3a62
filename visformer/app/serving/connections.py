"""The connections of browsers: as many as the server has files for, and from each no more than any page sends.

The server reads all frames that have arrived from one browser before it turns to the next, and a few kB of empty ones
take longer than a page. So a browser that sends far more than any page does is disconnected before all are read.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ProtocolError
from websockets.frames import Frame
from websockets.server import ServerProtocol

from visformer.system import limits
from visformer.system.sockets import network_of

FRAME = 2_000  # bytes that each frame counts for besides its own: it takes as long to read
AT_ONCE = 6  # seconds' worth that may come at once: one message of maximum size, or 300 empty ones

OF_EACH = 4  # files that a visitor's websocket takes: Streamlit opens an event loop for each
REQUESTS = 128  # connections of other kinds
BACKLOG = 100  # connections that are taken at once, before one of them can be refused
OTHERS = 128 + BACKLOG  # files for all else: pipes, weights, pages
_QUIET = 60.0  # seconds between two lines in the log that say the same

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

_LOG = logging.getLogger(__name__)


def visitors_at_most() -> int:
    """Raise this process's limit on open files as far as needed; return how many visitors it is enough for."""
    if resource is None:
        return limits.SESSIONS
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OF_EACH * limits.SESSIONS + REQUESTS + OTHERS
    if resource.RLIM_INFINITY != allowed < wanted:
        allowed = wanted if most == resource.RLIM_INFINITY else min(most, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    if allowed == resource.RLIM_INFINITY:
        return limits.SESSIONS
    return max(1, (min(wanted, allowed) - REQUESTS - OTHERS) // OF_EACH)


class Bucket:
    """A leaky bucket: so many at once, and so many a second."""

    def __init__(self, at_once: float, a_second: float) -> None:
        self._most, self._rate = at_once, a_second
        self._level = self._last = 0.0

    def pour(self, amount: float) -> float:
        """Add to the bucket; return the seconds until it does not overflow."""
        now = time.monotonic()
        self._level = max(0.0, self._level - (now - self._last) * self._rate) + amount
        self._last = now
        return max(0.0, self._level - self._most) / self._rate


class Frames(ServerProtocol):
    """One connection's frames."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._sent = Bucket(AT_ONCE * limits.SENT_RATE, limits.SENT_RATE)  # bytes

    def recv_frame(self, frame: Frame) -> None:
        """Take a frame, or end the connection if there were too many lately."""
        if self._sent.pour(FRAME + len(frame.data)):
            raise ProtocolError("too many messages")
        super().recv_frame(frame)


class Websocket(WebSocketsSansIOProtocol):
    """The websocket protocol for uvicorn: ``--ws visformer.app.serving.connections:Websocket``."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = Frames(max_size=limits.SENT_BYTES, logger=self.logger)

    def handle_parser_exception(self) -> None:
        """End the connection; what the app still sends is dropped, without a traceback for each."""
        super().handle_parser_exception()
        self.disconnected = True


class Http(H11Protocol):
    """The protocol of all other connections: where there are no files for more, the one that is idle longest ends."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, in place of another if need be."""
        super().connection_made(transport)
        self._made = time.monotonic()
        if len(self.connections) > OPENINGS.most + REQUESTS:
            log_once("There are too many connections: those that are idle are closed.")
            idle = [each for each in self.connections if isinstance(each, Http) and each.is_idle]
            oldest = min(idle, key=lambda each: each._made)
            self.connections.discard(oldest)
            oldest.transport.abort()

    @property
    def is_idle(self) -> bool:
        """Whether it has sent nothing yet, or has been answered."""
        return self.cycle is None or self.cycle.response_complete


class Openings:
    """Which websockets are opened, and when: as many as there are files for, and of each address not all at once."""

    def __init__(self) -> None:
        self.most = limits.SESSIONS
        self.open = 0
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()  # by address

    def begin(self) -> None:
        """Find out how many there is room for, and say so where it is less than a full server."""
        self.most = visitors_at_most()
        if self.most < limits.SESSIONS:
            _LOG.log(
                logging.WARNING,
                "The limit on open files (ulimit -n) is enough for %d visitors, not for %d.",
                self.most,
                limits.SESSIONS,
            )

    def wait(self, address: str) -> float:
        """Return the seconds that another websocket from this address waits for its turn."""
        bucket = self._buckets.setdefault(address, Bucket(limits.OPENINGS, limits.OPENING_RATE))
        self._buckets.move_to_end(address)
        if len(self._buckets) > limits.SESSIONS:
            self._buckets.popitem(last=False)
        return bucket.pour(1)


OPENINGS = Openings()
"""Those of this process."""


class Crowd:
    """ASGI middleware: a websocket is opened when it has its turn, or refused where there are too many."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request or a websocket on."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        if OPENINGS.open >= OPENINGS.most:
            log_once("There are too many visitors: new ones are refused.")
            await send({"type": "websocket.close", "code": 1013})  # before it is accepted: status 403
            return
        OPENINGS.open += 1
        try:
            await asyncio.sleep(OPENINGS.wait(network_of((scope.get("client") or ("",))[0])))
            await self._app(scope, receive, send)
        finally:
            OPENINGS.open -= 1


_TOLD: dict[str, float] = {}


def log_once(what: str) -> None:
    """Log this, once in a while."""
    now = time.monotonic()
    if now - _TOLD.get(what, -_QUIET) >= _QUIET:
        _TOLD[what] = now
        _LOG.log(logging.WARNING, what)
