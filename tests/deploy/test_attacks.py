"""Attacks in small, on a server of their own: an ordinary visitor gets an answer meanwhile."""

import asyncio
import os
import resource
import signal
import subprocess
import urllib.request
from contextlib import suppress
from itertools import count
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from benchmarks.load.expected import expected
from benchmarks.load.visitor import Visitor, Wrong
from tests.deploy.conftest import run, serving
from tests.waiting import until

pytestmark = pytest.mark.full

SENTENCES = ("We see a cat.", "We see a dog.", "We see a bird.")
LONG = "+".join(["the+old+house+of+my+friend"] * 20)


@pytest.fixture
def few_files():
    """Let processes that start now open 1,024 files and no more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


async def gets_answers(address):
    visitor, results = Visitor(address), expected(SENTENCES)
    await visitor.open()
    for sentence in SENTENCES:
        assert (await visitor.enter(sentence)).translation == results[sentence].translation
    await visitor.close()


def test_links_that_are_opened_again_and_again_keep_nobody_waiting_for_ever(tmp_path):
    async def reload(address, over):
        for i in count():
            if over.is_set():
                return
            visitor = Visitor(address)
            with suppress(Wrong, OSError, TimeoutError):
                await asyncio.wait_for(visitor.open(f"text={LONG}+{id(visitor)}+{i}"), 3)
            await visitor.close()

    async def attack(address):
        over = asyncio.Event()
        others = [asyncio.create_task(reload(address, over)) for _ in range(4)]
        await asyncio.sleep(3)
        await gets_answers(address)
        over.set()
        await asyncio.gather(*others)

    with serving(tmp_path) as server:
        run(attack(server.address))
    assert "Traceback" not in server.log.read_text(encoding="utf-8")


def test_more_connections_than_open_files_leave_the_server_healthy(tmp_path, few_files):
    async def attack(address):
        at, held, refused = urlsplit(address), [], 0
        visitor = Visitor(address)
        await visitor.open()
        for _ in range(250):
            try:
                held.append(await connect(f"ws://{at.netloc}/_stcore/stream", subprotocols=["streamlit"]))
            except InvalidStatus:
                refused += 1
        assert refused > 50
        silent = [await asyncio.open_connection(at.hostname, at.port) for _ in range(800)]
        for sentence in SENTENCES:
            assert (await visitor.enter(sentence)).translation
            with await asyncio.to_thread(urllib.request.urlopen, f"{address}/healthz", timeout=60) as answer:
                assert answer.status == 200
        for each in held:
            await each.close()
        for _, writer in silent:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in silent), return_exceptions=True)
        await visitor.close()
        await gets_answers(address)

    with serving(tmp_path, preexec_fn=few_files) as server:
        run(attack(server.address))
    log = server.log.read_text(encoding="utf-8")
    assert "Traceback" not in log and log.count("ulimit -n") == 1
    assert log.count("There are too many") <= 4, "a line now and then"


@pytest.mark.parametrize("suspended", [False, True])
def test_a_server_that_is_stopped_while_it_computes_leaves_no_process(tmp_path, suspended):
    async def ask(address):
        visitor = Visitor(address)
        try:
            await visitor.open()
            await visitor.enter(LONG.replace("+", " "))
        finally:
            await visitor.close()

    def children():
        listed = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=False)
        return [int(pid) for pid in listed.stdout.split()]

    def are_gone():
        with suppress(ProcessLookupError):
            for pid in pids:
                os.kill(pid, 0)
            return False
        return True

    with serving(tmp_path) as server:
        pids = children()
        assert pids
        if suspended:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
        else:
            with suppress(TimeoutError, Wrong):
                run(asyncio.wait_for(ask(server.address), 0.5))
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=120)
        until(are_gone)
    assert "Traceback" not in server.log.read_text(encoding="utf-8")
