"""Many texts at once: each has the Trace and the translation that it has alone, in order, and nothing is lost."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import tiny_gpt, tiny_translator
from visformer.adapters import recording
from visformer.adapters.recording import nbytes_of
from visformer.adapters.requests import Batches, run_all
from visformer.edits import Block, Open, SetPattern, Silence
from visformer.errors import BudgetError, EditError, TextError, TraceError, VisformerError
from visformer.model.positions import POSITIONS
from visformer.system import limits

WORDS = "I went to school . She likes the 我 喜欢 学校 。 你".split()
TEXTS = ["I went to school.", "She likes the school. I went to school.", "a", "我去学校。", "她喜欢 Tom。", "I went"]

TARGETS = [*TEXTS[1:], "I"]

texts = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=4)


def same(one, other, atol=1e-5):
    """Compare two Traces of one text; the values to ``atol``, relative to the largest."""
    assert one.tokens == other.tokens and one.special == other.special and one.words == other.words
    assert {**one.meta, "confidence": 0} == {**other.meta, "confidence": 0}
    assert (one.confidence or 0) == pytest.approx(other.confidence or 0, rel=1e-3)
    assert one.names() == other.names() and set(one.params) == set(other.params)
    for name in one:
        largest = max(1.0, float(np.abs(other[name].value).max()))
        assert one[name].axes == other[name].axes
        np.testing.assert_allclose(one[name], other[name], atol=atol * largest, rtol=0, err_msg=name)
        assert not one[name].value.flags.writeable


@settings(max_examples=8)
@given(texts, st.sampled_from([None, 1, 2, 3, 50]), st.booleans())
def test_each_text_of_a_batch_has_the_trace_that_it_has_alone(texts, batch, forced):
    model = tiny_translator()
    targets = [text[::-1] for text in texts] if forced else None
    together = list(model.trace_many(texts, targets, record=("*",), batch=batch))
    assert len(together) == len(texts)
    for i, (text, trace) in enumerate(zip(texts, together, strict=True)):
        same(trace, model.trace(text, targets and targets[i], record=("*",)))


@pytest.mark.parametrize("position", POSITIONS)
def test_in_double_precision_a_batch_equals_each_text_alone_to_twelve_digits(position, monkeypatch):
    """A Trace rounds to single precision: here it keeps what the model computed."""
    monkeypatch.setattr(recording, "_to_numpy", lambda tensor: tensor.detach().numpy())
    for model in (tiny_translator(position=position, max_len=64), *[tiny_gpt()] * (position == "learned")):
        model.module.double()
        together = model.trace_many(TEXTS, TARGETS, record=("*",))
        for text, target, trace in zip(TEXTS, TARGETS, together, strict=True):
            alone = model.trace(text, target, record=("*",))
            assert alone["logits"].value.dtype == np.float64
            same(trace, alone, atol=1e-12)


@given(texts, st.sampled_from([None, 1, 4]))
@settings(max_examples=4)
def test_translations_of_a_batch_are_those_of_each_text_alone(texts, batch):
    model = tiny_translator()
    for text, many in zip(texts, model.translate_many(texts, to="zh", batch=batch), strict=True):
        alone = model.translate(text, to="zh")
        for what in ("text", "tokens", "ids", "finished"):
            assert getattr(many, what) == getattr(alone, what)
        assert many.confidence == pytest.approx(alone.confidence, rel=1e-3)
        assert many.steps == ()


def test_a_short_text_is_not_decoded_further_because_of_a_long_one():
    model = tiny_translator()
    first, _ = model.translate_many(["a", TEXTS[1]], batch=2)
    assert not first.finished and len(first.ids) == 2 * len(model.tokenize("a")) + 20
    (two,) = model.translate_many(["a"], max_new_tokens=2)
    assert len(two.ids) == 2


def test_a_trace_does_not_keep_its_batch_in_memory():
    for trace in tiny_translator().trace_many(TEXTS, TARGETS, record=("*",)):
        for tensor in trace.tensors.values():
            assert tensor.value.base is None or tensor.value.base.nbytes == tensor.value.nbytes


NO_CHANGE = Open("encoder.*.self_attn")
"""Opens all that an encoder has open, but would also open padding."""


# Edits ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edit",
    [
        Silence("decoder.1.cross_attn", head=1),
        Block("encoder.0.self_attn", query=0),
        Block("decoder.*.cross_attn", key=1, head=0),
        NO_CHANGE,
        Open("decoder.*"),
        lambda name, tensor: tensor * 0.5 if name.endswith("self_attn.heads") else tensor,
        lambda name, tensor: tensor - tensor.mean() if name == "encoder.1.norm_ffn" else tensor,  # sees no other text
        lambda name, tensor: tensor.flip(-2) if name == "src.position" else tensor,
    ],
)
def test_an_edit_changes_each_text_of_a_batch_as_it_does_alone(edit):
    model = tiny_translator()
    plain, edited = (list(model.trace_many(TEXTS, TARGETS, record=("*",), edits=edits)) for edits in ((), edit))
    for text, target, trace, before in zip(TEXTS, TARGETS, edited, plain, strict=True):
        same(trace, model.trace(text, target, record=("*",), edits=[edit]))
        same_shape = all(trace[name].shape == before[name].shape for name in trace)
        changed = not same_shape or not all(np.array_equal(trace[name], before[name]) for name in trace)
        assert changed == (edit != NO_CHANGE)
    if isinstance(edit, Silence | Block):
        alone = [model.translate(text, edits=[edit], max_new_tokens=5).ids for text in TEXTS]
        assert [each.ids for each in model.translate_many(TEXTS, edits=[edit], max_new_tokens=5)] == alone
        trace, *_ = model.trace_many(["a"], record=("logits",), edits=[edit])
        same(trace, model.trace("a", record=("logits",), edits=[edit]))


def test_edits_do_not_force_texts_into_passes_of_their_own(monkeypatch):
    model, passes = tiny_translator(), []
    encode = model.module.encode
    monkeypatch.setattr(model.module, "encode", lambda ids: passes.append(len(ids)) or encode(ids))
    edits = [Silence("encoder.0.self_attn", head=0), Block("encoder.0.self_attn", key=0)]
    list(model.trace_many(TEXTS, TARGETS, edits=edits))
    assert passes == [len(TEXTS)]
    list(model.trace_many(TEXTS, TARGETS, edits=[lambda name, tensor: tensor.clone()]))
    assert passes == [len(TEXTS), *[1] * len(TEXTS)], "a function might look at other texts"


def test_the_text_that_an_edit_does_not_fit_is_named_and_those_before_it_are_traced():
    model = tiny_translator()
    edit = Block("encoder.0.self_attn", key=5)
    traces = model.trace_many([TEXTS[1], TEXTS[0], "a", TEXTS[1]], edits=[edit])
    assert len([*itertools.islice(traces, 2)]) == 2
    with pytest.raises(EditError, match=r"Text 2, counted from 0: encoder.0.self_attn.mask has \d entries"):
        next(traces)
    uniform = SetPattern("encoder.0.self_attn", 0, ((1 / 3,) * 3,) * 3)
    with pytest.raises(EditError, match=r"Text 0.*shape \(3, 3\)"):
        next(model.trace_many(TEXTS, edits=[uniform]))


# The stream -----------------------------------------------------------------------------------------------------------


def test_a_bad_text_is_named_by_its_index_and_those_before_it_are_traced():
    model = tiny_translator()
    for bad, reason in ((" ", "There is no text"), ("x" * 600, "tokens long"), (None, "None is not a text")):
        traces = model.trace_many([*TEXTS[:3], bad, "never read"], TARGETS[:5])
        assert [trace.meta["source"] for trace in itertools.islice(traces, 3)] == TEXTS[:3]
        with pytest.raises(TextError, match=f"Text 3, counted from 0: .*{reason}"):
            next(traces)
    translations = model.translate_many(["I", ""], max_new_tokens=3)
    assert next(translations).text
    with pytest.raises(TextError, match="Text 1"):
        next(translations)


def test_an_error_speaks_the_visitor_s_language():
    with pytest.raises(TextError) as caught:
        next(tiny_translator().trace_many([" "]))
    message = caught.value.localized(lambda message: message.replace("There is no text", "Kein Text"))
    assert message.startswith("Text 0, counted from 0: Kein Text")


def test_an_error_of_the_iterable_waits_for_the_texts_before_it():
    def lines() -> Iterator[str]:
        yield from TEXTS[:2]
        raise OSError("the disk is gone")

    traces = tiny_translator().trace_many(lines(), TARGETS[:3])
    assert len([*itertools.islice(traces, 2)]) == 2
    with pytest.raises(OSError, match="the disk is gone"):
        next(traces)


def test_texts_come_from_any_iterable_and_no_more_are_read_than_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "WINDOW", 5)
    read = []
    endless = (read.append(i) or f"I went to school {i}." for i in itertools.count())
    traces = tiny_translator().trace_many(endless, itertools.repeat("I"))
    assert read == []
    assert [next(traces).meta["source"] for _ in range(6)] == [f"I went to school {i}." for i in range(6)]
    assert len(read) == 10
    read.clear()
    one_by_one = tiny_translator().translate_many((read.append(t) or t for t in TEXTS), batch=1, max_new_tokens=1)
    next(one_by_one)
    assert read == TEXTS[:1]
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    with open(tmp_path / "texts.txt", encoding="utf-8") as file:
        lines = list(tiny_translator().trace_many(file, TARGETS))
    assert [trace.tokens["src"] for trace in lines] == [tiny_translator().tokenize(text) for text in TEXTS]
    assert list(tiny_translator().trace_many([])) == []


def test_texts_and_targets_have_to_be_equally_many():
    model = tiny_translator()
    for targets in (["我"], ["我"] * 3):
        traces = model.trace_many(["I", "a"], iter(targets))
        assert len([*itertools.islice(traces, min(2, len(targets)))]) == min(2, len(targets))
        with pytest.raises(VisformerError, match="targets must have one entry for each"):
            next(traces)
    one, other = model.trace_many(["I", "a"], [None, "我"])
    assert (one.meta["forced"], other.meta["forced"]) == (False, True)
    with pytest.raises(VisformerError, match="only an encoder takes a pair"):
        next(model.trace_many(["I"], pairs=["a"]))


def test_arguments_are_checked_before_the_first_text_is_read():
    model = tiny_translator()
    for many in (model.trace_many, model.translate_many):
        with pytest.raises(TextError, match="'I went' is a single text"):
            many("I went")
    with pytest.raises(TraceError, match="'nothing' matches no tensor"):
        model.trace_many([], record="nothing")
    with pytest.raises(EditError, match="matches nothing"):
        model.translate_many([], edits=[Silence("decoder.9.cross_attn", head=0)])
    for each in (model, tiny_gpt()):
        for to in ("fr", 5):
            for many in (each.trace_many, each.translate_many):
                with pytest.raises(VisformerError, match=f"^to={to!r}"):
                    many([], to=to)
        for wanted in (0, -5, 1.5, "x"):
            with pytest.raises(VisformerError, match=f"^max_new_tokens={wanted!r} must be a whole number"):
                each.translate_many([], max_new_tokens=wanted)
    for batch in (0, -1, 2.5, "8"):
        with pytest.raises(VisformerError, match="batch="):
            model.trace_many([], batch=batch)


def test_a_batch_takes_no_more_bytes_than_the_limit(monkeypatch):
    model, sizes = tiny_translator(), []
    run = model._run
    monkeypatch.setattr(model, "_run", lambda batch: sizes.append(len(batch)) or run(batch))
    monkeypatch.setattr(limits, "BATCH", 4)
    assert len(list(model.trace_many(["I went"] * 10, ["I"] * 10))) == 10
    assert sizes == [4, 4, 2]
    sizes.clear()
    monkeypatch.setattr(limits, "BATCH_BYTES", 1)
    assert len(list(model.trace_many(["I went"] * 3, ["I"] * 3))) == 3
    assert sizes == [1] * 3
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", model.trace(TEXTS[1], "a").nbytes - 1)
    traces = model.trace_many(["a", TEXTS[1]], ["a", "a"], batch=2)
    next(traces)
    with pytest.raises(BudgetError, match="Text 1"):
        next(traces)


def plan(size=None, *, padded=True):
    return Batches(lambda text: (len(text), 0), lambda src, tgt: 10 * src, size, padded)


@given(st.lists(st.text("ab", min_size=1, max_size=30), max_size=40), st.sampled_from([None, 1, 3]), st.booleans())
def test_every_text_is_in_one_batch_within_the_limits_and_results_are_in_order(texts, size, padded):
    batches = plan(size, padded=padded)
    groups = batches.grouped(texts)
    assert sorted(itertools.chain(*groups)) == list(range(len(texts)))
    for group in groups:
        assert padded or len({len(texts[i]) for i in group}) == 1
        assert size is not None or len(group) <= limits.BATCH
    ran = []
    run = lambda batch: ran.append(len(batch)) or [text.upper() for text in batch]  # noqa: E731
    assert list(run_all(texts, lambda text: text, run, batches)) == [text.upper() for text in texts]
    assert sum(ran) == len(texts) and max(ran, default=0) <= (size or limits.BATCH)


def test_texts_of_similar_length_share_a_pass(monkeypatch):
    monkeypatch.setattr(limits, "BATCH", 2)
    assert plan().grouped(["aaaa", "a", "aaa", "aa"]) == [[1, 3], [2, 0]]
    monkeypatch.setattr(limits, "BATCH_BYTES", 70)
    assert plan().grouped(["aaaa", "a", "aaa", "aa"]) == [[1, 3], [2], [0]], "two of four tokens are 80 bytes"


def test_a_batch_that_fails_is_run_one_by_one():
    calls = []

    def run(batch):
        calls.append(list(batch))
        if "bad" in batch:
            raise EditError("{text} does not fit", text="bad")
        return batch

    results = run_all(["good", "fine", "bad", "late"], str, run, plan())
    assert [next(results), next(results)] == ["good", "fine"]
    with pytest.raises(EditError, match="Text 2, counted from 0: bad does not fit"):
        next(results)
    assert calls == [["bad", "good", "fine", "late"], ["good"], ["fine"], ["bad"]]


def test_bytes_of_a_recording_are_one_for_a_cell_of_a_mask_and_four_for_any_other_number():
    assert nbytes_of({"a.mask": (2, 3), "a.scores": (2, 3)}) == 6 + 24


# Token ids, and edits that reach nothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tiny_translator, tiny_gpt])
def test_token_ids_stand_for_a_text_in_a_batch_too(make):
    model = make()
    end = [] if model.info.kind == "decoder" else [model._end]
    ids = [[*model.tokenizer.encode(text), *end] for text in TEXTS]
    mixed = [row if i % 2 else np.array(row) for i, row in enumerate(ids)]
    together = model.trace_many(mixed, TARGETS, record=("*",))
    for row, target, trace in zip(ids, TARGETS, together, strict=True):
        same(trace, model.trace(row, target, record=("*",)))
    for row, many in zip(ids, model.translate_many(ids, max_new_tokens=3), strict=True):
        assert many.ids == model.translate(row, max_new_tokens=3).ids
    with pytest.raises(TextError, match=r"Text 1, counted from 0: -1 \(item 0, from 0\) is not a token id"):
        list(model.trace_many([ids[0], [-1]]))


def test_a_function_that_changes_nothing_in_one_text_is_named_with_its_index():
    model = tiny_translator()

    def long_ones(name, tensor):
        return tensor * 2 if name == "src.embed" and tensor.shape[1] > 3 else tensor

    traces = model.trace_many([TEXTS[0], "a"], ["I", "I"], edits=long_ones)
    same(next(traces), model.trace(TEXTS[0], "I", edits=long_ones))
    with pytest.raises(EditError, match="Text 1, counted from 0: The edit long_ones reached nothing"):
        next(traces)
    with pytest.raises(EditError, match="Text 0, counted from 0: The edit <lambda> reached nothing"):
        next(model.translate_many(TEXTS, edits=[lambda name, tensor: tensor]))
