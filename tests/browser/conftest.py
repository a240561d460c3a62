"""A real server and a real Chromium, shared by all tests."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from benchmarks.chromium import FLAGS, path
from tests.browser.bare import Bare
from tests.browser.slow import slow_down
from tests.browser.support import wait_until_done

ROOT = Path(__file__).parent.parent.parent
expect.set_options(timeout=40_000)  # the same as for pages


@pytest.fixture(scope="session")
def model_name():
    return "en-zh"


@pytest.fixture(scope="session")
def server(model_name, tmp_path_factory):
    """The address of the app."""
    with serving(model_name, tmp_path_factory.mktemp("server")) as address:
        yield address


@contextmanager
def serving(model_name, folder, root=ROOT, **environment):
    """Run a server of the app in ``root`` and yield its address; its output goes to log.txt in ``folder``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--server.headless=true", "--server.address=127.0.0.1", f"--server.port={port}")
    log = folder / "log.txt"
    with log.open("w") as out:
        running = subprocess.Popen(
            [sys.executable, "-m", "visformer.app.serving.server", "run", "app.py", *options],
            cwd=root,
            env={**os.environ, "VISFORMER_MODEL": model_name, "OMP_NUM_THREADS": "1", **environment},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until_up(f"http://127.0.0.1:{port}", running, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(timeout=20)
    assert "Traceback" not in log.read_text()


def wait_until_up(address, running, log):
    for _ in range(600):
        if running.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).close()
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the server did not start:\n{log.read_text()}")


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path(), args=list(FLAGS))
        slow_down(browser, int(os.environ.get("SLOW", "0")))
        yield browser
        browser.close()


@cache
def context_of(chromium, **look):
    """Return a browser context, shared by all pages with the same settings, so that they share the HTTP cache."""
    return chromium.new_context(**look)


class Visitors:
    """Opens pages, and records their errors."""

    def __init__(self, server, chromium):
        self.server, self.chromium = server, chromium
        self.pages, self.complaints = [], []

    def page(self, *, width=1440, height=900, scheme="light", locale="en-US", scale=1):
        """Return an empty page of a new visitor: without cookies and local storage."""
        context = context_of(self.chromium, color_scheme=scheme, locale=locale, device_scale_factor=scale)
        page = context.new_page()
        self.pages.append(page)
        page.set_default_timeout(40_000)
        page.set_viewport_size({"width": width, "height": height})
        stored = {"origin": self.server, "storageTypes": "cookies,local_storage"}
        context.new_cdp_session(page).send("Storage.clearDataForOrigin", stored)
        page.on(
            "console", lambda message: message.type in ("error", "warning") and self.complaints.append(message.text)
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self.check_request)
        return page

    def open(self, *, query="", script="", **look):
        page = self.page(**look)
        page.add_init_script(script)
        page.goto(self.server + "/" + query)
        page.wait_for_selector(".vf-root[data-painted]")
        page.wait_for_selector("input[type=text]:visible")  # inputs appear after the picture
        wait_until_done(page)
        return page

    def check_request(self, request):
        if not request.url.startswith((self.server, "blob:", "data:")):
            self.complaints.append(f"a request to elsewhere: {request.url}")

    def close(self):
        for page in self.pages:
            page.close()


@pytest.fixture(scope="session")
def visitors(server, chromium):
    opened = Visitors(server, chromium)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def shared_page(visitors):
    return visitors.open()


@pytest.fixture
def page(visitors, shared_page):
    """A page shared by the tests of a module, as the previous test left it: opening one takes seconds."""
    yield shared_page
    assert not visitors.complaints


@pytest.fixture
def open_app(server, chromium):
    """Open fresh pages: ``open_app(query="?lang=zh", width=360, scheme="dark")``; any console error fails the test."""
    opened = Visitors(server, chromium)
    yield opened.open
    opened.close()
    assert not opened.complaints


@pytest.fixture(scope="module")
def visitor(server, chromium):
    """A visitor of deep links; Streamlit first looks for its server below the page, so 404 errors are expected."""
    opened = Visitors(server, chromium)
    yield opened
    opened.close()
    assert not [complaint for complaint in opened.complaints if "404" not in complaint]


@pytest.fixture(scope="session")
def bare_page(chromium):
    opened = Bare(chromium)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def bare(bare_page):
    """The explorer without a server, shared by the tests of a module; console messages fail the tests."""
    yield bare_page
    assert not bare_page.complaints
