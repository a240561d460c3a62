"""Benchmarks of the app in Chromium: first picture after a start, Enter to repaint, and the bytes of both."""

import base64
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import chromium
from benchmarks.measure import Effort, Row, alternating
from visformer.model.checkpoints import FOLDER
from visformer.system import settings

ROOT = Path(__file__).parent.parent
MODEL = settings.MODEL()
"""The model of the app and of the page that only translates."""

TIMEOUT = 120
"""Seconds until a start or a repaint counts as failed."""

# Time from Enter to the change, by the browser's own clock. A MutationObserver does not see into shadow roots, so it
# observes the root that contains the element; the element itself may be replaced.
WATCH = """(element, {selector, attribute}) => {
  const root = element.getRootNode()
  const shows = () => {
    const now = root.querySelector(selector)
    return attribute ? now?.getAttribute(attribute) : now?.textContent
  }
  const before = shows()
  window.benchmark = {}
  addEventListener("keydown", () => { window.benchmark.enter = performance.now() }, {capture: true, once: true})
  new MutationObserver((_, observer) => {
    if (!shows() || shows() === before) return
    window.benchmark.shown = performance.now()
    observer.disconnect()
  }).observe(root, {subtree: true, childList: true, characterData: true, attributes: true})
}"""


# The first animation frame in which the element is visible, by the browser's own clock: polling from outside happens
# only twice a second. Injected before any script of the page; looks into shadow roots too.
SEE = """selector => {
  const find = (root) => {
    const found = root.querySelector(selector)
    if (found) return found
    for (const { shadowRoot } of root.querySelectorAll("*")) {
      const inside = shadowRoot && find(shadowRoot)
      if (inside) return inside
    }
    return null
  }
  const look = () => {
    const element = document.body && find(document)
    const { width, height } = element?.getBoundingClientRect() ?? {}
    if (width && height && element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) {
      requestAnimationFrame(() => { window.seen = performance.timeOrigin + performance.now() })
    } else requestAnimationFrame(look)
  }
  look()
}"""


@dataclass(frozen=True)
class Site:
    """A page to start and to use.

    Args:
        command: module that starts the server, and its arguments.
        shown: selector of the element that the visitor waits for.
        attribute: attribute of that element that changes with its content; None: its text does.
    """

    command: str
    shown: str
    attribute: str | None = None


APP = Site("visformer run --headless --address 127.0.0.1", ".vf-root[data-painted]", "data-painted")
HELLO = Site("streamlit run benchmarks/hello_page.py", "[data-testid=stText]")
TRANSLATE = Site("streamlit run benchmarks/translate_page.py", "[data-testid=stText]")


class Traffic:
    """Counts the bytes a page receives: websocket messages uncompressed, HTTP responses as transferred."""

    def __init__(self, page: Page) -> None:
        self.websocket = self.http = 0
        session = page.context.new_cdp_session(page)
        session.on("Network.webSocketFrameReceived", self._frame)
        session.on("Network.loadingFinished", self._loaded)
        session.send("Network.enable")

    def _frame(self, event: dict[str, Any]) -> None:
        frame = event["response"]
        binary = frame["opcode"] == 2
        self.websocket += len(base64.b64decode(frame["payloadData"]) if binary else frame["payloadData"].encode())

    def _loaded(self, event: dict[str, Any]) -> None:
        self.http += max(0, int(event["encodedDataLength"]))


@dataclass(frozen=True)
class Cost:
    """Milliseconds, and kB received, for one start or one sentence."""

    ms: float
    websocket: float
    http: float


def rows(effort: Effort) -> Iterator[Row]:
    """Yield all rows of the app."""
    path = chromium.path()
    if not (FOLDER / MODEL / "example.safetensors").exists():  # joining an absolute path gives that path
        print(f"{MODEL} ships no example.safetensors: its first picture waits for the model", flush=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        try:
            yield from _cost_rows("server start to first heatmap / to hello world", _starts(browser, effort), goal=1.5)
            costs = _sentences(browser, effort)
            yield from _cost_rows("Enter to repaint / on a page that only translates", costs, goal=1.5)
        finally:
            browser.close()


def _cost_rows(name: str, costs: list[tuple[Cost, Cost]], *, goal: float) -> Iterator[Row]:
    """Yield one row for time, with its goal, and two for bytes."""
    yield Row(name, "", [(ours.ms, other.ms) for ours, other in costs], goal=goal)
    for way in ("websocket", "http"):
        pairs = [(getattr(ours, way), getattr(other, way)) for ours, other in costs]
        if any(map(any, pairs)):
            yield Row(f"  bytes received, {way}", "", pairs, unit="kB")


def _starts(browser: Browser, effort: Effort) -> list[tuple[Cost, Cost]]:
    """Measure starts. The first round reads the files from disk and is not counted, unless it is the only one."""
    warm_up = 1 if effort.browser > 1 else 0
    rounds = alternating(lambda: start(browser, APP), lambda: start(browser, HELLO))
    return list(islice(rounds, warm_up + effort.browser))[warm_up:]


def start(browser: Browser, site: Site) -> Cost:
    """Measure from the start of the server process to the first picture (or text), in a browser with an empty cache."""
    with _page(browser) as (page, traffic):
        page.add_init_script(f"({SEE})({json.dumps(site.shown)})")
        begin = time.time()
        with server(site) as address:
            page.goto(address, wait_until="commit")
            page.wait_for_function("() => window.seen")
            ms = page.evaluate("window.seen") - 1000 * begin
            page.wait_for_timeout(300)  # the rest of the page, for the bytes
            return Cost(ms, traffic.websocket / 1000, traffic.http / 1000)


def _sentences(browser: Browser, effort: Effort) -> list[tuple[Cost, Cost]]:
    """Measure the same sentences on both pages, open at once; two more load the model first and are not counted."""
    warm_up = 2
    with (
        server(APP) as app,
        server(TRANSLATE) as translate,
        _page(browser) as (our_page, our_traffic),
        _page(browser) as (other_page, other_traffic),
    ):
        for page, address, site in ((our_page, app, APP), (other_page, translate, TRANSLATE)):
            page.goto(address)
            page.wait_for_selector(site.shown)
        ours, other = new_sentences(), new_sentences()
        rounds = alternating(
            lambda: enter(our_page, our_traffic, APP, next(ours)),
            lambda: enter(other_page, other_traffic, TRANSLATE, next(other)),
        )
        return list(islice(rounds, warm_up + effort.sentences))[warm_up:]


def enter(page: Page, traffic: Traffic, site: Site, sentence: str) -> Cost:
    """Type a sentence, and measure from Enter to the resulting picture (or text)."""
    box = page.get_by_label("Sentence", exact=True)
    box.fill(sentence)
    page.wait_for_timeout(300)  # so that everything from before has arrived
    before = traffic.websocket, traffic.http
    page.locator(site.shown).first.evaluate(WATCH, {"selector": site.shown, "attribute": site.attribute})
    box.press("Enter")
    page.wait_for_function("() => window.benchmark.shown")
    ms = page.evaluate("window.benchmark.shown - window.benchmark.enter")
    page.wait_for_timeout(300)
    return Cost(ms, (traffic.websocket - before[0]) / 1000, (traffic.http - before[1]) / 1000)


def new_sentences() -> Iterator[str]:
    """Yield different sentences of the same structure, always in the same order."""
    people = ("My brother", "The old teacher", "Our neighbour", "A young doctor", "Her friend")
    acts = ("bought two books", "found a small house", "drank cold tea", "saw the white horse", "sold his car")
    places = ("in Beijing", "near the river", "at the station", "behind our school", "in that shop")
    days = ("yesterday", "this morning", "last week", "on Sunday", "in March")
    sentences = [" ".join(parts) + "." for parts in product(people, acts, places, days)]
    random.Random(0).shuffle(sentences)
    yield from sentences


@contextmanager
def _page(browser: Browser) -> Iterator[tuple[Page, Traffic]]:
    context = browser.new_context(locale="en-US", viewport={"width": 1440, "height": 900})
    context.set_default_timeout(1000 * TIMEOUT)
    try:
        page = context.new_page()
        yield page, Traffic(page)
    finally:
        context.close()


@contextmanager
def server(
    site: Site, python: str = sys.executable, *, log: Path | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a server; yields the page's address as soon as it accepts connections.

    Args:
        site: page to serve.
        python: interpreter to run it with.
        log: file for the server's output.
        environment: environment variables to add.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"STREAMLIT_SERVER_HEADLESS": "true", "STREAMLIT_SERVER_PORT": str(port)}
    with log.open("w+") if log else tempfile.TemporaryFile("w+") as output:
        running = subprocess.Popen(
            [python, "-m", *site.command.split()],
            cwd=ROOT,  # so that both sides use the app's .streamlit/config.toml
            env={**os.environ, "PYTHONPATH": str(ROOT), **options, **(environment or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_up(port, running, output)
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()
            try:
                running.wait(timeout=10)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def _wait_until_up(port: int, running: subprocess.Popen[bytes], log: Any) -> None:
    end = time.perf_counter() + TIMEOUT
    while running.poll() is None and time.perf_counter() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.005)
    log.seek(0)
    raise RuntimeError(f"the server did not start:\n{log.read()}")
