"""The pool of worker processes: equal results, errors, and processes that are killed, stopped or cancelled."""

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
from tests.waiting import until
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


def is_running(pid):
    """Whether a process, or any of its threads, which end after the first one, has not ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        is_ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return not is_ended or len(os.listdir(f"/proc/{pid}/task")) > 1
    return False


def assert_works(pool, sentence=SENTENCES[0]):
    assert pool.trace(sentence).meta["source"] == sentence


def assert_equal_traces(one, other):
    assert (one.tokens, one.special, one.words, one.meta) == (other.tokens, other.special, other.words, other.meta)
    assert list(one.tensors) == list(other.tensors)
    for name, tensor in one.tensors.items():
        assert other.tensors[name].axes == tensor.axes
        np.testing.assert_array_equal(other.tensors[name].value, tensor.value)


@pytest.mark.parametrize("source", SENTENCES)
def test_traces_equal_those_of_this_process(pool, here, source):
    assert_equal_traces(here.trace(source), pool.trace(source))
    everything = {"record": ("*",), "edits": (Silence("encoder.0.self_attn", 1),)}
    assert_equal_traces(here.trace(source, "I", **everything), pool.trace(source, "I", **everything))


def test_a_trace_from_a_worker_is_frozen(pool):
    trace = pool.trace(SENTENCES[0])
    with pytest.raises(ValueError, match="read-only"):
        trace.tensors["encoder.0.self_attn.pattern"].value[0, 0, 0] = 1
    with pytest.raises(TypeError):
        trace.meta["source"] = "another"


@pytest.mark.parametrize("settings", [{}, {"beam_size": 3}, {"temperature": 0.7, "seed": 4}], ids=str)
def test_decodings_equal_those_of_this_process(pool, here, settings):
    one, other = here.translate(SENTENCES[0], **settings), pool.translate(SENTENCES[0], **settings)
    assert one == other
    for one_step, other_step in zip(one.steps, other.steps, strict=True):
        assert torch.equal(one_step.log_probabilities, other_step.log_probabilities)


def test_concurrent_requests_get_their_own_results(pool, here):
    with ThreadPoolExecutor(8) as threads:
        traces = list(threads.map(pool.trace, SENTENCES * 8))
    expected = [here.trace(source) for source in SENTENCES]
    for one, other in zip(expected * 8, traces, strict=True):
        assert_equal_traces(one, other)


def test_an_error_of_the_model_can_still_be_translated(pool):
    with pytest.raises(TextError) as caught:
        pool.trace(" ")
    assert caught.value.localized(str) == str(caught.value)


def test_a_request_that_cannot_be_pickled_is_an_error_and_nothing_is_sent(pool):
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pool.trace(SENTENCES[0], edits=(lambda: None,))
    assert_works(pool)


def test_a_process_killed_while_it_computes_is_an_error_and_is_replaced(pool):
    before = pool.pids
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as thread:
        request = thread.submit(pool.trace, SENTENCES[0])
        time.sleep(0.2)
        assert not request.done()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ShortageError, match="computation was killed"):
            request.result()
    until(lambda: not any(map(is_running, before)))
    for _ in before:  # the other one was killed while idle: no request fails
        assert_works(pool)
    assert not set(before) & set(pool.pids)


@pytest.mark.parametrize("error", [ValueError("damaged"), MemoryError(), KeyboardInterrupt()], ids=repr)
def test_a_response_that_cannot_be_read_does_not_reach_the_next_visitor(pool, here, monkeypatch, error):
    def load(_pipe):
        monkeypatch.undo()
        raise error

    monkeypatch.setattr(pickle, "load", load)
    with pytest.raises(ShortageError if isinstance(error, MemoryError) else type(error)):
        pool.trace(SENTENCES[0])
    for source in SENTENCES[1:] * 2:
        assert_equal_traces(here.trace(source), pool.trace(source))


def test_weights_that_have_disappeared_are_named_without_their_path(tmp_path, folder):
    """A process that replaces a killed one has to load them. It works again once they are back."""
    own = shutil.copytree(folder, tmp_path / "own")
    pool = WorkerPool(str(own), 1)
    assert models.can_be_loaded_again(str(own))
    (own / "model.safetensors").unlink()
    assert not models.can_be_loaded_again(str(own))
    assert_works(pool)
    os.kill(pool.pids[0], signal.SIGKILL)
    until(lambda: not is_running(pool.pids[0]))
    with pytest.raises(CheckpointError, match=r"weights own/model\.safetensors cannot be read") as caught:
        pool.trace(SENTENCES[1])
    assert str(tmp_path) not in str(caught.value)
    shutil.copy(folder / "model.safetensors", own)
    assert_works(pool, SENTENCES[1])
    pool.close()


def test_a_pool_that_cannot_be_filled_leaves_no_process(folder, monkeypatch):
    started = []
    popen = subprocess.Popen

    def start_one(*arguments, **options):
        if started:
            raise OSError("no more processes")
        started.append(popen(*arguments, **options))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start_one)
    with pytest.raises(OSError, match="no more"):
        WorkerPool(str(folder), 2)
    assert started[0].returncode is not None
    assert started[0].stdin.closed
    assert started[0].stdout.closed


def translate_and_cancel(pool):
    """Start a translation that takes far longer than any test waits, and cancel it again and again."""
    work, finished = Cancellation(), threading.Event()

    def cancel():
        while not finished.wait(0.3):
            work.cancel(DeadlineError("ended"))

    threading.Thread(target=cancel).start()
    token = CURRENT.set(work)
    try:
        pool.translate(SENTENCES[0], beam_size=200, max_new_tokens=480)
    finally:
        CURRENT.reset(token)
        finished.set()


def test_a_process_stops_cancelled_work_and_computes_the_next(pool):
    for _ in pool.pids:
        assert_works(pool)  # all are loaded
    before = pool.pids
    with pytest.raises(Stopped):
        translate_and_cancel(pool)
    for _ in before:
        assert_works(pool)
    assert pool.pids == before, "none was replaced"


def test_a_process_that_does_not_stop_its_work_is_replaced(pool, monkeypatch):
    monkeypatch.setattr(limits, "GRACE_SECONDS", 0.2)
    before = pool.pids
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    for _ in before:
        with pytest.raises(ShortageError):
            translate_and_cancel(pool)
    for _ in before:
        assert_works(pool)
    assert not set(before) & set(pool.pids)


def test_a_process_is_not_stopped_while_it_imports_a_module(tmp_path, monkeypatch):
    """Compiled modules cannot be imported a second time after an import that was interrupted, as this one."""
    module = "import builtins, time\nassert not hasattr(builtins, 'begun')\nbuiltins.begun = True\ntime.sleep(1)\n"
    (tmp_path / "imported_once.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    pool, admission = WorkerPool(None, 1), Admission(at_once=1, long_seconds=0.3)
    before = pool.pids
    work = "import imported_once, time; time.sleep(60)"
    with pytest.raises(DeadlineError):
        admission.run("file", partial(pool.call, exec, work), on_wait=lambda before: None, kind="long")
    assert pool.call(eval, "__import__('imported_once').time.monotonic()") > 0
    assert pool.pids == before
    pool.close()


def test_long_work_whose_process_was_stopped_ends_and_the_process_is_replaced(monkeypatch):
    monkeypatch.setattr(limits, "GRACE_SECONDS", 0.2)
    pool, admission = WorkerPool(None, 1), Admission(at_once=1, long_seconds=0.5)
    before = pool.pids

    os.kill(before[0], signal.SIGSTOP)
    with pytest.raises(DeadlineError):
        admission.run("file", partial(pool.call, str, 7), on_wait=lambda before: None, kind="long")
    assert pool.call(str, 7) == "7"
    assert pool.pids != before
    pool.close()


def test_a_model_that_cannot_be_loaded_is_an_error_at_the_start(tmp_path):
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


class CannotBeUnpickled(Exception):
    """An exception that can be pickled but not unpickled."""

    def __init__(self, one, two):
        super().__init__(one + two)


class Model:
    def fail(self, message):
        raise CannotBeUnpickled(message, "!")

    def return_a_queue(self):
        return SimpleQueue()

    def compute_forever(self):
        while True:
            cancellation.check()


def test_a_process_ends_what_computes_for_too_long(monkeypatch):
    monkeypatch.setattr(worker, "load_to_serve", lambda name: Model())
    monkeypatch.setattr(limits, "WORK_SECONDS", 0.1)
    responses = io.BytesIO()
    requests = io.BytesIO(pickle.dumps(("compute_forever", (), {})) + pickle.dumps(("return_a_queue", (), {})))
    worker.serve("any", requests, responses)
    responses.seek(0)
    assert pickle.load(responses) == (False, None)
    has_failed, error = pickle.load(responses)
    assert has_failed and isinstance(error, DeadlineError)
    assert pickle.load(responses)[0], "it goes on with the next"


def test_what_cannot_be_unpickled_arrives_as_a_message_that_is_not_logged(monkeypatch, capfd):
    monkeypatch.setattr(worker, "load_to_serve", lambda name: Model())
    requests = io.BytesIO(pickle.dumps(("fail", ("secret",), {})) + pickle.dumps(("return_a_queue", (), {})))
    responses = io.BytesIO()
    worker.serve("any", requests, responses)
    responses.seek(0)
    assert pickle.load(responses) == (False, None)
    for message in ("CannotBeUnpickled: secret!", "cannot pickle"):
        has_failed, error = pickle.load(responses)
        assert has_failed
        assert message in str(error)
    logged = capfd.readouterr().err
    assert "raise CannotBeUnpickled" in logged
    assert "secret" not in logged
