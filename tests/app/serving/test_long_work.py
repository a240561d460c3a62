"""Long work: models by name, no more of them than fit into memory, and computations in a process of their own."""

import os
from functools import partial

import numpy as np
import pytest

import visformer as vf
from tests.support import tiny_translator
from visformer.adapters.load import outline
from visformer.app.serving import long_work, workbench
from visformer.app.serving.long_work import LongWork, Named
from visformer.errors import TextError
from visformer.export.formats import FORMATS, Options, file_of
from visformer.pictures.registry.picture import pictures
from visformer.pictures.registry.setting import Source
from visformer.system import limits

SMALL = "untrained-16x2-enc1-dec1-ff32"


@pytest.fixture
def models(monkeypatch):
    """The models kept in this process, none at first."""
    kept = type(long_work._MODELS)()
    monkeypatch.setattr(long_work, "_MODELS", kept)
    return kept


@pytest.fixture(scope="module")
def process():
    """A process for long work."""
    work = LongWork()
    work.start()
    yield work
    work._pool.close()


def test_models_of_many_seeds_take_no_more_memory_than_the_limit(models, monkeypatch):
    size = long_work._size(vf.load(SMALL))
    monkeypatch.setattr(limits, "LONG_BYTES", 3 * size)
    for seed in range(1, 9):
        assert long_work.model(f"{SMALL}-seed{seed}").info.d_model == 16
        assert sum(map(long_work._size, models.values())) <= limits.LONG_BYTES
    assert [*models] == [f"{SMALL}-seed{seed}" for seed in (6, 7, 8)]
    assert long_work.model(f"{SMALL}-seed6") is models[f"{SMALL}-seed6"], "not made again"


def test_the_largest_untrained_model_alone_fits():
    largest = {name: most for name, (_least, most) in limits.UNTRAINED.items()}
    name = "untrained-{d_model}x{n_heads}-enc{n_encoder_layers}-dec{n_decoder_layers}-ff{d_ff}-learned"
    assert long_work._size(outline(name.format(**largest))) <= limits.LONG_BYTES


def test_an_outline_has_everything_but_the_weights():
    model, full = outline(SMALL), vf.load(SMALL)
    assert all(weight.is_meta for weight in model.module.parameters())
    assert model.info == full.info
    assert model.tokenize("I like it.") == full.tokenize("I like it.")
    assert model.available(("*.pattern", "*.w_q", "*.nothing")) == ("*.pattern", "*.w_q")


def test_a_workbench_holds_no_weights_of_an_untrained_model(models):
    name = f"{SMALL}-seed11"
    bench = workbench.workbench_of(name)
    assert all(weight.is_meta for weight in bench.loaded().module.parameters())
    trace = bench.trace("I like it.", "我")
    assert [*models] == [name]
    expected = vf.load(name).trace("I like it.", "我")
    pattern = "encoder.0.self_attn.pattern"
    np.testing.assert_array_equal(trace[pattern].value, expected[pattern].value)


def test_the_process_has_a_low_priority_and_computes_the_same(process, monkeypatch):
    if hasattr(os, "getpriority"):
        assert os.getpriority(os.PRIO_PROCESS, process.pids[0]) == 19
    monkeypatch.setattr(long_work, "LONG_WORK", process)
    trace, expected = Named(SMALL).trace("I like it.", "我"), vf.load(SMALL).trace("I like it.", "我")
    assert trace.tokens == expected.tokens
    for name in expected:
        np.testing.assert_array_equal(trace[name].value, expected[name].value)
    assert Named("en-zh").translate("I like it.").text == vf.load("en-zh").translate("I like it.").text


@pytest.mark.parametrize("item", [item for item in FORMATS if item.name != "PNG"], ids=lambda item: item.name)
def test_the_process_makes_the_same_files(process, item):
    trace = tiny_translator().trace("I went", "我 去", record=("*.pattern",))
    waves, matrix = (pictures()[name].make(Source()) for name in ("waves", "positions"))
    options = Options(place={"stack": "encoder.self_attn", "layer": 0, "head": 0}, lang="zh")
    for kind, content in (("trace", trace), ("figure", waves), ("panels", matrix)):
        make = partial(file_of, item.name, kind, content, options)
        if kind in item.offers and item.name == "HTML":  # the page names its Trace at random
            assert b"<html" in process.run(make)
        elif kind in item.offers:
            assert process.run(make) == make()


@pytest.mark.usefixtures("models")
def test_sentences_of_a_lesson_have_the_limits_of_a_page():
    with pytest.raises(TextError, match="tokens; at most"):
        long_work.Limited("en-zh").trace("a b " * 200, None)
    with pytest.raises(TextError, match="characters; at most"):
        long_work.Limited("en-zh").translate("a" * 1001)
