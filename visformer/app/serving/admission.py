"""In front of the model: a few forward passes at a time, a short queue, and what two ask for at once computed once.

Knows neither Streamlit nor torch. Whoever asks waits; threads of its own compute, so that a visitor who leaves takes
nobody's result away.
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
"""Forward passes at a time. Two even on two cores: one long beam search is then not everybody's."""

PATIENCE = 0.4  # seconds of waiting before it is told: most are over by then
LOOK = 0.2  # seconds between two looks at how the queue moves, and whether the visitor is still there

_R = TypeVar("_R")

Outcome = Literal["cached", "computed", "shared", "rejected", "failed", "left"]
"""What became of requests. cached: found without asking; shared: another visitor was just waiting for the same;
left: nobody waited any more when its turn came."""

BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: upper ends of the bins of a :class:`Histogram`; what takes longer comes into one more."""

Look = Callable[[int | None], None]
"""Called now and then while one waits, with how many come first, None once it is computed. May raise, to leave."""

Notice = Callable[[], AbstractContextManager[Look]]
"""What tells whoever waits."""


@dataclass
class Histogram:
    """How long something took, in bins. Its owner holds a lock."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0  # seconds

    def add(self, seconds: float) -> None:
        """Count one more."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds


class Counts:
    """What has happened so far, for whoever measures."""

    def __init__(self) -> None:
        self.outcomes: dict[Outcome, int] = dict.fromkeys(get_args(Outcome), 0)
        self.queued = Histogram()
        self.computed = Histogram()
        self._lock = threading.Lock()

    def add(self, outcome: Outcome) -> None:
        """One more request."""
        with self._lock:
            self.outcomes[outcome] += 1

    def add_times(self, queued: float, computed: float) -> None:
        """One more computation: seconds in the queue, seconds of computing."""
        with self._lock:
            self.queued.add(queued)
            self.computed.add(computed)


@dataclass(eq=False)
class _Flight:
    """One computation and those who wait for it."""

    work: Callable[[], Any]
    result: Future[Any] = field(default_factory=Future)
    asked: float = field(default_factory=time.perf_counter)
    askers: int = 1


class Admission:
    """Runs what is asked for, at most so many at a time; the same key in flight is run once."""

    def __init__(self, *, at_once: int = AT_ONCE, queue: int = limits.QUEUE) -> None:
        self.counts = Counts()
        self.notice: Notice = lambda: nullcontext(lambda before: None)  # the app puts its own here: this knows no page
        self.at_once, self._queue = at_once, queue
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight] = {}
        self._waiting: OrderedDict[Hashable, _Flight] = OrderedDict()
        self.running = 0  # how many are being computed at present
        # Threads that stay: OpenMP gives each thread that calls it a team of its own, and sessions start new ones.
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="model")
        # All start now: later there may not be the memory for one.
        started = threading.Barrier(at_once)
        for _ in range(at_once):
            self._threads.submit(started.wait)

    def run(self, key: Hashable, work: Callable[[], _R], *, look: Look) -> _R:
        """What ``work`` returns, or raises, from a thread of the model's.

        ``look`` is called while this takes longer than PATIENCE.

        Raises:
            BusyError: too many wait already.
        """
        flight = self._joined(key, work)
        patience = PATIENCE
        try:
            while wait([flight.result], patience).not_done:
                look(self._before(key))
                patience = LOOK
            found: _R = flight.result.result()
            return found
        finally:
            self._leave(key, flight)

    def begin(self, key: Hashable, work: Callable[[], _R]) -> Future[_R] | None:
        """Compute what will be asked for in a moment, where a thread is free; whoever then asks for it joins.

        What the work raises is raised where it is asked for.

        Returns:
            Where the result will be; None: no thread is free.
        """
        with self._lock:
            if key not in self._flights and self.running + len(self._waiting) < self.at_once:
                self._flights[key] = self._waiting[key] = _Flight(work, askers=0)
                self._start_next()
            flight = self._flights.get(key)
        return flight.result if flight is not None else None

    @property
    def waiting(self) -> int:
        """How many wait at present."""
        return len(self._waiting)

    def _joined(self, key: Hashable, work: Callable[[], Any]) -> _Flight:
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                if flight.askers:
                    self.counts.add("shared")
                flight.askers += 1
                return flight
            if self.running >= self.at_once and len(self._waiting) >= self._queue:
                self.counts.add("rejected")
                raise BusyError(
                    N_("Too many sentences are being computed right now: {n} are waiting. Try again in a few seconds."),
                    n=len(self._waiting),
                )
            flight = self._flights[key] = self._waiting[key] = _Flight(work)
            self._start_next()
        return flight

    def _start_next(self) -> None:
        """Hand what waits longest to a free thread. Called with the lock held."""
        while self.running < self.at_once and self._waiting:
            key, flight = self._waiting.popitem(last=False)
            self.running += 1
            self._threads.submit(self._compute, key, flight)

    def _compute(self, key: Hashable, flight: _Flight) -> None:
        begin = time.perf_counter()
        try:
            found = flight.work()
        except BaseException as error:
            self._landed(key, "failed")
            flight.result.set_exception(error)  # for all who wait
        else:
            self._landed(key, "computed")
            flight.result.set_result(found)
        self.counts.add_times(begin - flight.asked, time.perf_counter() - begin)

    def _landed(self, key: Hashable, outcome: Outcome) -> None:
        """Who asks from now on finds the result where the work has put it."""
        self.counts.add(outcome)
        with self._lock:
            del self._flights[key]
            self.running -= 1
            self._start_next()

    def _before(self, key: Hashable) -> int | None:
        """How many come before this one; None: it is being computed."""
        with self._lock:
            keys = list(self._waiting)
            return keys.index(key) + self.running if key in self._waiting else None

    def _leave(self, key: Hashable, flight: _Flight) -> None:
        """Nobody computes what nobody waits for."""
        with self._lock:
            flight.askers -= 1
            if flight.askers == 0 and self._waiting.get(key) is flight:
                del self._waiting[key], self._flights[key]
                self.counts.add("left")


ADMISSION = Admission()
"""The one of this process: all models share its cores."""
