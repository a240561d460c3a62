"""What is measured of a tool, and of a sentence. No browser in here."""

import statistics
from dataclasses import dataclass, field

PEERS = ("bertviz-head", "bertviz-model", "inspectus", "circuitsvis")
OURS = "visformer"

ENTER_PAGES = ("visformer", "plotly", "forward")

TIMEOUT = 120
"""Seconds for build and paint together, and for anything else that a page is asked."""

RESIDENT = 1.0
"""Seconds after which all heads are to be in the browser."""


@dataclass(frozen=True)
class Plan:
    """How often to measure.

    Args:
        lengths: in tokens.
        rounds: of build and paint, of layer switches, and of sentences.
        starts: of a server, for the first sentence after one.
        seconds: no further round of build, paint or switch once that many are spent.
        moves: of the pointer.
        enter: tokens of the sentences.
    """

    lengths: tuple[int, ...] = (16, 64, 128, 256, 512, 1024)
    rounds: int = 5
    starts: int = 3
    seconds: float = 40.0
    moves: int = 200
    enter: int = 128


FULL = Plan()
QUICK = Plan(lengths=(16,), rounds=1, starts=1, moves=20, enter=16)
"""Shows that everything runs; its numbers mean nothing."""


@dataclass
class Costs:
    """Of one tool at one length. A list has one entry for each round; None: not measured, or not to be had.

    Args:
        tool: whose.
        n: tokens.
        failed: why something is missing; empty where nothing is.
        build_s: in Python, imports not counted.
        paint_s: from opening the page to painted.
        kilobytes: all that the page loaded, libraries too.
        switch_ms: a layer switch, from its event to painted.
        script_ms: the script of it alone.
        hover_p95_ms: over the moves, of the longest frame of each.
        hover_moves: how many there were.
        hover_changes: how many changed the readout; None where there is none to read.
        heap_mb: after a forced collection, typed arrays included.
        asked: how many layers had to be fetched when they were switched to, of ours.
        overview_kb: thumbnails of all heads, of ours.
        data_kb: of the Trace within RESIDENT seconds, labels apart, of ours.
    """

    tool: str
    n: int
    failed: str = ""
    build_s: list[float] = field(default_factory=list)
    paint_s: list[float] = field(default_factory=list)
    kilobytes: float | None = None
    switch_ms: list[float] = field(default_factory=list)
    script_ms: list[float] = field(default_factory=list)
    hover_p95_ms: float | None = None
    hover_moves: int = 0
    hover_changes: int | None = None
    heap_mb: float | None = None
    asked: int | None = None
    overview_kb: float | None = None
    data_kb: float | None = None

    @property
    def painted_s(self) -> float | None:
        """Median of building plus median of painting."""
        return statistics.median(self.build_s) + statistics.median(self.paint_s) if self.paint_s else None

    @property
    def switched_ms(self) -> float | None:
        """Median, from the event to painted."""
        return statistics.median(self.switch_ms) if self.switch_ms else None

    @property
    def scripted_ms(self) -> float | None:
        """Median of the switch's script."""
        return statistics.median(self.script_ms) if self.script_ms else None


@dataclass
class Enters:
    """Milliseconds from Enter to painted, of each sentence, at one length.

    Args:
        n: tokens.
        first_ms: ours, the first sentence after a start of the server.
        ms: page to what each further sentence took.
        failed: why something is missing; empty where nothing is.
    """

    n: int
    first_ms: list[float] = field(default_factory=list)
    ms: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in ENTER_PAGES})
    failed: str = ""

    @property
    def first(self) -> float | None:
        """Median, in milliseconds."""
        return statistics.median(self.first_ms) if self.first_ms else None

    def median(self, page: str) -> float | None:
        """In milliseconds."""
        return statistics.median(self.ms[page]) if self.ms[page] else None
