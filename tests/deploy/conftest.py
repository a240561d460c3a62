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

ROOM = ("visformer", "run", "--room", "--headless", "--port")
UVICORN = (
    "uvicorn",
    "--app-dir",
    str(ROOT),
    "app:app",
    "--ws",
    "visformer.app.serving.connections:Websocket",
    "--port",
)
RUN = ("visformer", "run", "--headless", "--port")
STREAMLIT = ("streamlit", "run", str(ROOT / "app.py"), "--server.headless=true", "--server.port")
MARKER = "zyxmarker"
"""A word to type and then search for in logs."""


@contextmanager
def serving(folder, command=ROOM, *, ready=True, preexec_fn=None, **environment):
    """Run a server in a folder; yield its address, its log, which is there, and its process.

    Args:
        command: what to run, without the port, which is its last argument.
        ready: whether to wait until the model is loaded.
        preexec_fn: called in the server's process before it starts.
        environment: environment variables to add.
    """
    log, port = folder / "server.log", free_port()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
    with log.open("w", encoding="utf-8") as out:
        arguments = [sys.executable, "-m", *command, str(port)]
        process = subprocess.Popen(
            arguments, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, preexec_fn=preexec_fn
        )
    server = SimpleNamespace(address=f"http://localhost:{port}", log=log, process=process)
    try:
        if ready:
            wait_until_ready(server.address)
        yield server
    finally:
        process.terminate()
        process.wait(timeout=120)


def run(coroutine):
    """Run a coroutine in a thread of its own: the main thread runs Playwright's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    try:
        site.wait()
        yield site
    finally:
        site.close()
