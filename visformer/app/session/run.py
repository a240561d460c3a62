"""One run of the script: the page puts in what it shows, and whatever stands around the page reads it here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from visformer.app.session.slots import Slot
from visformer.errors import VisformerError

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

Turn = Callable[[int], bool]
"""Goes one step on (1) or back (-1) before the page runs again; False: it is at its end."""


@dataclass(frozen=True)
class Request:
    """What a page asks of the model."""

    source: str
    target: str | None  # as typed; None: the model finds its own
    model: str | None  # None: no choice was made
    record: tuple[str, ...]  # globs over tensor names


@dataclass
class Steps:
    """What the arrow keys of a presentation walk through, see :mod:`visformer.app.session.presentation_steps`."""

    turns: list[Turn] = field(default_factory=list)  # the outermost first
    places: list[str] = field(default_factory=list)  # name the step that is shown of each
    guide: Turn | None = None  # takes all steps itself
    note: str = ""  # for the presenter alone

    @property
    def place(self) -> str:
        """The step that is shown, such as "2/4"."""
        return " · ".join(filter(None, self.places))


@dataclass
class Run:
    """What one run shows."""

    request: Request | None = None  # the page's last one; None: it needs no trace
    trace: "Trace | None" = None  # answers the request
    problem: VisformerError | None = None  # why no trace does
    ahead: "Trace | None" = None  # its picture went ahead of the page
    caption: str = ""  # what to look for; a presentation shows it over the picture
    choices: dict[str, str | None] = field(default_factory=dict)  # on the page, by name; None: at its default
    steps: Steps = field(default_factory=Steps)


_RUN: Slot[Run | None] = Slot("run", None)


def begin(run: Run) -> Run:
    """Make this the run at hand, for itself and for the fragments and callbacks behind it."""
    _RUN.set(run)
    return run


def current() -> Run:
    """The run at hand."""
    return _RUN.get() or begin(Run())
