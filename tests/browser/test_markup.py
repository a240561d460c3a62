"""Text of a visitor is text on every page: no element, no link, no formula, no emphasis comes of it."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.support import wait_until_done
from visformer.pictures.picture import pages

pytestmark = pytest.mark.browser

PAGES = [page.name for page in pages().values() if page.has_sentence]
NASTY = (
    "<img src=x onerror=window.hit=1> $\\zeta^2$ **Bold** [Link](https://evil.example) :red[Zed] `Code` =1+1 "
    "<script>hit=1"
)
MADE = """() => ({
  hit: window.hit ?? null,
  made: [...document.querySelectorAll("img[src='x'], a[href*='evil.example'], strong, code, .katex, [style*='color']")]
    .map((element) => element.textContent).filter((text) => /Bold|Code|ζ|zeta|Zed|Link/.test(text) && text.length < 12),
})"""


@pytest.fixture(scope="module")
def page(chromium):
    """One for all: the scripts of the app are fetched once."""
    context = chromium.new_context(locale="en-US")
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("place", PAGES)
def test_what_was_typed_makes_nothing(server, page, place):
    page.goto(f"{server}/{place}?text={quote(NASTY)}&target={quote(NASTY)}")
    page.get_by_text("Target as typed:").wait_for()
    wait_until_done(page)
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(NASTY)
    assert page.evaluate(MADE) == {"hit": None, "made": []}
