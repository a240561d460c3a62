"""Visitors who perform their tasks, and the outcome."""

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
class Outcome:
    """The outcome of all tasks.

    Args:
        enter: seconds from Enter to the picture's arrival, in order of time.
        other: page to the seconds that each visit to it took.
        rejected: number of submissions that the server turned away.
        waited: number of submissions that saw a notice of the queue.
        wrong: errors and how often they happened, without the text that was typed.
        late: maximum delay of a session against its plan, in seconds.
    """

    enter: list[float] = field(default_factory=list)
    other: dict[str, list[float]] = field(default_factory=dict)
    rejected: int = 0
    waited: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    late: float = 0.0
    seconds: float = 0.0

    def take(self, answer: Answer, expected: Expected) -> None:
        """Compare the answer to a submission with the expected one."""
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
        """The outcome as numbers."""
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
    """Return quantiles in milliseconds."""
    if len(seconds) < 2:
        return {"n": len(seconds)}
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    values = {"n": len(seconds), "p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(seconds)}
    return {name: value if name == "n" else round(1000 * value, 1) for name, value in values.items()}


async def perform(visitor: Visitor, task: Task, expected: Mapping[str, Expected], outcome: Outcome) -> None:
    """Perform one task and count what goes wrong."""
    wanted = expected[task.sentence]
    outcome.take(await visitor.enter(task.sentence), wanted)
    if not task.then:
        return
    answers = [await visitor.visit(task.then)]
    if task.then == "decoding":
        answers.append(await visitor.choose("decoding_view", "beams"))
    for answer in answers:
        outcome.other.setdefault(task.then, []).append(answer.seconds)
        if not answer.rejected and answer.translation != wanted.translation:
            outcome.wrong[f"another translation on the page {task.then}"] += 1
    await visitor.visit("attention")


async def lone(address: str, tasks: Sequence[Task], expected: Mapping[str, Expected]) -> Outcome:
    """Let one visitor work through the list, one task after another."""
    outcome, begin = Outcome(), time.perf_counter()
    visitor = Visitor(address)
    await visitor.open()
    for task in tasks:
        await perform(visitor, task, expected, outcome)
    await visitor.close()
    outcome.seconds = time.perf_counter() - begin
    return outcome


async def crowd(
    address: str, tasks: Sequence[Task], expected: Mapping[str, Expected], everybody: asyncio.Barrier | None = None
) -> Outcome:
    """Let each session do its own tasks at their planned times, starting once all are connected.

    Args:
        address: address of the server.
        tasks: tasks of all sessions.
        expected: expected result of each sentence.
        everybody: barrier to wait at once all sessions are open; None: there are no other visitors.
    """
    outcome, own = Outcome(), {task.session: [] for task in tasks}  # type: dict[int, list[Task]]
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
            outcome.late = max(outcome.late, -wait)
            await asyncio.sleep(max(0.0, wait))
            try:
                await perform(visitor, task, expected, outcome)
            except Wrong as error:
                outcome.wrong[str(error)] += 1
            except Exception as error:
                outcome.wrong[f"{type(error).__name__} in a session"] += 1
                return
        await visitor.close()

    await asyncio.gather(*map(stay, own))
    outcome.seconds = time.perf_counter() - begin
    return outcome
