"""The columns of an atlas's Parquet files, which docs/scale.md describes."""

from typing import TYPE_CHECKING

from visformer.analysis.atlas.measures import BINS, MEASURES

if TYPE_CHECKING:  # takes long
    import pyarrow

VERSION = 2
"""Goes up with every change of the columns or of what they mean."""

FIELDS = ("rows", "total", "texts", "means", "squares", "values")
"""The sums that each statistic has in a part: rows, their total, texts with such rows; of these texts the means, their
squares, and the values that are counted in bins: the means, of the entropy as a share of the largest possible."""

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
