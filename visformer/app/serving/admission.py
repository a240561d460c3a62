"""Admission to the model: a few forward passes at a time, a short queue, and one computation for identical requests.

Independent of Streamlit and torch. Callers wait while a thread pool computes, so that a visitor who leaves does not
cancel a result that others wait for.
"""

import os
import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from visformer.errors import N_, BusyError
from visformer.system import limits

AT_ONCE = min(4, max(2, (os.cpu_count() or 2) // 2))
"""Forward passes at a time. Two even on two cores, so that one long beam search does not block everybody."""

PATIENCE = 0.4  # seconds before a visitor sees a notice of the wait: most results arrive earlier
POLL = 0.2  # seconds between two updates of the notice, which also notices that the visitor has left

_R = TypeVar("_R")

Outcome = Literal["cached", "computed", "shared", "rejected", "failed", "left"]
"""The outcome of a request. cached: needed no computation; shared: joined another visitor's identical request;
left: everybody who waited had left before its turn."""

BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the bins of a :class:`Histogram`, in seconds; one more bin counts what takes longer."""

OnWait = Callable[[int | None], None]
"""Called repeatedly during a wait with the number of requests ahead, None while computing. May raise, to leave."""

Notice = Callable[[], AbstractContextManager[OnWait]]
"""Shows a waiting visitor the state of the queue."""


@dataclass
class Histogram:
    """A histogram of durations. Not thread-safe: its owner holds a lock."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0  # seconds

    def add(self, seconds: float) -> None:
        """Count one more duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds


class Counts:
    """Counts and durations of all requests so far, for the metrics."""

    def __init__(self) -> None:
        self.outcomes: dict[Outcome, int] = dict.fromkeys(get_args(Outcome), 0)
        self.queued = Histogram()
        self.computed = Histogram()
        self._lock = threading.Lock()

    def add(self, outcome: Outcome) -> None:
        """Count one more request."""
        with self._lock:
            self.outcomes[outcome] += 1

    def add_times(self, queued: float, computed: float) -> None:
        """Count one more computation: seconds in the queue, seconds of computing."""
        with self._lock:
            self.queued.add(queued)
            self.computed.add(computed)


@dataclass(eq=False)
class _Flight:
    """One computation and the number of callers that wait for it."""

    work: Callable[[], Any]
    result: Future[Any] = field(default_factory=Future)
    requested: float = field(default_factory=time.perf_counter)
    callers: int = 1


class Admission:
    """Runs computations, at most ``at_once`` at a time; concurrent requests for the same key share one."""

    def __init__(self, *, at_once: int = AT_ONCE, queue: int = limits.QUEUE) -> None:
        self.counts = Counts()
        self.notice: Notice = lambda: nullcontext(lambda before: None)  # the app sets its own
        self.at_once, self._queue = at_once, queue
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight] = {}
        self._waiting: OrderedDict[Hashable, _Flight] = OrderedDict()
        self.running = 0  # computations at present
        # A pool, not the sessions' short-lived threads: OpenMP creates a team for each thread that calls it.
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="model")
        # Start all threads now: later there may not be enough memory for one.
        started = threading.Barrier(at_once)
        for _ in range(at_once):
            self._threads.submit(started.wait)

    def run(self, key: Hashable, work: Callable[[], _R], *, on_wait: OnWait) -> _R:
        """Run ``work`` in the thread pool and return its result, or raise its exception.

        Calls ``on_wait`` repeatedly if this takes longer than PATIENCE.

        Raises:
            BusyError: the queue is full.
        """
        flight = self._join(key, work)
        patience = PATIENCE
        try:
            while wait([flight.result], patience).not_done:
                on_wait(self._ahead(key))
                patience = POLL
            result: _R = flight.result.result()
            return result
        finally:
            self._leave(key, flight)

    def begin(self, key: Hashable, work: Callable[[], _R]) -> Future[_R] | None:
        """Start computing what :meth:`run` will request in a moment, if a thread is free; that call then joins.

        Exceptions of ``work`` are raised by :meth:`run`.

        Returns:
            The future result; None: no thread is free.
        """
        with self._lock:
            if key not in self._flights and self.running + len(self._waiting) < self.at_once:
                self._flights[key] = self._waiting[key] = _Flight(work, callers=0)
                self._start_next()
            flight = self._flights.get(key)
        return flight.result if flight is not None else None

    @property
    def waiting(self) -> int:
        """Requests in the queue at present."""
        return len(self._waiting)

    def _join(self, key: Hashable, work: Callable[[], Any]) -> _Flight:
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                if flight.callers:
                    self.counts.add("shared")
                flight.callers += 1
                return flight
            if self.running >= self.at_once and len(self._waiting) >= self._queue:
                self.counts.add("rejected")
                raise BusyError(
                    N_("Too many sentences are being computed just now: {n} are waiting. Try again in a few seconds."),
                    n=len(self._waiting),
                )
            flight = self._flights[key] = self._waiting[key] = _Flight(work)
            self._start_next()
        return flight

    def _start_next(self) -> None:
        """Hand the oldest requests to the free threads. Called with the lock held."""
        while self.running < self.at_once and self._waiting:
            key, flight = self._waiting.popitem(last=False)
            self.running += 1
            self._threads.submit(self._compute, key, flight)

    def _compute(self, key: Hashable, flight: _Flight) -> None:
        begin = time.perf_counter()
        try:
            result = flight.work()
        except BaseException as error:
            self._finish(key, "failed")
            flight.result.set_exception(error)  # for all callers
        else:
            self._finish(key, "computed")
            flight.result.set_result(result)
        self.counts.add_times(begin - flight.requested, time.perf_counter() - begin)

    def _finish(self, key: Hashable, outcome: Outcome) -> None:
        """Free the key and the thread: later requests find the result in the cache that ``work`` filled."""
        self.counts.add(outcome)
        with self._lock:
            del self._flights[key]
            self.running -= 1
            self._start_next()

    def _ahead(self, key: Hashable) -> int | None:
        """Return the number of requests ahead of this one; None: it is being computed."""
        with self._lock:
            keys = list(self._waiting)
            return keys.index(key) + self.running if key in self._waiting else None

    def _leave(self, key: Hashable, flight: _Flight) -> None:
        """Take one caller off; drop a queued computation that nobody waits for any more."""
        with self._lock:
            flight.callers -= 1
            if flight.callers == 0 and self._waiting.get(key) is flight:
                del self._waiting[key], self._flights[key]
                self.counts.add("left")


ADMISSION = Admission()
"""The only one in this process: all models share its cores."""
