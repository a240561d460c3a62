"""Contexts of a decoder-only model, no held-out pair twice in any; and the n-gram model beside it."""

import math
import random
from itertools import pairwise

import pytest
import torch

from tests.support import tiny_tokenizer
from visformer.training import contexts
from visformer.training.contexts import KneserNey, context_batches, sentence_batches, sentence_rows
from visformer.training.data import Pair
from visformer.training.recurring import PERIODS, held_out_pairs

END = 1
PAIRS = [Pair(f"I went to school {n}.", f"我去学校{n}。") for n in range(300)]
TEXTS = {text for pair in PAIRS for text in (pair.en, pair.zh)}


def rows_of(batches):
    return [row for batch in batches for row in batch.inputs[0].tolist()]


def made(monkeypatch, *, random=0.0, repeated=0.0, **changes):
    monkeypatch.setattr(contexts, "RANDOM", random)
    monkeypatch.setattr(contexts, "REPEATED", repeated)
    return context_batches(tiny_tokenizer(), PAIRS, **{"length": 64, "tokens": 256, "seed": 0, **changes})


def sentences_of(row):
    """Return the whole sentences of a context, as ids."""
    ends = [place for place, token in enumerate(row) if token == END]
    return [row[a + 1 : b] for a, b in pairwise(ends)]


def test_a_context_has_sentences_of_both_languages_one_after_another(monkeypatch):
    batches = made(monkeypatch)
    assert {batch.inputs[0].shape for batch in batches[:-1]} == {(4, 64)}
    for batch in batches:
        assert torch.equal(batch.inputs[0][:, 1:], batch.targets[:, :-1]), "each position predicts the next token"
        assert batch.inputs[0][:, 0].tolist() == [END] * len(batch.inputs[0])
    texts = [tiny_tokenizer().decode(sentence) for row in rows_of(batches) for sentence in sentences_of(row)]
    assert len(texts) == len(set(texts)) > 200, "each once"
    assert set(texts) < TEXTS


def test_no_context_has_a_held_out_pair_twice(monkeypatch):
    for row in rows_of(made(monkeypatch, random=0.5, repeated=0.9)):
        pairs = held_out_pairs(row)
        assert len(pairs) == len(set(pairs))


def test_some_sentences_recur_at_once_at_trained_periods_and_without_held_out_pairs(monkeypatch):
    recur = [
        sentence
        for row in rows_of(made(monkeypatch, repeated=0.5))
        for sentence, following in pairwise(sentences_of(row))
        if sentence == following
    ]
    assert len(recur) > 50
    assert {len(sentence) + 1 for sentence in recur} <= set(PERIODS)
    assert not any(held_out_pairs(sentence) for sentence in recur)


def test_half_of_the_contexts_are_random_and_those_predict_nothing_the_first_time(monkeypatch):
    batches = made(monkeypatch, random=0.5)
    targets = [row for batch in batches for row in batch.targets.tolist()]
    is_random = [row[0] == 0 for row in targets]
    assert sum(is_random) / len(targets) == pytest.approx(0.5, abs=0.02)
    assert all(row[: PERIODS[0]] == [0] * PERIODS[0] for row, drawn in zip(targets, is_random, strict=True) if drawn)


def test_an_epoch_is_seeded(monkeypatch):
    first, again = (made(monkeypatch, random=0.5, repeated=0.5) for _ in range(2))
    other = made(monkeypatch, random=0.5, repeated=0.5, seed=1)
    assert rows_of(first) == rows_of(again) != rows_of(other)


def test_held_out_sentences_are_predicted_each_alone():
    rows = sentence_rows(tiny_tokenizer(), [PAIRS[0].en, PAIRS[0].zh])
    assert [len(row) for row in rows] == sorted(len(row) for row in rows)
    (batch,) = sentence_batches(rows)
    assert batch.inputs[0][:, 0].tolist() == [END, END]
    assert int((batch.targets != 0).sum()) == sum(len(row) - 1 for row in rows)
    assert batch.targets[1].tolist() == rows[1][1:]


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
