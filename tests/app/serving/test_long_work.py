"""Long work: in a process of its own, models by name and no more of them than fit."""

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
    """The models of this process, none at first."""
    kept = type(long_work._MODELS)()
    monkeypatch.setattr(long_work, "_MODELS", kept)
    return kept


@pytest.fixture(scope="module")
def apart():
    """A process for long work."""
    work = LongWork()
    work.start()
    yield work
    work._pool.close()


def test_many_seeds_of_a_model_take_no_more_memory_than_the_limit(models, monkeypatch):
    size = long_work._size(vf.load(SMALL))
    monkeypatch.setattr(limits, "LONG_BYTES", 3 * size)
    for seed in range(1, 9):
        assert long_work.model(f"{SMALL}-seed{seed}").info.d_model == 16
        assert sum(map(long_work._size, models.values())) <= limits.LONG_BYTES
    assert [*models] == [f"{SMALL}-seed{seed}" for seed in (6, 7, 8)]
    assert long_work.model(f"{SMALL}-seed6") is models[f"{SMALL}-seed6"], "not made anew"


def test_the_largest_untrained_model_alone_fits():
    most = {name: most for name, (_least, most) in limits.UNTRAINED.items()}
    name = "untrained-{d_model}x{n_heads}-enc{n_encoder_layers}-dec{n_decoder_layers}-ff{d_ff}-learned".format(**most)
    assert long_work._size(outline(name)) <= limits.LONG_BYTES


def test_an_outline_knows_all_but_the_numbers():
    there, full = outline(SMALL), vf.load(SMALL)
    assert all(weight.is_meta for weight in there.module.parameters())
    assert there.info == full.info
    assert there.tokenize("I like it.") == full.tokenize("I like it.")
    assert there.available(("*.pattern", "*.w_q", "*.nothing")) == ("*.pattern", "*.w_q")


def test_what_waits_holds_no_model(models):
    bench = workbench.workbench_of(f"{SMALL}-seed11")
    assert all(weight.is_meta for weight in bench.loaded().module.parameters())
    trace = bench.trace("I like it.", "我")
    assert [*models] == [f"{SMALL}-seed11"]
    np.testing.assert_array_equal(
        trace["encoder.0.self_attn.pattern"].value,
        vf.load(f"{SMALL}-seed11").trace("I like it.", "我")["encoder.0.self_attn.pattern"].value,
    )


def test_a_process_of_its_own_at_low_priority_computes_the_same(apart, monkeypatch):
    if hasattr(os, "getpriority"):
        assert os.getpriority(os.PRIO_PROCESS, apart.pids[0]) == 19
    monkeypatch.setattr(long_work, "LONG_WORK", apart)
    there, here = Named(SMALL).trace("I like it.", "我"), vf.load(SMALL).trace("I like it.", "我")
    assert there.tokens == here.tokens
    for name in here:
        np.testing.assert_array_equal(there[name].value, here[name].value)
    assert Named("en-zh").translate("I like it.").text == vf.load("en-zh").translate("I like it.").text


@pytest.mark.parametrize("item", [item for item in FORMATS if item.name != "PNG"], ids=lambda item: item.name)
def test_a_file_that_is_made_there_is_the_same(apart, item):
    trace = tiny_translator().trace("I went", "我 去", record=("*.pattern",))
    waves, matrix = (pictures()[name].make(Source()) for name in ("waves", "positions"))
    how = Options(place={"stack": "encoder.self_attn", "layer": 0, "head": 0}, lang="zh")
    for kind, what in (("trace", trace), ("figure", waves), ("panels", matrix)):
        if kind in item.offers and item.name != "HTML":  # which names its Trace at random
            make = partial(file_of, item.name, kind, what, how)
            assert apart.run(make) == make()
        elif kind in item.offers:
            assert b"<html" in apart.run(partial(file_of, item.name, kind, what, how))


def test_a_lesson_s_sentences_have_the_limits_of_a_page(models):
    with pytest.raises(TextError, match="tokens; at most"):
        long_work.Limited("en-zh").trace("a b " * 200, None)
    with pytest.raises(TextError, match="characters; at most"):
        long_work.Limited("en-zh").translate("a" * 1001)
