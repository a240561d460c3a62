"""The effect of single weights and of shuffled rows, against runs in which the module itself is replaced."""

from functools import lru_cache

import numpy as np
import pytest
import torch

from tests.adapters.huggingface import hub
from tests.analysis.by_hand import attention_of, log_probabilities, module_at, of_next
from tests.support import tiny_gpt, tiny_translator
from visformer.adapters.load import load, wrap
from visformer.analysis import shuffle_effect, weight_effects
from visformer.errors import EditError, VisformerError

TEXT, TARGET = "I went to school.", "我去学校。"
HEAD = 3  # in all three attentions, some of its weights matter


@lru_cache(maxsize=1)
def translator():
    return load("en-zh")  # trained: of an untrained one, single weights change next to nothing


def by_hand(model, trace, path, head, cell, how):
    def at_cell(value):
        def change(x):
            x = x.clone()
            x[:, head, cell[0], cell[1]] = value
            return x

        return change

    changes = {"pattern": at_cell(0.0)} if how == "zero" else {"scores": at_cell(-1e30)}
    with attention_of(module_at(model, path), **changes):
        return of_next(model, trace)


@pytest.mark.parametrize(
    ("path", "how"),
    [
        ("encoder.1.self_attn", "zero"),
        ("decoder.0.self_attn", "mask"),
        ("decoder.2.cross_attn", "mask"),
        pytest.param("encoder.1.self_attn", "mask", marks=pytest.mark.full),
        pytest.param("decoder.0.self_attn", "zero", marks=pytest.mark.full),
        pytest.param("decoder.2.cross_attn", "zero", marks=pytest.mark.full),
    ],
)
def test_each_effect_is_that_of_a_module_with_this_weight_taken_away(path, how):
    model = translator()
    trace = model.trace(TEXT, TARGET, record=(f"{path}.mask", f"{path}.pattern"))
    found = weight_effects(model, TEXT, TARGET, path=path, head=HEAD, how=how)
    clean, mask = of_next(model, trace), trace[f"{path}.mask"].value[HEAD]
    wanted = np.zeros(mask.shape)
    for query, key in np.argwhere(mask):
        if how == "mask" and mask[query].sum() == 1:
            continue  # nothing is left to attend to: by_hand divides by nothing there
        rise = by_hand(model, trace, path, HEAD, (query, key), how) - clean
        wanted[query, key] = rise.sum() if path.startswith("encoder") else rise[query]
    alone = mask & (mask.sum(axis=1, keepdims=True) == 1) & (how == "mask")
    np.testing.assert_allclose(found.values[~alone], wanted[~alone], atol=1e-4)
    assert abs(wanted).max() > 5e-3  # there is something to compare
    assert (found.method, found.how) == ("exact", how)
    assert found.predicts == ("target" if path.startswith("encoder") else "row")
    np.testing.assert_array_equal(found.pattern, trace[f"{path}.pattern"].value[HEAD])


@pytest.mark.parametrize("path", ["encoder.0.self_attn", "decoder.1.cross_attn"])
def test_the_gradient_is_the_finite_difference_of_a_gate(path):
    model = tiny_translator()
    trace = model.trace(TEXT, TARGET, record=())
    found = weight_effects(model, TEXT, TARGET, path=path, head=0, method="gradient")
    module, step = module_at(model, path), 1e-3
    model.module.double()
    for query, key in ((0, 0), (1, 2), (2, 1)):
        ends = []
        for gate in (1 + step, 1 - step):

            def scaled(x, gate=gate, query=query, key=key):
                x = x.clone()
                x[:, 0, query, key] *= gate
                return x

            with attention_of(module, pattern=scaled):
                ends.append(of_next(model, trace))
        slope = (ends[0] - ends[1]) / (2 * step)
        wanted = -(slope.sum() if path.startswith("encoder") else slope[query])
        assert found.values[query, key] == pytest.approx(wanted, rel=2e-3, abs=1e-5)
    assert found.method == "gradient"


def test_with_the_mask_the_gradient_counts_what_the_other_keys_gain():
    model = tiny_gpt(std=0.05)  # nearly linear
    exact, first = (
        weight_effects(model, "I went to school.", path="decoder.0.self_attn", head=0, how="mask", method=method).values
        for method in ("exact", "gradient")
    )
    rows = slice(1, None)  # the first row has one key only
    assert np.corrcoef(exact[rows].ravel(), first[rows].ravel())[0, 1] > 0.99
    np.testing.assert_allclose(exact[rows], first[rows], atol=0.2 * abs(exact[rows]).max())


def test_long_texts_are_estimated_and_say_so():
    model = tiny_gpt()
    assert weight_effects(model, list(range(20, 44)), path="decoder.0.self_attn", head=0).method == "exact"
    assert weight_effects(model, list(range(20, 45)), path="decoder.0.self_attn", head=0).method == "gradient"


def test_a_transformers_model_gives_what_it_gives_one_edit_at_a_time():
    from visformer.edits import Zero

    model = wrap(hub.tiny_module("gpt2"), hub.tokenizer())
    found = weight_effects(model, "I went to school", path="decoder.1.self_attn", head=2)
    clean, changed = (
        model.trace("I went to school", record=("logits",), edits=edits)["logits"].value
        for edits in ((), Zero("decoder.1.self_attn", 2, 3, 1))
    )
    ids = model.trace("I went to school", record=()).meta["ids"]["next"]
    logs = [torch.tensor(each).log_softmax(-1)[3, ids[3]].item() for each in (clean, changed)]
    assert found.values[3, 1] == pytest.approx(logs[1] - logs[0], abs=1e-4)


def test_what_cannot_be_measured_is_refused():
    model = tiny_translator()
    with pytest.raises(VisformerError, match="has no head 7: they are numbered from 0 to 1"):
        weight_effects(model, TEXT, TARGET, path="decoder.0.cross_attn", head=7)
    with pytest.raises(VisformerError, match="how='none' is unknown"):
        weight_effects(model, TEXT, TARGET, path="decoder.0.cross_attn", head=0, how="none")
    encoder = wrap(hub.tiny_module("bert"), hub.tokenizer())
    with pytest.raises(VisformerError, match="predicts no next token"):
        weight_effects(encoder, "I went to school", path="encoder.0.self_attn", head=0)
    with pytest.raises(EditError, match=r"decoder\.0\.self_attn\.sink"):
        next(model.gate_gradients([], ["decoder.0.self_attn.sink"]))


def test_shuffled_rows_move_the_output_as_a_module_with_these_rows_does():
    model, path = translator(), "decoder.2.cross_attn"
    trace = model.trace(TEXT, TARGET, record=())
    clean = log_probabilities(model, trace).exp()
    found = shuffle_effect(model, TEXT, TARGET, path=path, head=0, weights="uniform")

    def uniform(x):
        x = x.clone()
        x[:, 0] = 1 / x.shape[-1]
        return x

    with attention_of(module_at(model, path), pattern=uniform):
        wanted = (log_probabilities(model, trace).exp() - clean).abs().sum(dim=-1) / 2
    np.testing.assert_allclose(found.draws, wanted[None].numpy(), atol=1e-5)
    assert wanted.max() > 0.01
    shuffled = shuffle_effect(model, TEXT, TARGET, path="decoder.1.*", draws=5)
    assert shuffled.draws.shape == (5, len(trace.tokens["tgt"]))
    assert (shuffled.low <= shuffled.median).all() and (shuffled.median <= shuffled.high).all()
    assert 0 < shuffled.draws.max() <= 1
    again = shuffle_effect(model, TEXT, TARGET, path="decoder.1.*", draws=5)
    np.testing.assert_array_equal(shuffled.draws, again.draws)
    assert len({row.tobytes() for row in shuffled.draws}) == 5  # draws differ


def test_single_weights_are_those_of_the_whole_and_their_runs_are_told():
    path, done = "decoder.2.cross_attn", []
    every = weight_effects(translator(), TEXT, TARGET, path=path, head=6)
    how = {"cells": [(1, 0), (2, 3)], "progress": lambda *runs: done.append(runs)}
    few = weight_effects(translator(), TEXT, TARGET, path=path, head=6, **how)
    assert done == [(1, 2), (2, 2)]
    assert np.argwhere(~np.isnan(few.values)).tolist() == [[1, 0], [2, 3]]
    np.testing.assert_allclose(few.values[[1, 2], [0, 3]], every.values[[1, 2], [0, 3]], atol=1e-5)
    with pytest.raises(VisformerError, match=r"no weight at \(9, 0\)"):
        weight_effects(translator(), TEXT, TARGET, path=path, head=6, cells=[(9, 0)])
