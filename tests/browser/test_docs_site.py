"""The documentation in Chromium: no requests to other servers, and a search that finds Chinese."""

import functools
import http.server
import threading

import pytest

from scripts.docs import make

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a server of the built site."""
    site = make(tmp_path_factory.mktemp("docs"))

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def read(address, chromium):
    """Open a page; a request to another server or an error on the console fails the test."""
    contexts, complaints = [], []

    def start(name, *, scheme="light", width=1280, height=800):
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda entry: entry.type in ("error", "warning") and complaints.append(entry.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith((address, "data:", "blob:")) or complaints.append(sent.url))
        page.goto(address + name, wait_until="networkidle")
        return page

    yield start
    for context in contexts:
        context.close()
    assert not complaints


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
    page.get_by_role("heading", name="Keep it").first.wait_for()
