"""Tests depend on nothing outside the repository: on no network, and not on home and settings of whoever runs them."""

import atexit
import os
import shutil
import socket
import tempfile
from pathlib import Path

HOME = Path(tempfile.mkdtemp(prefix="visformer-home-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
NO_NETWORK = "http://127.0.0.1:9"
"""A proxy that does not answer: programs that tests start find no network either."""

OWN_SETTINGS = ("VISFORMER_", "STREAMLIT_", "HF_", "XDG_", "JUPYTER_", "IPYTHON", "MPLCONFIGDIR")
for name in [name for name in os.environ if name.startswith(OWN_SETTINGS) or name.lower().endswith("_proxy")]:
    del os.environ[name]
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # tests start many processes, which would all compile the sources
os.environ["LANGUAGE"] = "en"  # of errors, as these tests read them
os.environ["HOME"] = str(HOME)  # before anything reads it; programs started by tests get it, too
for name in ("http_proxy", "https_proxy", "all_proxy"):
    os.environ[name] = os.environ[name.upper()] = NO_NETWORK
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "localhost,127.0.0.1,::1"

import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "visformer",
    deadline=None,
    derandomize=True,  # a failure on one machine is a failure on all
    database=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("visformer")
torch.set_num_threads(1)


def is_outside(to, address):
    """Whether a socket that connects to this address leaves this machine, or would by the proxy."""
    if to.family == socket.AF_UNIX or to.type != socket.SOCK_STREAM:
        return False
    host, port, *_ = address
    if port == int(NO_NETWORK.rpartition(":")[2]):
        return True
    try:
        with socket.socket(to.family) as trial:
            trial.bind((host, 0))  # an address of this machine
    except OSError:
        return True
    return False


outside = []
"""Addresses outside this machine that this process tried to reach."""


def refusing(connect):
    def connect_if_inside(self, address):
        if is_outside(self, address):
            outside.append(address)
            raise ConnectionRefusedError(f"tests have no network: {address}")
        return connect(self, address)

    return connect_if_inside


socket.socket.connect = refusing(socket.socket.connect)
socket.socket.connect_ex = refusing(socket.socket.connect_ex)


@pytest.fixture(autouse=True)
def _on_its_own():
    """The same random numbers for each test, and none that reaches for a network, even if that failure is handled."""
    torch.manual_seed(0)
    outside.clear()
    yield
    assert not outside, "a test reached for the network"


@pytest.fixture(scope="session")
def chromium():
    """A browser for tests/browser and tests/deploy: where Playwright runs, no other test can run an event loop."""
    from playwright.sync_api import sync_playwright

    from benchmarks.chromium import FLAGS, path
    from tests.browser.slow import slow_down

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path(), args=list(FLAGS))
        slow_down(browser)
        yield browser
        browser.close()
