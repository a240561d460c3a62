"""What an atlas costs as the corpus and the number of workers grow: ``python -m benchmarks.scaling``.

Run it in an environment with Ray, such as build/ray, which ``make ray`` makes. Every run is the command
``visformer atlas`` in a process of its own, with one torch thread for each model; its processes are watched from here.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.measure import aligned
from benchmarks.subjects import WORDS

TARGET = 100_000_000
"""Sentences that the cost is told of."""

_SHARD = 250
"""Rows of a shard: with 1,000 texts, four workers have one each."""

_EVERY = 0.5
"""Seconds between two looks at the processes."""


@dataclass(frozen=True)
class Run:
    """One run of the command.

    Args:
        engine: "local", one process, or "ray".
        workers: models.
        texts: sentences of ten words.
        seconds: of the wall clock.
        cpu: seconds of all its processes.
        peak: bytes of memory of all its processes at once, pages that they share counted once.
        shards: bytes of the files of all shards.
    """

    engine: str
    workers: int
    texts: int
    seconds: float
    cpu: float
    peak: int
    shards: int

    @property
    def cells(self) -> tuple[str, ...]:
        """Its line of the table."""
        rate, each = self.texts / self.seconds, 1000 * self.cpu / self.texts
        numbers = f"{self.seconds:.1f}", f"{rate:.0f}", f"{self.cpu:.1f}", f"{each:.2f}", f"{self.peak / 1e6:.0f}"
        return f"{self.engine} {self.workers}", f"{self.texts:,}", *numbers


_HEAD = ("engine, workers", "texts", "s", "texts/s", "CPU s", "CPU ms a text", "peak MB")


def main() -> None:
    """Measure, print, and save if requested."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__.split(":")[0] + ".")
    parser.add_argument("--model", default="mini-gpt", help="by default %(default)s, which is bundled")
    parser.add_argument("--texts", type=int, nargs="+", default=[1_000, 10_000, 100_000], metavar="N")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], metavar="N", help="of Ray")
    parser.add_argument("--price", type=float, default=0.04, help="of a CPU for an hour, in dollars: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the runs there too")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}; {options.model}, 1 torch thread a model")
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sorted(options.texts):
            data = _written(Path(folder) / f"{n}.tsv", n)
            for engine, workers in (("local", 1), *(("ray", each) for each in options.workers)):
                runs.append(_run(options.model, data, n, engine, workers))
                print(".", end="", flush=True)
    print("\n" + aligned([_HEAD, *(run.cells for run in runs)]))
    for engine, workers in dict.fromkeys((run.engine, run.workers) for run in runs):
        print(_told([run for run in runs if (run.engine, run.workers) == (engine, workers)], options.price))
    if options.json:
        options.json.write_text(json.dumps([asdict(run) for run in runs], indent=2) + "\n", encoding="utf-8")


def _written(path: Path, n: int) -> Path:
    """Write n sentences of ten words, the same each time."""
    rng = random.Random(0)
    path.write_text("".join(" ".join(rng.choices(WORDS, k=10)) + "\n" for _ in range(n)), encoding="utf-8")
    return path


def _run(model: str, data: Path, n: int, engine: str, workers: int) -> Run:
    out = data.parent / f"{n}-{engine}-{workers}"
    command = [sys.executable, "-m", "visformer", "atlas", "--data", str(data), "--model", model, "--out", str(out)]
    command += ["--threads", "1", "--shard", str(_SHARD), "--engine", engine]
    environment = dict(os.environ)
    if engine == "ray":
        command += ["--workers", str(workers)]
        cores = max(workers + 1, os.cpu_count() or 1)  # where there are fewer, workers share them
        environment["RAY_OVERRIDE_RESOURCES"] = json.dumps({"CPU": cores})
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as told:
        running = psutil.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=told)
        cpu: dict[int, float] = {}
        peak = 0
        while running.poll() is None:
            peak = max(peak, sum(_looked(running, cpu)))
            time.sleep(_EVERY)
        seconds = time.perf_counter() - begin
        if running.returncode:
            told.seek(0)
            raise SystemExit(f"\n{' '.join(command)}\n{told.read().decode()[-500:]}")
    shards = sum(path.stat().st_size for path in (out / "shards").iterdir())
    return Run(engine, workers, n, seconds, sum(cpu.values()), peak, shards)


def _looked(parent: psutil.Process, cpu: dict[int, float]) -> Iterator[int]:
    """Yield the memory of each process, and note the CPU time that each has had so far."""
    for process in (parent, *parent.children(recursive=True)):
        try:
            times, memory = process.cpu_times(), process.memory_full_info()
        except psutil.NoSuchProcess:
            continue
        cpu[process.pid] = times.user + times.system
        yield getattr(memory, "pss", memory.uss)  # only Linux counts shared pages in parts


def _told(runs: Sequence[Run], price: float) -> str:
    """Say what many sentences would cost, from the difference of the largest two runs: starting is paid once."""
    name = f"{runs[0].engine}, {runs[0].workers} workers" if runs[0].engine == "ray" else "local"
    small, large = runs[max(0, len(runs) - 2)], runs[-1]
    if large.texts <= small.texts or large.cpu <= small.cpu:
        return f"{name}: two larger numbers of texts are needed to tell what more of them would take."
    hours = (large.cpu - small.cpu) / (large.texts - small.texts) * TARGET / 3600
    files = large.shards / large.texts * TARGET / 1e9
    return (
        f"{name}: {TARGET:,} such texts take {hours:,.0f} CPU hours, ${hours * price:,.2f} at ${price} each, "
        f"and {files:,.0f} GB of shards of {_SHARD} rows, if each costs what those from {small.texts:,} to "
        f"{large.texts:,} did."
    )


if __name__ == "__main__":
    main()
