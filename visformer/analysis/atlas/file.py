"""An atlas as one file: a zip of its tables, as anybody can make one of its folder; bounded, whatever it holds."""

import io
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from visformer.analysis.atlas.parts import KEY, about_of, require_version
from visformer.analysis.atlas.schemas import EFFECTS, TABLES, table_schema
from visformer.errors import N_, DataError
from visformer.system import limits
from visformer.trace.stacks import SHORT_NAMES

if TYPE_CHECKING:  # takes long
    import pyarrow

NAME = "atlas.zip"
_CHECKPOINTS = Path(__file__).resolve().parents[2] / "model" / "checkpoints"
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same file each time
_KINDS = ("encoder", "decoder", "encoder-decoder")

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

    Args:
        content: the file.
        name: what errors call it.

    Raises:
        DataError: it is no atlas of this version, it is damaged, or larger than the limits.
    """
    from pyarrow import ArrowException

    try:
        return _checked(_unpacked(content, name), name)
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, ArrowException, ValueError, OSError, RuntimeError, EOFError) as error:
        # RuntimeError: encrypted, or of an unknown compression
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
                with archive.open(entry) as file:
                    packed = file.read(limits.ATLAS_BYTES + 1)
                _limit(len(packed), limits.ATLAS_BYTES, entry.filename)
                found[table] = _table(table, packed)
    return found


def _limit(given: int, most: int, name: str) -> None:
    if given > most:
        raise DataError(
            N_("{name} is larger than {limit}: the operator can offer it as a folder."),
            name=name,
            limit=f"{most:,}",
        )


def _table(name: str, packed: bytes) -> "pyarrow.Table":
    """Read a table: its columns and sizes first, and texts only once their lengths are known."""
    import pyarrow as pa
    from pyarrow import compute, parquet

    wanted = table_schema(name)
    with parquet.ParquetFile(pa.BufferReader(packed)) as file:
        said = about_of(file.schema_arrow.metadata)
        require_version(f"{name}.parquet", said or {})
        if not file.schema_arrow.equals(wanted):
            raise ValueError("other columns")
        _limit(file.metadata.num_rows, limits.ATLAS_ROWS, f"{name}.parquet")
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        _limit(sum(group.total_byte_size for group in groups), limits.ATLAS_DECODED, f"{name}.parquet")
        metadata = {KEY: file.schema_arrow.metadata[KEY]}  # pandas would read its own
    texts = [field.name for field in wanted if not pa.types.is_primitive(field.type)]
    table = parquet.read_table(pa.BufferReader(packed), read_dictionary=texts)
    length = 0
    for column in texts:
        for chunk in table[column].chunks:
            sizes = compute.binary_length(chunk.dictionary).take(chunk.indices)
            length += compute.sum(sizes).as_py() or 0
    _limit(length, limits.ATLAS_DECODED, f"{name}.parquet")
    return table.cast(wanted).replace_schema_metadata(metadata)


def _checked(found: Tables, name: str) -> Tables:
    """Require what the pages count on: what it is of, heads that are there once, and numbers that are numbers.

    Raises:
        ValueError: it is not so.
    """
    for table in found.values():
        _require_values(table)
    about = about_of(found["heads"].schema.metadata) or {}
    model = about.get("model")
    if not isinstance(model, str) or not model.isprintable() or not 0 < len(model) <= limits.CHOICE_CHARACTERS:
        raise ValueError("no model")
    if about.get("kind") not in _KINDS:
        raise ValueError("no kind of model")
    keys = ("stack", "layer", "head")
    heads = [*zip(*(found["heads"][key].to_pylist() for key in keys), strict=True)]
    _limit(len(heads), limits.ATLAS_HEADS, name)
    places = {*heads}
    if not heads or len(places) < len(heads):
        raise ValueError("no heads, or one twice")
    if any(stack not in SHORT_NAMES.values() or not 0 <= layer < 10_000 or not 0 <= head < 10_000
           for stack, layer, head in heads):  # fmt: skip
        raise ValueError("no such heads")
    for table in found.values():
        if (
            keys[0] in table.column_names
            and not {*zip(*(table[key].to_pylist() for key in keys), strict=True)} <= places
        ):
            raise ValueError("of other heads")
    if min(found["heads"]["texts"].to_pylist()) < 1:
        raise ValueError("no texts")
    return found


def _require_values(table: "pyarrow.Table") -> None:
    """Require that only a statistic, a target and a second text can be missing, and that no number is infinite."""
    from pyarrow import types

    table.validate(full=True)  # texts are UTF-8
    for name, column in zip(table.column_names, table.columns, strict=True):
        if types.is_floating(column.type):
            if np.isinf(column.to_numpy()).any():
                raise ValueError("an infinite number")
        elif column.null_count and name not in ("target", "pair"):
            raise ValueError("a missing value")
