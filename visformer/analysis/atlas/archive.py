"""An atlas as one file: a zip of its tables, as anybody can make one of its folder; bounded, whatever it holds."""

import io
import zipfile
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from visformer.analysis.atlas.measures import MEASURES
from visformer.analysis.atlas.parts import (
    EFFECTS,
    KEY,
    KEYS,
    PLACE,
    TABLES,
    About,
    about_of,
    require_version,
    table_schema,
)
from visformer.analysis.atlas.reducer import EXAMPLES, OFFSETS, POSITIONS
from visformer.errors import N_, DataError
from visformer.system import limits
from visformer.trace.stacks import SHORT_NAMES

if TYPE_CHECKING:  # takes long
    import pyarrow


NAME = "atlas.zip"
_CHECKPOINTS = Path(__file__).resolve().parents[2] / "model" / "checkpoints"
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same file each time
_KINDS = ("encoder", "decoder", "encoder-decoder")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others cannot be unpacked piece by piece
_END = 8  # bytes at the end of a Parquet file: how many there are of what it says of itself, and "PAR1"
_COUNTED = 10**15  # whole numbers that are exact as floating-point ones, too
_AMONG: dict[str, Collection[int | str]] = {
    "offset": range(-OFFSETS, OFFSETS + 1),
    "position": range(POSITIONS),
    "rank": range(1, EXAMPLES + 1),
    "statistic": {measure.name for measure in MEASURES},
    "stack": {*SHORT_NAMES.values()},
    "layer": range(10_000),
    "head": range(10_000),
}
"""What the columns that name a row can hold."""

Tables = dict[str, "pyarrow.Table"]


def pack(folder: str | Path) -> bytes:
    """Return the tables of an atlas as one file; the shards are left out."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:  # the tables are compressed
        for name in (*TABLES, EFFECTS):
            path = Path(folder) / f"{name}.parquet"
            if path.exists():
                archive.writestr(zipfile.ZipInfo(path.name, _WHEN), path.read_bytes())
    return content.getvalue()


def bundled_file(name: str) -> Path:
    """Return the path of the bundled atlas of a model, or of a moment of its training; there need be none."""
    model, _, moment = name.partition("@")
    return _CHECKPOINTS / model / (f"atlas-{moment}.zip" if moment else NAME)


def bundled_names() -> tuple[str, ...]:
    """Return what there are bundled atlases of, such as "en-zh" and "mini-gpt@6"."""
    files = [(path.parent.name, path.stem.partition("-")[2]) for path in sorted(_CHECKPOINTS.glob("*/atlas*.zip"))]
    return tuple(f"{model}@{moment}" if moment else model for model, moment in sorted(files))


def unpack(content: bytes, name: str) -> Tables:
    """Read an atlas that anybody may have made: no table is decoded before its size and its columns are checked.

    A table that lies about its size can still take memory before it is refused: a server reads those of visitors in a
    process whose memory is limited, see :func:`visformer.app.serving.workers.confined`.

    Args:
        content: the file.
        name: what errors call it.

    Raises:
        DataError: it is no atlas of this version, it is damaged, or larger than the limits.
    """
    try:
        return _checked(_unpacked(content, name), name)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # of the zip, of any compression, of Parquet, of JSON: there is no list of them
        raise DataError(N_("{name} is no atlas, or damaged: visformer atlas --zip writes one."), name=name) from error


def _unpacked(content: bytes, name: str) -> Tables:
    found: Tables = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {Path(each.filename).name: each for each in archive.infolist() if "shards" not in each.filename}
        for table in (*TABLES, EFFECTS):
            entry = entries.get(f"{table}.parquet")
            if entry is None and table != EFFECTS:
                raise DataError(
                    N_("{name} has no {table}: visformer atlas --zip writes a file with all tables."),
                    name=name,
                    table=f"{table}.parquet",
                )
            if entry is not None:
                if entry.compress_type not in _METHODS:
                    raise ValueError("of another compression")
                with archive.open(entry) as file:
                    packed = file.read(limits.ATLAS_BYTES + 1)
                _limit(len(packed), limits.ATLAS_BYTES, entry.filename)
                found[table] = _table(table, packed, sum(each.nbytes for each in found.values()))
    return found


def _limit(given: int, most: int, name: str) -> None:
    if given > most:
        raise DataError(
            N_("{name} is larger than {limit}: the operator can offer it as a folder."),
            name=name,
            limit=f"{most:,}",
        )


def _table(name: str, packed: bytes, before: int) -> "pyarrow.Table":
    """Read a table: its columns and sizes first, and texts only once these are known; ``before``: bytes of others."""
    import pyarrow as pa
    from pyarrow import compute, parquet

    called = f"{name}.parquet"
    _limit(int.from_bytes(packed[-_END : -_END // 2], "little"), limits.ATLAS_FOOTER, called)
    wanted = table_schema(name)
    texts = [field.name for field in wanted if not pa.types.is_primitive(field.type)]
    sizes = dict.fromkeys(("thrift_string_size_limit", "thrift_container_size_limit"), limits.ATLAS_FOOTER)
    with parquet.ParquetFile(pa.BufferReader(packed), **sizes) as file:
        said = about_of(file.schema_arrow.metadata)
        require_version(called, said or {})
        metadata = {KEY: file.schema_arrow.metadata[KEY]}  # pandas would read its own
        if not file.schema_arrow.equals(wanted):
            raise ValueError("other columns")
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        rows = [group.num_rows for group in groups]
        if min(rows, default=0) < 0 or sum(rows) != file.metadata.num_rows:
            raise ValueError("other rows than it says")
        _limit(sum(rows), limits.ATLAS_ROWS, called)
        width = sum(field.type.bit_width // 8 for field in wanted if field.name not in texts)
        said_size = sum(max(0, group.total_byte_size) for group in groups)
        _limit(before + max(said_size, sum(rows) * width), limits.ATLAS_DECODED, called)
        known = file.metadata
    with parquet.ParquetFile(pa.BufferReader(packed), metadata=known, read_dictionary=texts) as file:
        table = file.read(use_threads=False)
    size = before + sum(rows) * width
    for column in texts:
        for chunk in table[column].chunks:
            lengths = compute.binary_length(chunk.dictionary).take(chunk.indices)
            size += compute.sum(lengths).as_py() or 0
    _limit(size, limits.ATLAS_DECODED, called)
    return table.cast(wanted).replace_schema_metadata(metadata)


def _checked(found: Tables, name: str) -> Tables:
    """Require what the pages count on: what it is of, heads that are there once, and numbers that are numbers."""
    for each, table in found.items():
        _require_values(table)
        keys = KEYS.get(each, ())
        if keys and _rows(table, keys).num_rows < table.num_rows:
            raise ValueError("a row twice")
    about = about_of(found["heads"].schema.metadata) or {}
    if {name: type(value) for name, value in about.items()} != {field.name: field.type for field in fields(About)}:
        raise ValueError("of nothing known")
    if not about["model"].isprintable() or not 0 < len(about["model"]) <= limits.CHOICE_CHARACTERS:
        raise ValueError("no model")
    if about["kind"] not in _KINDS:
        raise ValueError("no kind of model")
    heads = found["heads"]
    _limit(heads.num_rows, limits.ATLAS_HEADS, name)
    _require_heads(heads)
    places = {*map(tuple, map(dict.values, heads.select(PLACE).to_pylist()))}
    for each in found.keys() & KEYS.keys():
        if not {*map(tuple, map(dict.values, _rows(found[each], PLACE).to_pylist()))} <= places:
            raise ValueError("of other heads")
    if min(heads["texts"].to_pylist()) < 1:
        raise ValueError("no texts")
    if all(np.isnan(heads[measure.name].to_numpy()).all() for measure in MEASURES):
        raise ValueError("no numbers")
    return found


def _rows(table: "pyarrow.Table", columns: tuple[str, ...]) -> "pyarrow.Table":
    """Return the different rows of some columns."""
    return table.select(columns).group_by([*columns], use_threads=False).aggregate([])


def _require_heads(heads: "pyarrow.Table") -> None:
    """Require that in each attention the heads of all layers are numbered from 0 to the same number: a map is full."""
    for stack in heads["stack"].unique().to_pylist():
        rows = [(row["layer"], row["head"]) for row in heads.select(PLACE).to_pylist() if row["stack"] == stack]
        layers, numbers = (len({*each}) for each in zip(*rows, strict=True))
        if len(rows) != layers * numbers or max(head for _, head in rows) != numbers - 1:
            raise ValueError("heads that are missing")


def _require_values(table: "pyarrow.Table") -> None:
    """Require that only a statistic, a target and a second text can be missing, and that no number is out of kind."""
    from pyarrow import types

    table.validate(full=True)  # texts are UTF-8
    for name, column in zip(table.column_names, table.columns, strict=True):
        if types.is_floating(column.type):
            if (abs(column.to_numpy()) > limits.ATLAS_NUMBER).any():
                raise ValueError("a number too large")
        elif column.null_count and name not in ("target", "pair"):
            raise ValueError("a missing value")
        elif name in _AMONG:
            if not all(value in _AMONG[name] for value in column.unique().to_pylist()):
                raise ValueError("no such row")
        elif types.is_integer(column.type) and not all(0 <= value <= _COUNTED for value in column.unique().to_pylist()):
            raise ValueError("no such count")
