"""Building an atlas: shards of the data go through the model, each once; then all parts are merged in order."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from visformer.analysis.atlas import schemas
from visformer.analysis.atlas.data import Data
from visformer.analysis.atlas.parts import About, Task, fingerprint, measure
from visformer.analysis.atlas.records import Broken, Record, Row, digest
from visformer.analysis.atlas.reducer import Reducer
from visformer.analysis.atlas.store import Store
from visformer.analysis.atlas.tables import Atlas, tables
from visformer.errors import N_, DataError, VisformerError
from visformer.system.version import VERSION

if TYPE_CHECKING:  # torch
    from visformer.adapters.base import TracedModel

SHARD = 1000
"""Rows of the data in a shard."""

EFFECTS = 200
"""Most sentences on which heads are silenced."""

Progress = Callable[[int, bool], object]
"""Called with a number of rows, and whether they were computed now, not in an earlier run."""

Silencing = Callable[[int, int], None]
"""Called with passes done and all passes."""

Engine = Callable[[Iterable[Task], About, bool, Progress], Iterator[tuple[int, bytes]]]
"""Runs a model over shards, in any order: yields the index of each with the file of its part."""


def local(model: "TracedModel") -> Engine:
    """Run one shard after another in this process."""

    def run(tasks: Iterable[Task], about: About, strict: bool, progress: Progress) -> Iterator[tuple[int, bytes]]:
        for task in tasks:
            yield task.index, measure(model, task, about, strict=strict, tick=lambda: progress(1, True))

    return run


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
        effects: on how many texts each head is silenced, at most 200: the first ones of the data, but broken ones.
        engine: runs the shards; None: one after another in this process.
        progress: called with a number of rows, and whether they were computed now, not in an earlier run.
        silencing: called with passes done and all passes, while heads are silenced.

    Returns:
        The atlas, as it is in ``out``.

    Raises:
        DataError: the data cannot be read or none of its rows can be used, or ``out`` holds another atlas.
        VisformerError: the model cannot do this; with ``strict``, a row is broken.
    """
    data = Data(data) if isinstance(data, str) else data
    _require_fitting(model, data, effects)
    about = About(model.info.name, model.info.kind, fingerprint(model), data.source, shard, VERSION, schemas.VERSION)
    store = Store(Path(out), about)
    first: list[Record] = []  # for effects
    done = 0

    def missing() -> Iterator[Task]:
        nonlocal done
        for task in tasks_of(data, limit, shard):
            first.extend(row for row in task.rows[: effects and None] if isinstance(row, Record) and effects)
            del first[effects:]
            if store.holds(task):
                progress(len(task.rows), False)
            else:
                yield task
            done = task.index + 1

    for index, part in (engine or local(model))(missing(), about, strict, progress):
        store.write(index, part)
    merged, broken = _merged(store, done, strict)
    for name, table in tables(merged, broken).items():
        store.write_table(name, table)
    if effects:
        _effects(store, model, first, broken, silencing)
    return Atlas.read(out)


def _require_fitting(model: "TracedModel", data: Data, effects: int) -> None:
    encoder = model.info.kind == "encoder"
    if effects and encoder:
        raise VisformerError(
            N_("{name} predicts no next token: effects of silenced heads need a model that does."), name=model.info.name
        )
    if effects > EFFECTS:
        raise VisformerError(N_("effects={given} is more than {most} texts."), given=effects, most=EFFECTS)
    if encoder and data.columns.target is not None:
        raise VisformerError(N_("{name} is an encoder: pass a second text as pair."), name=model.info.name)
    if not encoder and data.columns.pair is not None:
        raise VisformerError(N_("{name} takes no pair: only an encoder does."), name=model.info.name)


def tasks_of(data: Data, limit: int | None, size: int) -> Iterator[Task]:
    """Yield the shards of the data."""
    rows: Iterator[Row] = islice(data.rows(), limit)
    for index, chunk in enumerate(iter(lambda: list(islice(rows, size)), [])):
        yield Task(index, index * size, chunk)


def _merged(store: Store, n_shards: int, strict: bool) -> tuple[Reducer, list[Broken]]:
    """Merge all shards in order."""
    merged = Reducer()
    broken: list[Broken] = []
    for index in range(n_shards):
        part = store.read(index)
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


def _effects(
    store: Store, model: "TracedModel", records: Iterable[Record], broken: Iterable[Broken], progress: Silencing | None
) -> None:
    """Silence each head on the first texts of the data that can be used, if that was not done in an earlier run."""
    import pyarrow as pa

    from visformer.analysis.effects.head_effects import head_effects

    skipped = {(row.file, row.line) for row in broken}
    used = [one for one in records if (one.file, one.line) not in skipped and _predicts(model, one)]
    of = {"method": "zero", "texts": len(used), "digest": digest(used)}
    if store.holds_table("effects", **of):
        return
    table = head_effects(model, [one.text if one.target is None else (one.text, one.target) for one in used],
                         progress=progress)  # fmt: skip
    store.write_table("effects", pa.Table.from_pandas(table, preserve_index=False), **of)


def _predicts(model: "TracedModel", record: Record) -> bool:
    """Whether a text has a token to predict: of a decoder-only model, the first has not."""
    return model.info.kind != "decoder" or record.target is not None or len(model.tokenize(record.text)) > 1
