"""The workbench: the model and the cache that sessions share."""

import threading
import types
from contextlib import nullcontext
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import visformer as vf
from tests.app.serving.support import cannot_start
from tests.waiting import until
from tests.web.support import made_up_trace
from visformer.app.serving import admission, capacity, workbench
from visformer.app.serving.admission import ADMISSION
from visformer.app.serving.remote_models import RemoteModel
from visformer.app.serving.workbench import Workbench
from visformer.edits import Silence
from visformer.errors import ShortageError, TextError
from visformer.system import limits
from visformer.system.cache import Cache
from visformer.system.progress import report


class Model:
    """A model that records its requests."""

    info = types.SimpleNamespace(max_tokens=512, kind="encoder-decoder", grid=None)
    takes_chats = False
    pictures = "none"

    def __init__(self):
        self.requests = []

    def reading(self, source):
        return self

    def tokenize(self, text):
        return text.split()

    def trace(self, source, target=None, *, pair=None, record, edits):
        self.requests.append((source, target))
        return made_up_trace()

    def translate(self, source, **settings):
        self.requests.append((source, settings))
        return types.SimpleNamespace(text=source.upper(), nbytes=1)


@pytest.fixture
def bench(tmp_path):
    example, model = made_up_trace(), Model()
    example.save(tmp_path / "example.safetensors")
    bench = Workbench(lambda: model, tmp_path / "example.safetensors")
    bench.example, bench.model, bench.file = example, model, tmp_path / "example.safetensors"
    return bench


def test_all_models_together_cache_no_more_than_the_limit(bench, tmp_path, monkeypatch):
    kept = Cache(lambda: 2 * bench.example.nbytes)
    monkeypatch.setattr(workbench, "RESULTS", kept)
    other = Workbench(lambda: bench.model, tmp_path / "none.safetensors")
    for one in (bench, other, bench):
        one.trace("b a", None)
    other.trace("c", None)
    assert bench.holds("b a", None) and other.holds("c", None)
    assert not other.holds("b a", None), "the least recently used is evicted"
    assert kept.nbytes == 2 * bench.example.nbytes


def test_a_trace_larger_than_the_cache_is_shown_all_the_same(bench, monkeypatch):
    monkeypatch.setattr(workbench, "RESULTS", Cache(lambda: bench.example.nbytes - 1))
    assert bench.trace("b a", None).tokens
    assert not bench.holds("b a", None)


def test_the_example_needs_no_model(bench):
    assert bench.trace(bench.example.meta["source"], None).meta == bench.example.meta
    assert not bench.is_loaded


def test_a_thread_that_cannot_start_is_an_error_and_the_next_request_tries_again(bench, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", cannot_start)
        bench.load_soon()
        with pytest.raises(ShortageError, match="not enough memory"):
            bench.trace("b a", None)
    assert bench.trace("b a", None).tokens


def test_each_sentence_and_each_decoding_is_computed_once(bench):
    for _ in range(2):
        bench.trace("b a", None)
        bench.trace("b a", "c")
        assert [bench.decoded("b a", beam_size=size).text for size in (2, 3)] == ["B A", "B A"]
    decoded = [("b a", {"beam_size": size, "edits": ()}) for size in (2, 3)]
    assert bench.model.requests == [("b a", None), ("b a", "c"), *decoded]


def test_what_a_visitor_edits_is_not_shown_to_others(bench):
    edited = [bench.trace("b a", "c", edits=edits) for edits in ((Silence("encoder.0.self_attn", 0),), ())]
    assert len(bench.model.requests) == 2 and edited[0] is not edited[1]


def test_forward_passes_run_in_the_workers(bench):
    workers = Model()
    workers.pids = (7,)
    bench.start_workers = lambda: workers
    assert bench.pids == ()
    bench.load().result()
    assert bench.pids == (7,)
    bench.trace("b a", None)
    bench.decoded("b a", beam_size=2)
    assert [source for source, _ in workers.requests] == ["b a", "b a"]
    assert bench.model.requests == []


def test_workers_that_do_not_start_are_tried_again(bench):
    started = iter((OSError(12, "Cannot allocate memory"), None))

    def start():
        if problem := next(started):
            raise problem
        return bench.model

    bench.start_workers = start
    with pytest.raises(ShortageError):
        bench.trace("b a", None)
    assert bench.trace("b a", None)


def test_the_operator_sets_the_number_of_workers(bench, monkeypatch):
    started = []
    monkeypatch.setattr(workbench, "ADMISSION", types.SimpleNamespace(at_once=2))
    monkeypatch.setattr(workbench, "in_processes", lambda name, n: started.append((name, n)) or bench.model)
    monkeypatch.setattr(workbench, "LONG_WORK", types.SimpleNamespace(start=lambda: started.append("long work")))
    for setting, processes in (("auto", 2), ("0", 0), ("3", 3)):
        fresh = Workbench(lambda: bench.model, bench.file)
        monkeypatch.setattr(workbench, "workbench", lambda fresh=fresh: fresh)
        monkeypatch.setenv("VISFORMER_PROCESSES", setting)
        started.clear()
        assert workbench.serve_a_room() is fresh
        fresh.load().result()
        assert started == (["long work", (workbench.MODEL, processes)] if processes else []), setting


def test_many_visitors_load_the_model_once(tmp_path):
    loads, model = [], Model()
    bench = Workbench(lambda: loads.append(1) or model, tmp_path / "none.safetensors")
    threads = [threading.Thread(target=bench.trace, args=(f"text {i}", None)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [1]
    assert len(model.requests) == 8


def test_texts_over_a_limit_do_not_reach_the_model(bench):
    too_long = [("a" * 1001, None), ("a", "b" * 1001), ("a " * 257, None), ("a", "b " * 300)]
    for source, target in (("", None), ("  ", None), *too_long):
        with pytest.raises(TextError):
            bench.trace(source, target)
    assert not bench.model.requests


def test_the_width_is_d_model_or_none_without_a_model(monkeypatch, tmp_path):
    assert workbench.width() == workbench.workbench().loaded().info.d_model
    workbench.width.clear()
    monkeypatch.setattr(workbench, "MODEL", str(tmp_path))
    assert workbench.width() is None
    workbench.width.clear()


def test_more_tensors_of_a_cached_translation_need_no_second_decoding(tmp_path):
    """The next page needs other tensors of the same translation."""
    model = vf.load("en-zh")
    bench = Workbench(lambda: model, tmp_path / "none.safetensors")
    record = ("*.self_attn.q", "*.pattern", "*.ffn.hidden", "logits")
    for source in ("She likes the old school.", "我去北京大学。"):
        bench.trace(source, None)
        with mock.patch.object(model, "_greedy", side_effect=AssertionError("decoded once more")):
            more = bench.trace(source, None, record=record)
        expected = model.trace(source, record=record)
        assert dict(more.meta) == dict(expected.meta)
        assert list(more) == list(expected)
        for name in expected:
            np.testing.assert_array_equal(more[name].value, expected[name].value)


def test_a_translation_that_was_cut_off_is_decoded_again(bench):
    cut = replace(made_up_trace(), meta={**made_up_trace().meta, "ids": {"src": [1], "tgt": [2], "next": [3]}})
    bench.model.trace = lambda source, target=None, **_: cut if target is None else made_up_trace()
    bench.trace("a", None)
    assert bench.trace("a", None, record=("*.q",)).meta == cut.meta


def test_a_trace_that_is_computed_ahead_is_computed_once_and_only_with_a_loaded_model(bench):
    assert bench.expect("a", None, ("*.pattern",)) is None
    assert bench.model.requests == []
    bench.load().result()
    trace = bench.expect("a", None, ("*.pattern",))
    assert trace.result() is bench.trace("a", None)
    assert bench.expect("a", None, ("*.pattern",)) is None
    assert bench.model.requests == [("a", None)]
    with pytest.raises(TextError):
        bench.expect("a" * 9999, None, ("*.pattern",))


def test_a_page_that_waits_for_the_model_gives_its_place_to_another(bench, monkeypatch):
    here, seen = Model(), []
    monkeypatch.setattr(ADMISSION, "notice", lambda: nullcontext(lambda ahead: seen.append(capacity.is_drawing())))
    monkeypatch.setattr(admission, "PATIENCE", 0.001)
    here.trace = lambda *given, **named: until(lambda: seen) or made_up_trace()
    bench.start_workers = lambda: here
    with capacity.drawing():
        bench.trace("b a", None)
        assert capacity.is_drawing(), "and takes one again to be drawn"
    assert not any(seen)


def test_long_work_runs_in_its_own_process(bench):
    workers, long_worker = Model(), Model()
    bench.start_workers, bench.long_runner = lambda: workers, long_worker
    bench.load().result()
    bench.trace("a b", None)
    bench.decoded("a b", beam_size=8)
    assert [len(workers.requests), len(long_worker.requests)] == [2, 0]
    bench.trace("a " * (limits.ORDINARY + 1), None)
    bench.decoded("a " * 40, beam_size=8)
    assert [len(workers.requests), len(long_worker.requests)] == [2, 2]
    assert bench.expect("b " * (limits.ORDINARY + 1), None, ("*.pattern",)) is None, "it is not computed ahead"


def counted(model, source, target, *, times):
    """Stand for an analysis."""
    model.requests.append((source, target, times))
    return times


def test_each_analysis_runs_once_and_tells_how_far_it_is(bench, monkeypatch):
    monkeypatch.setattr(admission, "PATIENCE", 0.001)
    monkeypatch.setattr(admission, "POLL", 0.001)
    heard = []

    def told(*given, times):
        for done in range(1, times + 1):
            report(done, times)
            before = len(heard)
            until(lambda before=before: len(heard) > before + 1)  # this was heard
        return counted(*given, times=times)

    for _ in range(2):
        assert bench.measured(told, "I went", "我 去", times=5, on_progress=heard.append) == 5
    assert heard == sorted(heard) and {*heard} - {0} == {done / 5 for done in range(1, 6)}
    assert bench.measured(told, "I went", "我 去", times=1, on_progress=heard.append) == 1, "other settings"
    assert bench.model.requests == [("I went", "我 去", 5), ("I went", "我 去", 1)]


def test_an_analysis_runs_where_long_work_is_done(bench):
    bench.long_runner = mock.Mock(spec=RemoteModel)
    bench.long_runner.analyse.side_effect = lambda work: work(bench.model) * 10
    assert bench.measured(counted, "I went", None, times=1) == 10


def test_an_untrained_model_is_measured_on_the_target_that_it_borrows(tmp_path):
    model = Model()
    bench = Workbench(lambda: model, tmp_path / "none.safetensors", lends_target=lambda source: "我 去")
    bench.measured(counted, "I went", None, times=1)
    assert model.requests == [("I went", "我 去", 1)]
    with pytest.raises(TextError, match="characters"):
        bench.measured(counted, "a" * 1001, None, times=1)
