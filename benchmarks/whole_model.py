"""Benchmarks of the whole model: what it adds to recording, its bytes, its first paint, and its frames as it moves."""

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import torch
from playwright.sync_api import Browser, Page, sync_playwright

import visformer
from benchmarks import chromium
from benchmarks.browser import APP, SEE, TIMEOUT, server
from benchmarks.measure import Effort, Row, alternating, compare
from benchmarks.peers.minilm import Encoder
from benchmarks.subjects import bundled_translator, text_of
from visformer.adapters.base import TracedModel
from visformer.pictures.map import RECORD
from visformer.trace import Trace
from visformer.trace.stacks import STACKS
from visformer.web.bundle import script, stylesheet
from visformer.web.chunks import Focus
from visformer.web.map import pack_map
from visformer.web.page import model_page

BYTES = 600.0
"""kB of data and of our own scripts before one zooms in."""

SCRIPT_MS = 8.0
"""Script in one frame, in ms: half of a frame at 60 a second, which leaves the browser the other half."""

SECONDS = 3
"""How long it plays or zooms while its frames are counted."""

SENTENCE = "She likes the river."
_WORDS = "the book that she gave him yesterday was not on the table because he took it home".split()

# Time every animation frame's callbacks. Injected before any script of the page.
_TIMED = """() => {
  const own = requestAnimationFrame
  window.spent = []
  window.requestAnimationFrame = (act) => own((now) => {
    const begin = performance.now()
    act(now)
    window.spent.push([now, performance.now() - begin])
  })
}"""

# Count frames for some seconds; each half second `act` is called. Returns ms a frame, and the script of each frame.
_FRAMES = """async ([seconds, selectors]) => {
  const root = document.querySelector(".vf-map")
  const acts = selectors.map((selector) => root.querySelector(selector))
  window.spent = []
  const begin = performance.now()
  let [frames, next, now] = [0, 0, begin]
  for (; now - begin < 1000 * seconds; frames++) {
    if (acts.length && now - begin >= 500 * next) acts[next++ % acts.length].click()
    now = await new Promise((done) => requestAnimationFrame(done))
  }
  const spent = new Map()
  for (const [at, ms] of window.spent) spent.set(at, (spent.get(at) ?? 0) + ms)
  return { interval: (now - begin) / frames, scripts: [...spent.values()] }
}"""

_PLAY = [".vf-play"] + [".vf-note"] * 100  # once; a note does nothing
_ZOOM = [".vf-zoom-in", ".vf-zoom-in", ".vf-zoom-in", ".vf-zoom-whole"]


def subjects() -> Iterator[tuple[str, TracedModel, str]]:
    """Yield the size, a model and its text: the translator, and an encoder of MiniLM's size, 6 layers of 12 heads."""
    translator, _ = bundled_translator()
    yield "16", translator, text_of(translator.tokenizer, 15, "en")
    encoder = Encoder()
    yield "128, 6x12", visformer.wrap(encoder.model, encoder.tokenizer), " ".join(islice(cycle(_WORDS), 126))


def model_rows(effort: Effort) -> Iterator[Row]:
    """Yield the rows that need no browser."""
    for size, model, text in subjects():
        more = model.available(RECORD)
        with torch.inference_mode():
            pairs = compare(partial(model.trace, text, record=more), partial(model.trace, text), effort)
        yield Row("recording for the whole model / patterns alone", size, pairs, goal=1.2)
        kilobytes = len(pack_map(model.trace(text, record=more))) + len(_own_files())
        yield Row("whole model, data and own files / 600 kB", size, [(kilobytes / 1000, BYTES)], unit="kB", goal=1.0)


def _own_files() -> bytes:
    view = "export default streamlitView(mountMap)"
    code = script(view, streamlitView="streamlit/view.js", mountMap="map/map.js")
    return "".join([code, stylesheet(), stylesheet("map/map.css")]).encode()


def browser_rows(effort: Effort) -> Iterator[Row]:
    """Yield the rows that are measured in Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.FLAGS))
        try:
            yield Row("first paint of the whole model / of the attention page", "", _paints(browser, effort), goal=1.2)
            for size, model, text in subjects():
                yield from _moving(browser, effort, size, model.trace(text, record=model.available(RECORD)))
        finally:
            browser.close()


def _paints(browser: Browser, effort: Effort) -> list[tuple[float, float]]:
    """Open both pages with an empty cache, on one server; the first round loads the model and is not counted."""
    with server(APP) as address:
        ours = partial(_first_paint, browser, f"{address}/", ".vf-map[data-painted]")
        rounds = alternating(ours, partial(_first_paint, browser, f"{address}/attention", ".vf-root[data-painted]"))
        return list(islice(rounds, 1 + effort.browser))[1:]


def _first_paint(browser: Browser, address: str, shown: str) -> float:
    """Milliseconds from the navigation to the first frame with the picture."""
    context = browser.new_context(locale="en-US", viewport={"width": 1440, "height": 900})
    context.set_default_timeout(1000 * TIMEOUT)
    try:
        page = context.new_page()
        page.add_init_script(f"({SEE})({json.dumps(shown)})")
        page.goto(f"{address}?v=2&text={SENTENCE.replace(' ', '+')}", wait_until="commit")
        page.wait_for_function("() => window.seen")
        ms: float = page.evaluate("window.seen - performance.timeOrigin")
        return ms
    finally:
        context.close()


def _moving(browser: Browser, effort: Effort, size: str, trace: Trace) -> Iterator[Row]:
    """Yield the rows of playing and of zooming, in the page that a file holds, which has the same scripts."""
    with tempfile.TemporaryDirectory() as folder:
        focus = Focus(next(stack.name for stack in STACKS if stack.in_trace(trace)), 0, 0)  # zooming leads to it
        (Path(folder) / "map.html").write_text(model_page(trace, focus=focus), encoding="utf-8")
        (Path(folder) / "empty.html").write_text("<!doctype html><title>-</title><div class=vf-map></div>")
        ours, empty = ((Path(folder) / name).as_uri() for name in ("map.html", "empty.html"))
        for what, acts in (("playing", _PLAY), ("zooming", _ZOOM)):
            frames: Callable[[], tuple[float, float]] = partial(_frames, browser, ours, acts)
            rounds = alternating(frames, partial(_frames, browser, empty, []))
            measured = list(islice(rounds, effort.browser))
            pairs = [(mine[0], theirs[0]) for mine, theirs in measured]
            yield Row(f"{what}, time of a frame / on an empty page", size, pairs, goal=1.05)
            spent = [(mine[1], SCRIPT_MS) for mine, _ in measured]
            yield Row(f"  script of a frame, 95th percentile / {SCRIPT_MS:.0f} ms", size, spent, goal=1.0)


def _frames(browser: Browser, address: str, acts: list[str]) -> tuple[float, float]:
    """Milliseconds from frame to frame, on average, and the 95th percentile of the script in a frame."""
    page: Page = browser.new_page(viewport={"width": 1440, "height": 900})
    try:
        page.add_init_script(f"({_TIMED})()")
        page.goto(address)
        if acts:
            page.wait_for_selector(".vf-map[data-painted]")
        found = page.evaluate(_FRAMES, [SECONDS, acts])
        return found["interval"], float(np.percentile(found["scripts"], 95))
    finally:
        page.close()
