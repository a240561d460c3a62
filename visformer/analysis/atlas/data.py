"""Reading a corpus: text, TSV, CSV, JSON Lines, Parquet, Arrow, a folder of them, or standard input, row by row."""

import csv
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, NoReturn, cast

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
    hashed = hashlib.sha256()
    for row in rows:
        said = None if isinstance(row, Broken) else (*row.texts, row.heads, row.alignment)
        hashed.update(json.dumps(said).encode() + b"\n")
    return hashed.hexdigest()


STDIN = "-"
TEXT_NAMES = ("text", "sentence", "source")
"""Names of the column of texts, where none is given."""

_BATCH = 1024
_SURROGATES = dict.fromkeys(range(0xD800, 0xE000))


@dataclass(frozen=True)
class Columns:
    """Which columns hold what: names, or numbers from 1 in a table without a header.

    Args:
        text: None: "text", "sentence" or "source", or the only column of texts; without a header the first.
        target: None: "target", if there is such a column.
        pair: None: "pair".
        heads: None: "heads"; a list of numbers, or numbers with spaces.
        alignment: None: "alignment"; links such as "0-0 1-2".
    """

    text: str | None = None
    target: str | None = None
    pair: str | None = None
    heads: str | None = None
    alignment: str | None = None

    def found(self, there: Sequence[str], path: str) -> dict[str, str]:
        """Return which of the columns that are there holds what.

        Raises:
            DataError: one that was given is not there, or none holds texts.
        """
        chosen: dict[str, str] = {}
        for one in fields(self):
            given = getattr(self, one.name)
            if given is not None and given not in there:
                raise DataError(
                    N_("{path} has no column {column}: it has {known}."),
                    path=path,
                    column=given,
                    known=", ".join(there) or "none",
                )
            names = (given,) if given is not None else TEXT_NAMES if one.name == "text" else (one.name,)
            column = next((name for name in names if name in there), None)
            if column is not None:
                chosen[one.name] = column
        if "text" not in chosen and len(there) == 1:
            chosen["text"] = there[0]
        if "text" not in chosen:
            raise DataError(
                N_("{path} has the columns {known}: say with --text which of them holds the texts."),
                path=path,
                known=", ".join(there) or "none",
            )
        return chosen


@dataclass(frozen=True)
class Data:
    """A corpus: a file, a folder of files, or "-", standard input with one text a line.

    Args:
        source: a path, or "-".
        columns: which columns hold what.
    """

    source: str
    columns: Columns = Columns()

    def files(self) -> list[Path]:
        """Return its files in order of their paths.

        Raises:
            DataError: there is no file, or none of a known format.
        """
        path, known = Path(self.source), ", ".join(FORMATS)
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix.lower() in FORMATS and each.is_file())
            files = [each for each in inside if not _is_ignored(each.relative_to(path))]
            if not files:
                raise DataError(N_("{path} holds no data: no file in it ends in {known}."), path=path, known=known)
            return files
        if not path.exists():
            raise DataError(N_("There is no file or folder {path}."), path=path)
        if path.suffix.lower() not in FORMATS:
            raise DataError(
                N_("{path} does not say by its ending what it is: rename it to end in {known}."), path=path, known=known
            )
        return [path]

    def rows(self) -> Iterator[Row]:
        """Yield every row; one that cannot be used says so.

        Raises:
            DataError: a file cannot be read, or has no column of texts.
        """
        if self.source == STDIN:
            yield from _lines(_standard_input(), STDIN, self.columns)
            return
        for path in self.files():
            with _readable(path):
                yield from FORMATS[path.suffix.lower()].rows(path, self.columns)

    def count(self) -> int | None:
        """Estimate the number of rows, for a progress bar; None: not known before standard input ends."""
        if self.source == STDIN:
            return None
        total = 0
        for path in self.files():
            with _readable(path):
                total += FORMATS[path.suffix.lower()].count(path)
        return total


def _is_ignored(path: Path) -> bool:
    """Whether a file is hidden, or what datasets left in the folder of a dataset that was mapped."""
    return any(part.startswith(".") for part in path.parts) or path.match("cache-*.arrow")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what pyarrow raises of a damaged file into one line."""
    try:
        yield
    except DataError:
        raise
    except (ValueError, OSError) as error:
        if isinstance(error, OSError) and error.strerror:
            raise
        reason = str(error).split("\n")[0]
        raise DataError(N_("{path} cannot be read: {reason}"), path=path, reason=reason) from error


def _standard_input() -> IO[str]:
    if sys.stdin is None:
        raise DataError(N_("Standard input is closed: give a file."))
    return TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors="surrogateescape")


# Rows of text ---------------------------------------------------------------------------------------------------------


def _opened(path: Path, newline: str | None = None) -> IO[str]:
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline=newline)


def _lines(file: IO[str], path: str, columns: Columns) -> Iterator[Row]:
    columns.found(("text",), path)
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield row_of(path, number, {"text": line.rstrip("\n")})


def _text(path: Path, columns: Columns) -> Iterator[Row]:
    with _opened(path) as file:
        yield from _lines(file, str(path), columns)


def _table(dialect: Mapping[str, Any]) -> Callable[[Path, Columns], Iterator[Row]]:
    def rows(path: Path, columns: Columns) -> Iterator[Row]:
        with _opened(path, newline="") as file:
            yield from _cells(csv.reader(file, strict=True, **dialect), str(path), columns)

    return rows


def _cells(reader: Any, path: str, columns: Columns) -> Iterator[Row]:
    """Yield the rows of a table, whose first row is a header if it names the column of texts."""
    where: dict[str, int] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Broken(path, line, f"not a row of a table: {error}")
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if where is None:
            where, header = _header(cells, path, columns)
            if header:
                continue
        if max(where.values()) >= len(cells):
            yield Broken(path, line, f"{len(cells)} columns, {max(where.values()) + 1} are needed")
        else:
            yield row_of(path, line, {name: cells[i] for name, i in where.items()})


def _header(cells: Sequence[str], path: str, columns: Columns) -> tuple[dict[str, int], bool]:
    """Return the index of each column, and whether this row names them."""
    names = [cell.strip() for cell in cells]
    given = {one.name: getattr(columns, one.name) for one in fields(columns) if getattr(columns, one.name) is not None}
    by_number = all(value.isdigit() and value not in names for value in given.values())
    if by_number and (given or not any(name in names for name in TEXT_NAMES)):
        numbered = [str(i) for i in range(1, len(cells) + 1)]
        chosen = Columns(**{"text": "1", **given}).found(numbered, path)
        return {name: int(number) - 1 for name, number in chosen.items()}, False
    return {name: names.index(column) for name, column in columns.found(names, path).items()}, True


def _json_lines(path: Path, columns: Columns) -> Iterator[Row]:
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield Broken(str(path), number, f"not JSON: {getattr(error, 'msg', error)}")
                continue
            if isinstance(value, str):
                value = {"text": value}
            if not isinstance(value, dict):
                yield Broken(str(path), number, f"neither a JSON object nor a text, but {type(value).__name__}")
                continue
            try:
                chosen = columns.found([*value], str(path))
            except DataError:
                wanted = columns.text or ", ".join(TEXT_NAMES)
                yield Broken(str(path), number, f"no text: it has {', '.join(value) or 'nothing'}, not {wanted}")
                continue
            yield row_of(str(path), number, {name: value[column] for name, column in chosen.items()})


# Rows of columns ------------------------------------------------------------------------------------------------------


def _parquet(path: Path, columns: Columns) -> Iterator[Row]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        chosen = columns.found(_named(file.schema_arrow), str(path))
        yield from _batches(file.iter_batches(_BATCH, columns=[*chosen.values()]), chosen, str(path))


def _arrow(path: Path, columns: Columns) -> Iterator[Row]:
    import pyarrow

    with pyarrow.memory_map(str(path)) as source, _reader(source) as reader:
        chosen = columns.found(_named(reader.schema), str(path))
        yield from _batches(_record_batches(reader), chosen, str(path))


def _reader(source: Any) -> Any:
    """Open an Arrow file, or a stream, which datasets writes."""
    from pyarrow import ArrowInvalid, ipc

    try:
        return ipc.open_file(source)
    except ArrowInvalid:
        source.seek(0)
        return ipc.open_stream(source)


def _record_batches(reader: Any) -> Iterator[Any]:
    """Yield the batches of a file or a stream."""
    if hasattr(reader, "num_record_batches"):
        yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        yield from reader


def _named(schema: Any) -> list[str]:
    """Return the columns of a schema; of several, only those that can hold what is read."""
    from pyarrow import types

    def useful(kind: Any) -> bool:
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_list(kind))

    return [one.name for one in schema if useful(one.type)]


def _batches(batches: Iterator[Any], chosen: Mapping[str, str], path: str) -> Iterator[Row]:
    line = 0
    for batch in batches:
        for values in batch.select([*chosen.values()]).to_pylist():
            line += 1
            yield row_of(path, line, {name: values[column] for name, column in chosen.items()})


# One row --------------------------------------------------------------------------------------------------------------


def row_of(path: str, line: int, values: Mapping[str, Any]) -> Row:
    """Check the values of a row; of those that hold texts an empty one is as none."""
    try:
        texts = {name: _text_of(name, values[name]) for name in ("text", "target", "pair") if name in values}
        text = texts.pop("text", None)
        if text is None:
            raise ValueError("no text")
        heads, alignment = _heads(values.get("heads")), _links(values.get("alignment"))
    except ValueError as error:
        return Broken(path, line, str(error))
    return Record(path, line, text, **texts, heads=heads, alignment=alignment)


def _text_of(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text, but {type(value).__name__}")
    if value.translate(_SURROGATES) != value:
        raise ValueError(f"{name} is not UTF-8")
    return value.strip() or None


def _heads(value: Any) -> tuple[int, ...] | None:
    """Read the syntactic heads of words."""
    if value is None or value == "":
        return None
    numbers = value.split() if isinstance(value, str) else value
    try:
        heads = tuple(int(number) for number in numbers)
    except (TypeError, ValueError):
        _refuse("heads", value, "2 0 2")
    if not all(0 <= head <= len(heads) for head in heads):
        _refuse("heads", value, "2 0 2")
    return heads


def _links(value: Any) -> tuple[tuple[int, int], ...] | None:
    """Read links between words of the text and of the target."""
    if value is None or value == "":
        return None
    try:
        links = tuple(tuple(map(int, link.split("-"))) for link in value.split())
    except (AttributeError, ValueError):
        _refuse("alignment", value, "0-0 1-2")
    if not all(len(link) == 2 and min(link) >= 0 for link in links):
        _refuse("alignment", value, "0-0 1-2")
    return cast(tuple[tuple[int, int], ...], links)


def _refuse(name: str, value: Any, such: str) -> NoReturn:
    raise ValueError(f"{name} is {str(value)[:40]!r}, not such as {such!r}")


# Formats --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Format:
    rows: Callable[[Path, Columns], Iterator[Row]]
    count: Callable[[Path], int]


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def _count_parquet(path: Path) -> int:
    from pyarrow import parquet

    return int(parquet.read_metadata(path).num_rows)


def _count_arrow(path: Path) -> int:
    import pyarrow

    with pyarrow.memory_map(str(path)) as source, _reader(source) as reader:
        return sum(batch.num_rows for batch in _record_batches(reader))


FORMATS = {
    ".txt": _Format(_text, _count_lines),
    ".tsv": _Format(_table({"delimiter": "\t", "quoting": csv.QUOTE_NONE}), _count_lines),
    ".csv": _Format(_table({}), _count_lines),
    ".jsonl": _Format(_json_lines, _count_lines),
    ".ndjson": _Format(_json_lines, _count_lines),
    ".parquet": _Format(_parquet, _count_parquet),
    ".arrow": _Format(_arrow, _count_arrow),
}
"""Formats by the endings of files."""
