"""The colours of one head become those of another, while all else is new at once."""

import pytest

from tests.browser.bare import BarePage
from tests.browser.support import IMAGE, click_head, head_of, points_of_cells
from tests.web.support import made_up_trace
from visformer.export.marks import ramp

HALTED = """
  window.now = 0
  window.waiting = []
  performance.now = () => window.now
  window.requestAnimationFrame = (frame) => window.waiting.push(frame)
  window.at = (now) => {
    window.now = now
    for (const frame of window.waiting.splice(0)) frame(now)
  }
"""
"""A clock that stands until at() sets it."""
CELLS = [(0, 0), (1, 2), (3, 4)]


@pytest.fixture
def halted(chromium):
    """The explorer with the first head, whose clock stands."""
    bare = BarePage(chromium)
    bare.mount(made_up_trace())
    bare.page.evaluate(HALTED)
    yield bare
    bare.close()


def shown(page):
    """Return the colours at some cells, near their corners, where no number is."""
    body = """
      const ratio = canvas.width / parseFloat(canvas.style.width)
      const at = ({ x, y }) => 4 * (Math.floor(y * ratio) * canvas.width + Math.floor(x * ratio))
      return args.map((point) => Array.from(data.subarray(at(point), at(point) + 3)))
    """
    points = points_of_cells(page, CELLS, inside=0.1)
    return page.locator(".vf-large").evaluate(f"(canvas, args) => {{ {IMAGE} {body} }}", points)


def step(weight):
    return round(255 * float(weight) ** 0.5)


def expected(bare, share):
    """Return the colours at a share of the way from the first head to the second."""
    colours = ramp("weight", "light")
    old, new = (head_of(bare.trace, "encoder.self_attn", 0, head) for head in (0, 1))
    steps = [step(old[cell]) + share * (step(new[cell]) - step(old[cell])) for cell in CELLS]
    return [list(colours[round(each)]) for each in steps]


def close(found, wanted):
    return all(
        abs(a - b) <= 3 for one, other in zip(found, wanted, strict=True) for a, b in zip(one, other, strict=True)
    )


def is_changing(page):
    return page.locator(".vf-large").get_attribute("data-changing") is not None


def test_the_colours_change_over_200_milliseconds(halted):
    page = halted.page
    click_head(page, 0, 1)
    for now, share in ((0, 0), (100, 0.5), (200, 1)):
        page.evaluate("now => at(now)", now)
        assert close(shown(page), expected(halted, share)), now
        assert is_changing(page) == (share < 1)
    assert not close(expected(halted, 0), expected(halted, 1))


def test_numbers_are_new_from_the_first_frame(halted):
    page = halted.page
    page.evaluate("""() => {
      window.written = []
      const own = CanvasRenderingContext2D.prototype.fillText
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        if (this.canvas.matches(".vf-large")) window.written.push(text)
        return own.call(this, text, ...place)
      }
    }""")
    click_head(page, 0, 1)
    assert is_changing(page)
    weights = head_of(halted.trace, "encoder.self_attn", 0, 1).ravel()
    numbers = [f"{weight:.2f}".removeprefix("0") for weight in weights if weight >= 0.005]
    assert {*numbers} <= {*page.evaluate("written")}


def test_a_file_and_another_window_get_the_new_colours_at_once(halted):
    page = halted.page
    click_head(page, 0, 1)
    assert is_changing(page)
    with page.expect_download():
        page.locator(".vf-keep-button").click()
    assert close(shown(page), expected(halted, 1)) and not is_changing(page)


def test_they_are_new_at_once_if_motion_is_to_be_reduced(halted):
    page = halted.page
    page.emulate_media(reduced_motion="reduce")
    click_head(page, 0, 1)
    assert close(shown(page), expected(halted, 1)) and not is_changing(page)
