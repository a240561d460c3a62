"""A server in a process of its own; and two replicas behind a real nginx, with the shipped configuration."""

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from benchmarks.load.replicas import ROOT, Site, free_port, wait_until_ready
from tests.browser.conftest import chromium  # noqa: F401

ROOM = ("visformer.app.serving", "run", "asgi.py", "--server.headless=true", "--server.port")
UVICORN = ("uvicorn", "asgi:app", "--ws", "visformer.app.serving.websocket:Websocket", "--port")
RUN = ("visformer", "run", "--headless", "--port")


@contextmanager
def serving(folder, command=ROOM, *, ready=True, **environment):
    """A server whose output goes to a log in the folder; the last word of its command takes the port."""
    log, port = folder / "server.log", free_port()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
    with log.open("w") as out:
        started = [sys.executable, "-m", *command, str(port)]
        process = subprocess.Popen(started, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
    server = SimpleNamespace(address=f"http://localhost:{port}", log=log, process=process)
    try:
        if ready:
            wait_until_ready(server.address)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=20)


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
