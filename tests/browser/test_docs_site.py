"""The documentation in Chromium: no requests to other servers, and a search that finds Chinese."""

import pytest

from scripts.docs import make
from tests.browser.conftest import hosting

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a server of the built site."""
    with hosting(make(tmp_path_factory.mktemp("docs"))) as address:
        yield address


@pytest.fixture
def read(address, visit):
    """Open a page of the site, and wait until its search is loaded."""

    def start(name, **look):
        page = visit(f"{address}/{name}", own=address, **look)
        page.wait_for_load_state("networkidle")
        return page

    return start


@pytest.mark.parametrize(
    ("name", "scheme"), [("index", "dark"), ("zh/app", "light"), ("zh/export", "dark"), ("api", "light")]
)
def test_every_picture_loads_without_requests_to_other_servers(read, name, scheme):
    page = read(f"{name}.html", scheme=scheme)
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    dark = (
        sum(map(int, page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)"))) < 128
    )
    assert dark == (scheme == "dark")


def test_a_phone_is_wide_enough(read):
    page = read("zh/models.html", width=360, height=740)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_chinese_is_found(read):
    page = read("zh/index.html")
    page.keyboard.press("/")
    page.keyboard.type("因果掩码")
    page.get_by_role("option", name="掩码").first.click()
    page.wait_for_url("**/zh/app.html*#*")


def test_the_switch_leads_to_the_same_page(read):
    page = read("export.html")
    page.get_by_role("link", name="中文", exact=True).click()
    page.get_by_role("heading", name="保存", exact=False).first.wait_for()
    assert page.url.endswith("/zh/export.html")
    page.get_by_role("link", name="English", exact=True).click()
    page.get_by_role("heading", name="Saving and exporting").first.wait_for()
