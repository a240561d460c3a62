"""One row of the data: a text with what is known about it, or what is wrong with it."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from visformer.errors import N_, DataError


@dataclass(frozen=True)
class Record:
    """A text of the data.

    Args:
        file: path of its file; "-" for standard input.
        line: its line there, or its row in a table without lines, counted from 1.
        text: the text, a model's source.
        target: the target to force; None: the model's own.
        pair: a second text, for an encoder.
        heads: for each word of the text the number of its syntactic head, counted from 1; 0: the root, as in CoNLL-U.
        alignment: links (word of the text, word of the target), counted from 0.
    """

    file: str
    line: int
    text: str
    target: str | None = None
    pair: str | None = None
    heads: tuple[int, ...] | None = None
    alignment: tuple[tuple[int, int], ...] | None = None

    @property
    def texts(self) -> tuple[str, str | None, str | None]:
        """What the model reads."""
        return self.text, self.target, self.pair


@dataclass(frozen=True)
class Broken:
    """A row that cannot be used, and why, in one line."""

    file: str
    line: int
    reason: str

    def error(self) -> DataError:
        """Return the error that ends a run where broken rows are not skipped."""
        return DataError(N_("{file}, line {line}: {reason}"), file=self.file, line=self.line, reason=self.reason)


Row = Record | Broken


def digest(rows: Iterable[Row]) -> str:
    """Return the SHA-256 of what rows say; where their files are does not matter."""
    told = hashlib.sha256()
    for row in rows:
        said = None if isinstance(row, Broken) else (*row.texts, row.heads, row.alignment)
        told.update(json.dumps(said).encode() + b"\n")
    return told.hexdigest()
