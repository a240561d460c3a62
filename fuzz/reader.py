"""Values made of bytes, so that a fuzzer that only knows bytes reaches past the first check."""

import struct
from collections.abc import Sequence
from typing import Any

SPECIAL_NUMBERS = (0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 0.0, -0.0, 0.5, 1e308, float("nan"), float("inf"))


class Reader:
    """Takes bytes from the front; when there are no more it reads zeros."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def bytes(self, n: int) -> bytes:
        """The next n, filled up with zeros."""
        taken = self._data[self._at : self._at + n]
        self._at += n
        return taken.ljust(n, b"\0")

    def rest(self) -> bytes:
        """All that are left."""
        taken, self._at = self._data[self._at :], len(self._data)
        return taken

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return self.bytes(2)[0] % n if n <= 256 else int.from_bytes(self.bytes(4)) % n

    def choice(self, options: Sequence[Any]) -> Any:
        """One of them."""
        return options[self.below(len(options))]

    def text(self) -> str:
        """Up to 63 bytes as text, half surrogate pairs among it."""
        return self.bytes(self.below(64)).decode("utf-8", errors="surrogateescape")

    def number(self) -> float:
        """A whole number, any float64, or one that is odd."""
        kind = self.below(4)
        if kind == 0:
            return int.from_bytes(self.bytes(2), signed=True)
        if kind == 1:
            return float(struct.unpack("<d", self.bytes(8))[0])
        return self.choice(SPECIAL_NUMBERS)

    def value(self, words: Sequence[str], *, depth: int = 3) -> Any:
        """What JSON can hold, with names and texts that mean something to the taker among it."""
        kind = self.below(8 if depth else 6)
        if kind == 0:
            return self.choice((None, True, False))
        if kind in (1, 2):
            return self.number()
        if kind == 3:
            return self.text()
        if kind in (4, 5):
            return self.choice(words)
        if kind == 6:
            return [self.value(words, depth=depth - 1) for _ in range(self.below(6))]
        return self.mapping(words, depth=depth - 1)

    def mapping(self, words: Sequence[str], *, depth: int = 2) -> dict[str, Any]:
        """Names to values."""
        names = [self.choice(words) if self.below(8) else self.text() for _ in range(self.below(12))]
        return {name: self.value(words, depth=depth) for name in names}
