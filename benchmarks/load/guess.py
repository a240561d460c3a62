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
from urllib.parse import parse_qs, urlsplit

from streamlit.proto.WidgetStates_pb2 import WidgetState

from benchmarks import browser
from benchmarks.__main__ import machine_facts
from benchmarks.load.__main__ import ASGI
from benchmarks.load.replicas import wait_until_ready
from benchmarks.load.room import quantiles
from benchmarks.load.visitor import TIMEOUT, Answer, Visitor, Wrong
from benchmarks.messages import read_message

TAP_GOAL, REVEAL_GOAL = 1.0, 5.0
"""Seconds: for the 95th percentile of a tap, and until the last phone shows the answer."""

_SENTENCE = "text=I+went+to+Northeastern+University."
_TAKEN = "Your guess is in."


def event(component: str, name: str, value: str) -> WidgetState:
    """Return what a browser sends for a trigger of a component; ``component``: its id."""
    sent = json.dumps([{"event": name, "value": value}])
    return WidgetState(id=f"$$STREAMLIT_INTERNAL_KEY_{component}__events", json_trigger_value=sent)


class Presenter(Visitor):
    """Lets a room follow, asks it, and reveals the answer."""

    code = ""

    async def invite(self) -> None:
        """Let the room follow; afterwards ``code`` is its code."""
        await self.trigger(event(self._widget("present"), "ask", "follow"))

    def _seen(self, element: Any, answer: Answer, begin: float) -> bytes:
        if element.WhichOneof("type") == "bidi_component" and element.bidi_component.component_name == "visformer_feed":
            header, _ = read_message(element.bidi_component.bytes)
            if header["kind"] == "presentation" and "code" in header:
                self.code = parse_qs(urlsplit(header["code"]["address"]).query)["follow"][0]
        return super()._seen(element, answer, begin)


class Phone(Visitor):
    """Follows a room and answers its question."""

    def __init__(self, address: str, code: str, **options: Any) -> None:
        super().__init__(address, **options)
        self._link = f"follow={code}"
        self._kept = self._given = ""  # the key of its answer: what its browser keeps, what the server gave last
        self._fragment = ""
        self.options: list[str] = []
        self.chosen: list[str] = []  # as the server shows it
        self.has_answered = False
        self.revealed = 0.0  # when the answer arrived

    async def scan(self) -> float:
        """Open the room's link, also again after a lost line; return the seconds until the page is there."""
        begin = time.perf_counter()
        await self.open(self._link, page="")
        if self._kept != self._given:
            await self.trigger(event(self._widget("kept_key"), "kept", self._kept))
        return time.perf_counter() - begin

    async def tap(self, place: int) -> float:
        """Tap one more word, or the same one again; return the seconds until the server has confirmed it."""
        option, (taps,) = self.options[place], (name for name in self._widgets if name.startswith("guess_taps"))
        chosen = [each for each in self.chosen if each != option] + [option]
        state = WidgetState(id=self._widget(taps))
        state.string_array_value.data.extend(chosen)
        begin, self.has_answered, widgets = time.perf_counter(), False, self._widgets
        await self._run(state, fragment=self._fragment)
        self._widgets = {**widgets, **self._widgets}  # the rest of the page stays
        self.chosen = chosen
        if not self.has_answered:
            raise Wrong("a tap was not confirmed")
        return time.perf_counter() - begin

    async def wait(self) -> None:
        """Wait for the answer, which the server sends without being asked."""
        while not self.revealed:
            await asyncio.wait_for(self._answer(time.perf_counter()), TIMEOUT)

    def _resolved(self, message: Any) -> Any:
        message = super()._resolved(message)
        if message.WhichOneof("type") == "delta" and message.delta.new_element.WhichOneof("type") == "button_group":
            group = message.delta.new_element.button_group
            if "guess_taps" in group.id:
                self._fragment, self.options = message.delta.fragment_id, [each.content for each in group.options]
                self.chosen = [self.options[place] for place in group.default]
        return message

    def _seen(self, element: Any, answer: Answer, begin: float) -> bytes:
        kind = element.WhichOneof("type")
        if kind == "markdown" and _TAKEN in element.markdown.body:
            self.has_answered = True
        if kind == "bidi_component" and element.bidi_component.component_name == "visformer_kept_key":
            self._given = element.bidi_component.bytes.decode()
            self._kept = self._kept or self._given
        is_feed = kind == "bidi_component" and element.bidi_component.component_name == "visformer_feed"
        if is_feed and read_message(element.bidi_component.bytes)[0]["to"] == "guesses":
            self.revealed = time.perf_counter()
        return super()._seen(element, answer, begin)


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
        with browser.server(ASGI, log=log) as address:
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
