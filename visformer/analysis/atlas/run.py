"""Building an atlas: shards of the data go through the model, each once; then all parts are merged in order.

What silencing each head does to one text is a part of its own, so that texts are added up like all others.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from visformer.analysis.atlas import parts
from visformer.analysis.atlas.data import Broken, Data, Record, Row
from visformer.analysis.atlas.parts import (
    PLACE,
    About,
    PartTask,
    Store,
    effect_schema,
    fingerprint,
    measure,
    read_part,
    table_schema,
    to_parquet,
)
from visformer.analysis.atlas.reducer import Reducer
from visformer.analysis.atlas.tables import Atlas, tables
from visformer.errors import N_, DataError, VisformerError
from visformer.system.arguments import require_whole
from visformer.system.version import VERSION

if TYPE_CHECKING:  # torch; pyarrow, which takes long; torch
    import pyarrow

    from visformer.adapters.base import TracedModel


SHARD = 1000
"""Rows of the data in a shard."""

MOST_EFFECTS = 200
"""Most sentences on which heads are silenced."""

Progress = Callable[[int, bool], object]
"""Called with a number of rows, and whether they were computed now, not in an earlier run."""

Silencing = Callable[[int, int], None]
"""Called with texts done and all texts."""

Engine = Callable[[Iterable[PartTask], About, bool, Progress], Iterator[tuple[str, bytes]]]
"""Runs a model over tasks, in any order: yields the name of each with the file of its part."""


def local(model: "TracedModel") -> Engine:
    """Run one task after another in this process."""

    def run(tasks: Iterable[PartTask], about: About, strict: bool, progress: Progress) -> Iterator[tuple[str, bytes]]:
        for task in tasks:
            yield task.name, part_of(model, task, about, strict=strict, tick=lambda: progress(1, True))

    return run


def part_of(
    model: "TracedModel", task: PartTask, about: About, *, strict: bool, tick: Callable[[], object] = lambda: None
) -> bytes:
    """Return the Parquet file of the part of a task; see :func:`measure` and :func:`silence`."""
    return silence(model, task, about) if task.silences else measure(model, task, about, strict=strict, tick=tick)


def build(
    model: "TracedModel",
    data: Data | str,
    out: str | Path,
    *,
    shard: int = SHARD,
    limit: int | None = None,
    strict: bool = False,
    effects: int = 0,
    engine: Engine | None = None,
    progress: Progress = lambda rows, computed: None,
    silencing: Silencing | None = None,
) -> Atlas:
    """Measure what every head does over a corpus. A run that was interrupted goes on where it was.

    Args:
        model: the model.
        data: the corpus, or its path.
        out: the folder of the atlas.
        shard: rows of the data in each shard; a shard is the unit that is computed again after an interruption.
        limit: only so many rows.
        strict: whether a broken row ends the run.
        effects: on how many texts each head is silenced, at most 200: the first rows of the data, but broken ones.
        engine: runs shards and texts; None: one after another in this process.
        progress: called with a number of rows, and whether they were computed now, not in an earlier run.
        silencing: called with texts done and all texts, while heads are silenced.

    Returns:
        The atlas, as it is in ``out``.

    Raises:
        DataError: the data cannot be read or none of its rows can be used, or ``out`` holds another atlas.
        VisformerError: the model cannot do this; with ``strict``, a row is broken.
    """
    data = Data(data) if isinstance(data, str) else data
    require_whole("shard", shard)
    require_whole("effects", effects, least=0)
    if limit is not None:
        require_whole("limit", limit)
    _require_fitting(model, data, effects)
    about = About(model.info.name, model.info.kind, fingerprint(model), data.source, shard, VERSION, parts.SCHEMA)
    store = Store(Path(out), about)
    first: list[Row] = []  # on which heads are silenced
    shards: list[str] = []
    texts: list[str] = []

    def missing() -> Iterator[PartTask]:
        for task in tasks_of(islice(data.rows(), limit), shard):
            first.extend(task.rows[: effects - len(first)])
            shards.append(task.name)
            if store.holds(task):
                progress(len(task.rows), False)
            else:
                yield task
        silent = [*tasks_of(first, 1, silences=True)]
        texts.extend(task.name for task in silent)
        yield from (task for task in silent if not store.holds(task))

    for name, part in (engine or local(model))(missing(), about, strict, progress):
        store.write(name, part)
        if silencing is not None and name in texts:
            silencing(sum((store.folder / each).exists() for each in texts), len(texts))
    merged, broken = _merged(store, shards, strict)
    for name, table in tables(merged, broken).items():
        store.write_table(name, table)
    if effects:
        store.write_table(parts.EFFECTS, effects_table(store.read(name) for name in texts))
    return Atlas.read(out)


def _require_fitting(model: "TracedModel", data: Data, effects: int) -> None:
    encoder = model.info.kind == "encoder"
    if effects and encoder:
        raise VisformerError(
            N_("{name} predicts no next token: effects of silenced heads need a model that does."), name=model.info.name
        )
    if effects > MOST_EFFECTS:
        raise VisformerError(N_("effects={given} is more than {most} texts."), given=effects, most=MOST_EFFECTS)
    if encoder and data.columns.target is not None:
        raise VisformerError(N_("{name} is an encoder: pass a second text as pair."), name=model.info.name)
    if not encoder and data.columns.pair is not None:
        raise VisformerError(N_("{name} takes no pair: only an encoder does."), name=model.info.name)


def tasks_of(rows: Iterable[Row], size: int, *, silences: bool = False) -> Iterator[PartTask]:
    """Yield the tasks of so many rows each."""
    rows = iter(rows)
    for index, chunk in enumerate(iter(lambda: list(islice(rows, size)), [])):
        yield PartTask(index, index * size, chunk, silences)


def _merged(store: Store, shards: Iterable[str], strict: bool) -> tuple[Reducer, list[Broken]]:
    """Merge all shards in order."""
    merged = Reducer()
    broken: list[Broken] = []
    for name in shards:
        part = read_part(store.read(name))
        merged.merge(part.sums)
        broken += part.broken
    if strict and broken:  # of an earlier run without it
        raise broken[0].error()
    if not merged.sums:
        source = store.about.data
        if broken:
            raise DataError(N_("No row of {source} can be used: {why}"), source=source, why=broken[0].error())
        raise DataError(N_("{source} holds no text."), source=source)
    return merged, broken


def silence(model: "TracedModel", task: PartTask, about: About) -> bytes:
    """Silence each head on the text of a task, and return the Parquet file of its part: one row a head.

    A text that the model cannot take, or that has no token to predict, has no rows.

    Raises:
        VisformerError: the model cannot do this at all.
    """
    import pyarrow as pa

    rows = [row for record in task.rows if isinstance(record, Record) for row in _rises(model, record)]
    table = pa.Table.from_pylist([{"number": task.first, **row} for row in rows], schema=effect_schema())
    return to_parquet(table, {**asdict(about), "digest": task.digest})


def _rises(model: "TracedModel", record: Record) -> list[dict[str, Any]]:
    from visformer.analysis.effects.head_effects import rises_by_head

    if model.info.kind == "decoder" and record.target is None and len(model.tokenize(record.text)) < 2:
        return []
    try:
        heads, rises, tokens = rises_by_head(
            model, [record.text if record.target is None else (record.text, record.target)]
        )
    except VisformerError as error:
        if type(error) is VisformerError:  # not about this text
            raise
        return []
    return [
        {**dict(zip(PLACE, head, strict=True)), "rise": rise, "tokens": int(tokens[0])}
        for head, rise in zip(heads, rises[0].tolist(), strict=True)
    ]


def effects_table(silenced: "Iterable[pyarrow.Table]") -> "pyarrow.Table":
    """Merge parts that :func:`silence` wrote, in any order.

    Returns:
        The columns of :func:`visformer.analysis.head_effects`.

    Raises:
        DataError: none of them has a text.
    """
    import pandas as pd
    import pyarrow as pa

    from visformer.analysis.effects.head_effects import tabulated

    found = pd.concat([part.to_pandas() for part in silenced]).sort_values("number", kind="stable")
    if not len(found):
        raise DataError(N_("Heads cannot be silenced on any of the first texts: ask for more with --effects."))
    heads = [*found[[*PLACE]].drop_duplicates().itertuples(index=False, name=None)]
    texts = found.drop_duplicates("number")
    rises = found["rise"].to_numpy().reshape(len(texts), len(heads))
    table = tabulated(heads, rises, texts["tokens"].to_numpy(np.float64))
    return pa.Table.from_pandas(table, schema=table_schema(parts.EFFECTS), preserve_index=False)
