"""Two replicas behind a real nginx, with the shipped configuration."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.load.replicas import Site
from tests.browser.conftest import chromium  # noqa: F401


def run(coroutine):
    """Run a coroutine in a thread of its own: the main thread runs Playwright's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@pytest.fixture
def site(tmp_path):
    started = Site(tmp_path)
    try:
        started.wait()
        yield started
    finally:
        started.close()
