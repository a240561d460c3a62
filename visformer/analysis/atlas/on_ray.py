"""The engine for a cluster: Ray Data gives shards to actors that each load the model once.

Only numbers of shards travel to the actors, which read their rows themselves, and files of parts travel back; lost work
is computed again from its number. Every node has to find the data under the same path.
"""

import logging
import os
import pickle
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from threading import Event, Thread, get_ident
from typing import TYPE_CHECKING, Any

from visformer.analysis.atlas.data import STDIN, Data
from visformer.analysis.atlas.parts import About, PartTask, fingerprint
from visformer.analysis.atlas.run import Engine, Progress, part_of, tasks_of
from visformer.errors import N_, VisformerError

if TYPE_CHECKING:  # torch
    from visformer.adapters.base import TracedModel

PATIENCE = 60.0
"""Seconds without a shard and without a running worker after which a job ends."""

_IN_FLIGHT = 2
"""Shards that wait at each actor: no actor idles, and little is computed again when one is lost."""


@dataclass(frozen=True)
class Job:
    """What an actor needs.

    Args:
        load: loads the model, on any node.
        data: the corpus.
        limit: only so many rows.
    """

    load: "Callable[[], TracedModel]"
    data: Data
    limit: int | None


def on_ray(job: Job, *, address: str | None = None, workers: int | None = None, threads: int = 1) -> Engine:
    """Run shards on a Ray cluster.

    Args:
        job: what an actor needs.
        address: of the cluster; None: one on this machine, for this job.
        workers: actors; None: as many as there are CPUs for, less one.
        threads: torch threads, and CPUs, of each.
    """
    if job.data.source == STDIN:
        raise VisformerError(N_("Workers on a cluster cannot read standard input: write it to a file."))

    def run(tasks: Iterable[PartTask], about: About, strict: bool, progress: Progress) -> Iterator[tuple[str, bytes]]:
        sizes: dict[str, int] = {}  # rows that progress counts
        items = []
        for task in tasks:
            sizes[task.name] = 0 if task.silences else len(task.rows)
            items.append({"index": task.index, "silences": task.silences})
        if not items:
            return
        with _Cluster(address) as cluster:
            n_workers = min(workers or max(1, (cluster.cpus - 1) // threads), len(sizes))
            if n_workers * threads > cluster.cpus:
                raise VisformerError(
                    N_("{workers} workers of {threads} threads need {needed} CPUs: the cluster has {cpus}."),
                    workers=n_workers, threads=threads, needed=n_workers * threads, cpus=cluster.cpus,
                )  # fmt: skip
            with closing(cluster.results(_dataset(job, about, strict, items, n_workers, threads))) as rows:
                for row in rows:
                    if row["error"]:
                        raise pickle.loads(row["error"])
                    yield row["name"], row["part"]
                    if size := sizes[row["name"]]:
                        progress(size, True)

    return run


class _Worker:
    """An actor: the model, and the tasks from where it is on."""

    def __init__(self, job: Job, about: About, strict: bool) -> None:
        self.job, self.about, self.strict = job, about, strict
        self.model = job.load()
        self.tasks: Iterator[PartTask] = iter(())
        self.silences, self.next = False, 0

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Compute the part of one task; what ends the run is returned, since Ray would repeat it."""
        index, silences = int(batch["index"][0]), bool(batch["silences"][0])
        try:
            if fingerprint(self.model) != self.about.fingerprint:
                raise VisformerError(N_("A worker has other weights of {model}."), model=self.about.model)
            task = self._task(index, silences)
            part = part_of(self.model, task, self.about, strict=self.strict)
        except VisformerError as error:
            return {"name": [""], "part": [b""], "error": [pickle.dumps(error)]}
        return {"name": [task.name], "part": [part], "error": [b""]}

    def _task(self, index: int, silences: bool) -> PartTask:
        if silences != self.silences or index < self.next or not self.next:
            rows = islice(self.job.data.rows(), self.job.limit)
            self.tasks = tasks_of(rows, 1 if silences else self.about.shard, silences=silences)
            self.silences = silences
        for task in self.tasks:
            self.next = task.index + 1
            if task.index == index:
                return task
        raise VisformerError(N_("A worker finds fewer rows in {data}."), data=self.job.data.source)


def _dataset(job: Job, about: About, strict: bool, items: list[dict[str, Any]], workers: int, threads: int) -> Any:
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # the progress bar is ours
    shards = ray.data.from_items(items, override_num_blocks=len(items))
    return shards.map_batches(
        _Worker,
        fn_constructor_args=(job, about, strict),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=_IN_FLIGHT),
        num_cpus=threads,
        runtime_env={"env_vars": {"OMP_NUM_THREADS": str(threads)}},
    )


class _Cluster:
    """A connection to Ray, without usage statistics and dashboard."""

    def __init__(self, address: str | None) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # silences a warning about the future
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what goes wrong is told by our error
        self.address = address

    def __enter__(self) -> "_Cluster":
        import ray

        own = {"include_dashboard": False} if self.address is None else {}
        try:
            ray.init(address=self.address or "local", logging_level="error", log_to_driver=False, **own)
        except (ConnectionError, ValueError) as error:
            told = str(error).split("\n")[0]
            raise VisformerError(
                N_("No Ray cluster answers at {address}: {reason}"), address=self.address, reason=told
            ) from error
        self.cpus = int(ray.cluster_resources().get("CPU", 0))
        return self

    def __exit__(self, *_: object) -> None:
        import ray

        ray.shutdown()

    def results(self, dataset: Any) -> Generator[dict[str, Any]]:
        """Yield rows as they come."""
        with _Watch() as watch, closing(iter(dataset.iter_rows())) as rows:
            try:
                for row in rows:
                    watch.alive()
                    yield row
            except KeyboardInterrupt:
                if watch.reason is None:
                    raise
                raise watch.reason from None
            except RuntimeError as error:  # of Ray: a worker that cannot load the model, say
                told = str(error).strip().split("\n")[-1]
                raise VisformerError(N_("Ray ended the job: {reason}"), reason=told) from error


class _Watch:
    """Interrupts this thread if no row has come for a minute and no worker runs: Ray would wait without a word."""

    def __init__(self) -> None:
        self.reason: VisformerError | None = None
        self._thread = get_ident()
        self._last, self._over = time.monotonic(), Event()

    def alive(self) -> None:
        """Begin to wait anew."""
        self._last = time.monotonic()

    def __enter__(self) -> "_Watch":
        Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _run(self) -> None:
        import ray

        while not self._over.wait(1.0):
            if time.monotonic() - self._last < PATIENCE:
                continue
            free, cpus = (found.get("CPU", 0) for found in (ray.available_resources(), ray.cluster_resources()))
            if free < cpus:  # a long shard
                continue
            self.reason = VisformerError(
                N_("No worker has run for {seconds} seconds; {cpus} CPUs are in the cluster."),
                seconds=int(PATIENCE),
                cpus=int(cpus),
            )
            signal.pthread_kill(self._thread, signal.SIGINT)
            return
