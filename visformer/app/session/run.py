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
    """What a page asks of the model.

    Args:
        source: the sentence.
        target: as typed; None: the model finds its own.
        model: see :func:`visformer.app.session.boxes.model`.
        record: the tensors to record.
    """

    source: str
    target: str | None
    model: str | None
    record: tuple[str, ...]


@dataclass
class Steps:
    """What the arrow keys of a presentation walk through, see :mod:`visformer.app.session.presentation_steps`.

    Args:
        turns: the outermost first.
        places: name the step that is shown of each.
        guide: takes all steps itself.
        note: for the presenter alone.
    """

    turns: list[Turn] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    guide: Turn | None = None
    note: str = ""

    @property
    def place(self) -> str:
        """The step that is shown, such as "2/4"."""
        return " · ".join(filter(None, self.places))


@dataclass
class Run:
    """What one run shows.

    Args:
        is_new: whether the session has just begun: its browser has drawn nothing yet.
        request: the last one of the page; None: it has asked for nothing.
        trace: that answers it.
        problem: why there is none.
        ahead: the Trace whose picture went ahead of the page.
        caption: what the page says to look for; a presentation shows it over the picture.
        choices: on the page, as texts by name; None: as at first.
        steps: that the page offers.
        link: what goes along to every page, once this one is drawn.
    """

    is_new: bool = False
    request: Request | None = None
    trace: "Trace | None" = None
    problem: VisformerError | None = None
    ahead: "Trace | None" = None
    caption: str = ""
    choices: dict[str, str | None] = field(default_factory=dict)
    steps: Steps = field(default_factory=Steps)
    link: dict[str, str] = field(default_factory=dict)


_RUN: Slot[Run | None] = Slot("run", None)


def begin(run: Run) -> Run:
    """Make this the run at hand, for itself and for the fragments and callbacks behind it."""
    _RUN.set(run)
    return run


def current() -> Run:
    """The run at hand."""
    return _RUN.get() or begin(Run())
