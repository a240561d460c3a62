"""Six visitors at once on a real server: everybody gets their own results. `make load` measures the speed."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from benchmarks.load.__main__ import Watch, _hostile_verdicts
from benchmarks.load.expected import Expected, Picture, expected
from benchmarks.load.plan import tasks
from benchmarks.load.replicas import ROOT, free_port
from benchmarks.load.room import Outcome, crowd
from benchmarks.load.visitor import Answer, Visitor
from tests.deploy.conftest import UVICORN, run, serving

MARKER = "zyxmarker"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("room")) as started:
        yield started


def test_six_visitors_get_their_own(server):
    planned = [replace(task, at=task.at / 3) for task in tasks(6, 18, pause=3)]
    looked_up = expected(task.sentence for task in planned)
    found = run(crowd(server.address, planned, looked_up))
    assert not found.wrong
    assert found.rejected == 0
    assert len(found.enter) == len(planned)
    assert "decoding" in found.other
    metrics = Watch(server.address).read()
    different = len({task.sentence for task in planned})
    assert metrics["visformer_requests_total cached"] > 0
    assert metrics["visformer_requests_total failed"] == metrics["visformer_requests_total rejected"] == 0
    assert metrics["visformer_requests_total computed"] >= different
    assert metrics["visformer_forward_seconds_count"] == metrics["visformer_requests_total computed"]
    assert metrics["visformer_queue_length"] == metrics["visformer_running"] == 0
    assert metrics["visformer_model_ready"] == 1
    assert metrics["process_resident_memory_bytes"] > 1e8
    assert "Traceback" not in server.log.read_text()


def test_the_same_from_all_at_once_is_computed_once(server):
    sentence = "Everybody here types this one sentence now."
    before = Watch(server.address).read()

    async def together():
        visitors = [Visitor(server.address) for _ in range(6)]
        for visitor in visitors:
            await visitor.open()
        sessions = (await asyncio.to_thread(Watch(server.address).read))["visformer_sessions"]
        answers = await asyncio.gather(*(visitor.enter(sentence) for visitor in visitors))
        for visitor in visitors:
            await visitor.close()
        return sessions, answers

    sessions, answers = run(together())
    after = Watch(server.address).read()
    assert sessions == 6
    assert {answer.picture for answer in answers} == {expected([sentence])[sentence].picture}
    computed = "visformer_requests_total computed"
    assert after[computed] - before[computed] == 1


def test_if_a_worker_is_killed_only_its_own_visitors_notice(server):
    """Killed as by the system when memory runs out."""
    before = _model_pids(server)
    assert len(before) == 2
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    sentences = ("Somebody sat on the chair.", "Somebody else sat on the floor.")
    looked_up = expected(sentences)

    async def go_on():
        visitor = Visitor(server.address)
        await visitor.open()
        answers = [await visitor.enter(sentence) for sentence in sentences]
        await visitor.close()
        return answers

    for sentence, answer in zip(sentences, run(go_on()), strict=True):
        assert answer.picture == looked_up[sentence].picture
    assert set(_model_pids(server)) - set(before)
    memory = Watch(server.address).read()
    assert memory["visformer_model_0_process_resident_memory_bytes"] > 1e8
    assert "Traceback" not in server.log.read_text()


def _model_pids(server):
    listed = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=True)
    return [int(pid) for pid in listed.stdout.split()]


def test_the_check_finds_what_is_mixed_up():
    """Without this, the checks of the load test might never fail."""
    own = Expected(Picture((("I", "</s>"), ("我", "</s>")), "digest"), "我")
    right = Answer(own.picture, 0.1, ["Translation: 我"])
    wrong = {
        "a sentence brought no picture": replace(right, picture=None),
        "tokens of another sentence": replace(right, picture=replace(own.picture, tokens=(("You", "</s>"),))),
        "other weights than computed alone": replace(right, picture=replace(own.picture, digest="other")),
        "another translation than computed alone": replace(right, texts=["Translation: 你"]),
    }
    found = Outcome()
    found.take(right, own)
    assert not found.wrong
    for answer in wrong.values():
        found.take(answer, own)
    assert found.wrong == dict.fromkeys(wrong, 1)
    found.take(replace(right, texts=["Too many sentences are being computed right now"]), own)
    assert found.rejected == 1


def test_the_first_page_that_anybody_opens_may_be_any(tmp_path):
    """Streamlit treats the folder pages/ as pages of an older convention until app.py has run once."""
    with serving(tmp_path, VISFORMER_PROCESSES="0") as server:

        async def look():
            visitor = Visitor(server.address)
            answer = await visitor.open(page="tokens")
            await visitor.close()
            return answer

        assert run(look()).translation == "我去东北大学。"


def test_a_number_of_processes_that_is_none_is_one_line():
    command = [sys.executable, "-m", "uvicorn", "asgi:app", "--port", str(free_port())]
    environment = {**os.environ, "VISFORMER_PROCESSES": "two"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode
    assert "VISFORMER_PROCESSES=two: expected a whole number" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_typed_is_logged_even_where_requests_are(tmp_path):
    """Started by uvicorn, which logs every request."""
    with serving(tmp_path, UVICORN) as server:
        urllib.request.urlopen(f"{server.address}/?text={MARKER}&target={MARKER}", timeout=20).close()
        run(_type_everything(server.address))
    said = server.log.read_text()
    assert '"GET / HTTP/1.1" 200' in said
    assert '"WebSocket /_stcore/stream" [accepted]' in said
    assert MARKER not in said


async def _type_everything(address):
    visitor = Visitor(address)
    await visitor.open(f"text={MARKER}")
    for text in (f"I like {MARKER}.", f"{MARKER} " * 300, f"half {MARKER} \N{REPLACEMENT CHARACTER}"):
        await visitor.enter(text)
    for page in ("tokens", "decoding"):
        await visitor.visit(page)
    await visitor.close()


def test_a_server_without_its_model_says_so(tmp_path):
    said, end = "", time.monotonic() + 60
    with serving(tmp_path, ready=False, VISFORMER_MODEL=str(tmp_path / "none")) as server:
        while said in ("", "loading") and time.monotonic() < end:
            time.sleep(0.1)
            said = _refused(server.address) or said
    assert said.startswith("the model cannot be loaded, trying again: ")


def test_weights_that_disappear_make_a_server_unready_until_they_are_back(tmp_path):
    folder = shutil.copytree(ROOT / "visformer" / "model" / "checkpoints" / "en-zh", tmp_path / "own")
    with serving(tmp_path, VISFORMER_MODEL=str(folder), VISFORMER_PROCESSES="0") as server:
        (folder / "model.safetensors").rename(folder / "elsewhere")
        assert _refused(server.address) == "the model's weights cannot be read any more"
        (folder / "elsewhere").rename(folder / "model.safetensors")
        assert _refused(server.address) == "status 200"


def _refused(address):
    """The text of /healthz with status 503; empty while there is no response."""
    try:
        urllib.request.urlopen(f"{address}/healthz", timeout=5).close()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.read().decode() if refused.code == 503 else f"status {refused.code}"
    except OSError:
        return None
    return "status 200"


def test_the_load_test_says_what_hostile_visitors_take_from_the_others():
    times = {"p95": 0.2, "n": 9}
    result = {"sessions": {"Enter to picture": times}, "with hostile visitors": {}}
    assert _hostile_verdicts(result) == []
    others = {"Enter to picture": {"p95": 0.5}, "wrong": {"no answer": 1}, "rejected": 2}
    result["with hostile visitors"] = {"others": others, "server": {"memory, MB": [900, 2001, 1000]}}
    assert [(said, met) for _, said, met in _hostile_verdicts(result)] == [
        ("2.50 times", False),
        ("2001 MB", False),
        ("3 errors", False),
    ]
