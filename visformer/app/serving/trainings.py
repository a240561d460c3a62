"""The runs that visitors watch. A run belongs to a room, or to one visitor, and holds a training or two in step.

One process at low priority trains them all: each slice of a run waits for its turn as other computations do, so that
several runs are each slower, and the server is not. A run ends by itself, also when nobody watches it any more; its
moments stay in this process's memory alone.

Where there are too many, the run of somebody who has several pauses for one of somebody who has fewer, and a run that
few watch for one of a room that more people watch.
"""

import itertools
import logging
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar

from visformer.adapters.learning.recipe import Recipe, Snapshot, TrainingInfo
from visformer.app.serving import training_process
from visformer.app.serving.admission import ADMISSION
from visformer.app.serving.workers import Workers
from visformer.errors import N_, BusyError, VisformerError
from visformer.system import limits

RunState = Literal["waiting", "playing", "paused", "over", "failed"]

SPEEDS = (20, 60, 0)
"""Steps a second that a run can be slowed down to; 0: as fast as it can."""

_SLICE = 0.1
"""Seconds of training between two looks at what a visitor wants."""

_PACED = 0.2
"""The same where it is slowed down: at each speed a multiple of EVERY steps."""

_PATIENCE = 20.0
"""Seconds after which a run that nobody watches pauses."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass
class TrainingRun:
    """A run; its threads and those that draw it share it without a lock: lists only grow, and values are replaced.

    Args:
        name: its own, which only the browser that started it is told.
        recipes: what is trained, one or two side by side.
        session: whose computing time it is.
        address: of that visitor's network.
        watchers: how many watch it, with the presenter of a room.
        sights: what all moments of each training have in common; (): it has not begun.
        moments: of each training, oldest first.
        state: "waiting" for its process or its turn.
        speed: one of SPEEDS.
        problem: why it ended, if it failed, or paused by itself.
        weights: of each training where it stopped, by the step.
    """

    name: str
    recipes: tuple[Recipe, ...]
    session: str
    address: str = ""
    watchers: int = 1
    sights: tuple[TrainingInfo, ...] = ()
    moments: tuple[list[Snapshot], ...] = ()
    state: RunState = "waiting"
    speed: int = 0
    problem: VisformerError | None = None
    weights: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    watched: float = field(default_factory=time.monotonic)
    wanted: int = 0  # single steps to take
    has_turned: threading.Event = field(default_factory=threading.Event)

    @property
    def step(self) -> int:
        """The last step that was drawn."""
        return self.moments[0][-1].step if self.moments else 0

    @property
    def is_active(self) -> bool:
        """Whether it takes, or waits to take, steps."""
        return self.state in ("waiting", "playing")


class TrainingRuns:
    """The runs of this process, by who watches them."""

    def __init__(self, start: Callable[[], Workers]) -> None:
        """Have none; ``start`` starts the process that trains."""
        self._start = start
        self._runs: OrderedDict[str, TrainingRun] = OrderedDict()  # used longest ago first
        self._process: Future[Workers] | None = None
        self._lock = threading.Lock()
        self._starting = ThreadPoolExecutor(1, "trainings")

    def prepare(self) -> None:
        """Start the process in the background, unless that has begun: it takes seconds."""
        with self._lock:
            if self._process is None or (self._process.done() and self._process.exception()):
                self._process = self._starting.submit(self._start)

    @property
    def pids(self) -> tuple[int, ...]:
        """The id of the process; empty if there is none."""
        started = self._process
        return started.result().pids if started is not None and started.done() and not started.exception() else ()

    def of(self, owner: str, recipes: Sequence[Recipe]) -> TrainingRun | None:
        """Return the run of a room or a visitor, if it is of these recipes; it counts as watched."""
        with self._lock:
            run = self._runs.get(owner)
            if run is None or run.recipes != tuple(recipes):
                return None
            self._runs.move_to_end(owner)
            run.watched = time.monotonic()
            return run

    def last(self, owner: str) -> TrainingRun | None:
        """Return the run of a room or a visitor, whatever it trains; None: it has none."""
        with self._lock:
            return self._runs.get(owner)

    def models(self, owner: str) -> tuple[str, ...]:
        """Return the names of the models that were trained last by a room or a visitor, where they stopped."""
        run = self.last(owner)
        return tuple(recipe.until(step).name for step in run.weights for recipe in run.recipes) if run else ()

    def share(self, owner: str, room: str) -> None:
        """Make the run of a visitor, who has just opened a room, the room's."""
        with self._lock:
            if owner in self._runs and room not in self._runs:
                self._runs[room] = self._runs.pop(owner)

    def adopt(self, owner: str, name: str, *, session: str, is_there: Callable[[str], bool]) -> None:
        """Give an owner who has no run the one of this name, if its visitor has left: a reload makes a new session."""
        with self._lock:
            if owner in self._runs:
                return
            for before, run in self._runs.items():
                if run.name == name and before == run.session and not is_there(before):
                    self._runs[owner] = self._runs.pop(before)
                    run.session = session
                    return

    def start(
        self,
        owner: str,
        recipes: Sequence[Recipe],
        *,
        session: str,
        address: str = "",
        watchers: int = 1,
        speed: int = 0,
    ) -> TrainingRun:
        """Start a run in place of the owner's last one; arguments: see :class:`TrainingRun`.

        Raises:
            BusyError: as many runs as there may be are being trained, and none of them has to make room.
        """
        self.prepare()
        with self._lock:
            before = self._runs.pop(owner, None)
            if before is not None:
                self._end(before)
            run = TrainingRun(secrets.token_hex(8), tuple(recipes), session, address, watchers, speed=speed)
            self._make_room(run)
            self._runs[owner] = run
            idle = [name for name, each in self._runs.items() if not each.is_active]
            for name in idle[: max(0, len(self._runs) - limits.TRAININGS_KEPT)]:
                self._end(self._runs.pop(name))
        threading.Thread(target=self._drive, args=(run,), name=run.name, daemon=True).start()
        return run

    def play(self, run: TrainingRun) -> None:
        """Go on with a run that is paused.

        Raises:
            BusyError: as many runs as there may be are being trained, and none of them has to make room.
        """
        with self._lock:
            if run.state == "paused":
                self._make_room(run)
                run.state, run.problem = "playing", None
                run.has_turned.set()

    def _make_room(self, new: TrainingRun) -> None:
        """Pause a run if need be: the one that fewest watch, then of whoever has most, then used longest ago."""
        active = [run for run in self._runs.values() if run.is_active]
        if len(active) < limits.TRAININGS:
            return
        of = Counter(run.address for run in active)
        others = [run for run in active if of[run.address] > of[new.address] + 1 or run.watchers < new.watchers]
        if not others:
            raise BusyError(
                N_("{n} models are being trained here right now: try again in a few seconds."), n=limits.TRAININGS
            )
        paused = min(others, key=lambda run: (run.watchers, -of[run.address]))
        paused.problem = BusyError(N_("This training has made room for another one: go on with it in a few seconds."))
        paused.state = "paused"

    def pause(self, run: TrainingRun) -> None:
        """Pause a run."""
        if run.state == "playing":
            run.state = "paused"

    def step(self, run: TrainingRun) -> None:
        """Take one step, and pause."""
        self.pause(run)
        if run.state == "paused":
            run.wanted += 1
            run.has_turned.set()

    def weights(self, name: str) -> dict[str, Any] | None:
        """Return the weights of a model that was trained here, by its name; None: they are not here."""
        with self._lock:
            for run in reversed(self._runs.values()):
                for recipe, i in zip(run.recipes, itertools.count(), strict=False):
                    for step, found in run.weights.items():
                        if recipe.until(step).name == name:
                            return found[i]
        return None

    def _end(self, run: TrainingRun) -> None:
        run.state = "over"
        run.has_turned.set()

    def _drive(self, run: TrainingRun) -> None:
        """Train a run until it is over; in a thread of its own."""
        try:
            sights, first = self._call(run, training_process.begin, run.name, run.recipes)
            run.sights, run.moments = tuple(sights), tuple(first)
            if run.state == "waiting":
                run.state = "playing"
            while run.state != "over":
                self._take_steps(run)
        except VisformerError as problem:
            run.problem, run.state = problem, "failed"
        except Exception as problem:  # whoever watches needs a sentence
            logging.getLogger(__name__).exception("a training failed")
            said = N_("The training failed ({kind}).")
            run.problem, run.state = VisformerError(said, kind=type(problem).__name__), "failed"
        finally:
            with suppress(VisformerError, RuntimeError):  # its process was killed, or the server stops
                self._call(run, training_process.forget, run.name)

    def _take_steps(self, run: TrainingRun) -> None:
        if run.state == "paused" and not run.wanted:
            if run.step not in run.weights:
                run.weights = {run.step: self._call(run, training_process.weights, run.name)}
            run.has_turned.wait()
            run.has_turned.clear()
            return
        if time.monotonic() - run.watched > _PATIENCE:
            run.state = "paused"
            return
        begun = time.monotonic()
        steps = run.wanted or (round(run.speed * _PACED) if run.speed else 10**6)
        run.wanted = 0
        try:
            found = self._call(run, training_process.advance, run.name, _SLICE, steps)
        except BusyError:  # the visitor has as many computations waiting as one may have
            time.sleep(_SLICE)
            return
        for seen, more in zip(run.moments, found, strict=True):
            seen.extend(more)
        if run.step >= run.recipes[0].about.steps:
            run.weights = {run.step: self._call(run, training_process.weights, run.name)}
            run.state = "over"
        elif run.speed and run.state == "playing":
            time.sleep(max(0.0, steps / run.speed - (time.monotonic() - begun)))

    def _call(self, run: TrainingRun, what: Callable[_P, _R], *given: _P.args, **named: _P.kwargs) -> _R:
        """Call a function in the process when it is this run's turn."""
        assert self._process is not None
        work = partial(self._process.result().call, what, *given, **named)
        # A key of its own: no two slices are the same computation.
        return ADMISSION.run(object(), work, on_wait=lambda _: None, session=run.session, kind="training")


RUNS = TrainingRuns(partial(Workers, training_process.prepare, nice=19))
"""The only ones in this process."""
