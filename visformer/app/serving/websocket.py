"""The websockets of browsers: short messages, not compressed, and not too many at a time.

The server reads all frames that have come from one browser before it turns to the next: a few kB of empty ones take it
longer than a page, so who sends many more than any page does is disconnected in their midst.
"""

import time
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import ProtocolError
from websockets.frames import Frame
from websockets.server import ServerProtocol

from visformer.system import limits

FRAME = 2_000  # bytes that a frame counts for besides its own: it takes as long to read
AT_ONCE = 20  # seconds' worth that may come at once


class Frames(ServerProtocol):
    """One connection's frames."""

    _owed = _last = 0.0  # bytes; seconds

    def recv_frame(self, frame: Frame) -> None:
        """Take a frame, or end the connection if there were too many lately."""
        now = time.monotonic()
        owed = max(0.0, self._owed - (now - self._last) * limits.SENT_RATE)
        self._owed, self._last = owed + FRAME + len(frame.data), now
        if self._owed > AT_ONCE * limits.SENT_RATE:
            raise ProtocolError("too many messages")
        super().recv_frame(frame)


class Websocket(WebSocketsSansIOProtocol):
    """What uvicorn speaks to a browser through: its option ``--ws visformer.app.serving.websocket:Websocket``."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = Frames(max_size=limits.SENT_BYTES, logger=self.logger)

    def handle_parser_exception(self) -> None:
        """End the connection; what the app still sends is dropped, without a traceback for each."""
        super().handle_parser_exception()
        self.disconnected = True
