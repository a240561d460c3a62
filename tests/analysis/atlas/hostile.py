"""Atlases that somebody made to do harm, each out of a valid one: they are refused, or every view of them is drawn."""

import io
import json
import random
import zipfile
from functools import partial

import pyarrow as pa
from pyarrow import parquet

from tests.analysis.atlas.test_file import changed, column, tables, zipped
from visformer.analysis.atlas.parts import EFFECTS, KEY, KEYS, PLACE, TABLES
from visformer.system import limits

NUMBERS = (float("nan"), float("inf"), -float("inf"), 1e307, -1e307, 1e9, -1e9, 5e-324, -1.0, None)
COUNTS = (-1, 0, 19, 2**31 - 1, 2**62, None)
MARKDOWN = "[a](https://e.example) ![](//e.example/x.png) $x^2$ :red[b] <b>c</b> `d`"
TEXTS = ("", "x" * 5000, "\0\n\t ", MARKDOWN, "\u202e", None)
ABOUT = (None, 0, -1, 10**400, True, 1.5, float("nan"), "", "x" * 10_000, "\n", [], {}, [[]])
CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def values_of(kind):
    """Return what a column of this type is filled with."""
    if pa.types.is_floating(kind):
        return NUMBERS
    if pa.types.is_integer(kind):
        return [value for value in COUNTS if value is None or value < 2 ** (kind.bit_width - 1)]
    return TEXTS


def fields(content):
    """Yield fields out of kind: those that name a row, and one of each type."""
    for name in (*TABLES, EFFECTS):
        schema = read(content, name).schema
        types = {field.type: field.name for field in reversed(schema) if field.name not in KEYS.get(name, ())}
        for field in (*KEYS.get(name, ()), *types.values()):
            kind = schema.field(field).type
            for value in values_of(kind):
                what = f"{name}.{field} {str(value)[:20]!r}"
                yield what, changed(content, name, partial(column, name=field, value=value))
            other = pa.string() if pa.types.is_primitive(kind) else pa.int64()
            cast = partial(retyped, name=field, kind=other)
            yield f"{name}.{field} is {other}", changed(content, name, cast)
            yield f"{name}.{field} is not there", changed(content, name, partial(pa.Table.drop_columns, columns=field))


def retyped(table, name, kind):
    """Return the table with a column of another type, without values."""
    return table.set_column(table.column_names.index(name), name, pa.nulls(len(table), kind))


def filled(content):
    """Yield atlases with one value in all columns of its type that name no row: most are taken."""
    for values in (NUMBERS, COUNTS, TEXTS):
        for value in values:
            wrong = content
            for name in (*TABLES, EFFECTS):
                wrong = changed(wrong, name, partial(fill, name=name, value=value))
            yield f"{str(value)[:20]!r} everywhere", wrong


def fill(table, name, value):
    """Return a table with a value in all columns that can have it."""
    for field in table.schema:
        optional = value is not None or pa.types.is_floating(field.type) or field.name in ("target", "pair")
        if field.name not in KEYS.get(name, ()) and optional and any(value is each for each in values_of(field.type)):
            table = column(table, field.name, value)
    return table


def rows(content):
    """Yield tables with rows that are twice there, or not at all."""
    changes = {
        "twice": lambda table: pa.concat_tables([table, table]),
        "the first row twice": lambda table: pa.concat_tables([table, table.slice(0, 1)]),
        "empty": lambda table: table.slice(0, 0),
        "one row": lambda table: table.slice(0, 1),
        "without the first row": lambda table: table.slice(1),
        "backwards": lambda table: table.take(pa.array(range(len(table) - 1, -1, -1), "int64")),
    }
    for name in (*TABLES, EFFECTS):
        for what, change in changes.items():
            yield f"{name} {what}", changed(content, name, change)
    for what, value in {"the same": 0, "far": 9_999}.items():
        for name in ("layer", "head"):
            yield f"heads.{name} {what}", changed(content, "heads", lambda t: column(t, name, value))  # noqa: B023


def abouts(content):
    """Yield what a file says of itself, out of kind."""
    said = json.loads(read(content, "heads").schema.metadata[KEY])
    for name in said:
        for value in ABOUT:
            yield f"about.{name} is {str(value)[:20]!r}", changed(content, "heads", lambda t: t, **{name: value})
    for depth in (500, 20_000):
        for deep in (f"{'[' * depth}{']' * depth}", '{"a":' * depth + "1" + "}" * depth):
            text = json.dumps(said)[:-1] + f', "more": {deep}}}'
            yield f"about is {depth} deep", changed(content, "heads", lambda t: t, more={KEY: text})
    for text in ("", "1", "[]", "{", "null", '{"schema": NaN}', "\ud800".encode("utf-8", "surrogatepass")):
        yield f"about is {text!r}", changed(content, "heads", lambda t: t, more={KEY: text})


def damaged(content):
    """Yield files that are cut or changed somewhere, in each compression of the zip and of its tables."""
    chance = random.Random(0)
    files = tables(content)
    for method in METHODS:
        whole = zipped(files, method)
        for share in (0.2, 0.5, 0.9, 0.999):
            yield f"zip of method {method} cut at {share}", whole[: int(len(whole) * share)]
        for at in chance.sample(range(40, len(whole) // 2), 8):
            yield f"zip of method {method} changed at {at}", whole[:at] + bytes(16) + whole[at + 16 :]
    for codec in CODECS:
        sink = io.BytesIO()
        parquet.write_table(read(content, "examples"), sink, compression=codec)
        table = sink.getvalue()
        for at in (*chance.sample(range(4, len(table) - 8), 12), len(table) - 8, len(table) - 5):
            wrong = table[:at] + bytes(each ^ 255 for each in table[at : at + 4]) + table[at + 4 :]
            yield f"{codec} changed at {at}", zipped({**files, "examples.parquet": wrong})
        for share in (0.2, 0.5, 0.9):
            yield f"{codec} cut at {share}", zipped({**files, "examples.parquet": table[: int(len(table) * share)]})
    for size in (0, 4, limits.ATLAS_FOOTER, 10**6, 2**31, 2**32 - 1):
        table = files["heads.parquet"]
        yield (
            f"a footer of {size}",
            zipped({**files, "heads.parquet": table[:-8] + size.to_bytes(4, "little") + b"PAR1"}),
        )
    yield "a lying footer", lying_footer(content)


def lying_footer(content, n=1_000_000):
    """Return a small file, a footer of which lists as many columns as Arrow takes: each is a byte, and most of a kB."""
    schema = b"\x15\x02\x19\x1c\x48\x01a\x15\x00\x00\x16\x00"
    footer = schema + b"\x19\x1c" + b"\x19\xfc" + varint(n) + bytes(n) + b"\x00"
    table = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    return zipped({**tables(content), "heads.parquet": table}, zipfile.ZIP_DEFLATED)


def varint(number):
    """Return a number as Thrift writes it, in groups of seven bits."""
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def many_offsets(content, n_heads=3_000, n=200_000):
    """Return a file with as many offsets as rows are allowed, each another one."""
    large = grown(content, n_heads)
    heads, schema = read(large, "heads"), read(large, "offsets").schema
    place = {name: heads[name].take(pa.array([i % n_heads for i in range(n)])) for name in PLACE}
    numbers = {"offset": pa.array(range(n), "int32"), "weight": pa.array([0.5] * n), "cells": pa.array([1] * n)}
    offsets = pa.table([{**place, **numbers}[name] for name in schema.names], schema)
    return zipped(tables(changed(large, "offsets", lambda _: offsets)), zipfile.ZIP_DEFLATED)


def grown(content, n_layers, n_heads=1):
    """Return a file of so many heads, each like the first one, of which only the statistics are told."""
    for name in KEYS.keys() - {"heads"}:
        content = changed(content, name, lambda table: table.slice(0, 0))
    heads = read(content, "heads").take(pa.array([0] * (n_layers * n_heads)))
    numbers = {
        "layer": [layer for layer in range(n_layers) for _ in range(n_heads)],
        "head": [*range(n_heads)] * n_layers,
    }
    for name, values in numbers.items():
        i = heads.column_names.index(name)
        heads = heads.set_column(i, heads.schema[i], pa.array(values, heads.schema[i].type))
    return changed(content, "heads", lambda _: heads)


def read(content, name):
    """Return a table of a file."""
    return parquet.read_table(io.BytesIO(tables(content)[f"{name}.parquet"]))


def hostile(content):
    """Yield (what is wrong, file) of all that are refused or drawn."""
    yield from fields(content)
    yield from filled(content)
    yield from rows(content)
    yield from abouts(content)
    yield from damaged(content)
    yield "many offsets", many_offsets(content)
