"""The Parquet files of an atlas: their columns, the part of one shard, and the folder that holds them.

A part has the sums of one shard, one row a head; docs/scale.md describes the columns. The metadata say which model,
data and version it is of. In the folder are shards/00000.parquet and so on, written whole or not at all, and the tables
beside them.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from visformer.analysis.atlas.data import Broken, Record, Row, digest
from visformer.analysis.atlas.measures import BINS, MEASURES
from visformer.analysis.atlas.reducer import FIELDS, Example, Reducer, Sums, Text
from visformer.errors import N_, DataError, VisformerError
from visformer.system.files import write_whole

if TYPE_CHECKING:  # takes long; torch; pyarrow, which takes long
    import pyarrow

    from visformer.adapters.base import TracedModel


SCHEMA = 2
"""The version of the files: goes up with every change of the columns or of what they mean."""

_PLACE = {"stack": "string", "layer": "int32", "head": "int32"}
PLACE = tuple(_PLACE)
"""The columns that name a head."""

_CELL = {
    "strength": "float64", "number": "int64", "query": "int32", "key": "int32", "weight": "float64",
    "query_token": "string", "key_token": "string", "file": "string", "line": "int64", "text": "string",
    "target": "string", "pair": "string",
}  # fmt: skip
_STATISTICS = {
    f"{measure.name}{ending}": kind
    for measure in MEASURES
    for ending, kind in (("", "float64"), ("_sd", "float64"), ("_rows", "int64"), ("_texts", "int64"))
}
COUNTS = tuple(f"bin_{i}" for i in range(BINS))
"""The columns of a histogram."""

_TABLES = {
    "heads": {**_PLACE, "texts": "int64", **_STATISTICS},
    "histograms": {**_PLACE, "statistic": "string", "mean": "float64", **dict.fromkeys(COUNTS, "int64")},
    "offsets": {**_PLACE, "offset": "int32", "weight": "float64", "cells": "int64"},
    "positions": {**_PLACE, "position": "int32", "entropy": "float64", "rows": "int64"},
    "examples": {**_PLACE, "rank": "int32", **_CELL},
    "broken": {"file": "string", "line": "int64", "reason": "string"},
}

TABLES = tuple(_TABLES)
"""The tables of every atlas."""

KEYS = {
    "heads": PLACE, "histograms": (*PLACE, "statistic"), "offsets": (*PLACE, "offset"),
    "positions": (*PLACE, "position"), "examples": (*PLACE, "rank"), "effects": PLACE,
}  # fmt: skip
"""What no two rows of a table have in common."""

EFFECTS = "effects"
"""The table of those whose heads were silenced."""

_TABLES[EFFECTS] = {
    "stack": "large_string", "layer": "int64", "head": "int64", "effect": "float64", "low": "float64",
    "high": "float64", "n": "int64",
}  # fmt: skip


def table_schema(name: str) -> "pyarrow.Schema":
    """Return the columns of a table."""
    import pyarrow as pa

    return pa.schema([(column, pa.type_for_alias(kind)) for column, kind in _TABLES[name].items()])


def part_schema() -> "pyarrow.Schema":
    """Return the columns of a part: one row a head."""
    import pyarrow as pa

    place, cell = ([(name, pa.type_for_alias(kind)) for name, kind in each.items()] for each in (_PLACE, _CELL))
    sums = [(f"{measure.name}_{field}", pa.float64()) for measure in MEASURES for field in FIELDS]
    bins = [(f"{measure.name}_bins", pa.list_(pa.int64())) for measure in MEASURES]
    many = [(name, pa.list_(pa.float64())) for name in _MANY]
    return pa.schema([*place, ("texts", pa.int64()), *sums, *bins, *many, ("examples", pa.list_(pa.struct(cell)))])


def effect_schema() -> "pyarrow.Schema":
    """Return the columns of a text on which heads were silenced: one row a head."""
    import pyarrow as pa

    numbers = {"number": "int64", **_PLACE, "rise": "float64", "tokens": "int64"}
    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in numbers.items()])


_MANY = ("offset_weight", "offset_cells", "position_entropy", "position_rows")


KEY = b"visformer_atlas"
"""The metadata's key in a Parquet file."""

_HELD = 64 * 10**6
"""Bytes of Traces that wait until those with as many tokens are summed together."""

_SAMPLED = 4096
"""Values of each weight that a model is recognised by."""

_PROBE = "The café's 2 rivers, 你好。"


@dataclass(frozen=True)
class About:
    """What an atlas is of.

    Args:
        model: its name.
        kind: "encoder", "decoder" or "encoder-decoder".
        fingerprint: of its weights and its tokenizer, see :func:`fingerprint`.
        data: where the data were read.
        shard: rows of the data in each shard.
        version: of visformer.
        schema: of the files.
    """

    model: str
    kind: str
    fingerprint: str
    data: str
    shard: int
    version: str
    schema: int


@dataclass(frozen=True)
class PartTask:
    """One shard of the data, or a text on which heads are silenced.

    Args:
        index: of the shard or text, from 0.
        first: number of its first row in the data, from 0.
        rows: its rows.
        silences: whether heads are silenced.
    """

    index: int
    first: int
    rows: Sequence[Row]
    silences: bool = False

    @property
    def name(self) -> str:
        """The name of its file in the folder of the atlas."""
        return f"{'effects' if self.silences else 'shards'}/{self.index:05}.parquet"

    @property
    def digest(self) -> str:
        """What its rows are recognised by."""
        return digest(self.rows)


@dataclass(frozen=True)
class Part:
    """What was found in one shard."""

    about: dict[str, Any]  # of About
    digest: str
    n_rows: int
    broken: tuple[Broken, ...]
    sums: Reducer


def fingerprint(model: "TracedModel") -> str:
    """Return the SHA-256 of the weights' names, types and up to 4,096 values each, and of how a text is tokenized."""
    told = hashlib.sha256(json.dumps(model.tokenize(_PROBE)).encode())
    for name, weight in sorted(model.module.state_dict().items()):
        values = weight.detach().reshape(-1)
        step = -(-len(values) // _SAMPLED) or 1
        told.update(f"{name} {weight.dtype} {tuple(weight.shape)} {values[::step].tolist()}".encode())
    return told.hexdigest()


def measure(
    model: "TracedModel",
    task: PartTask,
    about: About,
    *,
    strict: bool = False,
    tick: Callable[[], object] = lambda: None,
) -> bytes:
    """Run the model over one shard, and return the Parquet file of its part; bit for bit the same each time.

    Args:
        model: the model.
        task: the shard.
        about: what the atlas is of.
        strict: whether a broken row ends it.
        tick: called once for each row.

    Raises:
        VisformerError: the model cannot do this at all.
        DataError: with ``strict``, a row is broken.
    """
    broken = [row for row in task.rows if isinstance(row, Broken)]
    numbered = [(task.first + i, row) for i, row in enumerate(task.rows) if isinstance(row, Record)]
    sums = Reducer()
    held: list[Text] = []
    nbytes = 0
    for text in _traced(model, numbered, broken, strict=strict):
        held.append(text)
        nbytes += text[2].nbytes
        if nbytes > _HELD:
            sums.add(held)
            held, nbytes = [], 0
        tick()
    sums.add(held)
    if strict and broken:
        raise broken[0].error()
    for _ in broken:
        tick()
    in_order = tuple(sorted(broken, key=lambda row: (row.file, row.line)))
    return _written(Part(asdict(about), task.digest, len(task.rows), in_order, sums))


def _traced(
    model: "TracedModel", numbered: Sequence[tuple[int, Record]], broken: list[Broken], *, strict: bool
) -> Iterator[Text]:
    """Yield each text with its Trace; those that the model cannot take are appended to ``broken``."""
    encoder = model.info.kind == "encoder"
    while numbered and not (strict and broken):
        records = [record for _, record in numbered]
        targets = None if encoder or all(one.target is None for one in records) else [one.target for one in records]
        pairs = [one.pair for one in records] if encoder and any(one.pair for one in records) else None
        traces = model.trace_many([one.text for one in records], targets, pairs=pairs)
        done = 0
        try:
            for trace in traces:
                yield (*numbered[done], trace)
                done += 1
        except VisformerError as error:
            if type(error) is VisformerError:  # not about this text
                raise
            broken.append(Broken(records[done].file, records[done].line, str(error.params.get("reason", error))))
            done += 1
        numbered = numbered[done:]


# The file -------------------------------------------------------------------------------------------------------------


def _written(part: Part) -> bytes:
    import pyarrow as pa

    rows = [row for sums in part.sums.sums.values() for row in _rows(sums)]
    table = pa.Table.from_pylist(rows, schema=part_schema())
    broken = [[row.file, row.line, row.reason] for row in part.broken]
    said = {**part.about, "digest": part.digest, "rows": part.n_rows, "broken": broken}
    return to_parquet(table, said)


def to_parquet(table: "pyarrow.Table", about: dict[str, Any]) -> bytes:
    """Return a Parquet file with what it is of in its metadata."""
    import pyarrow as pa
    from pyarrow import parquet

    metadata = {**(table.schema.metadata or {}), KEY: json.dumps(about, ensure_ascii=False, sort_keys=True)}
    sink = pa.BufferOutputStream()
    parquet.write_table(table.replace_schema_metadata(metadata), sink, compression="zstd")
    return bytes(sink.getvalue())


def _rows(sums: Sums) -> Iterable[dict[str, Any]]:
    for layer, head in np.ndindex(len(sums.layers), sums.n_heads):
        row = {"stack": sums.stack, "layer": sums.layers[layer], "head": head, "texts": sums.texts}
        for name, fields in zip(sums.names, sums.measures[:, :, layer, head].tolist(), strict=True):
            row |= {f"{name}_{field}": value for field, value in zip(FIELDS, fields, strict=True)}
        row |= {f"{name}_bins": bins for name, bins in zip(sums.names, sums.bins[:, layer, head].tolist(), strict=True)}
        row["offset_weight"], row["offset_cells"] = sums.offsets[:, layer, head].tolist()
        row["position_entropy"], row["position_rows"] = sums.positions[:, layer, head].tolist()
        row["examples"] = [plain(example) for example in sums.examples[layer * sums.n_heads + head]]
        yield row


def plain(example: Example) -> dict[str, Any]:
    """Return an example as a row of a table."""
    record = {name: getattr(example.record, name) for name in ("file", "line", "text", "target", "pair")}
    return {**{name: value for name, value in example._asdict().items() if name != "record"}, **record}


def about_of(metadata: dict[bytes, bytes] | None) -> dict[str, Any] | None:
    """Return what a Parquet file says that it is of; None: it is not of an atlas."""
    try:
        told = json.loads((metadata or {})[KEY])
    except (KeyError, ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def require_version(name: str, said: dict[str, Any]) -> None:
    """Require a file of this schema.

    Args:
        name: what errors call it.
        said: what it says that it is of.

    Raises:
        DataError: it is of another schema.
    """
    if said.get("schema") != SCHEMA:
        raise DataError(
            N_("{table} is of the schema {theirs}, this is {ours}: make the atlas again with this version."),
            table=name,
            theirs=str(said.get("schema"))[:20],
            ours=SCHEMA,
        )


def read_part(table: "pyarrow.Table") -> Part:
    """Read what :func:`measure` wrote."""
    said = about_of(table.schema.metadata)
    assert said is not None
    sums = Reducer()
    rows = table.to_pylist()
    for stack in dict.fromkeys(row["stack"] for row in rows):
        sums.sums[stack] = _sums(stack, [row for row in rows if row["stack"] == stack])
    broken = tuple(Broken(*row) for row in said.pop("broken"))
    return Part(said, said.pop("digest"), said.pop("rows"), broken, sums)


def _sums(stack: str, rows: Sequence[dict[str, Any]]) -> Sums:
    layers = tuple(dict.fromkeys(row["layer"] for row in rows))
    sums = Sums(stack, layers, len(rows) // len(layers), rows[0]["texts"])
    for i, row in enumerate(rows):
        layer, head = layers.index(row["layer"]), row["head"]
        sums.measures[:, :, layer, head] = [[row[f"{name}_{field}"] for field in FIELDS] for name in sums.names]
        sums.bins[:, layer, head] = [row[f"{name}_bins"] for name in sums.names]
        sums.offsets[:, layer, head] = row["offset_weight"], row["offset_cells"]
        sums.positions[:, layer, head] = row["position_entropy"], row["position_rows"]
        sums.examples.extend(i, [_example(cell) for cell in row["examples"]])
    return sums


def _example(cell: dict[str, Any]) -> Example:
    record = Record(*(cell.pop(name) for name in ("file", "line", "text", "target", "pair")))
    return Example(**cell, record=record)


_WHAT = {
    "schema": N_("of the schema {theirs}, this is {ours}"),
    "fingerprint": N_("of another model ({model})"),
    "shard": N_("of {theirs} rows a shard, this would have {ours}"),
}
"""What tells two atlases apart: nothing is merged or overwritten where it differs."""


class Store:
    """Shards and tables in a folder, of one model and one corpus.

    Args:
        folder: is made when the first shard is written.
        about: what the atlas is of.

    Raises:
        DataError: the folder holds another atlas.
    """

    def __init__(self, folder: Path, about: About) -> None:
        self.folder, self.about = folder, about
        for path in (*sorted(folder.glob("*.parquet")), *sorted((folder / "shards").glob("*.parquet"))[:1]):
            self._require_ours(path, about_of(_schema(path).metadata))

    def holds(self, task: PartTask) -> bool:
        """Whether the part of a task is there already.

        Raises:
            DataError: it is of another model, another version or other data.
        """
        path = self.folder / task.name
        if not path.exists():
            return False
        said = about_of(_schema(path).metadata)
        self._require_ours(path, said)
        if said is None or said.get("digest") != task.digest:
            first, last = task.first + 1, task.first + len(task.rows)
            raise _other(path, DataError(N_("of other data than rows {first} to {last}"), first=first, last=last))
        return True

    def write(self, name: str, content: bytes) -> None:
        """Write a part."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)

    def read(self, name: str) -> "pyarrow.Table":
        """Read a part.

        Raises:
            DataError: it is damaged.
        """
        return read_table(self.folder / name)

    def write_table(self, name: str, table: "pyarrow.Table") -> None:
        """Write a table of the whole corpus."""
        write_whole(self.folder / f"{name}.parquet", to_parquet(table, asdict(self.about)))

    def _require_ours(self, path: Path, said: dict[str, Any] | None) -> None:
        if said is None:
            raise _other(path, DataError(N_("no part of an atlas")))
        ours = asdict(self.about)
        for name, what in _WHAT.items():
            if said.get(name) != ours[name]:
                values = {"theirs": said.get(name), "ours": ours[name], "model": said.get("model")}
                raise _other(path, DataError(what, **values))


def _other(path: Path, what: DataError) -> DataError:
    return DataError(
        N_("{path} is {what}: choose another folder with --out, or delete this one. Nothing was overwritten."),
        path=path,
        what=what,
    )


def _schema(path: Path) -> "pyarrow.Schema":
    from pyarrow import ArrowException, parquet

    try:
        return parquet.read_schema(path)
    except ArrowException as error:
        raise _damaged(path, error) from error


def read_table(path: Path) -> "pyarrow.Table":
    """Read a Parquet file of an atlas.

    Raises:
        DataError: it is damaged.
    """
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(path)
    except ArrowException as error:
        raise _damaged(path, error) from error
    if (said := about_of(table.schema.metadata)) is None:
        raise DataError(N_("{path} is no part of an atlas."), path=path)
    require_version(str(path), said)
    return table


def _damaged(path: Path, error: Exception) -> DataError:
    reason = str(error).split("\n")[0]
    return DataError(N_("{path} is damaged ({reason}): delete it, and repeat the command."), path=path, reason=reason)
