"""Random tokens that recur: what is held out, what a context is made of, and the score of an induction head."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.support import tiny_tokenizer
from visformer.model import taps
from visformer.training import recurring
from visformer.training.recurring import (
    PERIODS,
    SCORED_PERIODS,
    held_out,
    held_out_pairs,
    induction,
    induction_report,
    induction_scores,
    pool_of,
    random_context,
    scored_context,
)

POOL, START = range(260, 900), 1


def test_one_pair_of_the_pool_in_ten_is_held_out_whatever_its_first_or_second_token():
    first, second = np.meshgrid(np.arange(260, 1260), np.arange(260, 1260), indexing="ij")
    chosen = held_out(first, second)
    assert chosen.mean() == pytest.approx(0.1, abs=0.001)
    for axis in (0, 1):
        assert chosen.mean(axis=axis).min() > 0.05
        assert chosen.mean(axis=axis).max() < 0.15
    assert not held_out(np.arange(260), np.arange(260) + 300).any(), "specials and bytes are no part of the pool"
    assert np.array_equal(held_out(first, second), chosen)


def test_the_pool_is_every_token_but_specials_and_bytes():
    tokenizer = tiny_tokenizer()
    assert pool_of(tokenizer)[-1] == len(tokenizer) - 1
    assert tokenizer.shown([pool_of(tokenizer)[0] - 1]) == ("<0xFF>",)


@given(seed=st.integers(0, 10**6), length=st.integers(1, 128))
def test_a_random_context_recurs_at_trained_periods_without_held_out_pairs(seed, length):
    ids, targets = random_context(random.Random(seed), POOL, start=START, length=length)
    assert len(ids) == len(targets) == length
    assert ids[0] == START and targets[0] == 0
    told = [place for place, target in enumerate(targets) if target]
    for place in told:
        assert place + 1 == length or targets[place] == ids[place + 1]
        gaps = [gap for gap in PERIODS if gap <= place and ids[place - gap] == ids[place]]
        assert any(ids[place - gap + 1] == targets[place] for gap in gaps), "an earlier occurrence tells it"
    held = held_out_pairs(ids)
    assert len(held) == len(set(held)), "where two sequences meet, but none twice"
    assert not set(held) & {(ids[place], targets[place]) for place in told}


def test_about_half_of_the_tokens_of_random_contexts_are_told_by_what_came_before():
    rng = random.Random(0)
    targets = [random_context(rng, POOL, start=START, length=128)[1] for _ in range(100)]
    assert 0.5 < np.count_nonzero(targets) / np.size(targets) < 0.7


@pytest.mark.parametrize("period", SCORED_PERIODS)
def test_a_scored_context_recurs_at_its_period_with_held_out_pairs_alone(period):
    assert period not in PERIODS
    ids, place = scored_context(np.random.default_rng(period), np.array(POOL), start=START, period=period)
    sequence = ids[place:]
    assert len(sequence) == period == len(set(sequence))
    assert ids[place - period : place] == sequence
    assert len(held_out_pairs([*sequence, sequence[0]])) == period


def model_that_attends(back, weight):
    """Return a "model" of one layer and two heads: the second has ``weight`` on the token ``back`` before."""

    def model(ids):
        n = ids.shape[1]
        pattern = torch.zeros(len(ids), 2, n, n)
        pattern[:, 0] = torch.eye(n)
        pattern[:, 1, :, 0] = 1 - weight
        for row in range(back, n):
            pattern[:, 1, row, row - back] += weight
        taps.current()("decoder.0.self_attn.scores", pattern)
        taps.current()("decoder.0.self_attn.pattern", pattern)

    return model


@pytest.mark.parametrize(("period", "shift", "score"), [(13, 0, 0.7), (20, 0, 0.7), (13, 1, 0.0), (13, -1, 0.0)])
def test_the_score_is_the_weight_on_the_token_after_the_previous_occurrence(period, shift, score):
    rng = np.random.default_rng(0)
    contexts = [scored_context(rng, np.array(POOL), start=START, period=period) for _ in range(5)]
    after, first = induction(model_that_attends(period - 1 + shift, 0.7), contexts, period)
    assert after.shape == first.shape == (5, 1, 2)
    assert after[:, 0, 1].tolist() == pytest.approx([score] * 5)
    assert after[:, 0, 0].abs().max() == 0
    assert first[:, 0, 1].tolist() == pytest.approx([0.3] * 5)


def test_no_fixed_distance_scores_well_over_all_periods():
    """A head that looks 12 back is right for one period of eight."""
    after, _ = induction_scores(model_that_attends(12, 1.0), tiny_tokenizer(), each=2)
    assert after.mean(dim=0)[0, 1].item() == pytest.approx(1 / len(SCORED_PERIODS))


def test_the_report_chooses_a_head_on_one_half_and_scores_it_on_the_other(monkeypatch):
    scores = torch.full((8, 2, 3), 0.1)
    scores[::2, 1, 2] = 0.9  # on the half that chooses
    scores[1::2, 1, 2] = torch.tensor([0.4, 0.5, 0.6, 0.5])
    scores[1::2, 0, 0] = 0.8
    monkeypatch.setattr(recurring, "induction_scores", lambda *_: (scores, torch.full_like(scores, 0.05)))
    report = induction_report(None, tiny_tokenizer())
    assert (report["layer"], report["head"], report["contexts"]) == (1, 2, 4)
    assert report["score"] == pytest.approx(0.5)
    assert report["high"] - report["score"] == pytest.approx(1.96 * np.std([4, 5, 6, 5], ddof=1) / 10 / 2)
    assert report["first"] == pytest.approx(0.05)
    assert report["pool"] == len(pool_of(tiny_tokenizer()))
