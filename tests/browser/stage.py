"""Helpers for tests of presentations."""

from tests.browser.support import wait_until_done
from visformer.pictures.registry.picture import pages

SIZES = {"small": (1280, 720), "large": (1920, 1080)}
PAGES = [*pages()]
PICTURES = ".vf-thumbs, .vf-matrix, .js-plotly-plot .plotly, [data-testid=stDataFrame] canvas"
SEEN = """() => {
  const parts = []
  const walk = (node) => {
    for (const one of node.querySelectorAll("*")) {
      if (one.shadowRoot) walk(one.shadowRoot)
      const box = one.getBoundingClientRect()
      const written = [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim())
      const drawn = one instanceof HTMLCanvasElement || one.classList.contains("main-svg")
      if ((written || drawn) && box.width > 1 && box.height > 1 && one.checkVisibility({ visibilityProperty: true })) {
        const within = one.closest("[data-testid=stPlotlyChart], [data-testid=stDataFrame], .vf-root, .vf-stage")
        parts.push({ bottom: box.bottom, right: box.right, tag: one.tagName, text: one.textContent.trim().slice(0, 40),
          picture: Boolean(within) && !one.closest("button:not(.vf-tab), select, label") })
      }
    }
  }
  walk(document.body)
  return parts
}"""
ROOM = """() => [document.documentElement, document.querySelector("[data-testid=stMain]")]
  .map((one) => one.scrollHeight - innerHeight)"""
SHOWN = """() => {
  const all = (selector) => [...document.querySelectorAll("*")].flatMap((one) =>
    one.shadowRoot ? [...one.shadowRoot.querySelectorAll(selector)] : [])
  const text = (selector) => all(selector).map((one) => one.textContent).join("")
  return [location.pathname, text(".vf-step"), all(".vf-root").map((one) => one.dataset.stack ?? "").join(""),
    text(".vf-part") + text(".vf-rows")]
}"""


def open_at(visitor, name, *, query=""):
    width, height = SIZES["small"]
    page = visitor.page(width=width, height=height)
    page.goto(f"{visitor.server}/{name}{query}")
    page.get_by_role("button", name="Present").wait_for()
    page.locator(PICTURES).first.wait_for()
    wait_until_done(page)
    page.get_by_text("中文", exact=True).wait_for()  # the script of the language buttons is loaded last
    return page


def check_in_window(page, place="", *, alone=True):
    """Check that the whole picture is inside the window and, with alone, that nothing else is visible."""
    assert max(page.evaluate(ROOM)) <= 0, f"the page scrolls: {place}"
    seen, size = page.evaluate(SEEN), page.viewport_size
    assert [one for one in seen if one["tag"] in ("CANVAS", "svg")], place
    assert not (alone and [one for one in seen if not one["picture"]]), place
    assert max(one["bottom"] for one in seen) <= size["height"] + 1, place
    assert max(one["right"] for one in seen) <= size["width"] + 1, place


def stable(page, script):
    """Return what a script returns, once it no longer changes."""
    seen = None
    while seen != (seen := page.evaluate(script)):
        page.wait_for_timeout(400)
    return seen


def present(page):
    page.keyboard.press("p")
    page.locator("html.vf-presenting").wait_for(state="attached")
    stable(page, SEEN)  # tables and curves have their new layout


def settled(page, *, after=None):
    """Wait until the layout is stable and differs from ``after``; return page, step, stack and part shown."""
    seen, now = None, ()
    for _ in range(120):
        seen = now
        page.wait_for_timeout(100)
        wait_until_done(page)
        page.locator(PICTURES).filter(visible=True).first.wait_for()  # tables are drawn after the script has ended
        now = tuple(page.evaluate(SHOWN))
        if seen == now != after:
            return now
    raise AssertionError(f"the page still shows {now}")
