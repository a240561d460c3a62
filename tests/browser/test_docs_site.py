"""The documentation site: its links, its pictures, its search, and the switch of languages."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import visformer as vf
from scripts.docs import make
from tests.browser.conftest import serving_files

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Build the site; a warning of the generator is an error."""
    return make(tmp_path_factory.mktemp("docs")).resolve()


@pytest.fixture(scope="module")
def address(root):
    """The address of a server of the site."""
    with serving_files(root) as address:
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


# Without a browser ----------------------------------------------------------------------------------------------------


class Html(HTMLParser):
    """Ids, links and loaded files of an HTML page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        address = values.get("href" if tag in ("a", "link") else "src")
        if address:
            (self.links if tag == "a" else self.loaded).add(address)


@pytest.fixture(scope="module")
def site(root):
    """Every page of the site, by its path."""
    return {path: Html(path) for path in root.rglob("*.html") if path.name != "404.html"}


def test_links_on_the_site_resolve(site, root):
    assert len(site) > 50
    for path, page in site.items():
        for link in page.links | page.loaded:
            parts = urlsplit(link)
            if parts.scheme in ("https", "data"):
                continue
            assert not parts.scheme, link
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path}: {link}"
            assert target.is_relative_to(root)
            if parts.fragment and target in site and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in site[target].ids, f"{path}: {link}"


def test_the_site_loads_nothing_from_other_hosts(site, root):
    for path, page in site.items():
        assert not [link for link in page.loaded if urlsplit(link).netloc], path
    for style in root.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", style.read_text(encoding="utf-8")), style


def test_each_page_of_the_site_links_to_its_translation(site, root):
    for path, page in site.items():
        name = path.relative_to(root)
        translation = root / Path(*name.parts[1:]) if name.parts[0] == "zh" else root / "zh" / name
        links = {(path.parent / link).resolve() for link in page.links if not urlsplit(link).scheme}
        assert translation in links, path


def test_every_page_is_in_the_navigation(site, root):
    """Except decision records, which have a list of their own."""
    listed = {(root / link).resolve() for link in site[root / "index.html"].links if not urlsplit(link).scheme}
    assert {path for path in site if path.parent == root} <= listed


def test_the_api_page_has_every_public_name(site, root):
    for name in vf.__all__:
        assert f"visformer.{name}" in site[root / "api.html"].ids
