"""Helpers for tests of presentations."""

from tests.browser.support import wait_until_done
from visformer.pictures.registry.picture import pages

SIZES = {"small": (1280, 720), "large": (1920, 1080)}
PAGES = [*pages()]
PICTURES = (
    ".vf-thumbs, .vf-strips, .vf-large, .vf-matrix, .vf-model, .js-plotly-plot .plotly, "
    "[data-testid=stDataFrame] canvas, .vf-table"
)
VISIBLE = """() => {
  const parts = []
  const walk = (node) => {
    for (const one of node.querySelectorAll("*")) {
      if (one.shadowRoot) walk(one.shadowRoot)
      const box = one.getBoundingClientRect()
      const written = [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim())
      const drawn = one instanceof HTMLCanvasElement || one.classList.contains("main-svg")
      if ((written || drawn) && box.width > 1 && box.height > 1 && one.checkVisibility({ visibilityProperty: true })) {
        const within = one.closest("[data-testid=stPlotlyChart], .vf-root, .vf-stage")
        parts.push({ bottom: box.bottom, right: box.right, tag: one.tagName, text: one.textContent.trim().slice(0, 40),
          picture: Boolean(within) && !one.closest("button:not(.vf-tab), select, label") })
      }
    }
  }
  walk(document.body)
  return parts
}"""
"""Text and drawings on the page: where each ends, and whether it is part of the picture."""
OVERFLOW = """() => Math.max(...[document.documentElement, document.querySelector("[data-testid=stMain]")]
  .map((element) => element.scrollHeight - innerHeight))"""
POSITION = """() => {
  const all = (selector) => [...document.querySelectorAll("*")].flatMap((one) =>
    one.shadowRoot ? [...one.shadowRoot.querySelectorAll(selector)] : [])
  const text = (selector) => all(selector).map((one) => one.textContent).join("")
  return [location.pathname, text(".vf-step"), all(".vf-root").map((one) => one.dataset.stack ?? "").join(""),
    text(".vf-part") + text(".vf-rows")]
}"""
"""Page, step, stack and part that are shown."""


def open_at(visitor, name, *, query="", size=SIZES["small"], **settings):
    """Open a page by its name in the address, ready to be presented; settings: those of ``Visitors.page``."""
    page = visitor.page(width=size[0], height=size[1], **settings)
    page.goto(f"{visitor.server}/{name}{query}")
    page.get_by_role("button", name="Present").wait_for()
    page.locator(PICTURES).filter(visible=True).first.wait_for()
    wait_until_done(page)
    page.get_by_text("中文", exact=True).wait_for()  # the language buttons appear last
    return page


def check_in_window(page, place="", *, alone=True):
    """Check that the whole picture is inside the window and, with alone, that nothing else is visible."""
    assert page.evaluate(OVERFLOW) <= 0, f"the page scrolls: {place}"
    parts, size = page.evaluate(VISIBLE), page.viewport_size
    assert [part for part in parts if part["tag"] in ("CANVAS", "svg", "TD")], place
    assert not (alone and [part for part in parts if not part["picture"]]), place
    assert max(part["bottom"] for part in parts) <= size["height"] + 1, place
    assert max(part["right"] for part in parts) <= size["width"] + 1, place


def stable(page, script):
    """Return the value of a script, once it no longer changes."""
    value = None
    while value != (value := page.evaluate(script)):
        page.wait_for_timeout(400)
    return value


def present(page):
    page.keyboard.press("p")
    page.locator("html.vf-presenting").wait_for(state="attached")
    stable(page, VISIBLE)  # tables and curves have their new layout


def settled(page, *, after=None):
    """Wait until the position is stable and differs from ``after``; return its page, step, stack and part."""
    position = ()
    for _ in range(120):
        before = position
        page.wait_for_timeout(100)
        wait_until_done(page)
        page.locator(PICTURES).filter(visible=True).first.wait_for()  # tables are drawn after the script has ended
        position = tuple(page.evaluate(POSITION))
        if before == position != after:
            return position
    raise AssertionError(f"the position is still {position}")
