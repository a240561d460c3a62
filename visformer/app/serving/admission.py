"""Admission control: all that computes for visitors waits here for its turn, and runs a few at a time.

There are four kinds, each with a queue and places of its own, so that none delays another: ordinary sentences, long
computations, slices of trainings, and pages. In each queue all addresses have equal shares, and at each address all
visitors (:mod:`visformer.app.serving.turns`): a visitor with one sentence waits for what is being computed, and never
for those who open the page again and again. When a queue overflows, whoever waits for most is refused. Independent of
Streamlit and torch.

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

from visformer.app.serving.turns import Turns, Visitor
from visformer.errors import N_, BusyError
from visformer.system import limits
from visformer.system.cancellation import Cancellation, too_long

AT_ONCE = min(3, max(1, (os.cpu_count() or 2) // 2 - 1))
"""Ordinary computations at a time, besides a long one."""

PATIENCE = 0.4  # seconds before a visitor sees a notice of the wait: most results arrive earlier
POLL = 0.2  # seconds between two updates of the notice, which also notices that the visitor has left

_R = TypeVar("_R")

WorkKind = Literal["ordinary", "long", "training", "page"]
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
    """One computation and those who wait for it; ``work`` is None for a page, whose result is its turn."""

    key: Hashable
    work: Callable[[], Any] | None
    callers: list[Visitor]  # never empty: whoever leaves last is charged
    kind: WorkKind = "ordinary"
    is_expected: bool = False  # whether it was begun for a caller who has not asked for it yet
    result: Future[Any] = field(default_factory=Future)
    requested: float = field(default_factory=time.perf_counter)
    begun: float = 0.0  # when its computation began
    is_new: bool = False  # whether nothing had been computed for its callers before
    charged: list[Any] = field(default_factory=list)  # the shares that it is charged to
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
        # The app sets its own.
        self.notice: Notice = lambda: nullcontext(lambda before: None)
        self.address_of: Callable[[str], str] = lambda session: ""
        self.at_once, self._queue = at_once, queue
        # Wall-clock time; Cancellation limits CPU time.
        self._seconds: dict[WorkKind, float] = {
            "ordinary": seconds,
            "long": long_seconds,
            "training": seconds,
            "page": seconds,
        }
        self._places: dict[WorkKind, int] = {"ordinary": at_once, "long": 1, "training": 1, "page": pages}
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight] = {}
        self._waiting: OrderedDict[Hashable, _Flight] = OrderedDict()
        self._computing: list[_Flight] = []  # the oldest first
        self._turns: dict[WorkKind, Turns] = {kind: Turns() for kind in self._places}
        # Pools, not the sessions' short-lived threads: OpenMP creates a team for each thread that calls it.
        pooled: dict[WorkKind, int] = {kind: n for kind, n in self._places.items() if kind != "page"}
        self._threads = {kind: ThreadPoolExecutor(n, "model") for kind, n in pooled.items()}
        # Start all threads now: later there may not be enough memory for one.
        for kind, n in pooled.items():
            started = threading.Barrier(n)
            for _ in range(n):
                self._threads[kind].submit(started.wait)
        self._is_busy = threading.Event()
        threading.Thread(target=self._cancel_overdue, name="deadline", daemon=True).start()

    def run(
        self, key: Hashable, work: Callable[[], _R], *, on_wait: OnWait, session: str = "", kind: WorkKind = "ordinary"
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
        visitor = self._visitor(session)
        flight = self._join(_Flight(key, work, [visitor], kind))
        patience = PATIENCE
        try:
            while wait([flight.result], patience).not_done:
                on_wait(self._ahead(flight))
                patience = POLL
            result: _R = flight.result.result()
            return result
        finally:
            self._leave(visitor, flight)

    def begin(self, key: Hashable, work: Callable[[], _R], *, session: str = "") -> Future[_R] | None:
        """Start computing what :meth:`run` will request in a moment, if a thread is free; that call then joins.

        For ordinary computations only. Exceptions of ``work`` are raised by :meth:`run`.

        Returns:
            The future result; None: no thread is free.
        """
        with self._lock:
            if key not in self._flights and len(self._in_progress("ordinary")) < self.at_once:
                self._flights[key] = self._waiting[key] = _Flight(key, work, [self._visitor(session)], is_expected=True)
                self._start_next()
            flight = self._flights.get(key)
        return flight.result if flight is not None else None

    def draw(self, session: str = "") -> Callable[[], None]:
        """Wait for a place to draw a page in this thread.

        No page is refused: a session draws one at a time.

        Returns:
            A function that gives the place back.
        """
        flight = _Flight(object(), None, [self._visitor(session)], "page")
        with self._lock:
            self._waiting[flight.key] = flight
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

    def _in_progress(self, kind: WorkKind) -> list[_Flight]:
        return [flight for flight in self._computing if flight.kind == kind]

    def _visitor(self, session: str) -> Visitor:
        return Visitor(self.address_of(session), session)

    def _join(self, flight: _Flight) -> _Flight:
        """Enter a request of its one caller, or let the caller wait for the same request of somebody else."""
        (visitor,) = flight.callers
        with self._lock:
            same = self._flights.get(flight.key)
            if same is not None and same.is_expected and same.callers == [visitor]:
                same.is_expected = False
                return same
            if same is not None:
                self.counts.add("shared")
                same.callers.append(visitor)
                return same
            self._require_share(visitor)
            self._flights[flight.key] = self._waiting[flight.key] = flight
            self._start_next()
            self._refuse_one_too_many(flight.kind)
        return flight

    def _require_share(self, visitor: Visitor) -> None:
        flights = (*self._computing, *self._waiting.values())
        own = sum(visitor in flight.callers for flight in flights if flight.kind != "page")
        if visitor.session and own >= limits.SHARE:
            self.counts.add("rejected")
            raise BusyError(N_("You have {n} computations waiting already: try again when one of them is done."), n=own)

    def _refuse_one_too_many(self, kind: WorkKind) -> None:
        """If the queue is too long, refuse a request, which need not be the newest."""
        waiting = self._waiting_for(kind)
        if len(waiting) > self._queue:
            refused = self._turns[kind].last(waiting)
            del self._waiting[refused.key], self._flights[refused.key]
            self.counts.add("rejected")
            refused.result.set_exception(
                BusyError(
                    N_("Too many sentences are being computed right now: {n} are waiting. Try again in a few seconds."),
                    n=self._queue,
                )
            )

    def _start_next(self) -> None:
        """Hand the requests whose turn it is to the free threads. Called with the lock held."""
        for kind in self._places:
            while (flight := self._next(kind)) is not None:
                del self._waiting[flight.key]
                turns = self._turns[kind]
                flight.begun = time.perf_counter()
                flight.is_new = all(map(turns.is_new, flight.callers))
                flight.charged = turns.begin(flight.callers)
                self._computing.append(flight)
                if flight.work is None:
                    flight.result.set_result(None)
                else:
                    self._is_busy.set()
                    self._threads[kind].submit(self._compute, flight, flight.work)

    def _next(self, kind: WorkKind) -> _Flight | None:
        """Return the request whose turn it is; None: no place is free, or nothing waits.

        New visitors have half of the places for pages: however many come, pages of those who are here go on.
        """
        computing, waiting, turns = self._in_progress(kind), self._waiting_for(kind), self._turns[kind]
        if len(computing) >= self._places[kind]:
            return None
        if sum(flight.is_new for flight in computing) >= max(1, self._places[kind] // 2):
            waiting = [flight for flight in waiting if not all(map(turns.is_new, flight.callers))]
        return next(turns.order(waiting), None)

    def _waiting_for(self, kind: WorkKind) -> list[_Flight]:
        return [flight for flight in self._waiting.values() if flight.kind == kind]

    @staticmethod
    def _age(flight: _Flight) -> float:
        return time.perf_counter() - flight.begun

    def _compute(self, flight: _Flight, work: Callable[[], Any]) -> None:
        try:
            with flight.cancellation.current():
                result = work()
        except BaseException as error:
            self._computed(flight, "failed")
            flight.result.set_exception(flight.cancellation.reason or error)  # for all callers
        else:
            self._computed(flight, "computed")
            flight.result.set_result(result)
        self.counts.add_times(flight.begun - flight.requested, self._age(flight))

    def _computed(self, flight: _Flight, outcome: Outcome) -> None:
        """Free the key and the thread: later requests find the result in the cache that ``work`` filled."""
        with self._lock:
            if self._flights.get(flight.key) is flight:  # else all callers had left, and were counted then
                del self._flights[flight.key]
                self.counts.add(outcome)
            self._finish(flight)

    def _finish(self, flight: _Flight) -> None:
        """Free its place and charge its time. Called with the lock held."""
        self._computing.remove(flight)
        self._turns[flight.kind].end(flight.charged, flight.callers, self._age(flight))
        self._start_next()

    def _cancel_overdue(self) -> None:
        """Run for ever: cancel computations past their deadline, again and again until they end."""
        while self._is_busy.wait():
            time.sleep(min(POLL, *self._seconds.values()))
            self._cancel_those_overdue()  # apart: this thread would keep the last result

    def _cancel_those_overdue(self) -> None:
        with self._lock:
            computing = [flight for flight in self._computing if flight.work is not None]
            if not computing:
                self._is_busy.clear()
        for flight in computing:
            flight.cancellation.look()
            seconds = self._seconds[flight.kind]
            if flight.cancellation.reason or self._age(flight) > seconds:
                flight.cancellation.cancel(too_long(seconds))

    def _ahead(self, flight: _Flight) -> int | None:
        """Return the number of requests ahead of this one; None: it is being computed."""
        with self._lock:
            if self._waiting.get(flight.key) is not flight:
                return None
            in_turn = [*self._turns[flight.kind].order(self._waiting_for(flight.kind))]
            return in_turn.index(flight) + len(self._in_progress(flight.kind))

    def _leave(self, visitor: Visitor, flight: _Flight) -> None:
        """Remove one caller; drop or cancel a computation that nobody waits for any more."""
        with self._lock:
            if len(flight.callers) > 1:
                flight.callers.remove(visitor)
                return
            if self._flights.get(flight.key) is not flight:
                return
            del self._flights[flight.key]  # a later request computes it anew
            self.counts.add("left")
            if self._waiting.pop(flight.key, None) is not None:
                return
        flight.cancellation.cancel(BusyError(N_("Nobody waits for this any more.")))


ADMISSION = Admission()
"""The only one in this process: all models share its cores."""
