"""Measure a tool's page in Chromium: bytes, seconds to painted, a layer switch, hover, the heap."""

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
"""Time limit for all moves: a tool that takes seconds for each does not get 200."""

_NO_NETWORK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
_SCRIPTS = [(Path(__file__).parent / name).read_text(encoding="utf-8") for name in ("stage.js", "tools.js")]


class Server:
    """Serves what a function returns for each path to browsers on this machine."""

    def __init__(self, answer: Callable[[str, str], tuple[str, bytes] | None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                result = (
                    ("text/html", b"") if path == "/blank" else answer(path.lstrip("/"), urllib.parse.unquote(query))
                )
                self.send_response(200 if result else 404)
                kind, body = result or ("text/plain", b"")
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                with suppress(ConnectionError):  # a page that took too long was closed
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
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
    """Launch a Chromium that reaches this machine only; each tool gets its own, since one that hangs is killed."""
    browser = playwright.chromium.launch(executable_path=chromium.path(), args=[*chromium.FLAGS, _NO_NETWORK])
    try:
        yield browser
    finally:
        browser.close()


def costs(playwright: Playwright, tool: str, subject: Subject, plan: Plan) -> Costs:
    """Measure everything of one tool at one length."""
    result = Costs(tool, len(subject.tokens))
    try:
        if tool == OURS:
            _ours(playwright, subject, plan, result)
        else:
            _theirs(playwright, subject, plan, result)
    except (TookTooLong, Late):
        result.failed = f">{TIMEOUT} s"
    except (Failed, Error) as error:
        result.failed = f"failed: {str(error).splitlines()[0][:200]}"
    return result


def _ours(playwright: Playwright, subject: Subject, plan: Plan, result: Costs) -> None:
    side = visformer_side.Side(subject)
    for _ in range(plan.rounds):
        begin = time.perf_counter()
        side.build()
        result.build_s.append(time.perf_counter() - begin)
    result.overview_kb = side.overview / 1000
    server = Server(side.answer)
    try:
        with launched(playwright) as browser:
            _stage(browser, server.address, subject, plan, result, side)
    finally:
        server.close()


def _theirs(playwright: Playwright, subject: Subject, plan: Plan, result: Costs) -> None:
    file = HOME / "pages" / f"{result.tool}-{result.n}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    job = {"tool": result.tool, "subject": str(subject.file), "out": str(file)}
    limits = {"rounds": plan.rounds, "seconds": plan.seconds}
    try:
        result.build_s = run_worker("build", job | limits, timeout=TIMEOUT + plan.seconds)["seconds"]
        if statistics.median(result.build_s) > TIMEOUT:
            raise TookTooLong
        server = Server(_peer_files(file))
        try:
            with launched(playwright) as browser:
                _stage(browser, server.address, subject, plan, result, None)
        finally:
            server.close()
    finally:
        file.unlink(missing_ok=True)


def _stage(
    browser: Browser, address: str, subject: Subject, plan: Plan, result: Costs, side: visformer_side.Side | None
) -> None:
    """Paint repeatedly, each time in a new context; the last page is then used for the other measurements."""
    while True:
        if side:
            side.sent = 0
        with _page(browser, subject) as (page, traffic):
            page.goto(f"{address}/blank")  # so that no tool pays for the start of the renderer
            limit = TIMEOUT - statistics.median(result.build_s)
            page.goto(f"{address}/page", wait_until="commit", timeout=1000 * limit)
            ready = f"bench.painted(() => tools['{result.tool}'].ready({result.n}))"
            result.paint_s.append(ask(page, ready, limit) / 1000)
            if len(result.paint_s) < plan.rounds and sum(result.paint_s) < plan.seconds:
                continue
            _check_weights(page, result.tool, subject)
            page.wait_for_timeout(1000 * RESIDENT)
            result.kilobytes = traffic.http / 1000
            result.heap_mb = heap(page)
            before = side.asked if side else 0
            result.data_kb = (side.sent - side.labels) / 1000 if side else None
            _switches(page, plan, result)
            result.asked = side.asked - before if side else None
            _hover(page, subject, plan, result)
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
    """Add the clocks and the tools to every page of the context."""
    context.add_init_script("\n".join([*_SCRIPTS, visformer_side.TOOL]))


def ask(page: Page, expression: str, limit: float = TIMEOUT) -> Any:
    """Evaluate an expression in the page that may take long; it may be a promise.

    Raises:
        Late: there was no value after ``limit`` seconds.
        Failed: it raised an error.
    """
    end = time.perf_counter() + limit
    page.wait_for_function("() => window.bench", timeout=1000 * limit)
    page.evaluate("(run) => bench.ask(() => eval(run))", expression)
    page.wait_for_function("() => bench.answer", timeout=max(1.0, 1000 * (end - time.perf_counter())), polling=50)
    answer = page.evaluate("bench.answer")
    if "error" in answer:
        raise Failed(answer["error"])
    return answer["value"]


def _check_weights(page: Page, tool: str, subject: Subject) -> None:
    """Check the weights that a tool draws, if they can be read from its marks."""
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
    """Return the JavaScript heap in megabytes after a forced collection, including typed arrays."""
    session = page.context.new_cdp_session(page)
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    usage = session.send("Runtime.getHeapUsage")
    return float(usage["usedSize"] + usage.get("backingStorageSize", 0)) / 1e6


def _switches(page: Page, plan: Plan, result: Costs) -> None:
    """Measure switching through the layers, repeatedly if there are more rounds."""
    if not page.evaluate("(tool) => Boolean(tools[tool].switchTo)", result.tool):
        return
    begin = time.perf_counter()
    for i in range(plan.rounds):
        layer = 1 + i % 5
        switched = ask(page, f"bench.switch(tools['{result.tool}'], {layer}, {result.n})")
        result.switch_ms.append(switched["ms"])
        result.script_ms.append(switched["script"])
        if time.perf_counter() - begin > plan.seconds:
            break


def _hover(page: Page, subject: Subject, plan: Plan, result: Costs) -> None:
    """Move the pointer, one move at a time, each followed by a frame; the longest frame of each move counts."""
    points = ask(page, f"tools['{result.tool}'].hover({result.n})")
    if len(points) < 2:
        return
    next_frame = f"bench.nextFrame(tools['{result.tool}'])"
    page.mouse.move(*points[-1])
    page.evaluate("bench.watchFrames()")
    page.evaluate(next_frame)
    readout = page.evaluate(next_frame)["readout"]
    longest, changes, begin = [], 0, time.perf_counter()
    for i in range(plan.moves):
        page.mouse.move(*points[i % len(points)])
        frame = page.evaluate(next_frame)
        longest.append(frame["longest"])
        changes += frame["readout"] != readout
        readout = frame["readout"]
        if result.tool == OURS and not visformer_side.readout_is_true(readout, subject):
            raise Failed(f"wrong readout: {readout}")
        if time.perf_counter() - begin > HOVER_SECONDS:
            break
    page.evaluate("bench.frames = null")
    result.hover_p95_ms = float(np.percentile(longest, 95))
    result.hover_moves = len(longest)
    result.hover_changes = changes if readout is not None else None
