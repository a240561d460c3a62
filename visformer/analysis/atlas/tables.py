"""The tables of an atlas: what is read in the end, with pandas, Polars or DuckDB."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from visformer.analysis.atlas.archive import NAME, bundled_file, bundled_names, unpack
from visformer.analysis.atlas.data import Broken
from visformer.analysis.atlas.measures import MEASURES
from visformer.analysis.atlas.parts import COUNTS, EFFECTS, TABLES, about_of, plain, read_table, table_schema
from visformer.analysis.atlas.reducer import FIELDS, OFFSETS, POSITIONS, Reducer, Sums
from visformer.errors import N_, DataError

if TYPE_CHECKING:  # pandas and pyarrow, which take long
    import pandas as pd
    import pyarrow


@dataclass(frozen=True, eq=False)
class Atlas:
    """What every head of a model does over a corpus. Layers and heads count from 0.

    Attributes:
        about: what it is of: model, kind, fingerprint, data, shard, version, schema.
        heads: one row for each stack ("encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"), layer and head:
            texts (number of them), and for each statistic of :data:`visformer.analysis.atlas.MEASURES` its mean over
            rows (``entropy``), the standard deviation of the texts' means (``entropy_sd``), the number of rows
            (``entropy_rows``) and of texts with such rows (``entropy_texts``). NaN where there is no such row.
        histograms: stack, layer, head, statistic, mean (of the texts' values, each counted once), and in bin_0 to
            bin_19 how many texts have a value in that bin, see :func:`visformer.analysis.atlas.edges`. The value of a
            text is its mean over rows; of the entropy it is the share of the largest that its rows can have. Only where
            there is such a text.
        offsets: stack, layer, head, offset (of the key from the row; -16 and 16 with all beyond), weight (mean a cell),
            cells. Self-attention only.
        positions: stack, layer, head, position (of the row, from 0; 63 with all later ones), entropy (mean), rows.
        examples: stack, layer, head, rank (from 1), strength (weight - 1 / number of keys), weight, query and key
            (indices of tokens), query_token, key_token, number (of the row of the data, from 0), file, line, text,
            target, pair. At most 20 texts of a head.
        broken: file, line, reason of each row that was skipped.
        effects: as from :func:`visformer.analysis.head_effects`, on the first texts; None: not asked for.
    """

    about: Mapping[str, Any]
    heads: "pd.DataFrame"
    histograms: "pd.DataFrame"
    offsets: "pd.DataFrame"
    positions: "pd.DataFrame"
    examples: "pd.DataFrame"
    broken: "pd.DataFrame"
    effects: "pd.DataFrame | None" = None

    @classmethod
    def read(cls, folder: str | Path) -> "Atlas":
        """Read the tables of an atlas.

        Args:
            folder: what ``visformer atlas --out`` wrote, or a zip of its tables.

        Returns:
            The tables as DataFrames.

        Raises:
            DataError: there is no atlas, it is unfinished or of another version, or a file is damaged.
        """
        folder = Path(folder)
        if folder.is_file():
            return cls.unpack(folder.read_bytes(), folder.name)
        paths = {name: folder / f"{name}.parquet" for name in (*TABLES, EFFECTS)}
        read = {name: read_table(path) for name, path in paths.items() if path.exists()}  # of another schema: says so
        absent = not read.keys() >= {*TABLES}
        if absent and (folder / "shards").is_dir():
            raise DataError(N_("The atlas in {folder} is unfinished: repeat the command that began it."), folder=folder)
        if absent:
            raise DataError(N_("There is no atlas in {folder}: visformer atlas makes one."), folder=folder)
        return cls._of(read)

    @classmethod
    def unpack(cls, content: bytes, name: str = NAME) -> "Atlas":
        """Read a zip of the tables, which anybody may have made.

        Args:
            content: the file.
            name: what errors call it.

        Raises:
            DataError: it is no atlas of this version, it is damaged, or larger than ``visformer doctor --limits`` says.
        """
        return cls._of(unpack(content, name))

    @classmethod
    def bundled(cls, name: str) -> "Atlas":
        """Read a bundled atlas, over 2,000 sentences of ours.

        Args:
            name: of a bundled model, or of a moment of its training, such as "mini-gpt@6".

        Raises:
            DataError: there is none of it.
        """
        if name not in bundled_names():
            raise DataError(N_("No atlas of {name} is bundled: {names}."), name=name, names=", ".join(bundled_names()))
        return cls.read(bundled_file(name))

    @classmethod
    def _of(cls, read: "dict[str, pyarrow.Table]") -> "Atlas":
        about = about_of(read["heads"].schema.metadata) or {}
        return cls(about, **{name: table.to_pandas() for name, table in read.items()})

    @property
    def nbytes(self) -> int:
        """Bytes of its tables in memory."""
        tables = (getattr(self, name) for name in (*TABLES, EFFECTS))
        return int(sum(table.memory_usage(deep=True).sum() for table in tables if table is not None))

    def __repr__(self) -> str:
        texts = int(self.heads["texts"].max())
        return f"Atlas({self.about['model']}: {len(self.heads)} heads, {texts:,} texts, {len(self.broken):,} skipped)"


def tables(merged: Reducer, broken: Sequence[Broken]) -> dict[str, "pyarrow.Table"]:
    """Make the tables of an atlas out of the sums of all its texts."""
    import pyarrow as pa

    every = {
        "heads": _heads,
        "histograms": _histograms,
        "offsets": _offsets,
        "positions": _positions,
        "examples": _examples,
    }
    found = {name: [row for sums in merged.sums.values() for row in rows(sums)] for name, rows in every.items()}
    found["broken"] = [asdict(row) for row in broken]
    return {name: pa.Table.from_pylist(rows, schema=table_schema(name)) for name, rows in found.items()}


def _places(sums: Sums) -> Iterator[tuple[dict[str, Any], tuple[int, int]]]:
    for i, head in np.ndindex(len(sums.layers), sums.n_heads):
        yield {"stack": sums.stack, "layer": sums.layers[i], "head": head}, (i, head)


def _heads(sums: Sums) -> Iterator[dict[str, Any]]:
    with np.errstate(invalid="ignore"):
        rows, total, texts, means, squares, _ = np.moveaxis(sums.measures, 1, 0)  # each (measure, layer, head)
        mean = total / rows
        variance = (squares - means * means / np.maximum(texts, 1)) / np.where(texts > 1, texts - 1, np.nan)
        spread = np.sqrt(np.maximum(variance, 0.0))
    for place, at in _places(sums):
        row = {**place, "texts": sums.texts}
        for measure in MEASURES:  # those of the other kind of attention
            row |= {measure.name: np.nan, f"{measure.name}_sd": np.nan}
            row |= {f"{measure.name}_rows": 0, f"{measure.name}_texts": 0}
        for i, name in enumerate(sums.names):
            row[name] = float(mean[i, *at])
            row[f"{name}_sd"] = float(spread[i, *at])
            row[f"{name}_rows"] = int(rows[i, *at])
            row[f"{name}_texts"] = int(texts[i, *at])
        yield row


def _histograms(sums: Sums) -> Iterator[dict[str, Any]]:
    texts, values = (sums.measures[:, FIELDS.index(field)] for field in ("texts", "values"))
    for i, name in enumerate(sums.names):  # like beside like, which takes less room
        for place, at in _places(sums):
            if texts[i, *at]:
                counts = zip(COUNTS, sums.bins[i, *at].tolist(), strict=True)
                yield {**place, "statistic": name, "mean": float(values[i, *at] / texts[i, *at]), **dict(counts)}


def _offsets(sums: Sums) -> Iterator[dict[str, Any]]:
    for place, at in _places(sums):
        for offset, (weight, cells) in enumerate(sums.offsets[:, *at].T.tolist(), start=-OFFSETS):
            if cells:
                yield {**place, "offset": offset, "weight": weight / cells, "cells": int(cells)}


def _positions(sums: Sums) -> Iterator[dict[str, Any]]:
    for place, at in _places(sums):
        for position in range(POSITIONS):
            entropy, rows = sums.positions[:, *at, position]
            if rows:
                yield {**place, "position": position, "entropy": float(entropy / rows), "rows": int(rows)}


def _examples(sums: Sums) -> Iterator[dict[str, Any]]:
    for place, (i, head) in _places(sums):
        for rank, example in enumerate(sums.examples[i * sums.n_heads + head], start=1):
            yield {**place, "rank": rank, **plain(example)}
