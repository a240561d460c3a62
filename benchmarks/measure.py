"""Measure two things alternately and tabulate their ratios. Does not import torch."""

import gc
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from visformer.system.memory import release_freed_memory

Result = TypeVar("Result")
Pairs = list[tuple[float, float]]
"""(ours, other) of each round."""


@dataclass(frozen=True)
class Effort:
    """How often to repeat.

    Args:
        least: minimum number of rounds for a row of the model, however long they take.
        seconds: time for further rounds, which narrow the interval.
        most: maximum number of rounds.
        warm_up: rounds before the first that counts.
        browser: starts of the server with a browser.
        sentences: sentences typed in the browser.
    """

    least: int = 40
    seconds: float = 5.0
    most: int = 1000
    warm_up: int = 8
    browser: int = 5
    sentences: int = 30


FULL = Effort()
QUICK = Effort(least=1, seconds=0.0, most=1, warm_up=0, browser=1, sentences=1)
"""Shows that everything runs; its numbers mean nothing."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        name: what is compared, ours first.
        size: number of tokens, or empty.
        pairs: (ours, other) of each round.
        unit: unit of the pairs, "ms" or "kB".
        goal: largest acceptable ratio; None: for information only.
    """

    name: str
    size: str
    pairs: Pairs
    unit: str = "ms"
    goal: float | None = None

    @property
    def ours(self) -> float:
        """Median of our side."""
        return statistics.median(ours for ours, _ in self.pairs)

    @property
    def other(self) -> float:
        """Median of the other side."""
        return statistics.median(other for _, other in self.pairs)

    @property
    def ratio(self) -> float:
        """Ratio of the medians."""
        return self.ours / self.other if self.other else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of the ratio, by bootstrap over the rounds."""
        pairs = np.array(self.pairs)
        resampled = np.random.default_rng(0).integers(len(pairs), size=(1000, len(pairs)))
        ours, other = np.median(pairs[resampled], axis=1).T
        low, high = np.percentile(ours / other, [2.5, 97.5]) if other.all() else (np.nan, np.nan)
        return float(low), float(high)

    @property
    def verdict(self) -> str:
        """Whether the goal is met; empty without a goal."""
        if self.goal is None:
            return ""
        return "met" if self.ratio <= self.goal else "MISSED"

    def as_json(self) -> dict[str, Any]:
        """The row for ``--json``."""
        return {
            "name": self.name,
            "size": self.size,
            "ratio": self.ratio,
            "interval": self.interval,
            "goal": self.goal,
            "verdict": self.verdict,
            "ours": self.ours,
            "other": self.other,
            "unit": self.unit,
            "rounds": len(self.pairs),
        }


def alternating(ours: Callable[[], Any], other: Callable[[], Any]) -> Iterator[tuple[Any, Any]]:
    """Run both repeatedly, in alternating order, so that neither is always second.

    Yields:
        (what ours returned, what other returned).
    """
    for ours_first in cycle((True, False)):
        if ours_first:
            mine = ours()
            yield mine, other()
        else:
            theirs = other()
            yield ours(), theirs


def clocked(run: Callable[[], Any]) -> Callable[[], float]:
    """Wrap a function so that it returns its duration in milliseconds, including the time to free its result."""

    def timed() -> float:
        begin = time.perf_counter()
        run()
        return 1000 * (time.perf_counter() - begin)

    return timed


def compare(ours: Callable[[], Any], other: Callable[[], Any], effort: Effort) -> Pairs:
    """Time both alternately, in milliseconds, with garbage collection turned off."""
    rounds = alternating(clocked(ours), clocked(other))
    for _ in range(effort.warm_up):
        next(rounds)
    pairs: Pairs = []
    gc.collect()
    gc.disable()
    try:
        end = time.perf_counter() + effort.seconds
        while len(pairs) < effort.least or (len(pairs) < effort.most and time.perf_counter() < end):
            pairs.append(next(rounds))
    finally:
        gc.enable()
    return pairs


def require(holds: bool, what: str) -> None:
    """Refuse to compare two things that do not do the same work."""
    if not holds:
        raise RuntimeError(f"not comparable: it is not true that {what}")


_HEAD = ("", "tokens", "ratio", "95 %", "goal", "", "ours", "other", "rounds")


def table(rows: Sequence[Row]) -> str:
    """Format all rows as aligned text."""
    return aligned([_HEAD, *(_cells(row) for row in rows)])


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """Align lines of cells in columns, the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for line in cells:
        numbers = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        lines.append("  ".join([line[0].ljust(widths[0]), *numbers]).rstrip())
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    low, high = row.interval
    goal = "" if row.goal is None else f"<= {row.goal:.2f}"
    medians = (f"{value:.{2 if value < 100 else 0}f} {row.unit}" for value in (row.ours, row.other))
    return (
        row.name,
        row.size,
        f"{row.ratio:.3f}",
        f"{low:.3f}-{high:.3f}" if low < high else "",
        goal,
        row.verdict,
        *medians,
        str(len(row.pairs)),
    )


def peak_of(run: Callable[[], Result]) -> tuple[Result, int]:
    """Return what a call returns, and by how many bytes the process grew meanwhile at most (Linux)."""
    release_freed_memory()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins at what is held now
    before = _status("VmRSS")
    made = run()
    return made, _status("VmHWM") - before


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])
