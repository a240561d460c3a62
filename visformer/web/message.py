"""A message to a view in the browser: where to and what kind as JSON, then numbers. No numpy: it would come too late.

Layout: length of the header (uint32, little-endian), the header as UTF-8 JSON, padding to a multiple of 4, numbers.
static/shared/message.js reads it.
"""

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Kind = Literal["attention", "weights", "panels", "presentation", "nothing"]
"""What a view takes: "weights" follow an "attention"; "nothing" takes the picture away."""


class Numbers:
    """Arrays one after another, each at a multiple of 4 bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, array: "npt.NDArray[np.generic]") -> int:
        """Where the array begins, in bytes."""
        part = array.tobytes()
        part += b"\0" * (-len(part) % 4)
        at = self._size
        self._parts.append(part)
        self._size += len(part)
        return at

    def bytes(self) -> bytes:
        """All of them."""
        return b"".join(self._parts)


def write_message(kind: Kind, header: Mapping[str, Any], numbers: Numbers | None = None, *, to: str = "") -> bytes:
    """A message as bytes; its header gets a ``revision`` that changes whenever any of it does.

    Args:
        kind: which view can draw it.
        header: JSON values.
        numbers: that the header refers to by their places.
        to: the view's name, where several are on a page.
    """
    body = numbers.bytes() if numbers else b""
    text = json.dumps({"to": to, "kind": kind, **header}, ensure_ascii=False, separators=(",", ":"))
    data = text.encode(errors="backslashreplace")  # a lone surrogate as JSON writes it: UTF-8 cannot
    hashed = hashlib.blake2b(data, digest_size=8)
    hashed.update(body)
    data = data[:-1] + f',"revision":"{hashed.hexdigest()}"}}'.encode()  # written once: it is as long as the numbers
    return struct.pack("<I", len(data)) + data + b"\0" * (-len(data) % 4) + body
