"""What it takes to show another moment of a model's training: one that is kept, and one that has to be loaded."""

import time
from collections.abc import Iterator

from playwright.sync_api import Page, sync_playwright

from benchmarks import chromium
from benchmarks.browser import APP, server
from benchmarks.measure import Effort, Row

_MODEL, _FIRST, _LAST = "en-zh", 1, 8
_SENTENCE = "I like cats."

# Click, and return the milliseconds until the explorer shows what it did not show before.
_CLICK = """button => new Promise((done) => {
  const shows = () => {
    const found = (one) => one.shadowRoot?.querySelector(".vf-root[data-painted]")?.dataset.painted ?? ""
    return [...document.querySelectorAll("*")].map(found).join("")
  }
  const before = location.pathname === "/attention" ? shows() : ""
  const begun = performance.now()
  const look = () => (shows() && shows() !== before ? done(performance.now() - begun) : requestAnimationFrame(look))
  button.click()
  requestAnimationFrame(look)
})"""


def rows(effort: Effort) -> Iterator[Row]:
    """Yield a row for moments that are kept, beside changes of the page, and one for others, beside loading them."""
    with sync_playwright() as playwright, server(APP) as address:
        browser = playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.FLAGS))
        page = browser.new_page(locale="en-US", viewport={"width": 1440, "height": 900})
        page.set_default_timeout(60_000)
        page.goto(f"{address}/attention?v=2&text={_SENTENCE.replace(' ', '+')}&model={_MODEL}%40{_FIRST}")
        page.locator(APP.shown).wait_for()
        fresh = [(_turn(page, "on"), _loading(moment) + _page_change(page)) for moment in range(_FIRST + 1, _LAST + 1)]
        kept = []
        for number in range(min(effort.sentences, 30)):
            kept.append((_turn(page, "back" if number // (_LAST - _FIRST) % 2 == 0 else "on"), _page_change(page)))
        browser.close()
    yield Row("another moment, kept / another page", "", kept, goal=1.0)
    yield Row("another moment, not loaded yet / loading it, one sentence, another page", "", fresh, goal=1.0)


def _turn(page: Page, to: str) -> float:
    _settle(page)
    button = page.locator(f".st-key-timeline_{to} button").first
    return float(button.evaluate(_CLICK))


def _page_change(page: Page) -> float:
    """Return the milliseconds of a change back to the explorer, which shows what it showed before."""
    _settle(page)
    page.get_by_test_id("stPageLink-NavLink").filter(has_text="Masks", visible=True).click()
    page.wait_for_url("**/masks*")
    _settle(page)
    return float(page.get_by_test_id("stPageLink-NavLink").filter(has_text="Attention", visible=True).evaluate(_CLICK))


def _settle(page: Page) -> None:
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    page.wait_for_timeout(300)


def _loading(moment: int) -> float:
    from visformer.adapters.load import load_to_serve

    begun = time.perf_counter()
    load_to_serve(f"{_MODEL}@{moment}").trace(_SENTENCE, record=("*.pattern",))
    return 1000 * (time.perf_counter() - begun)
