"""A room that guesses: ``python -m benchmarks.load.guess [--phones 60] [--json FILE]``.

Simulated phones over Streamlit's own websocket follow one presenter and answer a question: first each taps a few times
within some seconds, then all of them tap within one. Some lose their line and come back, some arrive late; then the
presenter reveals the answer.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import browser
from benchmarks.__main__ import machine_facts
from benchmarks.load.__main__ import ROOM
from benchmarks.load.replicas import wait_until_ready
from benchmarks.load.room import quantiles
from benchmarks.load.visitor import TIMEOUT, Phone, Presenter

TAP_GOAL, REVEAL_GOAL = 1.0, 5.0
"""Seconds: for the 95th percentile of a tap, and until the last phone shows the answer."""

_SENTENCE = "text=I+went+to+Northeastern+University."


async def _tapping(phones: Sequence[Phone], *, taps: int, seconds: float) -> list[float]:
    """Let each phone tap so many times at random moments of so many seconds."""

    async def stay(phone: Phone, chance: random.Random) -> list[float]:
        begin, took = time.perf_counter(), []
        for moment in sorted(chance.uniform(0, seconds) for _ in range(taps)):
            await asyncio.sleep(max(0.0, begin + moment - time.perf_counter()))
            took.append(await phone.tap(chance.randrange(len(phone.options))))
        return took

    each = await asyncio.gather(*(stay(phone, random.Random(i)) for i, phone in enumerate(phones)))
    return [seconds for took in each for seconds in took]


async def measure(address: str, options: argparse.Namespace) -> dict[str, Any]:
    """Ask a room a question on a running server."""
    presenter = Presenter(address)
    await presenter.open(_SENTENCE)
    await presenter.invite()
    phones = [Phone(address, presenter.code) for _ in range(options.phones)]
    late = phones[len(phones) * 9 // 10 :]
    early = phones[: len(phones) - len(late)]
    for phone in early:
        await phone.scan()
    await presenter.press("guess_begin")
    await presenter.press("guess_ask")
    for phone in early:  # they are drawn twice, without having asked: once while the question is chosen
        while not phone.options:
            await asyncio.wait_for(phone._answer(time.perf_counter()), TIMEOUT)
    calm = await _tapping(early, taps=options.taps, seconds=options.seconds)
    rush = await _tapping(early, taps=1, seconds=1.0)
    arrived = [await phone.scan() for phone in late]
    lost, wrong = early[: len(late)], 0
    for phone in lost:
        before, phone.chosen = sorted(phone.chosen), []
        await phone.close()
        await phone.scan()
        wrong += sorted(phone.chosen) != before
    waiting = asyncio.gather(*(phone.wait() for phone in phones))
    begin = time.perf_counter()
    await presenter.press("guess_reveal")
    await waiting
    for visitor in (presenter, *phones):
        await visitor.close()
    return {
        "taps": quantiles(calm),
        "all within a second": quantiles(rush),
        "late phones": quantiles(arrived),
        "reveal": quantiles([phone.revealed - begin for phone in phones]),
        "lost phones": len(lost),
        "without their answer": wrong,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and save if requested."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.guess", description="A room that guesses.")
    parser.add_argument("--phones", type=int, default=60)
    parser.add_argument("--taps", type=int, default=3, help="of each phone")
    parser.add_argument("--seconds", type=float, default=10.0, help="within which they tap")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save everything there too")
    options = parser.parse_args(arguments)
    facts = machine_facts()
    print("\n".join(f"{name}: {value}" for name, value in facts.items()), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        with browser.server(ROOM, log=log) as address:
            wait_until_ready(address)
            found = asyncio.run(measure(address, options))
        errors = log.read_text(encoding="utf-8").count("Traceback")
    print("\n                            n    p50 ms   p95 ms   p99 ms   max ms")
    for name, times in found.items():
        if isinstance(times, dict):
            cells = "".join(f"{times.get(q, float('nan')):9.1f}" for q in ("p50", "p95", "p99", "max"))
            print(f"{name:22}{times['n']:7d} {cells}")
    goals = [
        (f"p95 of a tap at most {TAP_GOAL:.0f} s", found["taps"]["p95"] <= 1000 * TAP_GOAL),
        ("the same where all tap within a second", found["all within a second"]["p95"] <= 1000 * TAP_GOAL),
        (f"the answer on every phone within {REVEAL_GOAL:.0f} s", found["reveal"]["max"] <= 1000 * REVEAL_GOAL),
        (f"{found['lost phones']} lost phones came back to their answer", not found["without their answer"]),
        ("no error in the server's log", not errors),
    ]
    print("\n" + "\n".join(f"{'met   ' if met else 'MISSED'}  {goal}" for goal, met in goals))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"machine": facts, **found}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
