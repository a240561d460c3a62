"""What sessions share."""

import threading
import types

import pytest

from tests.canvas.support import made_up_trace
from visformer.errors import CheckpointError, TextError
from visformer.ui import resources
from visformer.ui.resources import TraceCache, Workbench


class Model:
    """Counts what it is asked."""

    info = types.SimpleNamespace(max_tokens=512)

    def __init__(self):
        self.asked = []

    def tokenize(self, text):
        return text.split()

    def trace(self, source, target=None, *, record, edits):
        self.asked.append((source, target))
        return made_up_trace()


@pytest.fixture
def bench(tmp_path):
    example = made_up_trace()
    example.save(tmp_path / "example.safetensors")
    model = Model()
    made = Workbench(lambda: model, tmp_path / "example.safetensors")
    made.example, made.model = example, model
    return made


def test_the_cache_is_bounded_by_bytes():
    trace = made_up_trace()
    cache = TraceCache(budget=2 * trace.nbytes)
    for key in ("a", "b"):
        cache.put(key, trace)
    cache.get("a")
    cache.put("c", trace)
    assert cache.get("b") is None, "the least recently used goes"
    assert cache.get("a") is cache.get("c") is trace
    assert cache.nbytes == 2 * trace.nbytes


def test_a_trace_larger_than_the_budget_is_not_kept():
    trace = made_up_trace()
    cache = TraceCache(budget=trace.nbytes - 1)
    cache.put("a", trace)
    assert len(cache) == 0


def test_the_example_waits_for_no_model(bench):
    assert bench.trace(bench.example.meta["source"], None).meta == bench.example.meta
    assert not bench.is_loaded


def test_each_sentence_is_run_once(bench):
    for _ in range(3):
        bench.trace("b a", None)
        bench.trace("b a", "c")
    assert bench.model.asked == [("b a", None), ("b a", "c")]


def test_many_visitors_load_one_model(tmp_path):
    loads, model = [], Model()
    bench = Workbench(lambda: loads.append(1) or model, tmp_path / "none.safetensors")
    threads = [threading.Thread(target=bench.trace, args=(f"text {i}", None)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [1]
    assert len(model.asked) == 8


def test_a_model_that_cannot_be_loaded_is_tried_again(tmp_path):
    model, results = Model(), []

    def load():
        results.append(1)
        if len(results) == 1:
            raise CheckpointError("gone")
        return model

    bench = Workbench(load, tmp_path / "none.safetensors")
    with pytest.raises(CheckpointError):
        bench.trace("a", None)
    assert bench.trace("a", None)


@pytest.mark.parametrize(
    ("source", "target"),
    [("", None), ("  ", None), ("a" * 1001, None), ("a", "b" * 1001), ("a " * 257, None), ("a", "b " * 300)],
)
def test_limits(bench, source, target):
    with pytest.raises(TextError):
        bench.trace(source, target)
    assert not bench.model.asked


def test_the_width_is_read_without_the_model(monkeypatch, tmp_path):
    """As the model itself has it; a folder without a model has none."""
    assert resources.width() == resources.workbench().loaded().info.d_model
    resources.width.clear()
    monkeypatch.setattr(resources, "MODEL", str(tmp_path))
    assert resources.width() is None
    resources.width.clear()
