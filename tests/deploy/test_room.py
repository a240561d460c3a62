"""Visitors at once on a real server: everybody gets their own results. `make load` measures the speed."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from benchmarks.load.__main__ import Watch, _verdicts_beside
from benchmarks.load.expected import Expected, Picture, expected
from benchmarks.load.plan import tasks
from benchmarks.load.replicas import ROOT, free_port
from benchmarks.load.room import Outcome, crowd
from benchmarks.load.visitor import Answer, Visitor
from tests.deploy.conftest import MARKER, UVICORN, run, serving
from tests.waiting import until


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("room")) as started:
        yield started


async def enter(address, *sentences, query="", pages=()):
    """Type sentences one after another and then open pages; return the answers to the sentences."""
    visitor = Visitor(address)
    await visitor.open(query)
    answers = [await visitor.enter(sentence) for sentence in sentences]
    for page in pages:
        await visitor.visit(page)
    await visitor.close()
    return answers


def health(address):
    """Return status and text of /healthz, or (0, "") while nothing answers."""
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=120) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


@pytest.mark.full
def test_six_visitors_get_their_own_results(server):
    planned = [replace(task, at=task.at / 6) for task in tasks(6, 18, pause=3)]
    outcome = run(crowd(server.address, planned, expected(task.sentence for task in planned)))
    assert not outcome.wrong
    assert outcome.rejected == 0
    assert len(outcome.enter) == len(planned)
    assert "decoding" in outcome.other
    metrics = Watch(server.address).read()
    assert metrics["visformer_requests_total cached"] > 0
    assert metrics["visformer_requests_total failed"] == metrics["visformer_requests_total rejected"] == 0
    assert metrics["visformer_requests_total computed"] >= len({task.sentence for task in planned})
    assert metrics["visformer_forward_seconds_count"] == metrics["visformer_requests_total computed"]
    assert metrics["visformer_queue_length"] == metrics["visformer_running"] == 0
    assert metrics["visformer_model_ready"] == 1
    assert metrics["process_resident_memory_bytes"] > 1e8
    assert "Traceback" not in server.log.read_text(encoding="utf-8")


def test_the_page_has_the_visitors_language_before_its_script_runs(server):
    request = urllib.request.Request(server.address, headers={"Accept-Language": "zh-CN"})
    with urllib.request.urlopen(request, timeout=120) as response:
        page = response.read().decode()
    assert '<html lang="zh">' in page
    assert "<title>Visformer</title>" in page


def test_one_sentence_from_several_visitors_at_once_is_computed_once(server):
    sentence = "Everybody here types this one sentence now."
    before = Watch(server.address).read()

    async def enter_together():
        visitors = [Visitor(server.address) for _ in range(6)]
        for visitor in visitors:
            await visitor.open()
        sessions = (await asyncio.to_thread(Watch(server.address).read))["visformer_sessions"]
        answers = await asyncio.gather(*(visitor.enter(sentence) for visitor in visitors))
        for visitor in visitors:
            await visitor.close()
        return sessions, answers

    sessions, answers = run(enter_together())
    assert sessions == 6
    assert {answer.picture for answer in answers} == {expected([sentence])[sentence].picture}
    computed = "visformer_requests_total computed"
    assert Watch(server.address).read()[computed] - before[computed] == 1


def test_killed_workers_are_replaced_and_visitors_get_their_results(server):
    """Killed as by the system when memory runs out."""

    def worker_pids():
        listed = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=True)
        return {int(pid) for pid in listed.stdout.split()}

    before = worker_pids()
    assert len(before) == 2
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    sentences = ("Somebody sat on the chair.", "Somebody else sat on the floor.")
    results = expected(sentences)
    pictures = [answer.picture for answer in run(enter(server.address, *sentences))]
    assert pictures == [results[sentence].picture for sentence in sentences]
    assert worker_pids() - before
    assert Watch(server.address).read()["visformer_model_0_process_resident_memory_bytes"] > 1e8
    assert "Traceback" not in server.log.read_text(encoding="utf-8")


def test_the_load_test_finds_wrong_results():
    """Without this, the checks of the load test might never fail."""
    own = Expected(Picture((("I", "</s>"), ("我", "</s>")), "digest"), "我")
    right = Answer(own.picture, 0.1, ["Translation: 我"])
    wrong = {
        "a sentence brought no picture": replace(right, picture=None),
        "tokens of another sentence": replace(right, picture=replace(own.picture, tokens=(("You", "</s>"),))),
        "other weights than computed alone": replace(right, picture=replace(own.picture, digest="other")),
        "another translation than computed alone": replace(right, texts=["Translation: 你"]),
    }
    outcome = Outcome()
    outcome.take(right, own)
    assert not outcome.wrong
    for answer in wrong.values():
        outcome.take(answer, own)
    assert outcome.wrong == dict.fromkeys(wrong, 1)
    outcome.take(replace(right, texts=["Too many sentences are being computed right now"]), own)
    assert outcome.rejected == 1


@pytest.mark.full
def test_an_invalid_number_of_processes_is_an_error_without_a_traceback():
    command = [sys.executable, "-m", *UVICORN, str(free_port())]
    environment = {**os.environ, "VISFORMER_PROCESSES": "two"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode
    assert "VISFORMER_PROCESSES=two: expected a whole number" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_typed_is_logged_even_if_requests_are(tmp_path):
    """Started by uvicorn, which logs every request."""
    texts = (f"I like {MARKER}.", f"{MARKER} " * 300, f"half {MARKER} \N{REPLACEMENT CHARACTER}")
    with serving(tmp_path, UVICORN) as server:
        urllib.request.urlopen(f"{server.address}/?text={MARKER}&target={MARKER}", timeout=120).close()
        run(enter(server.address, *texts, query=f"text={MARKER}", pages=("embedding", "decoding")))
    log = server.log.read_text(encoding="utf-8")
    assert '"GET / HTTP/1.1" 200' in log
    assert '"WebSocket /_stcore/stream" [accepted]' in log
    assert MARKER not in log


@pytest.mark.full
def test_a_server_that_cannot_load_its_model_reports_why(tmp_path):
    problem = "the model cannot be loaded, trying again: "
    with serving(tmp_path, ready=False, VISFORMER_MODEL=str(tmp_path / "none")) as server:
        until(lambda: health(server.address)[1].startswith(problem), seconds=240)
        assert health(server.address)[0] == 503


@pytest.mark.full
def test_weights_that_disappear_make_a_server_unready_until_they_are_back(tmp_path):
    folder = shutil.copytree(ROOT / "visformer" / "model" / "checkpoints" / "en-zh", tmp_path / "own")
    with serving(tmp_path, VISFORMER_MODEL=str(folder), VISFORMER_PROCESSES="0") as server:
        (folder / "model.safetensors").rename(folder / "elsewhere")
        assert health(server.address) == (503, "the model's weights cannot be read any more")
        (folder / "elsewhere").rename(folder / "model.safetensors")
        assert health(server.address) == (200, "ready")


def test_the_load_test_compares_visitors_with_and_without_others_beside_them():
    times = {"p95": 0.2, "n": 9}
    result = {"sessions": {"Enter to picture": times}, "beside": {}}
    assert [*_verdicts_beside(result)] == []
    others = {"Enter to picture": {"p95": 0.35}, "wrong": {"no answer": 1}, "rejected": 2}
    seen = {"others": others, "server": {"memory, MB": [900, 2001, 1000]}}
    result["beside"] = {"hostile": seen, "training": seen}
    assert [(value, met) for _, value, met in _verdicts_beside(result)] == [
        ("1.75 times", True),
        ("2001 MB", False),
        ("3 errors", False),
        ("1.75 times", False),
        ("2001 MB", False),
        ("3 errors", False),
    ]
