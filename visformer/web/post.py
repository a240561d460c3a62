"""A message for a view: hosts carry messages to a page, and a page may have several views. No numpy here."""

import json
import struct


def addressed(to: str, message: bytes) -> bytes:
    """The message in an envelope, laid out as in :mod:`visformer.web.frame`; an empty one takes the picture away."""
    text = json.dumps({"to": to}).encode()
    return struct.pack("<I", len(text)) + text + b"\0" * (-(4 + len(text)) % 4) + message
