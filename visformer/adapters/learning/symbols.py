"""A vocabulary of a few symbols: letters, digits or words, in place of byte pairs."""

import re
from collections.abc import Sequence

from visformer.errors import N_, TextError
from visformer.model.tokenizer import SPECIALS, Tokenizer, require_unicode

_SHOWN = 24  # symbols that a message lists


class Symbols(Tokenizer):
    """A tokenizer that knows only its symbols; ids 0 to 3 are the special tokens."""

    scheme = "symbols"

    def __init__(self, symbols: Sequence[str]) -> None:
        self._tokens = (*SPECIALS, *symbols)
        self._ids = {token: i for i, token in enumerate(self._tokens)}
        longest_first = sorted(symbols, key=len, reverse=True)
        self._symbol = re.compile("|".join(map(re.escape, longest_first)))
        self._joint = " " if any(len(symbol) > 1 and symbol.isascii() for symbol in symbols) else ""

    def token_id(self, token: str) -> int:
        """The id of a token of the vocabulary."""
        return self._ids[token]

    def encode(self, text: str) -> list[int]:
        """The ids of the text, without specials; spaces between symbols are ignored.

        Raises:
            TextError: the text has a symbol that this vocabulary lacks.
        """
        return [self._ids[text[first:last]] for first, last in self.spans(text)]

    def spans(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return (start, end) of each token of ``encode(text)`` in ``text``."""
        require_unicode(text)
        found, at = [], 0
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            match = self._symbol.match(text, at)
            if match is None:
                symbols = self._tokens[len(SPECIALS) :]
                raise TextError(
                    N_("This small model knows only {n} symbols, and {symbol!r} is none of them: {symbols}."),
                    n=len(symbols),
                    symbol=text[at],
                    symbols=(self._joint or "").join(symbols[:_SHOWN]) + "…" * (len(symbols) > _SHOWN),
                )
            found.append(match.span())
            at = match.end()
        return tuple(found)

    def pieces(self, text: str) -> tuple[str, ...]:
        """The symbols of a text: none is merged."""
        return tuple(text[first:last] for first, last in self.spans(text))

    def merging(self, piece: str) -> list[tuple[str, ...]]:
        """A symbol is one token from the start."""
        return [(piece,)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; specials are omitted."""
        joint = self._joint
        return joint.join(self._tokens[i] for i in ids if len(SPECIALS) <= i < len(self._tokens))

    def words(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Each symbol is a word of its own."""
        return tuple(range(len(ids)))

    def shown(self, ids: Sequence[int]) -> tuple[str, ...]:
        """The text displayed for each id."""
        return tuple(self._tokens[i] for i in ids)
