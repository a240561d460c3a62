"""Partners among the tokens of two passes, distances of their heads, and heads matched across trainings."""

import numpy as np
import pytest

import visformer as vf
from tests.analysis.models import model_of
from visformer.analysis import (
    Partners,
    head_differences,
    head_similarity,
    match_heads,
    row_distances,
    token_partners,
)
from visformer.errors import MissingTensor, TraceError
from visformer.trace import Trace


def encoded(tokens, patterns=None, special=None):
    """Return a Trace of an encoder of one layer; by default with one head that spreads its weight evenly."""
    n = len(tokens)
    patterns = np.full((1, 1, n, n), 1 / n) if patterns is None else np.asarray(patterns)
    return Trace.from_attention(tokens, patterns, special={"src": special or [False] * n})


def partners(one, other, **special):
    return token_partners(encoded(one.split()), encoded(other.split()), "src")


def test_equal_tokens_are_partners_and_one_that_was_replaced_has_one():
    found = partners("I went to school .", "I went to church .")
    assert found.equal == ((0, 0), (1, 1), (2, 2), (4, 4))
    assert found.replaced == ((3, 3),)
    assert found.alone == ((), ())


def test_tokens_without_a_partner_are_counted_and_stay_in_the_union():
    found = partners("a b c", "a x y c d")
    assert found.pairs == ((0, 0), (2, 3))
    assert found.alone == ((1,), (1, 2, 4))
    assert found.union == ((0, 0), (1, None), (None, 1), (None, 2), (2, 3), (None, 4))


def test_a_text_that_two_tokenizers_cut_differently_is_aligned_by_its_characters():
    one = encoded(["[CLS]", "un", "able", "to", "go"], special=[True, *[False] * 4])
    other = encoded(["<s>", "Unable", "t", "o", "go"], special=[True, *[False] * 4])
    found = token_partners(one, other, "src")
    assert found.equal == ((4, 4),), "only this token covers the same characters"
    assert found.replaced == ((0, 0),), "both begin the text"
    assert found.alone == ((1, 2, 3), (1, 2, 3))


def test_a_row_is_as_far_as_its_weights_and_those_on_columns_without_a_partner():
    rows = Partners((2, 2), ((0, 0), (1, 1)))
    columns = Partners((3, 2), ((0, 0), (1, 1)))
    first = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    second = np.array([[0.5, 0.5], [0.6, 0.4]])
    assert row_distances(first, second, rows, columns) == pytest.approx([0.0, (0.4 + 0.1 + 0.5) / 2])
    nothing = Partners((2, 2), ())
    assert row_distances(second, second, rows, nothing) == pytest.approx([1, 1]), "they read nothing in common"


def test_a_head_is_as_far_as_its_aligned_rows_on_average():
    even, first = [[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]
    one = encoded(["a", "b"], [[even, first]])
    other = encoded(["a", "b"], [[even, even]])
    assert head_differences(one, other, "encoder.self_attn") == pytest.approx(np.array([[0.0, 0.5]]))
    similarity = head_similarity(one, other, "encoder.self_attn")
    assert similarity[0, :, 0, :] == pytest.approx(np.array([[1.0, 1.0], [0.5, 0.5]]))


def test_heads_are_matched_by_patterns_whatever_their_numbers():
    rng = np.random.default_rng(0)
    patterns = rng.dirichlet(np.ones(5), size=(2, 3, 5))  # (layer, head, query, key)
    shuffled = patterns.reshape(6, 5, 5)[[4, 0, 5, 1, 3, 2]].reshape(2, 3, 5, 5)
    tokens = list("abcde")
    table = match_heads(encoded(tokens, patterns), encoded(tokens, shuffled), "encoder.self_attn")
    found = table["other_layer"] * 3 + table["other_head"]
    assert found.tolist() == [1, 3, 5, 4, 0, 2]
    assert table["similarity"].tolist() == pytest.approx([1.0] * 6)
    assert table["mutual"].all()
    assert (table["floor"] < 0.8).all()


def test_several_texts_count_by_their_rows():
    model = model_of("mini-gpt")
    one, other = (model.trace(text) for text in ("I went to school.", "She likes the river and the lake."))
    third, fourth = (vf.load("mini-gpt-2").trace(trace.meta["source"]) for trace in (one, other))
    single = [head_similarity(*pair, "decoder.self_attn") for pair in ((one, third), (other, fourth))]
    n_rows = [len(trace.tokens["tgt"]) for trace in (one, other)]
    together = head_similarity([one, other], [third, fourth], "decoder.self_attn")
    assert together == pytest.approx(np.average(single, axis=0, weights=n_rows))


def test_two_seeds_have_heads_that_match_by_patterns_better_than_by_number():
    texts = ["She gave her brother the book that he wanted.", "I went to school with my friend."]
    one, other = (list(vf.load(name).trace_many(texts)) for name in ("mini-gpt", "mini-gpt-2"))
    similarity = head_similarity(one, other, "decoder.self_attn")
    layers, heads = similarity.shape[:2]
    by_number = similarity.reshape(layers * heads, -1).diagonal().mean()
    matched = match_heads(one, other, "decoder.self_attn")["similarity"].mean()
    assert matched > by_number + 0.1


def test_words_of_two_targets_are_partners_through_the_source():
    model = model_of("en-zh")
    one, other = (model.trace("I went to school.", target) for target in ("我去学校。", "我去过那所学校。"))
    equal = token_partners(one, other, "tgt")
    found = token_partners(one, other, "tgt", by_source=True)
    assert found.equal == equal.equal
    assert not found.replaced
    assert len({i for i, _ in found.pairs}) == len({j for _, j in found.pairs}) == len(found.pairs)
    other = model.trace("I went to school.", "我去教堂。")
    assert (3, 3) in token_partners(one, other, "tgt", by_source=True).aligned


def test_what_cannot_be_compared_is_refused():
    one = encoded(["a", "b"])
    with pytest.raises(TraceError, match="no token in common"):
        head_differences(one, encoded(["c", "d", "e"]), "encoder.self_attn")
    with pytest.raises(TraceError, match="match heads by their patterns"):
        head_differences(one, encoded(["a", "b"], np.full((1, 2, 2, 2), 0.5)), "encoder.self_attn")
    with pytest.raises(MissingTensor):
        head_differences(model_of("mini-gpt").trace("a"), one, "decoder.self_attn")
    with pytest.raises(TraceError, match="there are 1 and 2 traces"):
        match_heads(one, [one, one], "encoder.self_attn")
