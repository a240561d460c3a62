"""From Enter to painted in Streamlit: visformer's canvas, one Plotly figure per head, and the forward pass alone.

All three use the same model; tokenising and the forward pass are included, and no sentence is used twice.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Error, Page, Playwright

from benchmarks.browser import Site, server
from benchmarks.peers import visformer_side
from benchmarks.peers.costs import ENTER_PAGES, TIMEOUT, Enters
from benchmarks.peers.environment import PYTHON, Failed
from benchmarks.peers.stage import launched, prepare
from benchmarks.peers.subjects import Subject, sentence, subject

PAGES = {name: Site(f"streamlit run benchmarks/peers/pages/{name}_page.py", "") for name in ENTER_PAGES}

# shown: what the page shows now. ready: whether it shows the new sentence, compared with what it showed before.
_TOOLS = """
window.enter = {
  visformer: {
    shown: () => tools.visformer.root()?.dataset.painted,
    ready: (before) => enter.visformer.shown() !== before && tools.visformer.ready(),
  },
  plotly: {
    plots: () => [...document.querySelectorAll(".js-plotly-plot")],
    /** A few weights of each figure that is drawn: the picture of a head may be the same for two sentences. */
    shown: () => enter.plotly.plots().map((plot) => {
      const z = plot.querySelector(".hm image")?.href.baseVal && plot.calcdata?.[0]?.[0]?.z
      return z && [z[2][1], z[3][5], z[5][3]].join()
    }),
    ready(before) {
      const now = enter.plotly.shown()
      return now.length === 72 && now.every((weights, i) => weights && weights !== before[i])
    },
    weight: (head, query, key) => enter.plotly.plots()[head].calcdata[0][0].z[query][key],
  },
  forward: {
    shown: () => document.querySelector("[data-testid=stText]")?.textContent,
    ready: (before) => enter.forward.shown() && enter.forward.shown() !== before,
  },
}

/** Time from Enter to the second animation frame after everything is drawn, by the browser's own clock. */
bench.enter = async (name) => {
  const before = enter[name].shown()
  const pressed = new Promise((resolve) =>
    addEventListener("keydown", () => resolve(performance.now()), { capture: true, once: true }),
  )
  bench.waiting = true
  const begin = await pressed
  return (await bench.painted(() => enter[name].ready(before))) - begin
}
"""


def measure(playwright: Playwright, n: int, *, starts: int, rounds: int) -> Enters:
    """Measure the first sentence after each start, then ``rounds`` sentences on each page, alternating."""
    result = Enters(n)
    try:
        _measure(playwright, result, starts=starts, rounds=rounds)
    except (Failed, Error) as error:  # keep what was measured before
        result.failed = f"failed: {str(error).splitlines()[0][:200]}"
    return result


def _measure(playwright: Playwright, result: Enters, *, starts: int, rounds: int) -> None:
    n = result.n
    for i in range(starts):
        with launched(playwright) as browser, _opened(browser, "visformer") as page:
            result.first_ms.append(_enter(page, "visformer", _subject(n, i)))
    with ExitStack() as stack:  # a browser for each: a page in the background gets no animation frames
        browsers = {name: stack.enter_context(launched(playwright)) for name in PAGES}
        pages = {name: stack.enter_context(_opened(browsers[name], name)) for name in PAGES}
        for i in range(-1, rounds):  # the first round after a start is not counted
            names = list(PAGES) if i % 2 else list(PAGES)[::-1]
            for name in names:
                ms = _enter(pages[name], name, _subject(n, i + 1))
                if i >= 0:
                    result.ms[name].append(ms)


def _subject(n: int, start: int) -> tuple[str, Subject]:
    return sentence(n, start), subject(n, start)


@contextmanager
def _opened(browser: Browser, name: str) -> Iterator[Page]:
    """Open a page whose server has just started, with the model loaded and no sentence yet."""
    with server(PAGES[name], str(PYTHON)) as address:
        context = browser.new_context(locale="en-US", viewport={"width": 1440, "height": 900}, color_scheme="light")
        try:
            prepare(context)
            context.add_init_script(_TOOLS)
            page = context.new_page()
            page.set_default_timeout(1000 * TIMEOUT)
            page.goto(address)
            page.get_by_label("Sentence", exact=True).wait_for()
            page.wait_for_timeout(1000)
            yield page
        finally:
            context.close()


def _enter(page: Page, name: str, pair: tuple[str, Subject]) -> float:
    text, expected = pair
    page.evaluate("(colours) => { window.expected = colours }", visformer_side.expected(expected.patterns))
    box = page.get_by_label("Sentence", exact=True)
    box.fill(text)
    page.wait_for_timeout(500)
    page.evaluate(f"() => {{ bench.waiting = false; bench.ask(() => bench.enter('{name}')) }}")
    page.wait_for_function("() => bench.waiting")
    box.press("Enter")
    page.wait_for_function("() => bench.answer", polling=50)
    answer = page.evaluate("bench.answer")
    if "error" in answer:
        raise Failed(answer["error"])
    _check(page, name, expected)
    return float(answer["value"])


def _check(page: Page, name: str, expected: Subject) -> None:
    """Check Plotly's weights; our picture is compared pixel by pixel before it counts as painted."""
    if name != "plotly":
        return
    random = np.random.default_rng(0)
    heads = expected.patterns.reshape(-1, *expected.patterns.shape[2:])
    for _ in range(5):
        place = [int(random.integers(size)) for size in heads.shape]
        shown: Any = page.evaluate("(place) => enter.plotly.weight(...place)", place)
        if not np.isclose(shown, heads[tuple(place)], atol=1e-4):
            raise Failed(f"Plotly shows {shown} at {json.dumps(place)}, not {heads[tuple(place)]}")
