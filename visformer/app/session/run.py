"""One run of the script: the page records here what it shows, for the parts of the app around it.

What is large is held by the thread of the run: a tab that is open keeps no Trace alive. Those that are used often stay
in the cache of the workbench, which has a limit.
"""

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from visformer.app.session.slots import Slot
from visformer.errors import VisformerError

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

Turn = Callable[[int], bool]
"""Goes one step forward (1) or back (-1) before the page runs again; False: already at the end."""


@dataclass(frozen=True)
class TraceRequest:
    """The trace that a page requests."""

    source: str
    target: str | None  # as typed; None: the model's own translation
    model: str | None  # None: no choice yet
    record: tuple[str, ...]  # globs over tensor names


@dataclass
class Steps:
    """The steps of a presentation, see :mod:`visformer.app.session.presentation_steps`."""

    turns: list[Turn] = field(default_factory=list)  # the outermost first
    places: list[str] = field(default_factory=list)  # the current step of each
    is_guided: bool = False  # whether a lesson takes all steps
    note: str = ""  # for the presenter alone
    title: str = ""  # of the lesson's step
    option: str = ""  # the title of the page's view
    following: str = ""  # the title of the next step on the page, or in the lesson
    next_note: str = ""  # the lesson's for that step
    task: str = ""  # what it lets one try
    has_more: bool = False  # whether it has a hint or an answer to show
    is_over: bool = False  # whether the lesson's closing card is shown: text alone

    @property
    def place(self) -> str:
        """The current step, such as "2/4"."""
        return " · ".join(filter(None, self.places))


@dataclass(frozen=True)
class PresentedTable:
    """A table as a presentation draws it, in the visitor's language."""

    title: str
    columns: tuple[str, ...]  # empty: they have no names
    rows: tuple[tuple[str, ...], ...]


class _Held(threading.local):
    """What the run of this thread shows."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self.exports: list[tuple[Any, str]] = []


_HELD = _Held()


class _Weak:
    """A Trace of a :class:`Run`; None once neither the run's thread nor the cache holds it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, run: "Run", owner: type | None = None) -> "Trace | None":
        known = vars(run).get(self._name)
        trace: Trace | None = known() if known is not None else None
        return trace

    def __set__(self, run: "Run", trace: "Trace | None") -> None:
        vars(run)[self._name] = weakref.ref(trace) if trace is not None else None
        if trace is not None:
            _HELD.traces.append(trace)


@dataclass
class Run:
    """What one run shows."""

    request: TraceRequest | None = None  # the page's last one; None: it needs no trace
    problem: VisformerError | None = None  # why there is no trace
    moment: str = ""  # of the model's training, in words; "": its history is closed
    caption: str = ""  # what to look for; a presentation shows it over the picture
    tables: list[PresentedTable] = field(default_factory=list)  # a presentation shows them if the page has no picture
    choices: dict[str, str | None] = field(default_factory=dict)  # made on the page, by name; None: the default
    unlinked: str = ""  # which of what it shows its link does not hold, in words
    steps: Steps = field(default_factory=Steps)

    trace = _Weak()
    """The result of the request."""
    ahead = _Weak()
    """The Trace whose picture was sent ahead of the page."""

    @property
    def exports(self) -> list[tuple[Any, str]]:
        """Each picture, and its key, that this thread has drawn and can export."""
        return _HELD.exports


_RUN: Slot[Run | None] = Slot("run", None)


def begin(run: Run) -> Run:
    """Make this the current run, also for the fragments and callbacks that follow it."""
    _HELD.traces, _HELD.exports = [], []  # a thread may run the script again
    _RUN.set(run)
    return run


def current() -> Run:
    """Return the current run."""
    return _RUN.get() or begin(Run())
