"""The bytes that a view is given: a small JSON header, then numbers.

Layout: length of the header (uint32, little-endian), the header as UTF-8 JSON, padding to a multiple of 4, numbers.
"""

import hashlib
import json
import struct
from typing import Any

import numpy as np
import numpy.typing as npt


class Numbers:
    """Arrays one after another, each at a multiple of 4 bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, array: npt.NDArray[Any]) -> int:
        """Where the array begins, in bytes."""
        part = np.ascontiguousarray(array).tobytes()
        part += b"\0" * (-len(part) % 4)
        at = self._size
        self._parts.append(part)
        self._size += len(part)
        return at

    def bytes(self) -> bytes:
        """All of them."""
        return b"".join(self._parts)


def frame(header: dict[str, Any], numbers: Numbers) -> bytes:
    """Header and numbers as one; the header gets a ``revision`` that changes whenever any of it does."""
    body = numbers.bytes()
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text = text[:-1] + f',"revision":"{digest(text, body)}"}}'.encode()  # written once: it is as long as the numbers
    padding = -(4 + len(text)) % 4
    return struct.pack("<I", len(text)) + text + b"\0" * padding + body


def digest(*parts: bytes) -> str:
    """A short name for these bytes."""
    hashed = hashlib.blake2b(digest_size=8)
    for part in parts:
        hashed.update(part)
    return hashed.hexdigest()
