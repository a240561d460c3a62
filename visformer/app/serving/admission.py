"""Admission control: all that computes for visitors waits here for its turn, and runs a few at a time.

There are four kinds, each with a queue and places of its own, so that none delays another: ordinary sentences, long
computations, slices of trainings, and pages. In each queue, the session that has used the least computing time lately
goes first: a visitor with one sentence waits for what is being computed, not for sessions that compute all the time.
When a queue overflows, the session that has used the most is refused. Independent of Streamlit and torch.

Callers wait while a thread pool computes, so that a visitor who leaves does not cancel a result that others wait for;
identical requests share one computation. A page computes in the thread that draws it.
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

from visformer.app.serving.recent_use import RecentUse
from visformer.errors import N_, BusyError
from visformer.system import limits
from visformer.system.cancellation import Cancellation, too_long

AT_ONCE = min(3, max(1, (os.cpu_count() or 2) // 2 - 1))
"""Ordinary computations at a time, besides a long one."""

PATIENCE = 0.4  # seconds before a visitor sees a notice of the wait: most results arrive earlier
POLL = 0.2  # seconds between two updates of the notice, which also notices that the visitor has left

_R = TypeVar("_R")

Kind = Literal["ordinary", "long", "training", "page"]
"""Kinds of work. What each costs at most is known before it runs: of texts from their tokens, of files from the numbers
in them, of pages from the bounds of their options."""

Outcome = Literal["cached", "computed", "shared", "rejected", "failed", "left"]
"""The outcome of a request. cached: needed no computation; shared: joined another visitor's identical request;
left: everybody who waited had left before it was done."""

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
    """One computation and the sessions that wait for it; ``work`` is None for a page, whose result is its turn."""

    work: Callable[[], Any] | None
    callers: list[str] = field(default_factory=list)  # their sessions; whoever leaves last stays, to be charged
    kind: Kind = "ordinary"
    result: Future[Any] = field(default_factory=Future)
    requested: float = field(default_factory=time.perf_counter)
    begun: float = 0.0  # when its computation began
    cancellation: Cancellation = field(default_factory=Cancellation)


class Admission:
    """Runs at most ``at_once`` ordinary computations, one long one, one slice of a training and ``pages`` pages."""

    def __init__(
        self,
        *,
        at_once: int = AT_ONCE,
        queue: int = limits.QUEUE,
        seconds: float = limits.WORK_SECONDS,
        long_seconds: float = limits.LONG_SECONDS,
        pages: int = limits.PAGES,
    ) -> None:
        self.counts = Counts()
        self.notice: Notice = lambda: nullcontext(lambda before: None)  # the app sets its own
        self.at_once, self._queue = at_once, queue
        # Wall-clock time; Cancellation limits CPU time.
        self._seconds: dict[Kind, float] = {
            "ordinary": seconds,
            "long": long_seconds,
            "training": seconds,
            "page": seconds,
        }
        self._places: dict[Kind, int] = {"ordinary": at_once, "long": 1, "training": 1, "page": pages}
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight] = {}
        self._waiting: OrderedDict[Hashable, _Flight] = OrderedDict()
        self._computing: list[_Flight] = []  # the oldest first
        self._recent = RecentUse()
        # Pools, not the sessions' short-lived threads: OpenMP creates a team for each thread that calls it.
        pooled: dict[Kind, int] = {kind: n for kind, n in self._places.items() if kind != "page"}
        self._threads = {kind: ThreadPoolExecutor(n, "model") for kind, n in pooled.items()}
        # Start all threads now: later there may not be enough memory for one.
        for kind, n in pooled.items():
            started = threading.Barrier(n)
            for _ in range(n):
                self._threads[kind].submit(started.wait)
        self._is_busy = threading.Event()
        threading.Thread(target=self._cancel_overdue, name="deadline", daemon=True).start()

    def run(
        self, key: Hashable, work: Callable[[], _R], *, on_wait: OnWait, session: str = "", kind: Kind = "ordinary"
    ) -> _R:
        """Run ``work`` in the thread pool and return its result, or raise its exception.

        Calls ``on_wait`` repeatedly if this takes longer than PATIENCE.

        Args:
            key: identifies the result; a request for one that is being computed joins that computation.
            work: computes the result.
            on_wait: see OnWait.
            session: the session that the computing time is charged to; "": none.
            kind: "ordinary", "long" or "training".

        Raises:
            BusyError: the queue is full, or this session already has its share of computations.
            DeadlineError: it took too long.
        """
        flight = self._join(key, session, _Flight(work, kind=kind))
        patience = PATIENCE
        try:
            while wait([flight.result], patience).not_done:
                on_wait(self._ahead(key))
                patience = POLL
            result: _R = flight.result.result()
            return result
        finally:
            self._leave(key, session, flight)

    def begin(self, key: Hashable, work: Callable[[], _R]) -> Future[_R] | None:
        """Start computing what :meth:`run` will request in a moment, if a thread is free; that call then joins.

        For ordinary computations only. Exceptions of ``work`` are raised by :meth:`run`.

        Returns:
            The future result; None: no thread is free.
        """
        with self._lock:
            if key not in self._flights and len(self._in_progress("ordinary")) < self.at_once:
                self._flights[key] = self._waiting[key] = _Flight(work)
                self._start_next()
            flight = self._flights.get(key)
        return flight.result if flight is not None else None

    def draw(self, session: str = "") -> Callable[[], None]:
        """Wait for a place to draw a page in this thread.

        No page is refused: a session draws one at a time.

        Returns:
            A function that gives the place back.
        """
        flight = _Flight(None, callers=[session], kind="page")
        with self._lock:
            self._waiting[flight] = flight
            self._start_next()
        flight.result.result()

        def drawn() -> None:
            with self._lock:
                self._finish(flight)

        return drawn

    @property
    def running(self) -> int:
        """Number of computations in progress, besides pages."""
        return sum(flight.kind != "page" for flight in self._computing)

    @property
    def stuck_seconds(self) -> float:
        """Seconds by which the oldest computation is overdue while no thread of its kind is free; else 0."""
        with self._lock:
            late = [
                max(map(self._age, lane)) - self._seconds[kind]
                for kind, places in self._places.items()
                if len(lane := self._in_progress(kind)) == places
            ]
        return max([0.0, *late])

    @property
    def waiting(self) -> int:
        """Number of requests in the queues, besides pages."""
        return sum(flight.kind != "page" for flight in list(self._waiting.values()))

    def _in_progress(self, kind: Kind) -> list[_Flight]:
        return [flight for flight in self._computing if flight.kind == kind]

    def _join(self, key: Hashable, session: str, flight: _Flight) -> _Flight:
        with self._lock:
            same = self._flights.get(key)
            if same is not None:
                if same.callers:
                    self.counts.add("shared")
                same.callers.append(session)
                return same
            self._require_share(session)
            flight.callers.append(session)
            self._flights[key] = self._waiting[key] = flight
            self._start_next()
            self._refuse_one_too_many(flight.kind)
        return flight

    def _require_share(self, session: str) -> None:
        flights = (*self._computing, *self._waiting.values())
        own = sum(session in flight.callers for flight in flights if flight.kind != "page")
        if session and own >= limits.SHARE:
            self.counts.add("rejected")
            raise BusyError(N_("You have {n} computations waiting already: try again when one of them is done."), n=own)

    def _refuse_one_too_many(self, kind: Kind) -> None:
        """If the queue is too long, refuse the request whose turn comes last, which need not be the newest."""
        waiting = self._in_turn(kind)
        if len(waiting) > self._queue:
            refused = self._waiting.pop(waiting[-1])
            del self._flights[waiting[-1]]
            self.counts.add("rejected")
            refused.result.set_exception(
                BusyError(
                    N_("Too many sentences are being computed right now: {n} are waiting. Try again in a few seconds."),
                    n=self._queue,
                )
            )

    def _start_next(self) -> None:
        """Hand the requests whose turn it is to the free threads. Called with the lock held."""
        for kind, places in self._places.items():
            while len(self._in_progress(kind)) < places and (keys := self._in_turn(kind)):
                flight = self._waiting.pop(keys[0])
                flight.begun = time.perf_counter()
                self._computing.append(flight)
                if flight.work is None:
                    flight.result.set_result(None)
                else:
                    self._is_busy.set()
                    self._threads[kind].submit(self._compute, keys[0], flight, flight.work)

    def _in_turn(self, kind: Kind) -> list[Hashable]:
        """Return the waiting keys, next one first: in order of recent use, then of arrival."""
        now = time.perf_counter()
        used = self._recent.at(now)
        for flight in self._computing:
            for session in {*flight.callers}:
                used[session] = used.get(session, 0.0) + now - flight.begun
        used[""] = 0.0  # work that no session asked for
        waiting = {key: flight.callers for key, flight in self._waiting.items() if flight.kind == kind}
        return sorted(waiting, key=lambda key: min((used.get(session, 0.0) for session in waiting[key]), default=0.0))

    @staticmethod
    def _age(flight: _Flight) -> float:
        return time.perf_counter() - flight.begun

    def _compute(self, key: Hashable, flight: _Flight, work: Callable[[], Any]) -> None:
        try:
            with flight.cancellation.current():
                result = work()
        except BaseException as error:
            self._computed(key, flight, "failed")
            flight.result.set_exception(flight.cancellation.reason or error)  # for all callers
        else:
            self._computed(key, flight, "computed")
            flight.result.set_result(result)
        self.counts.add_times(flight.begun - flight.requested, self._age(flight))

    def _computed(self, key: Hashable, flight: _Flight, outcome: Outcome) -> None:
        """Free the key and the thread: later requests find the result in the cache that ``work`` filled."""
        with self._lock:
            if self._flights.get(key) is flight:  # else all callers had left, and were counted then
                del self._flights[key]
                self.counts.add(outcome)
            self._finish(flight)

    def _finish(self, flight: _Flight) -> None:
        """Free its place and charge its time. Called with the lock held."""
        self._computing.remove(flight)
        self._recent.add(flight.callers, self._age(flight), time.perf_counter())
        self._start_next()

    def _cancel_overdue(self) -> None:
        """Run for ever: cancel computations past their deadline, again and again until they end."""
        while self._is_busy.wait():
            time.sleep(min(POLL, *self._seconds.values()))
            with self._lock:
                computing = [flight for flight in self._computing if flight.work is not None]
                if not computing:
                    self._is_busy.clear()
            for flight in computing:
                seconds = self._seconds[flight.kind]
                if flight.cancellation.reason or self._age(flight) > seconds:
                    flight.cancellation.cancel(too_long(seconds))

    def _ahead(self, key: Hashable) -> int | None:
        """Return the number of requests ahead of this one; None: it is being computed."""
        with self._lock:
            if key not in self._waiting:
                return None
            kind = self._waiting[key].kind
            return self._in_turn(kind).index(key) + len(self._in_progress(kind))

    def _leave(self, key: Hashable, session: str, flight: _Flight) -> None:
        """Remove one caller; drop or cancel a computation that nobody waits for any more."""
        with self._lock:
            if len(flight.callers) > 1 or self._flights.get(key) is not flight:
                flight.callers.remove(session)
                return
            del self._flights[key]  # a later request computes it anew
            self.counts.add("left")
            if self._waiting.pop(key, None) is not None:
                return
        flight.cancellation.cancel(BusyError(N_("Nobody waits for this any more.")))


ADMISSION = Admission()
"""The only one in this process: all models share its cores."""
