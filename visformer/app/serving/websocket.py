"""The websockets of browsers: short messages, uncompressed, and not too many at a time.

The server reads all frames that have arrived from one browser before it turns to the next, and a few kB of empty ones
take longer than a page. So a browser that sends far more than any page does is disconnected before all are read.
"""

import time
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ProtocolError
from websockets.frames import Frame
from websockets.server import ServerProtocol

from visformer.system import limits

FRAME = 2_000  # bytes that each frame counts for besides its own: it takes as long to read
AT_ONCE = 6  # seconds' worth that may come at once: one message of maximum size, or 300 empty ones


class Frames(ServerProtocol):
    """One connection's frames, limited by a leaky bucket."""

    _level = _last = 0.0  # bytes; seconds

    def recv_frame(self, frame: Frame) -> None:
        """Take a frame, or end the connection if there were too many lately."""
        now = time.monotonic()
        level = max(0.0, self._level - (now - self._last) * limits.SENT_RATE)
        self._level, self._last = level + FRAME + len(frame.data), now
        if self._level > AT_ONCE * limits.SENT_RATE:
            raise ProtocolError("too many messages")
        super().recv_frame(frame)


class Websocket(WebSocketsSansIOProtocol):
    """The websocket protocol for uvicorn: ``--ws visformer.app.serving.websocket:Websocket``."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = Frames(max_size=limits.SENT_BYTES, logger=self.logger)

    def handle_parser_exception(self) -> None:
        """End the connection; what the app still sends is dropped, without a traceback for each."""
        super().handle_parser_exception()
        self.disconnected = True
