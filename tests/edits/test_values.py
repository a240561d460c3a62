"""Edits that zero, shuffle, even out, set or patch values: what they change, and how they are stored."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.support import tiny_gpt, tiny_translator
from visformer.edits import Block, Open, Patch, SetHeads, SetPattern, Shuffle, Silence, Uniform, Zero, from_json
from visformer.errors import EditError
from visformer.system import limits

NAME = "decoder.0.cross_attn.pattern"
TEXT = "I went to school."


def patterns(seed, n_queries, n_keys):
    """Rows of a causal pattern, (1, 3, query, key)."""
    scores = torch.randn(1, 3, n_queries, n_keys, generator=torch.Generator().manual_seed(seed))
    mask = torch.ones(n_queries, n_keys).tril(n_keys - n_queries).bool()
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


@given(st.integers(0, 999), st.integers(1, 7), st.integers(0, 5), st.integers(-3, 99))
def test_a_shuffled_row_has_the_same_weights_on_the_same_keys(seed, n_queries, more, draw):
    pattern = patterns(seed, n_queries, n_queries + more)
    edited = Shuffle("decoder.0.cross_attn", (0, 2), draw)(NAME, pattern)
    assert torch.equal(edited[:, 1], pattern[:, 1])
    assert torch.equal(edited > 0, pattern > 0)  # only where a weight is allowed
    assert torch.equal(edited.sort(-1).values, pattern.sort(-1).values)


def test_a_row_is_shuffled_in_the_same_way_in_a_longer_text_and_otherwise_by_another_seed():
    long = patterns(0, 9, 9)
    short = long[:, :, :5, :5]  # causal: the first rows are the same
    whole, part = (
        Shuffle("decoder.0.self_attn", seed=3)("decoder.0.self_attn.pattern", each) for each in (long, short)
    )
    assert torch.equal(whole[:, :, :5, :5], part)
    other = Shuffle("decoder.0.self_attn", seed=4)("decoder.0.self_attn.pattern", long)
    assert not torch.equal(whole, other)
    alike = Shuffle("a", seed=3)("a.pattern", long[:, :1].repeat(1, 2, 1, 1))
    assert not torch.equal(alike[:, 0], alike[:, 1])  # each head in an order of its own


def test_shuffles_reach_every_order():
    row = torch.tensor([0.5, 0.3, 0.2, 0.0])[None, None, None]
    found = {tuple(Shuffle("a", seed=seed)("a.pattern", row)[0, 0, 0].tolist()) for seed in range(60)}
    assert len(found) == 6 and all(each[3] == 0 for each in found)


def test_uniform_rows_are_even_over_the_allowed_keys():
    model = tiny_gpt()
    pattern = model.trace(TEXT, edits=Uniform("decoder.1.self_attn", 1))["decoder.1.self_attn.pattern"].value
    n = pattern.shape[1]
    np.testing.assert_allclose(pattern[1], np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None], atol=1e-6)
    plain = model.trace(TEXT)["decoder.1.self_attn.pattern"].value
    np.testing.assert_array_equal(pattern[0], plain[0])


def test_a_weight_of_zero_leaves_the_rest_of_the_row_and_a_block_does_not():
    model, path = tiny_gpt(), "decoder.0.self_attn"
    plain, zero, block = (
        model.trace(TEXT, edits=edits)[f"{path}.pattern"].value
        for edits in ((), Zero(path, 0, 2, 1), Block(path, 0, 2, 1))
    )
    assert zero[0, 2, 1] == block[0, 2, 1] == 0 < plain[0, 2, 1]
    kept = np.ones_like(plain, dtype=bool)
    kept[0, 2, 1] = False
    np.testing.assert_array_equal(zero[kept], plain[kept])
    assert zero[0, 2].sum() < 0.999 and block[0, 2].sum() == pytest.approx(1)


def test_set_heads_sets_them_at_every_position():
    model, path = tiny_translator(), "decoder.0.cross_attn"
    values = np.arange(8.0)
    heads = model.trace(TEXT, "我去学校。", record=("*.heads",), edits=SetHeads(path, 1, values))[f"{path}.heads"].value
    assert (heads[1] == values).all() and not (heads[0] == values).any()
    both = model.trace(TEXT, "我去学校。", record=("*.heads",), edits=SetHeads(path, (1, 0), [values, -values]))
    assert (both[f"{path}.heads"].value[0] == -values).all()
    with pytest.raises(EditError, match=r"shape \(3,\); the heads need \(8,\)"):
        model.trace(TEXT, edits=SetHeads(path, 1, [1, 2, 3]))


PARTS = [
    ("decoder.1.resid_pre", {"token": 2}, np.s_[2]),
    ("decoder.1.resid_pre", {"token": (1, 3)}, np.s_[1:3]),
    ("decoder.1.resid_pre", {}, np.s_[:]),
    ("decoder.0.self_attn.heads", {"head": 1}, np.s_[1]),
    ("decoder.0.self_attn.heads", {"head": (1, 0), "token": 2}, np.s_[[1, 0], 2]),
    ("decoder.0.self_attn.heads", {"head": 0, "token": (0, 2)}, np.s_[0, 0:2]),
    ("decoder.0.self_attn.pattern", {"token": 3}, np.s_[:, 3]),
]


@pytest.mark.parametrize(("name", "where", "cells"), PARTS, ids=str)
def test_a_patch_puts_the_values_of_another_trace_there_and_nowhere_else(name, where, cells):
    model = tiny_gpt()
    clean, corrupt = (model.trace(ids, record=(name,)) for ids in ([300, 301, 302, 303], [310, 311, 312, 313]))
    edit = from_json(json.loads(json.dumps(Patch.of(clean, name, **where).to_json())))
    assert edit == Patch.of(clean, name, **where) and hash(edit) == hash(Patch.of(clean, name, **where))
    found = model.trace([310, 311, 312, 313], record=(name,), edits=edit)[name].value
    wanted = corrupt[name].value.copy()
    wanted[cells] = clean[name].value[cells]
    np.testing.assert_array_equal(found, wanted)


def test_while_decoding_a_patch_waits_for_its_position():
    model = tiny_translator()
    name = "decoder.0.resid_pre"
    trace = model.trace(TEXT, "我去学校。", record=(name,))
    plain = model.translate("She likes the school.", max_new_tokens=6)
    patched = model.translate("She likes the school.", max_new_tokens=6, edits=Patch.of(trace, name, token=3))
    assert patched.ids[:3] == plain.ids[:3]


def test_a_patch_that_does_not_fit_or_is_too_large_says_so():
    model = tiny_gpt()
    trace = model.trace(TEXT, record=("decoder.0.resid_pre", "decoder.0.self_attn.heads"))
    n = len(trace.tokens["tgt"])
    with pytest.raises(EditError, match=rf"has {n} entries along its token axis; 99 is not"):
        Patch.of(trace, "decoder.0.resid_pre", token=99)
    with pytest.raises(EditError, match="has no heads"):
        Patch.of(trace, "decoder.0.resid_pre", head=0)
    with pytest.raises(EditError, match="the patch has shape"):
        model.trace("I like you and the school.", edits=Patch.of(trace, "decoder.0.resid_pre"))
    with pytest.raises(EditError, match="matches nothing"):
        model.trace(TEXT, edits=Patch("decoder.9.resid_pre", [1.0], token=0))
    large = Patch("decoder.0.resid_pre", np.zeros((100, 64)))
    with pytest.raises(EditError, match=f"holds 6,400 values, and at most {limits.PATCH_VALUES:,}"):
        large.to_json()


EDITS = [
    Block("encoder.*.self_attn", query=1, key=(0, 3)),
    Open("decoder.0.self_attn", head=0, query=0, key=2),
    SetPattern("encoder.0.self_attn", 0, ((0.5, 0.5), (0.0, 1.0))),
    Silence("decoder.0.cross_attn", head=1, scale=0.5),
    Zero("a", 1, 2, (3, 5)),
    Shuffle("a", (0, 1), 7),
    Uniform("a"),
    SetHeads("a", (0, 1), np.eye(2)),
    Patch("a.b", [1, 2]),
]


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_edits_are_stored_as_json_and_can_be_keys(edit):
    again = from_json(json.loads(json.dumps(edit.to_json())))
    assert again == edit and len({edit, again}) == 1


@pytest.mark.parametrize("values", ["abc", [], [[1], [1, 2]], [float("nan")], None, 3])
def test_values_that_are_no_numbers_are_refused(values):
    with pytest.raises(EditError, match="is not a table of numbers"):
        SetHeads("a", 0, values)
