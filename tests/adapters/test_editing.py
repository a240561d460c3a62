"""Edits of one call: plain functions, several heads in one edit, and values that are none."""

import json
from functools import partial

import numpy as np
import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import tiny_model, tiny_module, tokenizer
from tests.support import tiny_gpt, tiny_translator
from visformer import edits
from visformer.adapters.recording import Recorder
from visformer.edits import EachRow, Silence, Uniform
from visformer.errors import EditError

SENTENCE, TARGET = "I went to school.", "我喜欢学校。"
PATH = "decoder.0.self_attn"
hub_model = partial(tiny_model, "llama")


@pytest.mark.parametrize("make", [tiny_translator, tiny_gpt, hub_model])
def test_a_function_that_returns_every_tensor_as_it_was_reached_nothing(make):
    model = make()
    for call in (model.trace, model.translate):
        with pytest.raises(EditError, match=r"The edit misspelt reached nothing: .* names are (src|tgt)\.embed, "):
            call("I went to school", edits=[misspelt])


def misspelt(name, tensor):
    return tensor * 0 if name == "decoder.0.self_atn.heads" else tensor


@pytest.mark.parametrize("make", [tiny_translator, tiny_gpt, hub_model])
def test_a_function_may_change_its_tensor_in_place(make):
    model = make()

    def in_place(name, tensor):
        if name == f"{PATH}.heads":
            tensor[:, 1] = 0
        if name == f"{PATH}.mask":
            tensor[..., 0] = True
        return tensor

    silent, ours = (
        model.trace("I went to school", record=("*",), edits=given)
        for given in ([edits.Silence(PATH, 1), edits.Open(PATH, key=0)], [in_place])
    )
    assert list(silent) == list(ours)
    for name in silent:
        np.testing.assert_array_equal(ours[name].value, silent[name].value, err_msg=name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: None, "returned NoneType for tgt.embed: return the tensor"),
        (lambda x: x.numpy(), "returned ndarray for tgt.embed: return the tensor"),
        (lambda x: x[0], r"returned float32 \(3, 16\) \(cpu\) for tgt.embed: .* float32 \(1, 3, 16\) \(cpu\)"),
        (lambda x: x.double(), r"returned float64 .* of the same kind, float32"),
    ],
)
def test_a_function_has_to_return_a_tensor_of_the_same_kind(change, message):
    with pytest.raises(EditError, match=message):
        tiny_gpt().trace("I went", edits=[lambda name, x: change(x) if name == "tgt.embed" else x])


def test_one_edit_needs_no_list():
    model, edit = tiny_translator(), edits.Silence(PATH, head=1)
    one, listed = (model.trace(SENTENCE, TARGET, record="logits", edits=given)["logits"] for given in (edit, [edit]))
    np.testing.assert_array_equal(one, listed)
    alone, in_a_tuple = (model.translate(SENTENCE, edits=given, max_new_tokens=3) for given in (edit, (edit,)))
    assert alone == in_a_tuple


@pytest.mark.parametrize("given", [None, 3, "Silence", [None], ["Silence"], [{"edit": "Silence"}]])
def test_what_is_no_edit_is_refused(given):
    for call in (tiny_translator().trace, tiny_translator().translate):
        with pytest.raises(EditError, match=r"is not an edit: pass one of visformer\.edits"):
            call(SENTENCE, edits=given)


# Several heads --------------------------------------------------------------------------------------------------------


def uniform(n):
    return np.full((n, n), 1 / n)


@pytest.mark.parametrize(
    "edit",
    [
        lambda head: edits.Silence("decoder.*.self_attn", head, scale=0.5),
        lambda head: edits.Block("decoder.1.self_attn", head, query=(1, 4), key=0),
        lambda head: edits.Open("decoder.1.self_attn", head, key=3),
        lambda head: edits.SetPattern("decoder.0.self_attn", head, uniform(6)),
    ],
)
def test_an_edit_of_several_heads_is_one_of_each(edit):
    model = hub_model()
    text = "I went to the"

    def trace(*given):
        return model.trace(text, record=("*",), edits=given)

    together, apart, plain = trace(edit((0, 3))), trace(edit(0), edit(3)), trace()
    for name in together:
        np.testing.assert_array_equal(together[name], apart[name], err_msg=name)
    assert not np.array_equal(together["logits"], plain["logits"])
    first = next(name for name in together if not np.array_equal(together[name], plain[name]))
    changed = [not np.array_equal(together[first][head], plain[first][head]) for head in range(4)]
    assert changed == [True, False, False, True]


@pytest.mark.parametrize(
    ("edit", "same"),
    [
        (edits.Silence(PATH, [0, 3]), edits.Silence(PATH, (np.int64(0), torch.tensor(3)))),
        (edits.Block(PATH, range(2), query=[1, 3], key=np.int64(0)), edits.Block(PATH, (0, 1), query=(1, 3), key=0)),
        (edits.SetPattern(PATH, (0, 1), uniform(2)), edits.SetPattern(PATH, [0, 1], [[0.5, 0.5], [0.5, 0.5]])),
    ],
)
def test_equal_edits_are_equal_however_they_were_written(edit, same):
    assert edit == same and hash(edit) == hash(same)
    assert edits.from_json(json.loads(json.dumps(edit.to_json()))) == edit


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: edits.Silence(3, 0), "where=3 is not the path"),
        (lambda: edits.Silence(PATH, "0"), "head='0' is not a whole number"),
        (lambda: edits.Silence(PATH, True), "head=True is not a whole number"),
        (lambda: edits.Silence(PATH, 1.5), "head=1.5 is not a whole number"),
        (lambda: edits.Silence(PATH, (0, None)), "head=None is not a whole number"),
        (lambda: edits.Silence(PATH, ()), r"head=\(\) names no head"),
        (lambda: edits.Silence(PATH, 0, scale=float("nan")), "scale=nan must be a number"),
        (lambda: edits.Silence(PATH, 0, scale="half"), "scale='half' must be a number"),
        (lambda: edits.Block(PATH, query=(3, 1)), r"query=\(3, 1\) must be one position, or \(first, end\)"),
        (lambda: edits.Block(PATH, key=(1, 2, 3)), r"key=\(1, 2, 3\) must be one position"),
        (lambda: edits.Open(PATH, key="all"), "key='all' is not a whole number"),
        (lambda: edits.SetPattern(PATH, 0, [[1.0], [0.5, 0.5]]), "all rows need the same number"),
        (lambda: edits.SetPattern(PATH, 0, None), "pattern=None is not a table of numbers"),
        (lambda: edits.SetPattern(PATH, 0, [["a"]]), "is not a table of numbers"),
        (lambda: edits.SetPattern(PATH, 0, []), "all rows need the same number"),
    ],
)
def test_an_edit_with_a_value_of_the_wrong_kind_is_refused(make, message):
    with pytest.raises(EditError, match=message):
        make()


@pytest.mark.parametrize("kind", ["en-zh", "mini-gpt", "gpt2", "llama", "bart", "t5"])
def test_an_edit_of_each_row_alone_decodes_from_a_cache_as_without_one(kind, monkeypatch):
    model = vf.load(kind) if kind in ("en-zh", "mini-gpt") else vf.wrap(tiny_module(kind), tokenizer())
    text, more = "I went to school and saw you again", {"max_new_tokens": 6}
    steer = torch.linspace(-1, 1, model.info.d_model)

    def add(name, tensor):
        return tensor + steer if name in ("decoder.1.ffn.out", "encoder.0.ffn.out") else tensor

    for edit in (Silence("decoder.1.self_attn", 1), Uniform("decoder.*.self_attn"), add):
        slow = model.translate(text, edits=edit if edit is add else lambda name, tensor, e=edit: (
            e(name, tensor) if e.applies(name) else tensor), **more)  # fmt: skip
        lengths = []
        monkeypatch.setattr(Recorder, "__call__", watched(Recorder.__call__, lengths))
        fast = model.translate(text, edits=EachRow(add) if edit is add else edit, **more)
        monkeypatch.undo()
        assert fast.ids == slow.ids
        assert [step.chosen.probability for step in fast.steps] == pytest.approx(
            [step.chosen.probability for step in slow.steps], rel=1e-4, abs=1e-6
        )
        assert {*lengths[2:]} <= {1}, "after the text, one position at a time"
    many = list(model.translate_many([text, "I saw"], edits=Silence("decoder.1.self_attn", 1), **more))
    assert many[0].ids == model.translate(text, edits=Silence("decoder.1.self_attn", 1), **more).ids


def watched(call, lengths):
    """Return a Recorder's call that notes how many queries an attention of the decoder has."""

    def noting(self, name, tensor):
        if name.startswith("decoder.1.self_attn.") and name.endswith(("heads", "scores")):
            lengths.append(tensor.shape[2])
        return call(self, name, tensor)

    return noting


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral"])
def test_a_function_that_changes_something_is_measured_on_models_that_show_copies(family):
    """Where the model shows a copy, a function that leaves it alone changes nothing there."""
    model = vf.wrap(tiny_module(family), tokenizer())
    text = "I went to school and saw you again"

    def halved(name, tensor):
        return tensor / 2 if name == "decoder.1.ffn.out" else tensor

    (encoded,) = model.forced([text])
    own, changed = model.logits([(encoded, ()), (encoded, halved)])
    np.testing.assert_allclose(changed, model.trace(text, record="logits", edits=halved)["logits"], atol=1e-4)
    assert abs(own - changed).max() > 1e-3


@pytest.mark.parametrize("make", [tiny_translator, tiny_gpt, hub_model])
def test_a_dict_names_the_tensors_that_its_functions_change(make):
    model, seen = make(), []

    def halve(pattern):
        seen.append(tuple(pattern.shape))
        return pattern * 0.5

    name = f"{PATH}.pattern"
    by_name = model.trace(SENTENCE, edits={name: halve}, record=("*.pattern", "logits"))
    told = model.trace(SENTENCE, edits=lambda at, x: x * 0.5 if at == name else x, record=("*.pattern", "logits"))
    np.testing.assert_array_equal(by_name["logits"], told["logits"])
    assert seen and all(len(shape) == 4 for shape in seen), "called with this tensor alone"
    everywhere = model.trace(SENTENCE, edits=[{"decoder.*.self_attn.pattern": halve}, Silence(PATH, head=0)])
    np.testing.assert_allclose(everywhere[name].value.sum(axis=-1), 0.5, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decoder.9.self_attn.pattern": torch.abs}, "matches nothing in this model"),
        ({"decoder.0.self_attn.pattern": 3}, "is not an edit"),
        ({3: torch.abs}, "is not an edit"),
        ({"decoder.0.self_attn.pattern": lambda pattern: pattern}, "reached nothing"),
    ],
)
def test_a_dict_that_changes_nothing_is_refused(given, message):
    with pytest.raises(EditError, match=message):
        tiny_gpt().trace(SENTENCE, edits=given)


@pytest.mark.parametrize("make", [tiny_translator, tiny_gpt, hub_model])
def test_the_names_are_known_before_anything_is_traced(make):
    model = make()
    names = model.names()
    assert {*model.trace(SENTENCE, record="*").names()} == {*names}
