"""A real server and a real Chromium, shared by all tests."""

import os
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import expect

from benchmarks.chromium import FLAGS, path
from benchmarks.load.replicas import free_port
from tests.browser import failures
from tests.browser.bare import BarePage
from tests.browser.slow import slowed
from tests.browser.support import wait_until_done

ROOT = Path(__file__).parent.parent.parent
TIMEOUT = 90_000
expect.set_options(timeout=TIMEOUT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Say where the traces of a failing test are."""
    report = yield
    if report.failed:
        report.sections.append(("what the browser showed", str(failures.record(item.nodeid))))
    return report


@pytest.fixture(scope="session")
def model_name():
    return "en-zh"


@pytest.fixture(scope="session")
def server(model_name, tmp_path_factory):
    """The address of a server of the app."""
    with serving(model_name, tmp_path_factory.mktemp("server")) as address:
        yield address


def start(port, log, *, root=ROOT, **environment):
    """Start a server of the app in ``root``, append its output to ``log``, and return its process once it answers."""
    with log.open("a", encoding="utf-8") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "visformer", "run", "--headless", "--address=127.0.0.1", f"--port={port}"],
            cwd=root,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    for _ in range(2400):
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).close()
            return process
        except OSError:
            time.sleep(0.1)
    process.kill()
    pytest.fail(f"the server did not start:\n{log.read_text(encoding='utf-8')}")


@contextmanager
def serving(model_name, folder, root=ROOT, **environment):
    """Run a server of the app in ``root`` and yield its address; its output goes to log.txt in ``folder``."""
    port, log = free_port(), folder / "log.txt"
    failures.watch_log(log)
    process = start(port, log, root=root, VISFORMER_MODEL=model_name, **environment)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=120)
    assert "Traceback" not in log.read_text(encoding="utf-8")


@contextmanager
def serving_files(folder):
    """Serve the files of a folder and yield the address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@cache
def context_of(chromium, **settings):
    """Return the browser context of all pages with these settings: with a profile, whose caches they share.

    Only a browser with a profile keeps compiled scripts: a page then opens with a third less computing.
    """
    launch = chromium.browser_type.launch_persistent_context
    return slowed(launch("", executable_path=path(), args=list(FLAGS), **settings))


SAME_MOMENT = "Multiple different fragmentIds detected"
"""Streamlit's warning when a selection and another box are sent in the same millisecond: all values arrive."""


def record_problems(page, problems, own):
    """Record a page's errors, warnings, and requests to other addresses than ``own``."""
    failures.watch(page)

    def hear(message):
        if message.type in ("error", "warning") and SAME_MOMENT not in message.text:
            problems.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: problems.append(str(error)))
    own = (own, "blob:", "data:", "about:srcdoc")
    page.on("request", lambda request: request.url.startswith(own) or problems.append(f"request to {request.url}"))


class Visitors:
    """Opens pages, and records their problems."""

    def __init__(self, server, chromium):
        self.server, self.chromium = server, chromium
        self.pages, self.problems = [], []

    def page(self, *, width=1440, height=900, scheme="light", locale="en-US", scale=1, touch=False):
        """Return an empty page of a new visitor; clear the storage of all pages with the same settings."""
        settings = {"device_scale_factor": scale, "has_touch": touch, "is_mobile": touch}
        context = context_of(self.chromium, color_scheme=scheme, locale=locale, **settings)
        page = context.new_page()
        self.pages.append(page)
        page.set_default_timeout(TIMEOUT)
        page.set_viewport_size({"width": width, "height": height})
        stored = {"origin": self.server, "storageTypes": "cookies,local_storage"}
        context.new_cdp_session(page).send("Storage.clearDataForOrigin", stored)
        record_problems(page, self.problems, self.server)
        return page

    def open(self, *, query="attention", script="", **settings):
        """Open the app, by default the explorer, and wait until it is complete; settings: those of ``page``."""
        page = self.page(**settings)
        page.add_init_script(script)
        page.goto(self.server + "/" + query)
        page.wait_for_selector(".vf-root[data-painted]")
        page.wait_for_selector("input[type=text]:visible")  # inputs appear after the picture
        wait_until_done(page)
        return page

    def close(self):
        for page in self.pages:
            page.close()


@contextmanager
def visiting(server, chromium):
    """Visitors of a server; a problem of a page fails the test."""
    visitors = Visitors(server, chromium)
    yield visitors
    visitors.close()
    assert not visitors.problems


@pytest.fixture(scope="session")
def visitors(server, chromium):
    with visiting(server, chromium) as visitors:
        yield visitors


@pytest.fixture(scope="module")
def shared_page(visitors):
    return visitors.open()


@pytest.fixture
def page(visitors, shared_page):
    """A page shared by the tests of a module, in the state the previous test left it: opening one takes seconds."""
    yield shared_page
    assert not visitors.problems


@pytest.fixture
def open_app(server, chromium):
    """Open fresh pages: ``open_app(query="attention?lang=zh", scheme="dark")``; any problem fails the test."""
    with visiting(server, chromium) as visitors:
        yield visitors.open


@pytest.fixture
def visitor(server, chromium):
    """A visitor of deep links."""
    with visiting(server, chromium) as visitor:
        yield visitor


@pytest.fixture
def visit(chromium):
    """Open files and other sites, each page in a context of its own; a dialog fails the test, too."""
    contexts, problems = [], []

    def open_page(address, *, own=None, width=1440, height=900, scheme="light", **settings):
        settings |= {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
        contexts.append(chromium.new_context(**settings))
        page = contexts[-1].new_page()
        page.set_default_timeout(TIMEOUT)
        record_problems(page, problems, own or address)
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems


@pytest.fixture(scope="module")
def bare(chromium):
    """The explorer without a server, shared by the tests of a module."""
    bare = BarePage(chromium)
    yield bare
    bare.close()
