"""Two replicas behind a real nginx, with the configuration that is shipped."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.load.replicas import Site
from tests.browser.conftest import chromium  # noqa: F401


def run(coroutine):
    """In a thread of its own: Playwright's loop runs in the tests'."""
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
