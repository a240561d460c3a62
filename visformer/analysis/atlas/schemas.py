"""The columns of an atlas's Parquet files, which docs/scale.md describes."""

from typing import TYPE_CHECKING

from visformer.analysis.atlas.measures import MEASURES

if TYPE_CHECKING:  # takes long
    import pyarrow

VERSION = 1
"""Goes up with every change of the columns or of what they mean."""

FIELDS = ("rows", "total", "texts", "means", "squares")
"""The columns that each statistic has in a part: rows, their total, texts with such rows, sums of means and squares."""

_PLACE = {"stack": "string", "layer": "int32", "head": "int32"}
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
_TABLES = {
    "heads": {**_PLACE, "texts": "int64", **_STATISTICS},
    "offsets": {**_PLACE, "offset": "int32", "weight": "float64", "cells": "int64"},
    "positions": {**_PLACE, "position": "int32", "entropy": "float64", "rows": "int64"},
    "examples": {**_PLACE, "rank": "int32", **_CELL},
    "broken": {"file": "string", "line": "int64", "reason": "string"},
}

TABLES = tuple(_TABLES)
"""The tables of every atlas."""

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
    many = [(name, pa.list_(pa.float64())) for name in _MANY]
    return pa.schema([*place, ("texts", pa.int64()), *sums, *many, ("examples", pa.list_(pa.struct(cell)))])


_MANY = ("offset_weight", "offset_cells", "position_entropy", "position_rows")
