"""What a tool's page costs in Chromium: bytes, seconds to painted, a layer switch, hover, the heap."""

import json
import statistics
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Error, Page, Playwright
from playwright.sync_api import TimeoutError as Late

from benchmarks import chromium
from benchmarks.browser import Traffic
from benchmarks.peers import visformer_side
from benchmarks.peers.costs import OURS, RESIDENT, TIMEOUT, Costs, Plan
from benchmarks.peers.environment import HOME, Failed, TookTooLong, run_worker
from benchmarks.peers.subjects import Subject

HOVER_SECONDS = 20
"""A tool that takes seconds for each move is not moved over 200 times."""

_NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
_SCRIPTS = [(Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("stage.js", "tools.js")]


class Server:
    """Gives a folder's files, and what a function answers, to a browser on this machine."""

    def __init__(self, answer: Callable[[str, str], tuple[str, bytes] | None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                found = (
                    ("text/html", b"") if path == "/blank" else answer(path.lstrip("/"), urllib.parse.unquote(query))
                )
                self.send_response(200 if found else 404)
                kind, body = found or ("text/plain", b"")
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                with suppress(ConnectionError):  # a page that took too long was closed
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Silence."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


def _peer_files(page: Path) -> Callable[[str, str], tuple[str, bytes] | None]:
    def answer(path: str, _: str) -> tuple[str, bytes] | None:
        if path == "page":
            return "text/html; charset=utf-8", page.read_bytes()
        library = HOME / "cdn" / path
        return ("text/javascript", library.read_bytes()) if path.startswith("ajax/") and library.is_file() else None

    return answer


@contextmanager
def launched(playwright: Playwright) -> Iterator[Browser]:
    """A Chromium that reaches this machine only; a new one for each tool, as one that hangs has to be ended."""
    browser = playwright.chromium.launch(executable_path=chromium.path(), args=[*chromium.FLAGS, _NO_NETWORK])
    try:
        yield browser
    finally:
        browser.close()


def costs(playwright: Playwright, tool: str, subject: Subject, plan: Plan) -> Costs:
    """Everything of one tool at one length."""
    found = Costs(tool, len(subject.tokens))
    try:
        if tool == OURS:
            _ours(playwright, subject, plan, found)
        else:
            _theirs(playwright, subject, plan, found)
    except (TookTooLong, Late):
        found.failed = f">{TIMEOUT} s"
    except (Failed, Error) as error:
        found.failed = f"failed: {str(error).splitlines()[0][:200]}"
    return found


def _ours(playwright: Playwright, subject: Subject, plan: Plan, found: Costs) -> None:
    side = visformer_side.Side(subject)
    for _ in range(plan.rounds):
        begin = time.perf_counter()
        side.build()
        found.build_s.append(time.perf_counter() - begin)
    found.overview_kb = side.overview / 1000
    server = Server(side.answer)
    try:
        with launched(playwright) as browser:
            _stage(browser, server.address, subject, plan, found, side)
    finally:
        server.close()


def _theirs(playwright: Playwright, subject: Subject, plan: Plan, found: Costs) -> None:
    file = HOME / "pages" / f"{found.tool}-{found.n}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    job = {"tool": found.tool, "subject": str(subject.file), "out": str(file)}
    limits = {"rounds": plan.rounds, "seconds": plan.seconds}
    try:
        found.build_s = run_worker("build", job | limits, timeout=TIMEOUT + plan.seconds)["seconds"]
        if statistics.median(found.build_s) > TIMEOUT:
            raise TookTooLong
        server = Server(_peer_files(file))
        try:
            with launched(playwright) as browser:
                _stage(browser, server.address, subject, plan, found, None)
        finally:
            server.close()
    finally:
        file.unlink(missing_ok=True)


def _stage(
    browser: Browser, address: str, subject: Subject, plan: Plan, found: Costs, side: visformer_side.Side | None
) -> None:
    """Paint again and again, each time in a fresh context; the last page is then used."""
    while True:
        if side:
            side.sent = 0
        with _page(browser, subject) as (page, traffic):
            page.goto(f"{address}/blank")  # the renderer's own start is no tool's
            limit = TIMEOUT - statistics.median(found.build_s)
            page.goto(f"{address}/page", wait_until="commit", timeout=1000 * limit)
            ready = f"bench.painted(() => tools['{found.tool}'].ready({found.n}))"
            found.paint_s.append(ask(page, ready, limit) / 1000)
            if len(found.paint_s) < plan.rounds and sum(found.paint_s) < plan.seconds:
                continue
            _check_weights(page, found.tool, subject)
            page.wait_for_timeout(1000 * RESIDENT)
            found.kilobytes = traffic.http / 1000
            found.heap_mb = heap(page)
            before = side.asked if side else 0
            found.data_kb = (side.sent - side.labels) / 1000 if side else None
            _switches(page, plan, found)
            found.asked = side.asked - before if side else None
            _hover(page, subject, plan, found)
            return


@contextmanager
def _page(browser: Browser, subject: Subject) -> Iterator[tuple[Page, Traffic]]:
    context = browser.new_context(locale="en-US", viewport={"width": 1440, "height": 900}, color_scheme="light")
    try:
        prepare(context)
        context.add_init_script(f"window.expected = {json.dumps(visformer_side.expected(subject.patterns))}")
        page = context.new_page()
        page.set_default_timeout(1000 * TIMEOUT)
        page.on("requestfailed", lambda request: print(f"not served: {request.url[:200]}", flush=True))
        yield page, Traffic(page)
    finally:
        context.close()


def prepare(context: Any) -> None:
    """Every page of the context gets the clocks and the tools."""
    context.add_init_script("\n".join([*_SCRIPTS, visformer_side.TOOL]))


def ask(page: Page, expression: str, limit: float = TIMEOUT) -> Any:
    """The value of an expression in the page that may take its time, a promise or not.

    Raises:
        Late: there was none after ``limit`` seconds.
        Failed: it raised an error.
    """
    end = time.perf_counter() + limit
    page.wait_for_function("window.bench", timeout=1000 * limit)
    page.evaluate("(run) => bench.ask(() => eval(run))", expression)
    page.wait_for_function("bench.answer", timeout=max(1.0, 1000 * (end - time.perf_counter())), polling=50)
    answer = page.evaluate("bench.answer")
    if "error" in answer:
        raise Failed(answer["error"])
    return answer["value"]


def _check_weights(page: Page, tool: str, subject: Subject) -> None:
    """The marks of a tool that says what they stand for are those of the subject."""
    if not page.evaluate("(tool) => Boolean(tools[tool].weight)", tool):
        return
    layers = 1 if tool == "bertviz-head" else len(subject.patterns)
    random = np.random.default_rng(0)
    for _ in range(5):
        place = [int(random.integers(size)) for size in (layers, *subject.patterns.shape[1:])]
        shown = page.evaluate("([tool, place]) => tools[tool].weight(...place)", [tool, place])
        if not np.isclose(shown, subject.patterns[tuple(place)], atol=1e-5):
            raise Failed(f"{tool} shows {shown} at {place}, not {subject.patterns[tuple(place)]}")


def heap(page: Page) -> float:
    """Megabytes of JavaScript after a forced collection, typed arrays included."""
    session = page.context.new_cdp_session(page)
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return float(usage["usedSize"] + usage.get("backingStorageSize", 0)) / 1e6


def _switches(page: Page, plan: Plan, found: Costs) -> None:
    """Through the layers, each once; again for more rounds."""
    if not page.evaluate("(tool) => Boolean(tools[tool].switchTo)", found.tool):
        return
    begin = time.perf_counter()
    for i in range(plan.rounds):
        layer = 1 + i % 5
        switched = ask(page, f"bench.switch(tools['{found.tool}'], {layer}, {found.n})")
        found.switch_ms.append(switched["ms"])
        found.script_ms.append(switched["script"])
        if time.perf_counter() - begin > plan.seconds:
            break


def _hover(page: Page, subject: Subject, plan: Plan, found: Costs) -> None:
    """Real moves of the pointer, one at a time, each followed by a frame; the longest frame of each move counts."""
    points = ask(page, f"tools['{found.tool}'].hover({found.n})")
    if len(points) < 2:
        return
    next_frame = f"bench.nextFrame(tools['{found.tool}'])"
    page.mouse.move(*points[-1])
    page.evaluate("bench.watchFrames()")
    page.evaluate(next_frame)
    said = page.evaluate(next_frame)["readout"]
    longest, changes, begin = [], 0, time.perf_counter()
    for i in range(plan.moves):
        page.mouse.move(*points[i % len(points)])
        frame = page.evaluate(next_frame)
        longest.append(frame["longest"])
        changes += frame["readout"] != said
        said = frame["readout"]
        if found.tool == OURS and not visformer_side.readout_is_true(said, subject):
            raise Failed(f"read out: {said}")
        if time.perf_counter() - begin > HOVER_SECONDS:
            break
    page.evaluate("bench.frames = null")
    found.hover_p95_ms = float(np.percentile(longest, 95))
    found.hover_moves = len(longest)
    found.hover_changes = changes if said is not None else None
