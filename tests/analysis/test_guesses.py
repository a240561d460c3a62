"""Guesses compared with weights, by brute force over all choices and by hand."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import softmax

import visformer as vf
from visformer.analysis import guesses
from visformer.analysis.intervals import wilson
from visformer.errors import ShapeError

PIECES = {"tokens": ["I", "North", "east", "</s>"], "words": {"src": [0, 1, 1, 2]}}


def drawn(*shape, seed=0, causal=False):
    scores = np.random.default_rng(seed).normal(size=shape)
    if causal:
        scores[..., ~np.tri(shape[-1], dtype=bool)] = -np.inf
    return softmax(scores, axis=-1)


def encoder(weights):
    return vf.Trace.from_attention(PIECES["tokens"], weights, words=PIECES["words"])


@st.composite
def guessed(draw):
    n_words = draw(st.integers(2, 6))
    taps = draw(arrays.arrays(bool, (draw(st.integers(1, 5)), n_words)))
    taps[~taps.any(axis=1), 0] = True
    weights = draw(arrays.arrays(float, n_words, elements=st.floats(0.01, 1)))
    return taps, weights / weights.sum()


@given(guessed())
def test_a_guess_is_compared_with_every_choice_of_as_many_words(case):
    taps, weights = case
    found = guesses.agreement(taps, weights)
    rows = []
    for row in taps:
        every = [weights[list(words)].sum() for words in combinations(range(len(weights)), row.sum())]
        rows.append((weights[row].sum(), max(every), np.mean(every)))
    covered, best, chance = np.transpose(rows)
    assert (found.n, found.covered) == (len(taps), pytest.approx(covered.mean()))
    assert (found.best, found.chance) == (pytest.approx(best.mean()), pytest.approx(chance.mean()))
    spread = best - chance
    told = spread > 1e-6
    np.testing.assert_allclose(found.each[told], (covered - chance)[told] / spread[told], atol=1e-6)
    assert (found.each[told] <= 1 + 1e-6).all()
    if len(taps) > 1:
        assert found.low - 1e-9 <= found.covered <= found.high + 1e-9


def test_where_every_choice_covers_the_same_nobody_is_nearer():
    everything = guesses.agreement([[True, True]], [0.9, 0.1])
    assert np.isnan(everything.each).all()
    assert np.isnan([everything.low, everything.high]).all(), "one person has no interval"
    assert len(guesses.nearest([[True, True]], [0.9, 0.1])) == 0


def test_the_nearest_guess_is_the_best_for_its_number_of_words_and_then_the_one_that_covers_more():
    weights = [0.5, 0.3, 0.15, 0.05]
    taps = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0]]
    assert guesses.nearest(taps, weights).tolist() == [1, 4]


@pytest.mark.parametrize("taps", [[[True]], [[False, False]], np.zeros((0, 2)), [True, False]])
def test_people_who_chose_nothing_are_refused(taps):
    with pytest.raises(ShapeError, match="2 words"):
        guesses.agreement(taps, [0.5, 0.5])


def test_the_share_who_are_right_has_wilsons_interval():
    taps = np.eye(3, dtype=bool)[[0, 1, 1, 2]]
    assert guesses.share_right(taps, [0.2, 0.5, 0.3]) == (2, *wilson(2, 4))


def test_the_tokens_of_a_word_are_one_word_as_keys_and_as_queries():
    weights = drawn(2, 3, 4, 4)
    trace = encoder(weights)
    assert [word.text for word in guesses.words_of(trace, "src")] == ["I", "Northeast", "</s>"]
    row = guesses.word_row(trace, "encoder.self_attn", 1, layer=1, head=2)
    both = weights[1, 2, 1:3].mean(axis=0)
    np.testing.assert_allclose(row.weights, [both[0], both[1] + both[2], both[3]], rtol=1e-6)
    mean = weights[:, :, 0].mean(axis=(0, 1))
    np.testing.assert_allclose(
        guesses.word_row(trace, "encoder.self_attn", 0).weights, [mean[0], mean[1] + mean[2], mean[3]], rtol=1e-6
    )


def test_a_decoder_chooses_among_the_words_that_it_may_read_and_a_cross_attention_among_those_of_the_source():
    cross = drawn(1, 2, 3, 2)
    trace = vf.Trace.from_attention(
        ["a", "b"], drawn(1, 2, 2, 2), target=["x", "y", "z"], decoder=drawn(1, 2, 3, 3, causal=True), cross=cross,
    )  # fmt: skip
    row = guesses.word_row(trace, "decoder.self_attn", 1)
    assert [word.text for word in row.words] == ["x", "y"]
    assert row.weights.sum() == pytest.approx(1)
    row = guesses.word_row(trace, "decoder.cross_attn", 2, layer=0, head=1)
    assert [word.text for word in row.words] == ["a", "b"]
    np.testing.assert_allclose(row.weights, cross[0, 1, 2], rtol=1e-6)


class Logits:
    """As much of a Trace of one target token as the choices need, with random logits."""

    def __init__(self, seed):
        self.logits = np.random.default_rng(seed).normal(size=(1, 50)).astype(np.float32)
        self.meta = {"likeliest": [[*map(str, np.argsort(-self.logits[0])[:5])]]}

    def __getitem__(self, name):
        return SimpleNamespace(value={"logits": self.logits}[name])


def test_choices_of_the_next_token_have_the_models_probabilities_in_an_order_that_tells_nothing():
    places = set()
    for trace in map(Logits, range(30)):
        texts, shares = guesses.next_choices(trace, 0)
        assert sorted(texts) == sorted(trace.meta["likeliest"][0])
        np.testing.assert_allclose(shares, softmax(trace.logits[0].astype(float))[[*map(int, texts)]])
        places.add(int(np.argmax(shares)))
        assert guesses.next_choices(trace, 0)[0] == texts, "the same on every phone"
    assert places == {0, 1, 2, 3, 4}


def test_of_a_pair_the_choices_have_the_logistic_function_of_the_difference_of_their_logits():
    trace = Logits(0)
    a, b = trace.logits[0, [7, 9]].astype(float)
    found = dict(zip(*guesses.next_choices(trace, 0, between=(7, 9)), strict=True))
    assert found == pytest.approx({"#7": 1 / (1 + np.exp(b - a)), "#9": 1 / (1 + np.exp(a - b))})
