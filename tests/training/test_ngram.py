"""The n-gram model: an example worked by hand, probabilities that sum to 1, and the entropy of a known source."""

import math
import random

import pytest

from visformer.training.ngram import KneserNey


def test_probabilities_of_a_bigram_model_are_those_worked_by_hand():
    """Rows 0 1 2 and 0 1 3 over five ids: bigrams 01 (twice), 12, 13; so n1 = 2, n2 = 1, and the discount is 1/2.

    Each of 1, 2 and 3 follows one history: of those three "unigrams", all occur once, so their discount is 1.
    """
    model = KneserNey([[0, 1, 2], [0, 1, 3]], order=2, vocab=5)
    low = 1 / 5  # (1 - 1) / 3 + 3 / 3 * 1 / 5
    assert model.probability([0], 1) == pytest.approx((2 - 0.5) / 2 + 0.5 * 1 / 2 * low)
    assert model.probability([1], 2) == pytest.approx((1 - 0.5) / 2 + 0.5 * 2 / 2 * low)
    assert model.probability([1], 4) == pytest.approx(0.5 * 2 / 2 * low)
    assert model.probability([4], 2) == pytest.approx(low), "a history that was never seen"


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_probabilities_after_any_history_sum_to_one(order):
    rng = random.Random(0)
    rows = [[1, *rng.choices(range(2, 9), k=6)] for _ in range(30)]
    model = KneserNey(rows, order=order, vocab=12)
    for history in ([1, 1, 1], [5, 2, 8], [11, 11, 3], [1, 1, 7]):
        probabilities = [model.probability(history, i) for i in range(12)]
        assert min(probabilities) > 0
        assert sum(probabilities) == pytest.approx(1)


def test_the_loss_on_a_markov_chain_is_its_entropy_and_a_unigram_model_s_is_higher():
    """From each state one of two others follows, with probabilities 0.8 and 0.2."""
    rng = random.Random(0)

    def row():
        states = [0]
        for _ in range(60):
            states.append((states[-1] + rng.choices((1, 2), (0.8, 0.2))[0]) % 5)
        return states

    rows = [row() for _ in range(300)]
    entropy = -0.8 * math.log(0.8) - 0.2 * math.log(0.2)
    assert KneserNey(rows[100:], order=3, vocab=5).loss(rows[:100]) == pytest.approx(entropy, abs=0.02)
    assert KneserNey(rows[100:], order=1, vocab=5).loss(rows[:100]) > math.log(5) - 0.05
