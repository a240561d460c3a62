"""Worker processes: equal results, errors, and processes that are killed, stopped or cancelled."""

import io
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pytest
import torch

import visformer as vf
from tests.app.serving.support import call_and_cancel
from tests.support import tiny_tokenizer, tiny_translator
from tests.waiting import until
from visformer.app.serving import models, worker, workers
from visformer.app.serving.admission import Admission
from visformer.app.serving.remote_models import in_processes
from visformer.app.serving.worker import Stopped
from visformer.edits import Silence
from visformer.errors import CheckpointError, DeadlineError, ShortageError, TextError
from visformer.model.checkpoints import save_checkpoint
from visformer.system import cancellation, limits

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
    """A process with torch and a small model; no test ends it, as the next takes seconds to start."""
    remote = in_processes(str(folder), 1)
    yield remote
    remote._workers.close()


@pytest.fixture
def light_pool(without_torch):
    """Start processes with a model that is there at once."""
    started = []

    def start(name="light", processes=1):
        started.append(in_processes(name, processes))
        return started[-1]

    yield start
    for remote in started:
        remote._workers.close()


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


def test_traces_equal_those_of_this_process(pool, here):
    everything = {"record": ("*",), "edits": (Silence("encoder.0.self_attn", 1),)}
    for source in SENTENCES:
        assert_equal_traces(here.trace(source), pool.trace(source))
        assert_equal_traces(here.trace(source, "I", **everything), pool.trace(source, "I", **everything))


def test_a_trace_from_a_worker_is_frozen(pool):
    trace = pool.trace(SENTENCES[0])
    with pytest.raises(ValueError, match="read-only"):
        trace.tensors["encoder.0.self_attn.pattern"].value[0, 0, 0] = 1
    with pytest.raises(TypeError):
        trace.meta["source"] = "another"


@pytest.mark.full
def test_decodings_equal_those_of_this_process(pool, here):
    for settings in ({}, {"beam_size": 3}, {"temperature": 0.7, "seed": 4}):
        one, other = here.translate(SENTENCES[0], **settings), pool.translate(SENTENCES[0], **settings)
        assert one == other, settings
        for one_step, other_step in zip(one.steps, other.steps, strict=True):
            assert torch.equal(one_step.log_probabilities, other_step.log_probabilities), settings


def test_concurrent_requests_get_their_own_results(light_pool):
    with ThreadPoolExecutor(8) as threads:
        traces = list(threads.map(light_pool(processes=2).trace, SENTENCES * 20))
    assert [trace.meta["source"] for trace in traces] == [*SENTENCES * 20]


def test_an_error_of_the_model_can_still_be_translated(pool):
    with pytest.raises(TextError) as caught:
        pool.trace(" ")
    assert caught.value.localized(str) == str(caught.value)


def test_a_request_that_cannot_be_pickled_is_an_error_and_nothing_is_sent(light_pool):
    pool = light_pool()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pool.trace(SENTENCES[0], edits=(lambda: None,))
    assert_works(pool)


def test_a_process_killed_while_it_computes_is_an_error_and_is_replaced(light_pool, tmp_path):
    pool, begun = light_pool(processes=2), tmp_path / "begun"
    before = pool.pids
    with ThreadPoolExecutor(1) as thread:
        request = thread.submit(pool._workers.call, exec, f"open({str(begun)!r}, 'w'); import time; time.sleep(60)")
        until(begun.exists)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ShortageError, match="computation was killed"):
            request.result()
    until(lambda: not any(map(is_running, before)))
    for _ in before:  # the other one was killed while idle: no request fails
        assert_works(pool)
    assert not set(before) & set(pool.pids)


def test_a_response_that_cannot_be_read_does_not_reach_the_next_visitor(light_pool):
    pool = light_pool()
    for error in (ValueError("damaged"), MemoryError(), KeyboardInterrupt()):
        with pytest.MonkeyPatch.context() as patch:

            def load(_pipe, patch=patch, error=error):
                patch.undo()
                raise error

            patch.setattr(pickle, "load", load)
            with pytest.raises(ShortageError if isinstance(error, MemoryError) else type(error)):
                pool.trace(SENTENCES[0])
        for source in SENTENCES[1:]:
            assert_works(pool, source)


def test_weights_that_have_disappeared_are_named_without_their_path(light_pool, tmp_path):
    """A process that replaces a killed one has to load them. It works again once they are back."""
    own, aside = tmp_path / "own", tmp_path / "model.safetensors"
    own.mkdir()
    (own / aside.name).touch()
    pool = light_pool(str(own))
    assert models.can_be_loaded_again(str(own))
    (own / aside.name).rename(aside)
    assert not models.can_be_loaded_again(str(own))
    assert_works(pool)
    os.kill(pool.pids[0], signal.SIGKILL)
    until(lambda: not is_running(pool.pids[0]))
    for load in (partial(pool.trace, SENTENCES[1]), partial(in_processes, str(own), 1)):
        with pytest.raises(CheckpointError, match=r"^own/model\.safetensors cannot be read"):
            load()
    aside.rename(own / aside.name)
    assert_works(pool, SENTENCES[1])


def test_a_checkpoint_without_weights_is_named_without_its_path(tmp_path, folder):
    own = tmp_path / "own"
    own.mkdir()
    (own / "tokenizer.json").symlink_to(folder / "tokenizer.json")
    with pytest.raises(CheckpointError) as caught, models.discreetly(str(own)):
        vf.load(own)
    assert "own/model.safetensors" in str(caught.value) and str(tmp_path) not in str(caught.value)


def test_a_pool_that_cannot_be_filled_leaves_no_process(light_pool, monkeypatch):
    started = []
    popen = subprocess.Popen

    def start_one(*arguments, **options):
        if started:
            raise OSError("no more processes")
        started.append(popen(*arguments, **options))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start_one)
    with pytest.raises(OSError, match="no more"):
        light_pool(processes=2)
    assert started[0].returncode is not None
    assert started[0].stdin.closed
    assert started[0].stdout.closed


def test_a_process_stops_cancelled_work_and_computes_the_next(pool, monkeypatch):
    monkeypatch.setattr(limits, "GRACE_SECONDS", 100)
    before = pool.pids
    with pytest.raises(Stopped):  # it would take far longer than any test waits
        call_and_cancel(partial(pool.translate, SENTENCES[0], beam_size=200, max_new_tokens=480))
    assert_works(pool)
    assert pool.pids == before, "it was not replaced"


def test_a_process_that_does_not_stop_its_work_is_replaced(light_pool, monkeypatch):
    monkeypatch.setattr(limits, "GRACE_SECONDS", 0.05)
    pool = light_pool(processes=2)
    before = pool.pids
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    for _ in before:
        with pytest.raises(ShortageError):
            call_and_cancel(partial(pool.translate, SENTENCES[0]))
    for _ in before:
        assert_works(pool)
    assert not set(before) & set(pool.pids)


def test_a_process_is_not_stopped_while_it_imports_a_module(light_pool, tmp_path, monkeypatch):
    """Compiled modules cannot be imported a second time after an import that was interrupted, as this one."""
    monkeypatch.setattr(limits, "GRACE_SECONDS", 100)
    begun = tmp_path / "begun"
    (tmp_path / "imported_once.py").write_text(
        "import builtins, time\n"
        "assert not hasattr(builtins, 'begun')\n"
        f"builtins.begun = open({str(begun)!r}, 'w')\n"
        "time.sleep(0.2)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    pool = light_pool()._workers
    before = pool.pids
    with pytest.raises(Stopped):
        call_and_cancel(partial(pool.call, exec, "import imported_once, time; time.sleep(60)"), begun.exists)
    assert pool.call(eval, "__import__('imported_once').time.monotonic()") > 0
    assert pool.pids == before


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="tells who is suspended")
def test_a_suspended_process_is_replaced_and_keeps_nobody_waiting(light_pool):
    pool, admission = light_pool()._workers, Admission(at_once=1)
    before = pool.pids
    os.kill(before[0], signal.SIGSTOP)
    with pytest.raises(ShortageError):
        admission.run("file", partial(pool.call, str, 7), on_wait=lambda before: None, kind="long")
    assert pool.call(str, 7) == "7"
    assert pool.pids != before


@pytest.mark.full
def test_a_model_that_cannot_be_loaded_is_an_error_at_the_start(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        in_processes(str(tmp_path / "nowhere"), 1)


def test_a_process_exits_when_its_pipe_is_closed():
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(workers._COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        for signalled in (False, True):
            if signalled:
                process.send_signal(signal.SIGINT)  # Ctrl-C in the server's terminal reaches it too
            pickle.dump(partial(str, 7), process.stdin)
            process.stdin.flush()
            assert pickle.load(process.stdout) == (False, "7")
        process.stdin.close()
        assert process.wait(timeout=60) == 0


class CannotBeUnpickled(Exception):
    """An exception that can be pickled but not unpickled."""

    def __init__(self, one, two):
        super().__init__(one + two)


def fail(message):
    raise CannotBeUnpickled(message, "!")


def compute_forever():
    while True:
        cancellation.check()


def answers(*calls):
    """Return what a worker answers."""
    received = io.BytesIO()
    worker.serve(io.BytesIO(b"".join(map(pickle.dumps, calls))), received)
    received.seek(0)
    return [pickle.load(received) for _ in calls]


def test_a_process_ends_what_computes_for_too_long(monkeypatch):
    monkeypatch.setattr(limits, "WORK_SECONDS", 0.02)
    (has_failed, error), following = answers(compute_forever, SimpleQueue, int)[::2]
    assert has_failed and isinstance(error, DeadlineError)
    assert following == (False, 0), "it goes on with the next"


def test_what_cannot_be_unpickled_arrives_as_a_message_that_is_not_logged(capfd):
    (failed, error), (also_failed, other) = answers(partial(fail, "secret"), SimpleQueue)
    assert failed and also_failed
    assert "CannotBeUnpickled: secret!" in str(error) and "cannot pickle" in str(other)
    logged = capfd.readouterr().err
    assert "raise CannotBeUnpickled" in logged
    assert "secret" not in logged


def test_reports_are_few_and_miss_no_hundredth():
    received = io.BytesIO()
    tell = worker._reporter(received)
    for done in range(1, 10_001):
        tell(done, 10_000)
    received.seek(0)
    told = []
    while received.tell() < len(received.getvalue()):
        told.append(pickle.load(received)[1][0])
    assert 90 < len(told) < 200 and max(after - before for before, after in pairwise([0, *told])) <= 101
