import io
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pytest
import torch

import visformer as vf
from tests.support import tiny_tokenizer, tiny_translator
from visformer.app.serving import models, worker
from visformer.app.serving.admission import Admission
from visformer.app.serving.stop_signal import Stopped
from visformer.app.serving.worker_pool import WorkerPool
from visformer.edits import Silence
from visformer.errors import CheckpointError, DeadlineError, ShortageError, TextError
from visformer.model.checkpoints import save_checkpoint
from visformer.system import cancellation, limits
from visformer.system.cancellation import CURRENT, Cancellation

SENTENCES = ("I see a cat.", "The dog is red.", "我看见一只猫。")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool") / "tiny"
    save_checkpoint(folder, tiny_translator(tie_embeddings=True).module, tiny_tokenizer())
    return folder


@pytest.fixture(scope="module")
def here(folder):
    return vf.load(folder)


@pytest.fixture(scope="module")
def pool(folder):
    pool = WorkerPool(str(folder), 2)
    yield pool
    pool.close()


def runs(pid):
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def same(one, other):
    assert (one.tokens, one.special, one.words, one.meta) == (other.tokens, other.special, other.words, other.meta)
    assert list(one.tensors) == list(other.tensors)
    for name, tensor in one.tensors.items():
        assert other.tensors[name].axes == tensor.axes
        np.testing.assert_array_equal(other.tensors[name].value, tensor.value)


@pytest.mark.parametrize("source", SENTENCES)
def test_traces_equal_those_of_this_process(pool, here, source):
    same(here.trace(source), pool.trace(source))
    everything = {"record": ("*",), "edits": (Silence("encoder.0.self_attn", 1),)}
    same(here.trace(source, "I", **everything), pool.trace(source, "I", **everything))


def test_a_trace_from_a_worker_is_frozen_too(pool):
    trace = pool.trace(SENTENCES[0])
    with pytest.raises(ValueError, match="read-only"):
        trace.tensors["encoder.0.self_attn.pattern"].value[0, 0, 0] = 1
    with pytest.raises(TypeError):
        trace.meta["source"] = "another"


@pytest.mark.parametrize("how", [{}, {"beam_size": 3}, {"temperature": 0.7, "seed": 4}], ids=str)
def test_decodings_equal_those_of_this_process(pool, here, how):
    one, other = here.translate(SENTENCES[0], **how), pool.translate(SENTENCES[0], **how)
    assert one == other
    for step, again in zip(one.steps, other.steps, strict=True):
        assert torch.equal(step.log_probabilities, again.log_probabilities)


def test_concurrent_requests_get_their_own_results(pool, here):
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(pool.trace, SENTENCES * 8))
    expected = [here.trace(source) for source in SENTENCES]
    for one, trace in zip(expected * 8, found, strict=True):
        same(one, trace)


def test_an_error_arrives_with_its_translations(pool):
    with pytest.raises(TextError) as caught:
        pool.trace(" ")
    assert caught.value.localized(str) == str(caught.value)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pool.trace(SENTENCES[0], edits=(lambda: None,))
    assert pool.trace(SENTENCES[0]).meta["source"] == SENTENCES[0], "nothing of it was sent"


def test_a_process_killed_while_it_computes_gives_an_error_and_is_replaced(pool):
    before = pool.pids
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(pool.trace, SENTENCES[0])
        time.sleep(0.2)
        assert not asked.done()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ShortageError, match="computation was killed"):
            asked.result()
    until(lambda: not any(map(runs, before)))
    for _ in before:  # the other one was killed while idle: no request fails
        assert pool.trace(SENTENCES[0]).meta["source"] == SENTENCES[0]
    assert not set(before) & set(pool.pids)


@pytest.mark.parametrize("error", [ValueError("damaged"), MemoryError(), KeyboardInterrupt()], ids=repr)
def test_an_answer_that_cannot_be_read_is_not_the_next_visitor_s(pool, here, monkeypatch, error):
    def load(_pipe):
        monkeypatch.undo()
        raise error

    monkeypatch.setattr(pickle, "load", load)
    with pytest.raises(ShortageError if isinstance(error, MemoryError) else type(error)):
        pool.trace(SENTENCES[0])
    for source in SENTENCES[1:] * 2:
        same(here.trace(source), pool.trace(source))


def test_weights_that_disappeared_are_named_without_their_path(tmp_path, folder):
    """A killed process has to load them again. The process answers again once they are back."""
    own = shutil.copytree(folder, tmp_path / "own")
    pool = WorkerPool(str(own), 1)
    assert models.can_be_loaded_again(str(own))
    (own / "model.safetensors").unlink()
    assert not models.can_be_loaded_again(str(own))
    assert pool.trace(SENTENCES[0]).meta["source"] == SENTENCES[0]
    os.kill(pool.pids[0], signal.SIGKILL)
    until(lambda: not runs(pool.pids[0]))
    with pytest.raises(CheckpointError, match=r"weights own/model\.safetensors cannot be read") as caught:
        pool.trace(SENTENCES[1])
    assert str(tmp_path) not in str(caught.value)
    shutil.copy(folder / "model.safetensors", own)
    assert pool.trace(SENTENCES[1]).meta["source"] == SENTENCES[1]
    pool.close()


def test_a_pool_that_cannot_be_filled_leaves_no_process(folder, monkeypatch):
    started = []
    popen = subprocess.Popen

    def once(*given, **named):
        if started:
            raise OSError("no more processes")
        started.append(popen(*given, **named))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", once)
    with pytest.raises(OSError, match="no more"):
        WorkerPool(str(folder), 2)
    assert started[0].returncode is not None
    assert started[0].stdin.closed
    assert started[0].stdout.closed


@pytest.fixture
def endless(pool, folder):
    """Arguments of a translation that takes far longer than any test waits."""
    return {"source": SENTENCES[0], "beam_size": 200, "max_new_tokens": 480}


def cancelled(pool, endless, seconds=0.3):
    """Run it, and cancel it a moment later."""
    work, over = Cancellation(), threading.Event()

    def insist():
        while not over.wait(seconds):
            work.cancel(DeadlineError("ended"))

    threading.Thread(target=insist).start()
    token = CURRENT.set(work)
    try:
        pool.translate(**endless)
    finally:
        CURRENT.reset(token)
        over.set()


def test_a_process_gives_up_what_nobody_waits_for_and_answers_the_next(pool, endless):
    for _ in pool.pids:
        assert pool.trace(SENTENCES[0]).meta["source"] == SENTENCES[0]  # all are loaded
    before = pool.pids
    with pytest.raises(Stopped):
        cancelled(pool, endless)
    for _ in before:
        assert pool.trace(SENTENCES[0]).meta["source"] == SENTENCES[0]
    assert pool.pids == before, "none was replaced"


def test_a_process_that_was_stopped_is_replaced(pool, endless, monkeypatch):
    monkeypatch.setattr(limits, "GRACE_SECONDS", 0.2)
    before = pool.pids
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    for _ in before:
        with pytest.raises(ShortageError):
            cancelled(pool, endless)
    for _ in before:
        assert pool.trace(SENTENCES[0]).meta["source"] == SENTENCES[0]
    assert not set(before) & set(pool.pids)


def test_long_work_whose_process_was_stopped_ends_and_the_process_is_replaced(monkeypatch):
    monkeypatch.setattr(limits, "GRACE_SECONDS", 0.2)
    pool, desk = WorkerPool(None, 1), Admission(at_once=1, long_seconds=0.5)
    before = pool.pids

    os.kill(before[0], signal.SIGSTOP)
    with pytest.raises(DeadlineError):
        desk.run("file", partial(pool.call, str, 7), on_wait=lambda before: None, is_long=True)
    assert pool.call(str, 7) == "7"
    assert pool.pids != before
    pool.close()


def test_a_model_that_cannot_be_loaded_is_an_error_at_startup(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        WorkerPool(str(tmp_path / "nowhere"), 1)


def test_a_process_exits_when_its_pipe_is_closed(folder):
    command = [sys.executable, "-m", "visformer.app.serving.worker", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert pickle.load(process.stdout) == (False, None)
        process.send_signal(signal.SIGINT)  # Ctrl-C in the server's terminal reaches it too
        pickle.dump(("tokenize", ("I",), {}), process.stdin)
        process.stdin.flush()
        assert pickle.load(process.stdout)[0] is False
        process.stdin.close()
        assert process.wait(timeout=20) == 0


class Clumsy(Exception):
    """An exception that can be pickled, but not unpickled."""

    def __init__(self, one, two):
        super().__init__(one + two)


class Model:
    def clumsy(self, words):
        raise Clumsy(words, "!")

    def talks(self):
        return SimpleQueue()

    def computes(self):
        while True:
            cancellation.check()


def test_a_process_ends_what_computes_for_too_long(monkeypatch):
    monkeypatch.setattr(worker, "load_to_serve", lambda name: Model())
    monkeypatch.setattr(limits, "WORK_SECONDS", 0.1)
    responses = io.BytesIO()
    worker.serve("any", io.BytesIO(pickle.dumps(("computes", (), {})) + pickle.dumps(("talks", (), {}))), responses)
    responses.seek(0)
    assert pickle.load(responses) == (False, None)
    has_failed, error = pickle.load(responses)
    assert has_failed and isinstance(error, DeadlineError)
    assert pickle.load(responses)[0], "it goes on with the next"


def test_an_error_that_cannot_be_pickled_arrives_as_its_message_which_is_not_logged(monkeypatch, capfd):
    monkeypatch.setattr(worker, "load_to_serve", lambda name: Model())
    requests = io.BytesIO(pickle.dumps(("clumsy", ("secret",), {})) + pickle.dumps(("talks", (), {})))
    responses = io.BytesIO()
    worker.serve("any", requests, responses)
    responses.seek(0)
    assert pickle.load(responses) == (False, None)
    for message in ("Clumsy: secret!", "cannot pickle"):
        has_failed, error = pickle.load(responses)
        assert has_failed
        assert message in str(error)
    logged = capfd.readouterr().err
    assert "raise Clumsy" in logged
    assert "secret" not in logged
