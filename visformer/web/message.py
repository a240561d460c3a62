"""Messages to a view in the browser: a JSON header with address and kind, then binary numbers.

Layout: length of the header (uint32, little-endian), the header as UTF-8 JSON, padding to a multiple of 4, numbers.
static/shared/message.js reads it. NumPy is not imported here: that would delay the first message.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Kind = Literal[
    "attention",
    "weights",
    "effect",
    "panels",
    "pair",
    "map",
    "place",
    "learning",
    "history",
    "presentation",
    "lesson",
    "site",
    "here",
    "nothing",
]
"""Kinds of messages: "weights" and "effect" supplement an "attention" message, "place" a "map"; "nothing" removes the
picture."""


class Numbers(BytesIO):
    """A buffer of arrays, each aligned to 4 bytes."""

    def add(self, array: "npt.NDArray[np.generic]") -> int:
        """Append an array and return its offset in bytes."""
        at = self.tell()
        self.write(array.tobytes())
        self.write(b"\0" * (-self.tell() % 4))
        return at


def write_message(kind: Kind, header: Mapping[str, Any], numbers: Numbers | None = None, *, to: str = "") -> bytes:
    """Serialise a message; its header gets a ``revision``, a hash of the whole content.

    Args:
        kind: what the message contains, and thus which view can draw it.
        header: JSON values.
        numbers: arrays that the header refers to by offset.
        to: the name of the receiving view, if a page has several.
    """
    body = numbers.getvalue() if numbers else b""
    text = json.dumps({"to": to, "kind": kind, **header}, ensure_ascii=False, separators=(",", ":"))
    data = text.encode(errors="backslashreplace")  # lone surrogates, which UTF-8 cannot encode, as JSON escapes
    hashed = hashlib.blake2b(data, digest_size=8)
    hashed.update(body)
    data = data[:-1] + f',"revision":"{hashed.hexdigest()}"}}'.encode()  # not dumped twice: it may be large
    return struct.pack("<I", len(data)) + data + b"\0" * (-len(data) % 4) + body
