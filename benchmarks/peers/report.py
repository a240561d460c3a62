"""Report the results: the table of ratios, peers compared with visformer, and the goals. Does not use a browser."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.measure import aligned
from benchmarks.peers.costs import OURS, PEERS, RESIDENT, TIMEOUT, Costs, Enters
from benchmarks.peers.subjects import N_LAYERS

NAMES = {
    "visformer": "visformer",
    "bertviz-head": "BertViz, head view",
    "bertviz-model": "BertViz, model view",
    "inspectus": "Inspectus (one summed matrix)",
    "circuitsvis": "CircuitsVis",
}

METRICS = (
    ("kilobytes", "kB", "bytes to the browser, libraries included"),
    ("painted_s", "s", "built and painted"),
    ("switched_ms", "ms", "layer switch to painted"),
    ("hover_p95_ms", "ms", "hover: p95 of the longest frame of each move"),
    ("heap_mb", "MB", "JS heap after a forced collection"),
)

GOAL_N = 128
"""Number of tokens for goals that name no other."""

LONG = (512, 1024)


@dataclass(frozen=True)
class Result:
    """One run.

    Args:
        costs: costs of each tool at each length.
        enters: times from Enter to painted.
    """

    costs: Sequence[Costs]
    enters: Enters

    def of(self, tool: str, n: int) -> Costs | None:
        """Return the costs of a tool at a length; None: not measured."""
        return next((costs for costs in self.costs if (costs.tool, costs.n) == (tool, n)), None)

    @property
    def lengths(self) -> list[int]:
        """Measured lengths in tokens, ascending."""
        return sorted({costs.n for costs in self.costs})

    def as_json(self) -> dict[str, Any]:
        """Return every round, and the goals."""
        return {
            "costs": [asdict(costs) for costs in self.costs],
            "enter": asdict(self.enters),
            "goals": [asdict(goal) | {"verdict": goal.verdict} for goal in goals(self)],
        }


@dataclass(frozen=True)
class Goal:
    """One line of the second table.

    Args:
        name: what is to be achieved, with its size.
        value: measured value; None: not measured, or not possible.
        limit: maximum of ``value``, or minimum.
        least: whether ``limit`` is the minimum.
        unit: unit of both.
        failed: why there is no value, if our side failed.
    """

    name: str
    value: float | None
    limit: float
    least: bool = False
    unit: str = ""
    failed: str = ""

    @property
    def verdict(self) -> str:
        """Whether the goal is met; empty if nothing was measured."""
        if self.value is None:
            return "MISSED" if self.failed else ""
        return "met" if (self.value >= self.limit if self.least else self.value <= self.limit) else "MISSED"


def tables(result: Result) -> str:
    """Format both tables as aligned text."""
    parts = [f"{title}, {unit}\n{aligned(_block(result, attribute))}" for attribute, unit, title in METRICS]
    parts.append(f"Enter to painted at {result.enters.n} tokens, ms\n{aligned(list(_enter_lines(result)))}")
    parts.append(f"goals\n{aligned([_HEAD, *map(_goal_line, goals(result))])}")
    return "\n\n".join(parts)


def _block(result: Result, attribute: str) -> list[tuple[str, ...]]:
    """Lines of one metric: our value, and each peer's with its ratio to ours."""
    lines = [("tokens", *(str(n) for n in result.lengths))]
    for tool in (OURS, *PEERS):
        cells = [cell(result.of(tool, n), result.of(OURS, n), attribute) for n in result.lengths]
        lines.append((NAMES[tool], *cells))
    return lines


def cell(costs: Costs | None, ours: Costs | None, attribute: str) -> str:
    """Format a value and its ratio to ours, or why there is no value."""
    if costs is None:
        return ""
    value = getattr(costs, attribute)
    if value is None:
        return costs.failed.partition(":")[0] or "-"
    base = getattr(ours, attribute) if ours and ours is not costs else None
    return f"{number(value)} x{number(value / base)}" if base else number(value)


def number(value: float) -> str:
    """Format a number with three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value: float | None, base: float | None) -> float | None:
    """Return the ratio; None if either value is missing."""
    return value / base if value is not None and base else None


def _enter_lines(result: Result) -> Iterator[tuple[str, ...]]:
    enters = result.enters
    ours = enters.median("visformer")
    for name, ms in (
        ("visformer", ours),
        ("visformer, first after a start", enters.first),
        ("one Plotly figure per head", enters.median("plotly")),
        ("the forward pass alone", enters.median("forward")),
    ):
        times = ratio(ms, ours)
        yield name, "-" if ms is None else number(ms), "" if times is None else f"x{number(times)}"


_HEAD = ("", "measured", "goal", "")


def _goal_line(goal: Goal) -> tuple[str, ...]:
    measured = (
        goal.failed.partition(":")[0] or "not measured"
        if goal.value is None
        else f"{number(goal.value)} {goal.unit}".rstrip()
    )
    limit = f"{'>=' if goal.least else '<='} {number(goal.limit)} {goal.unit}".rstrip()
    return goal.name, measured, limit, goal.verdict


def goals(result: Result) -> list[Goal]:
    """Return all goals, in the order of a visit: Enter, switch, bytes, long inputs."""
    return [*_enter_goals(result), *_switch_goals(result), *_byte_goals(result), *_long_goals(result)]


def _enter_goals(result: Result) -> Iterator[Goal]:
    enters = result.enters
    ours, size = enters.median("visformer"), f"{enters.n} tokens"
    to_plotly, to_forward = ratio(enters.median("plotly"), ours), ratio(ours, enters.median("forward"))
    yield Goal(f"one Plotly figure per head / ours, Enter to painted, {size}", to_plotly, 15, True)
    yield Goal(f"ours / the forward pass alone, Enter to painted, {size}", to_forward, 1.6)
    for tool, least in (("bertviz-model", 40), ("inspectus", 2.5)):
        theirs = result.of(tool, enters.n)
        name = f"{NAMES[tool]}, built and painted / our first Enter after a start, {size}"
        ms = 1000 * (theirs.painted_s or TIMEOUT) if theirs else None  # a failure counts as the time limit
        yield Goal(name, ratio(ms, enters.first), least, True)


def _switch_goals(result: Result) -> Iterator[Goal]:
    ours, theirs = result.of(OURS, GOAL_N), result.of("bertviz-head", GOAL_N)
    if ours is None:
        return
    value = ratio(theirs.switched_ms if theirs else None, ours.switched_ms)
    yield Goal(f"BertViz, head view / ours, layer switch, {GOAL_N} tokens", value, 100, True, failed=ours.failed)
    name = f"our script for a layer switch, {GOAL_N} tokens"
    yield Goal(name, ours.scripted_ms, 16, unit="ms", failed=ours.failed)


def _byte_goals(result: Result) -> Iterator[Goal]:
    for n in result.lengths:
        ours = result.of(OURS, n)
        yield Goal(f"our overview, labels apart, {n} tokens", ours.overview_kb if ours else None, 600, unit="kB")
        if n <= GOAL_N:
            yield Goal(f"our bytes after {RESIDENT:.0f} s, {n} tokens", ours.data_kb if ours else None, 2600, unit="kB")
            name = f"layers of {N_LAYERS} still to be fetched after {RESIDENT:.0f} s, {n} tokens"
            yield Goal(name, ours.asked if ours else None, 0)


def _long_goals(result: Result) -> Iterator[Goal]:
    for n in result.lengths:
        ours = result.of(OURS, n)
        if ours is None:
            continue
        failed = ours.failed
        if n in LONG:
            yield Goal(f"ours is painted, {n} tokens", ours.painted_s, TIMEOUT, unit="s", failed=failed)
        name = f"our hover, p95 of the longest frame of each of {ours.hover_moves} moves, {n} tokens"
        yield Goal(name, ours.hover_p95_ms, 17, unit="ms", failed=failed)
        changed = None if ours.hover_changes is None else ours.hover_changes / ours.hover_moves
        yield Goal(f"part of the moves that changed our readout, {n} tokens", changed, 1, True, failed=failed)
