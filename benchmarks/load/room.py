"""Visitors at their tasks, and what they found."""

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.load.expected import Expected
from benchmarks.load.plan import Task
from benchmarks.load.visitor import Answer, Visitor, Wrong


@dataclass
class Found:
    """What came of all tasks.

    Args:
        enter: seconds from Enter to the picture's arrival, in order of time.
        other: seconds of the other pages, by page.
        rejected: submissions that the server turned away.
        waited: submissions that were told of the queue.
        wrong: what should not have happened, in words without what was typed.
        late: seconds by which sessions could not keep to their plan, at most.
    """

    enter: list[float] = field(default_factory=list)
    other: dict[str, list[float]] = field(default_factory=dict)
    rejected: int = 0
    waited: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    late: float = 0.0
    seconds: float = 0.0

    def take(self, answer: Answer, expected: Expected) -> None:
        """Hold an answer to a submission against what it has to be."""
        self.waited += answer.waited
        if answer.rejected:
            self.rejected += 1
            return
        self.enter.append(answer.seconds)
        if answer.picture is None:
            self.wrong["a sentence brought no picture"] += 1
        elif answer.picture.tokens != expected.picture.tokens:
            self.wrong["tokens of another sentence"] += 1
        elif answer.picture.digest != expected.picture.digest:
            self.wrong["other weights than computed alone"] += 1
        elif answer.translation != expected.translation:
            self.wrong["another translation than computed alone"] += 1

    def as_json(self) -> dict[str, object]:
        """All of it, as numbers."""
        return {
            "submissions": len(self.enter) + self.rejected,
            "per second": round((len(self.enter) + self.rejected) / self.seconds, 2),
            "Enter to picture": quantiles(self.enter),
            "other pages": {page: quantiles(seconds) for page, seconds in sorted(self.other.items())},
            "rejected": self.rejected,
            "told of the queue": self.waited,
            "wrong": dict(self.wrong),
            "late at most, s": round(self.late, 2),
            "seconds": round(self.seconds, 1),
        }


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """In milliseconds."""
    if len(seconds) < 2:
        return {"n": len(seconds)}
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    chosen = {"n": len(seconds), "p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(seconds)}
    return {name: value if name == "n" else round(1000 * value, 1) for name, value in chosen.items()}


async def perform(visitor: Visitor, task: Task, expected: Mapping[str, Expected], found: Found) -> None:
    """One task; what goes wrong is counted."""
    asked = expected[task.sentence]
    found.take(await visitor.enter(task.sentence), asked)
    if not task.then:
        return
    answers = [await visitor.visit(task.then)]
    if task.then == "decoding":
        answers.append(await visitor.choose("decoding_view", "beams"))
    for answer in answers:
        found.other.setdefault(task.then, []).append(answer.seconds)
        if not answer.rejected and answer.translation != asked.translation:
            found.wrong[f"another translation on the page {task.then}"] += 1
    await visitor.visit("")


async def lone(address: str, tasks: Sequence[Task], expected: Mapping[str, Expected]) -> Found:
    """One visitor who works through the list, one task after another."""
    found, begin = Found(), time.perf_counter()
    visitor = Visitor(address)
    await visitor.open()
    for task in tasks:
        await perform(visitor, task, expected, found)
    await visitor.close()
    found.seconds = time.perf_counter() - begin
    return found


async def crowd(
    address: str, tasks: Sequence[Task], expected: Mapping[str, Expected], everybody: asyncio.Barrier | None = None
) -> Found:
    """Each session does its own tasks when their time has come, once everybody is there.

    Args:
        address: of the server.
        tasks: of all sessions.
        expected: by sentence.
        everybody: passed once all sessions are open; None: nobody else comes.
    """
    found, own = Found(), {task.session: [] for task in tasks}  # type: dict[int, list[Task]]
    for task in tasks:
        own[task.session].append(task)
    visitors = {session: Visitor(address) for session in own}
    for visitor in visitors.values():
        await visitor.open()
    if everybody is not None:
        await everybody.wait()
    begin = time.perf_counter()

    async def stay(session: int) -> None:
        visitor = visitors[session]
        for task in own[session]:
            wait = begin + task.at - time.perf_counter()
            found.late = max(found.late, -wait)
            await asyncio.sleep(max(0.0, wait))
            try:
                await perform(visitor, task, expected, found)
            except Wrong as error:
                found.wrong[str(error)] += 1
            except Exception as error:
                found.wrong[f"{type(error).__name__} in a session"] += 1
                return
        await visitor.close()

    await asyncio.gather(*map(stay, own))
    found.seconds = time.perf_counter() - begin
    return found
