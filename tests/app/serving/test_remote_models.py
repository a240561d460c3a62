"""Long work: models by name, no more of them than fit into memory, and computations in a process of their own."""

import os
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import visformer as vf
from tests.support import tiny_translator
from visformer.adapters.load import nbytes_of, outline
from visformer.analysis.effects.head_effects import head_effects
from visformer.app.lessons import handout
from visformer.app.serving import remote_models, workbench
from visformer.app.serving.remote_models import LongWork, RemoteModel
from visformer.app.session.url_state import State
from visformer.errors import BudgetError, TextError
from visformer.export.drawables import Options
from visformer.export.formats import FORMATS, file_of
from visformer.model.checkpoints import save_checkpoint
from visformer.pictures.registry.picture import pictures
from visformer.pictures.registry.setting import Source
from visformer.system import limits
from visformer.system.cache import Cache
from visformer.system.progress import report, reporting_to

SMALL = "untrained-16x2-enc1-dec1-ff32"


@pytest.fixture
def models(monkeypatch):
    """The models of this process, none at first."""
    there = {}
    monkeypatch.setattr(remote_models, "_MODELS", there)
    monkeypatch.setattr(remote_models, "CACHE", Cache(lambda: limits.KEPT_BYTES))
    return there


@pytest.fixture(scope="module")
def process():
    """A process for long work."""
    work = LongWork()
    work.start()
    for name in (SMALL, f"{SMALL}-pre-learned"):
        work.run(partial(nbytes_of, name))  # from its outline
    work.has_compiler = work.run(partial(eval, "'torch._dynamo' in __import__('sys').modules"))
    yield work
    work._workers.close()


def size_of(model):
    return sum(weight.nbytes for weight in model.module.parameters())


def test_many_seeds_of_a_model_take_no_more_memory_than_the_limit(models):
    most = remote_models.CACHE.most = lambda: 3 * nbytes_of(SMALL)
    for seed in range(1, 9):
        RemoteModel(f"{SMALL}-seed{seed}").trace("I like it.", "我")
        assert sum(map(size_of, models.values())) <= most()
    assert [*models] == [f"{SMALL}-seed{seed}" for seed in (6, 7, 8)]
    before = models[f"{SMALL}-seed6"]
    RemoteModel(f"{SMALL}-seed6").trace("I like it.", "我")
    assert models[f"{SMALL}-seed6"] is before, "not made anew"
    remote_models.CACHE.put("a file", b"", nbytes_of(SMALL))
    remote_models.LONG_WORK.run(int)
    assert {*models} == {f"{SMALL}-seed{seed}" for seed in (8, 6)}, "a file makes room for itself in the same way"


def test_the_size_of_a_model_is_known_before_it_is_loaded():
    for name in (SMALL, f"{SMALL}-seed3", f"{SMALL}-pre-learned", "en-zh"):
        assert 0 < nbytes_of(name) == size_of(vf.load(name)), name
    assert nbytes_of("untrained-512x16-enc6-dec6-ff2048-learned") <= limits.KEPT_BYTES, "the largest fits"


def test_a_model_that_does_not_fit_is_refused_before_it_is_loaded(models, monkeypatch):
    remote_models.CACHE.most = lambda: nbytes_of(SMALL) - 1
    monkeypatch.setattr("visformer.adapters.load.load_to_serve", lambda name: pytest.fail("it was loaded"))
    with pytest.raises(BudgetError, match=r"are free for it.*VISFORMER_MEMORY"):
        RemoteModel(SMALL).trace("I like it.", "我")


def test_a_model_in_use_makes_no_room(models):
    remote_models.CACHE.most = lambda: nbytes_of(SMALL)
    begun, go_on = threading.Event(), threading.Event()

    def work():
        begun.set()
        go_on.wait(60)

    thread = threading.Thread(target=remote_models.LONG_WORK.run, args=(work,), kwargs={"models": [SMALL]})
    thread.start()
    assert begun.wait(60)
    with pytest.raises(BudgetError):
        RemoteModel(f"{SMALL}-seed7").trace("I like it.", "我")
    go_on.set()
    thread.join()
    assert RemoteModel(f"{SMALL}-seed7").trace("I like it.", "我").tokens


def test_a_lesson_names_its_models():
    small, default = (SimpleNamespace(state=State(model=model)) for model in (SMALL, ""))
    assert handout.models_of(SimpleNamespace(steps=[small, default, small])) == {SMALL, "en-zh"}
    assert handout.models_of(SimpleNamespace(steps=[small])) == {SMALL, "en-zh"}, "which speaks for it"


def test_an_outline_has_everything_but_the_weights():
    model, full = outline(SMALL), vf.load(SMALL)
    assert all(weight.is_meta for weight in model.module.parameters())
    assert model.info == full.info
    assert model.tokenize("I like it.") == full.tokenize("I like it.")
    assert model.available(("*.pattern", "*.w_q", "*.nothing")) == ("*.pattern", "*.w_q")


def test_an_outline_is_made_without_torchs_compiler(process):
    """Importing it takes seconds, during which no page is drawn for anybody."""
    assert not process.has_compiler


def test_a_workbench_holds_no_weights_of_an_untrained_model(models):
    name = f"{SMALL}-seed11"
    bench = workbench.workbench_of(name)
    assert all(weight.is_meta for weight in bench.loaded().module.parameters())
    trace = bench.trace("I like it.", "我")
    assert [*models] == [name]
    expected = vf.load(name).trace("I like it.", "我")
    pattern = "encoder.0.self_attn.pattern"
    np.testing.assert_array_equal(trace[pattern].value, expected[pattern].value)


def test_a_model_in_a_folder_is_loaded_where_long_work_is_done(process, models, tmp_path, monkeypatch):
    model = tiny_translator()
    save_checkpoint(tmp_path, model.module, model.tokenizer)
    monkeypatch.setenv("VISFORMER_MODELS", str(tmp_path))
    monkeypatch.setattr(remote_models, "LONG_WORK", process)
    monkeypatch.setattr("visformer.adapters.load.load_to_serve", lambda name: pytest.fail("it was loaded here"))
    bench = workbench.workbench_of(str(tmp_path))
    there = bench.loaded("I went")
    assert not hasattr(there, "module")
    assert there.info == vf.load(tmp_path).info and there.tokenize("I went") == model.tokenize("I went")
    trace = bench.trace("I went", "我 去")
    assert trace.tokens == model.trace("I went", "我 去").tokens


def test_the_process_has_a_low_priority_and_computes_the_same(process, monkeypatch):
    if hasattr(os, "getpriority"):
        assert os.getpriority(os.PRIO_PROCESS, process.pids[0]) == 19
    monkeypatch.setattr(remote_models, "LONG_WORK", process)
    trace, expected = RemoteModel(SMALL).trace("I like it.", "我"), vf.load(SMALL).trace("I like it.", "我")
    assert trace.tokens == expected.tokens
    for name in expected:
        np.testing.assert_array_equal(trace[name].value, expected[name].value)
    assert RemoteModel("en-zh").translate("I like it.").text == vf.load("en-zh").translate("I like it.").text


@pytest.mark.full
def test_the_process_makes_the_same_files(process):
    trace = tiny_translator().trace("I went", "我 去", record=("*.pattern",))
    waves, matrix = (pictures()[name].make(Source()) for name in ("waves", "positions"))
    options = Options(place={"stack": "encoder.self_attn", "layer": 0, "head": 0}, lang="zh")
    for kind, content in (("trace", trace), ("figure", waves), ("panels", matrix)):
        for item in FORMATS:
            make = partial(file_of, item.name, content, options)
            if kind in item.offers and item.name == "HTML":  # the page names its Trace at random
                assert b"<html" in process.run(make), kind
            elif kind in item.offers and item.name != "PNG":
                assert process.run(make) == make(), (kind, item.name)


@pytest.mark.usefixtures("models")
def test_sentences_of_a_lesson_have_the_limits_of_a_page():
    with pytest.raises(TextError, match="tokens; at most"):
        handout.LimitedModel("en-zh").trace("a b " * 200, None)
    with pytest.raises(TextError, match="characters; at most"):
        handout.LimitedModel("en-zh").translate("a" * 1001)


@pytest.mark.full
def test_a_process_tells_how_far_it_is(process, models):
    heard = []
    work = partial(head_effects, sentences=["I like it.", "You went."], method="zero", progress=report)
    with reporting_to(lambda *told: heard.append(told)):
        table = process.run(partial(remote_models._with_model, SMALL, work), models=[SMALL])
    assert heard and heard == sorted(heard) and {total for _, total in heard} == {2 * (len(table) + 1)}
    assert table["effect"].tolist() == pytest.approx(work(vf.load(SMALL))["effect"].tolist(), abs=1e-5)
    silent = process.run(partial(remote_models._with_model, SMALL, work), models=[SMALL])
    assert silent.equals(table), "nobody has to listen"
