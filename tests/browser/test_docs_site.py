"""The documentation site: its pictures, its search, and the switch of languages."""

import pytest

from scripts.docs import make
from tests.browser.conftest import serving_files

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a server of the built site."""
    with serving_files(make(tmp_path_factory.mktemp("docs"))) as address:
        yield address


@pytest.fixture
def open_docs(address, visit):
    """Open a page of the site, and wait until its search is loaded."""

    def open_page(name, **settings):
        page = visit(f"{address}/{name}", own=address, **settings)
        page.wait_for_load_state("networkidle")
        return page

    return open_page


@pytest.mark.parametrize(
    ("name", "scheme"), [("index", "dark"), ("zh/app", "light"), ("zh/export", "dark"), ("api", "light")]
)
def test_pictures_load_without_requests_to_other_servers_in_the_system_s_theme(open_docs, name, scheme):
    page = open_docs(f"{name}.html", scheme=scheme)
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 0)")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)")
    assert (sum(map(int, background)) < 128) == (scheme == "dark")


def test_a_page_fits_a_phone(open_docs):
    page = open_docs("zh/models.html", width=360, height=740)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_search_finds_chinese(open_docs):
    page = open_docs("zh/index.html")
    page.keyboard.press("/")
    page.keyboard.type("因果掩码")
    page.get_by_role("option", name="掩码").first.click()
    page.wait_for_url("**/zh/app.html*#*")


def test_the_language_switch_leads_to_the_same_page(open_docs):
    page = open_docs("export.html")
    page.get_by_role("link", name="中文", exact=True).click()
    page.get_by_role("heading", name="保存", exact=False).first.wait_for()
    assert page.url.endswith("/zh/export.html")
    page.get_by_role("link", name="English", exact=True).click()
    page.get_by_role("heading", name="Saving and exporting").first.wait_for()
