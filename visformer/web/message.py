"""A message to a view in the browser: where to and what kind as JSON, then numbers. No numpy: it would come too late.

Layout: length of the header (uint32, little-endian), the header as UTF-8 JSON, padding to a multiple of 4, numbers.
static/shared/message.js reads it.
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

Kind = Literal["attention", "weights", "panels", "presentation", "nothing"]
"""What a view takes: "weights" follow an "attention"; "nothing" takes the picture away."""


class Numbers(BytesIO):
    """Arrays one after another, each at a multiple of 4 bytes."""

    def add(self, array: "npt.NDArray[np.generic]") -> int:
        """Where the array begins, in bytes."""
        at = self.tell()
        self.write(array.tobytes())
        self.write(b"\0" * (-self.tell() % 4))
        return at


def write_message(kind: Kind, header: Mapping[str, Any], numbers: Numbers | None = None, *, to: str = "") -> bytes:
    """A message as bytes; its header gets a ``revision`` that changes whenever any of it does.

    Args:
        kind: which view can draw it.
        header: JSON values.
        numbers: that the header refers to by their places.
        to: the view's name, where several are on a page.
    """
    body = numbers.getvalue() if numbers else b""
    text = json.dumps({"to": to, "kind": kind, **header}, ensure_ascii=False, separators=(",", ":"))
    data = text.encode(errors="backslashreplace")  # a lone surrogate as JSON writes it: UTF-8 cannot
    hashed = hashlib.blake2b(data, digest_size=8)
    hashed.update(body)
    data = data[:-1] + f',"revision":"{hashed.hexdigest()}"}}'.encode()  # written once: it is as long as the numbers
    return struct.pack("<I", len(data)) + data + b"\0" * (-len(data) % 4) + body
