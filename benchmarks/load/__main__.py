"""The load test: ``python -m benchmarks.load [--sessions 60] [--minutes 5] [--hostile 10] [--training]``."""

import argparse
import asyncio
import json
import re
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import browser
from benchmarks.__main__ import machine_facts
from benchmarks.load.expected import Expected, expected
from benchmarks.load.hostile import attack
from benchmarks.load.plan import Task, tasks
from benchmarks.load.replicas import Site, wait_until_ready
from benchmarks.load.room import Outcome, crowd, lone
from benchmarks.load.tabs import tabs
from benchmarks.load.trainer import watch_trainings

ROOM = replace(browser.APP, command=f"{browser.APP.command} --room")
INTERVAL = 5.0
"""Seconds between two readings of the server's metrics."""

GOAL = 3.0
"""Limit of the crowd's 95th percentile of Enter to picture, as a multiple of the lone visitor's."""

GOALS_BESIDE = {"hostile": 2.0, "training": 1.5}
"""Limits of the same with hostile visitors, or one who watches trainings, as multiples of that without them."""

MOST_MEMORY = 2000
"""Limit of the memory of the server and its processes, in MB, with others beside the room."""

MOST_REJECTED = 0.01
_METRIC = re.compile(r'^(\w+)(?:\{\w+="([^"]*)"\})? ([-+.\deE]+)$', re.MULTILINE)


Company = Callable[[str, asyncio.Barrier, asyncio.Event], Awaitable[Any]]
"""What goes on at an address from when everybody is there until the others are done; returns what was done."""


class Watch:
    """Reads the metrics of one or more processes while others use them."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses
        self.seen: list[dict[str, float]] = []

    def read(self) -> dict[str, float]:
        """Read all current metrics, with a label's value after the name, summed over processes."""
        total: Counter[str] = Counter()
        for address in self._addresses:
            with urllib.request.urlopen(f"{address}/metrics", timeout=30) as response:
                for name, label, value in _METRIC.findall(response.read().decode()):
                    total[f"{name} {label}".strip()] += float(value)  # type: ignore[assignment]
        return dict(total)

    async def stay(self) -> None:
        """Read the metrics regularly until cancelled."""
        while True:
            self.seen.append(await asyncio.to_thread(self.read))
            await asyncio.sleep(INTERVAL)

    def as_json(self) -> dict[str, Any]:
        """The server's metrics, at the end and along the way."""
        last = self.seen[-1]
        cpu = "process_cpu_seconds_total"
        names = ("visformer_requests_total", "visformer_forward_seconds_", "visformer_queue_seconds_")
        return {
            "memory, MB": [round(_all(seen, "process_resident_memory_bytes") / 2**20) for seen in self.seen],
            "kept, MB": [round(seen["visformer_kept_bytes"] / 2**20, 1) for seen in self.seen],
            "queue at most": max(seen["visformer_queue_length"] for seen in self.seen),
            "sessions at most": max(seen["visformer_sessions"] for seen in self.seen),
            "cpu seconds": round(_all(last, cpu) - _all(self.seen[0], cpu), 1),
            "metrics": {name: value for name, value in last.items() if name.startswith(names)},
        }


def _all(metrics: Mapping[str, float], name: str) -> float:
    """Sum a metric over the process that serves the pages and those that compute."""
    return sum(value for each, value in metrics.items() if each.endswith(name))


@contextmanager
def _served(folder: Path, *, replicas: bool) -> Iterator[tuple[str, Watch]]:
    """Start an app, logging to files in the folder; yields its address and its metrics."""
    folder.mkdir()
    if not replicas:
        with browser.server(ROOM, log=folder / "server.log") as address:
            wait_until_ready(address)
            yield address, Watch(address)
        return
    site = Site(folder)
    try:
        site.wait()
        yield site.address, Watch(*(replica.address for replica in site.replicas))
    finally:
        site.close()


async def _watched(watch: Watch, *visits: Any) -> list[Outcome]:
    watching = asyncio.create_task(watch.stay())
    result = await asyncio.gather(*visits)
    watching.cancel()
    watch.seen.append(watch.read())
    return result


async def _room(
    address: str, watch: Watch, by_session: Sequence[Task], by_tab: Sequence[Task], looked_up: Mapping[str, Expected]
) -> list[Outcome]:
    everybody = asyncio.Barrier(2)  # opening browsers takes both cores for seconds, which must not be measured
    return await _watched(
        watch,
        crowd(address, by_session, looked_up, everybody),
        tabs(address, by_tab, looked_up, everybody),
    )


async def _beside(
    address: str, watch: Watch, planned: Sequence[Task], looked_up: Mapping[str, Expected], company: Company
) -> list[Any]:
    """Let the crowd do its tasks beside company, which stays until they are done."""
    everybody, over = asyncio.Barrier(2), asyncio.Event()

    async def others() -> Outcome:
        try:
            return await crowd(address, planned, looked_up, everybody)
        finally:
            over.set()

    return await _watched(watch, others(), company(address, everybody, over))


def _companies(options: argparse.Namespace) -> dict[str, Company]:
    """Return who else is there, by the name of the goal."""
    companies: dict[str, Company] = {}
    if options.hostile:
        companies["hostile"] = partial(attack, number=options.hostile)
    if options.training:
        companies["training"] = watch_trainings
    return companies


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the lone visitor and then the crowd, each on a freshly started server."""
    planned = tasks(options.sessions + options.tabs, 60 * options.minutes)
    looked_up = expected(task.sentence for task in planned)
    alone = [task for task in planned if task.at < 60 * options.lone]
    by_tab = [task for task in planned if task.session < options.tabs]
    by_session = [task for task in planned if task.session >= options.tabs]
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / name for name in ("lone", "crowd")]
        with _served(places[0], replicas=options.replicas) as (address, watch):
            (one,) = asyncio.run(_watched(watch, lone(address, alone, looked_up)))
            print("The lone visitor has done its tasks.", flush=True)
        with _served(places[1], replicas=options.replicas) as (address, watch):
            many, seen = asyncio.run(_room(address, watch, by_session, by_tab, looked_up))
        beside = {}
        for name, company in _companies(options).items():
            places.append(Path(folder) / name)
            with _served(places[-1], replicas=options.replicas) as (address, among):
                others, done = asyncio.run(_beside(address, among, by_session, looked_up, company))
            beside[name] = {"others": others.as_json(), "done": dict(done), "server": among.as_json()}
        logged = "".join(log.read_text() for place in places for log in place.glob("*.log"))
    return {
        "plan": {
            "sessions": options.sessions,
            "tabs": options.tabs,
            "minutes": options.minutes,
            "tasks": len(planned),
            "processes": 2 if options.replicas else 1,
        },
        "lone visitor": one.as_json(),
        "sessions": many.as_json(),
        "tabs": seen.as_json(),
        "server": watch.as_json(),
        "beside": beside,
        "sentences in the log": sum(task.sentence in logged for task in planned),
        "errors in the log": [text[:3000] for text in logged.split("Traceback")[1:]],
    }


def verdicts(result: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Return each goal, what was measured, and whether the goal is met."""
    one, many, seen = (result[name] for name in ("lone visitor", "sessions", "tabs"))
    ratio = many["Enter to picture"]["p95"] / one["Enter to picture"]["p95"]
    rejected = (many["rejected"] + seen["rejected"]) / (many["submissions"] + seen["submissions"])
    wrong = sum(sum(who["wrong"].values()) for who in (one, many, seen))
    memory = result["server"]["memory, MB"]
    half, last = memory[len(memory) // 2], memory[-1]
    logged = result["errors in the log"]
    return [
        *_verdicts_beside(result),
        ("nothing wrong, no result of another's", f"{wrong} wrong", wrong == 0),
        ("no error in the server's log", f"{len(logged)}", not logged),
        ("nothing typed in the server's log", f"{result['sentences in the log']}", not result["sentences in the log"]),
        (f"p95 at most {GOAL:.0f} times the lone visitor's", f"{ratio:.2f} times", ratio <= GOAL),
        (f"at most {MOST_REJECTED:.0%} rejected", f"{rejected:.2%}", rejected <= MOST_REJECTED),
        ("memory of the second half", f"{half} to {last} MB", last <= 1.1 * half),
    ]


def _verdicts_beside(result: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    for name, seen in result["beside"].items():
        others, memory = seen["others"], max(seen["server"]["memory, MB"])
        ratio = others["Enter to picture"]["p95"] / result["sessions"]["Enter to picture"]["p95"]
        wrong = sum(others["wrong"].values()) + others["rejected"]
        goal = GOALS_BESIDE[name]
        yield f"{name}: p95 of the others at most {goal} times", f"{ratio:.2f} times", ratio <= goal
        yield f"{name}: memory at most {MOST_MEMORY} MB", f"{memory} MB", memory <= MOST_MEMORY
        yield f"{name}: the others see no error", f"{wrong} errors", wrong == 0


def report(result: Mapping[str, Any]) -> str:
    """Format the results as a table."""
    lines = ["                       n    p50 ms   p95 ms   p99 ms   max ms   per s"]
    people = {name: result[name] for name in ("lone visitor", "sessions", "tabs")}
    people |= {f"beside {name}": seen["others"] for name, seen in result["beside"].items()}
    for name, who in people.items():
        times = who["Enter to picture"]
        cells = "".join(f"{times.get(q, float('nan')):9.1f}" for q in ("p50", "p95", "p99", "max"))
        lines.append(f"{name:18}{times['n']:6d} {cells}{who['per second']:8.2f}")
    metrics = result["server"]["metrics"]
    queued = metrics["visformer_queue_seconds_sum"] / max(1, metrics["visformer_queue_seconds_count"])
    forward = metrics["visformer_forward_seconds_sum"] / max(1, metrics["visformer_forward_seconds_count"])
    lines.append(
        f"\nforward pass {1000 * forward:.1f} ms, queue {1000 * queued:.1f} ms on average, "
        f"{result['server']['queue at most']:.0f} waiting at most in any reading"
    )
    outcomes = {n.split()[1]: int(v) for n, v in metrics.items() if n.startswith("visformer_requests_total")}
    lines.append("requests: " + ", ".join(f"{n} {outcome}" for outcome, n in outcomes.items()) + "\n")
    for goal, measured, met in verdicts(result):
        lines.append(f"{'met   ' if met else 'MISSED'}  {goal}: {measured}")
    for name, who in people.items():
        lines += [f"  {name}: {n} x {what}" for what, n in who["wrong"].items()]
    for name, seen in result["beside"].items():
        lines += [f"  {name}: {n} x {what}" for what, n in sorted(seen["done"].items())]
    if logged := result["errors in the log"]:
        lines.append(f"\nThe first error in the server's log:\nTraceback{logged[0]}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and save if requested."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description="Load test of a full classroom.")
    parser.add_argument("--sessions", type=int, default=60, help="sessions over the websocket")
    parser.add_argument("--tabs", type=int, default=3, help="additional tabs of Chromium")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--hostile", type=int, default=0, help="once more with so many hostile visitors among them")
    parser.add_argument("--training", action="store_true", help="once more beside trainings, best with --tabs 0")
    parser.add_argument(
        "--lone", type=float, default=5.0, help="minutes of the list that the lone visitor works through"
    )
    parser.add_argument("--replicas", action="store_true", help="two replicas behind nginx, as in docs/deploy.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save everything there too")
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print("\n".join(f"{name}: {value}" for name, value in facts.items()), flush=True)
    result = {"machine": facts, **measure(options)}
    print("\n" + report(result))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
