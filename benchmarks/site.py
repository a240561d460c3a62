"""The page without a server: how soon a sentence is painted, in a window and on a slow phone, and the page itself."""

import json
import tempfile
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

import visformer as vf
from benchmarks import chromium
from benchmarks.browser import SEE
from benchmarks.measure import Effort, Row, alternating
from visformer.adapters.checkpoints import folder_of
from visformer.web.page import model_page

_SHORT = ("My brother reads two books every single day.", "Her sister wrote me one letter last week.")
_LONG = tuple(" ".join(_SHORT[(first + i) % 2] for i in range(5)) for first in (0, 1))
_WINDOW, _PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
_SLOW = 4
"""How much slower the phone's page runs; the engine's worker, which Chromium does not slow, is as fast as ever."""

_REST = 1500
"""Milliseconds after a sentence: the worker still computes the confidence of its translation."""

_ENTER = """text => new Promise((done) => {
  const map = document.querySelector(".vf-map")
  const before = map.dataset.painted
  const look = () => requestAnimationFrame((now) => (map.dataset.painted === before ? look() : done(now - begun)))
  document.querySelector(".vf-box").value = text
  const begun = performance.now()
  document.querySelector(".vf-form").requestSubmit()
  look()
})"""


def rows(effort: Effort) -> Iterator[Row]:
    """Yield the rows, measured in Chromium with the one file, which is opened from disk."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        ours = vf.export.site(Path(folder) / "site.html", single=True)
        saved = Path(folder) / "saved.html"
        saved.write_text(model_page(vf.Trace.load(folder_of("en-zh") / "example.safetensors")), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.FLAGS))
        paints = [partial(_first_paint, browser, file.as_uri()) for file in (ours, saved)]
        yield Row("first paint of the page without a server / of a saved one", "", [
            *islice(alternating(*paints), 1, 1 + effort.browser)
        ], goal=1.2)  # fmt: skip
        for name, limit, texts, window, slower in (
            ("a sentence of 8 words there, painted", 600, _SHORT, _WINDOW, 1),
            ("a text of 40 words there, painted", 2000, _LONG, _WINDOW, 1),
            ("8 words on a phone, four times slower, painted", 2500, _SHORT, _PHONE, _SLOW),
        ):
            page = _opened(browser, ours, window, slower)
            times = [_enter(page, texts[i % 2]) for i in range(1 + min(effort.sentences, 10))][1:]
            yield Row(f"{name} / {limit} ms", "", [(ms, limit) for ms in times], goal=1.0)
            page.close()
        browser.close()


def _opened(browser: Browser, file: Path, window: dict[str, int], slower: int) -> Page:
    page = browser.new_page(locale="en-US", viewport=window)  # type: ignore[arg-type]
    page.set_default_timeout(60_000)
    page.goto(file.as_uri())
    page.wait_for_selector(".vf-site[data-state=ready]")
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
    return page


def _enter(page: Page, text: str) -> float:
    ms: float = page.evaluate(_ENTER, text)
    page.wait_for_timeout(_REST)
    return ms


def _first_paint(browser: Browser, address: str) -> float:
    """Milliseconds from the navigation to the first frame with the picture."""
    page = browser.new_page(locale="en-US", viewport=_WINDOW)
    page.add_init_script(f"({SEE})({json.dumps('.vf-map[data-painted]')})")
    page.goto(address, wait_until="commit")
    page.wait_for_selector(".vf-map[data-painted]")
    ms: float = page.evaluate(
        """async () => {
          while (!window.seen) await new Promise(requestAnimationFrame)
          return window.seen - performance.timeOrigin
        }"""
    )
    page.close()
    return ms
