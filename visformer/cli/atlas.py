"""``visformer atlas``: what every head does over a whole corpus."""

import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from visformer.cli.packages import install
from visformer.cli.running import MODEL_HELP, complete_model, with_default

if TYPE_CHECKING:
    from visformer.analysis.atlas import Data
    from visformer.analysis.atlas.run import Engine, Progress, Silencing

_FROM_1 = click.IntRange(min=1)
_SHARD = 1000  # of visformer.analysis.atlas.run, which takes long to import


@click.command()
@click.option("--data", "source", required=True, metavar="DATA", help="A file, a folder, or - for standard input.")
@with_default("--model", default="en-zh", shell_complete=complete_model, help=MODEL_HELP)
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False), help="The folder of the atlas.")
@with_default("--engine", type=click.Choice(["local", "ray"]), default="local", help="What runs the shards.")
@click.option("--address", help="Of a Ray cluster; by default one of its own on this machine.")
@click.option("--workers", type=_FROM_1, help="Models on the cluster; by default one for each CPU but one.")
@click.option("--threads", type=_FROM_1, help="Torch threads of each model; by default torch's own number, with ray 1.")
@with_default("--shard", type=_FROM_1, default=_SHARD, help="Rows of a shard.")
@click.option("--limit", type=_FROM_1, help="Only so many rows.")
@click.option("--strict", is_flag=True, help="End at the first broken row, which is skipped otherwise.")
@click.option("--text", metavar="COLUMN", help="Column of the texts: a name, or a number from 1 without a header.")
@click.option("--target", metavar="COLUMN", help="Column of targets to force.")
@click.option("--pair", metavar="COLUMN", help="Column of second texts, for an encoder.")
@click.option("--heads", metavar="COLUMN", help="Column of syntactic heads, as in CoNLL-U: 2 0 2.")
@click.option("--alignment", metavar="COLUMN", help="Column of links between words: 0-0 1-2.")
@with_default("--effects", type=click.IntRange(0, 200), default=0, help="Silence each head on so many texts.")
@click.option("--zip", "zipped", is_flag=True, help="Also write OUT/atlas.zip: one file, which the page Atlas opens.")
def atlas(source: str, model: str, out: Path, limit: int | None, zipped: bool, **how: Any) -> None:
    """Measure what every head does over a corpus.

    DATA is UTF-8 text, one a line (.txt), .tsv, .csv, .jsonl, .parquet, .arrow, a folder of such files, which may
    be a Hugging Face dataset on disk, or - for texts on standard input. A row that cannot be used is named and skipped.
    The same command resumes an interrupted run. docs/scale.md describes the files in the folder.

    \b
    Examples:
      visformer atlas --data sentences.tsv --model en-zh --out atlas
      visformer atlas --data corpus --text sentence --model sentence-transformers/all-MiniLM-L6-v2 --out atlas
      visformer atlas --data pairs.tsv --target 2 --out atlas --effects 50 --zip
    """
    engine = {name: how.pop(name) for name in ("engine", "address", "workers", "threads")}
    if engine["threads"] or engine["engine"] == "ray":  # before torch is imported
        os.environ["OMP_NUM_THREADS"] = str(engine["threads"] or 1)
    from visformer.adapters.load import load
    from visformer.analysis.atlas import Columns, Data, build, pack
    from visformer.analysis.atlas.archive import NAME
    from visformer.system.files import write_whole

    columns = Columns(**{name: how.pop(name) for name in ("text", "target", "pair", "heads", "alignment")})
    data = Data(source if source == "-" else str(Path(source).absolute()), columns)  # the same on every node
    total = data.count()  # first: a wrong path is told before a model is loaded
    how["engine"] = _engine(data, model, limit, **engine)
    loaded = load(model)
    rows = total if limit is None else min(limit, total or limit)
    with _resumable(), _bars(rows) as (progress, silencing):
        made = build(loaded, data, out, limit=limit, progress=progress, silencing=silencing, **how)
    for row in made.broken.head(_NAMED).itertuples():
        click.echo(f"Skipped {row.file}, line {row.line}: {row.reason}", err=True)
    if len(made.broken) > _NAMED:
        click.echo(f"... {len(made.broken)} rows were skipped; {out / 'broken.parquet'} names all.", err=True)
    click.echo(f"{made!r}\nWritten to {out}")
    if zipped:
        content = pack(out)
        write_whole(out / NAME, content)
        click.echo(f"As one file: {out / NAME}, {len(content) / 1e6:.2f} MB")
    click.echo(f"To open it: {shlex.join(['visformer', 'run', '--model', model, '--atlas', str(out)])}")


def _engine(
    data: "Data", model: str, limit: int | None, *, engine: str, address: str | None, workers: int | None, threads: int
) -> "Engine | None":
    if engine == "local":
        if address or workers:
            raise click.UsageError("--address and --workers are for --engine ray.")
        return None
    from visformer.adapters.load import load
    from visformer.analysis.atlas.on_ray import Job, on_ray

    if find_spec("ray") is None:
        raise click.ClickException(f"Ray is not installed: {install('ray')}")
    name = str(Path(model).resolve()) if Path(model).is_dir() else model
    return on_ray(Job(partial(load, name), data, limit), address=address, workers=workers, threads=threads or 1)


_NAMED = 10
"""Broken rows that are named on the terminal."""


@contextmanager
def _resumable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        click.echo("\nInterrupted. The same command resumes after the last whole shard.", err=True)
        raise


@contextmanager
def _bars(total: int | None) -> Iterator[tuple["Progress", "Silencing"]]:
    """Show the rate and the time that is left, of rows and then of texts; those of an earlier run count for neither."""
    from tqdm import tqdm

    with ExitStack() as bars:
        shown = bars.enter_context(tqdm(total=total, unit=" rows", smoothing=0.1, dynamic_ncols=True))

        def progress(rows: int, computed: bool) -> None:
            if not computed:
                shown.initial += rows
            shown.update(rows)

        def silencing(done: int, total: int) -> None:
            nonlocal shown
            if shown.unit != " texts":
                shown.total = shown.n  # it was estimated
                shown.close()
                shown = bars.enter_context(tqdm(total=total, unit=" texts", initial=done - 1, dynamic_ncols=True))
            shown.update(done - shown.n)

        yield progress, silencing
        shown.total = shown.n
