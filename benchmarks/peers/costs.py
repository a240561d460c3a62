"""What is measured of a tool, and of a sentence. Does not use a browser."""

import statistics
from dataclasses import dataclass, field

PEERS = ("bertviz-head", "bertviz-model", "inspectus", "circuitsvis")
OURS = "visformer"

ENTER_PAGES = ("visformer", "plotly", "forward")

TIMEOUT = 120
"""Time limit in seconds for build and paint together, and for any other call into a page."""

RESIDENT = 1.0
"""Seconds after which all heads should be in the browser."""


@dataclass(frozen=True)
class Plan:
    """How often to measure.

    Args:
        lengths: lengths in tokens.
        rounds: number of builds and paints, of layer switches, and of sentences.
        starts: number of server starts, each followed by a first sentence.
        seconds: time after which no further round of build, paint or switch begins.
        moves: number of pointer moves.
        enter: tokens per sentence.
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
    """Costs of one tool at one length. A list has one entry for each round; None: not measured, or not available.

    Args:
        tool: name of the tool.
        n: number of tokens.
        failed: why something is missing; empty if nothing is.
        build_s: build time in Python, without imports.
        paint_s: time from opening the page to painted.
        kilobytes: everything that the page loaded, including libraries.
        switch_ms: time of a layer switch, from its event to painted.
        script_ms: time of its script alone.
        hover_p95_ms: 95th percentile, over the moves, of the longest frame of each.
        hover_moves: number of moves.
        hover_changes: number of moves that changed the readout; None if there is no readout.
        heap_mb: JavaScript heap after a forced collection, including typed arrays.
        asked: number of layers that had to be fetched when switched to (ours only).
        overview_kb: thumbnails of all heads (ours only).
        data_kb: data of the Trace within RESIDENT seconds, without labels (ours only).
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
        """Median build time plus median paint time."""
        return statistics.median(self.build_s) + statistics.median(self.paint_s) if self.paint_s else None

    @property
    def switched_ms(self) -> float | None:
        """Median time of a switch, from the event to painted."""
        return statistics.median(self.switch_ms) if self.switch_ms else None

    @property
    def scripted_ms(self) -> float | None:
        """Median time of the switch's script."""
        return statistics.median(self.script_ms) if self.script_ms else None


@dataclass
class Enters:
    """Milliseconds from Enter to painted for each sentence, at one length.

    Args:
        n: number of tokens.
        first_ms: first sentence after a server start (ours only).
        ms: page to the time of each further sentence.
        failed: why something is missing; empty if nothing is.
    """

    n: int
    first_ms: list[float] = field(default_factory=list)
    ms: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in ENTER_PAGES})
    failed: str = ""

    @property
    def first(self) -> float | None:
        """Median of the first sentence, in milliseconds."""
        return statistics.median(self.first_ms) if self.first_ms else None

    def median(self, page: str) -> float | None:
        """Median of a page, in milliseconds."""
        return statistics.median(self.ms[page]) if self.ms[page] else None
