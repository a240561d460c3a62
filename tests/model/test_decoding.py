"""Decoding compared with exhaustive search, with plain arithmetic, and with decoding without a cache."""

import itertools
from collections import Counter
from functools import partial
from statistics import geometric_mean

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.support import tiny_gpt, tiny_translator
from visformer.adapters.generating import Generator
from visformer.model.decoding import NextToken, beam_search, reshape


@pytest.mark.parametrize("source", ["I went to school.", "她喜欢 Tom。"])
@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 1.3, "top_k": 40, "seed": 4}, {"beam_size": 4}, {"prefix": "我喜欢"}]
)
def test_tokens_and_probabilities_are_the_same_with_and_without_a_cache(source, settings, monkeypatch):
    model = tiny_translator()
    cached = model.translate(source, max_new_tokens=8, **settings)
    original = NextToken.__init__
    monkeypatch.setattr(NextToken, "__init__", lambda self, *args, cached: original(self, *args, cached=False))
    uncached = model.translate(source, max_new_tokens=8, **settings)
    assert cached.ids == uncached.ids
    assert len(cached.ids) > 1
    for a, b in zip(cached.steps, uncached.steps, strict=True):
        assert a.chosen.probability == pytest.approx(b.chosen.probability, abs=1e-5)


def test_greedy_decoding_chooses_the_most_probable_token_that_is_not_special():
    decoding = tiny_translator().translate("I went to school.", max_new_tokens=8)
    for step in decoding.steps:
        assert step.chosen == step.candidates[0] or step.candidates[0].token.startswith("<")
        probabilities = [candidate.probability for candidate in step.candidates]
        assert probabilities == sorted(probabilities, reverse=True)


@pytest.mark.parametrize("how", [{}, {"beam_size": 3}, {"temperature": 2.0, "seed": 4}])
def test_confidence_is_the_geometric_mean_of_the_probabilities_of_what_was_chosen(how):
    decoding = tiny_gpt().generate("I went to school.", max_new_tokens=6, **how)
    assert decoding.confidence == pytest.approx(geometric_mean([step.chosen.probability for step in decoding.steps]))
    assert 0 < decoding.confidence < 1


def test_confidence_counts_no_step_after_the_end_of_a_shorter_sentence():
    table = torch.tensor([[0.5, 0.5], [0.125, 0.875]]).log()  # (row, id): 1 ends; the first row never does

    class Same:
        def log_probabilities(self, prefix):
            return table[: len(prefix)]

    generator = Generator(None, torch.ones(2, dtype=torch.bool), (1,))
    (_, unsure), (ids, sure) = generator.greedy(Same(), torch.zeros(2, 1, dtype=torch.long), [5, 5])
    assert (ids, sure) == ([1], pytest.approx(0.875))
    assert unsure == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(8))
def test_a_wide_beam_finds_the_best_of_all_sentences_and_a_narrow_one_stays_narrow(seed):
    """With four ids and three steps, every sentence can be scored."""
    torch.manual_seed(seed)
    table = torch.randn(4, 4).log_softmax(dim=-1)

    class Bigram:
        def log_probabilities(self, prefix):
            return table[prefix[:, -1]]

        def keep(self, rows):
            pass

    end, steps = 1, 3
    allowed = torch.ones(4, dtype=torch.bool)
    search = partial(beam_search, Bigram(), torch.tensor([[0]]), allowed=allowed, end_ids=[end], max_new_tokens=steps)
    wide = search(beam_size=4**steps)
    scores = {}
    for length in range(1, steps + 1):
        for ids in itertools.product(range(4), repeat=length):
            if end not in ids[:-1] and ids[-1] == end:
                path = [0, *ids]
                scores[ids] = sum(table[a, b].item() for a, b in itertools.pairwise(path)) / length
    assert tuple(wide.ids) == max(scores, key=scores.get)
    assert [row.shape for row in wide.along] == [(4,)] * len(wide.ids)
    for beam_size in (1, 2, 5):
        assert all(len(step) <= beam_size for step in search(beam_size=beam_size).steps)


def test_a_beam_continues_its_parent():
    decoding = tiny_translator().translate("我去学校。", beam_size=3, max_new_tokens=6)
    for parents, beams in itertools.pairwise(decoding.beams):
        for beam in beams:
            assert beam.log_probability <= parents[beam.parent].log_probability
            assert not parents[beam.parent].finished


distributions = st.lists(st.floats(-6, 3), min_size=2, max_size=12).map(lambda row: torch.tensor([row]).log_softmax(-1))


@given(distributions, st.floats(0.2, 4), st.integers(1, 14), st.floats(0.05, 1))
def test_a_reshaped_row_is_a_distribution_over_top_k_and_top_p(log_probabilities, temperature, top_k, top_p):
    result = reshape(log_probabilities, temperature=temperature, top_k=top_k, top_p=top_p)
    assert result.sum().item() == pytest.approx(1, abs=1e-5)
    kept = int((result > 0).sum())
    ties = int((log_probabilities == log_probabilities.max()).sum())
    assert kept <= max(top_k, ties) or len(set(log_probabilities[0].tolist())) < log_probabilities.shape[1]
    assert result[0, log_probabilities.argmax()] > 0
    nucleus = log_probabilities.exp()[reshape(log_probabilities, top_p=top_p) > 0]
    assert nucleus.sum().item() >= top_p - 1e-5
    assert (nucleus.sum() - nucleus.min()).item() < top_p + 1e-5


LOGITS = (2.0, 1.5, 1.5, 0.3, -0.4, -1.0, -2.5, 0.9)


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p", "expected"),
    [
        (1.0, None, 1.0, [0.347194, 0.210584, 0.210584, 0.063427, 0.031497, 0.017286, 0.003857, 0.115571]),
        (0.5, None, 1.0, [0.528886, 0.194566, 0.194566, 0.017651, 0.004353, 0.001311, 0.000065, 0.058602]),
        (2.0, None, 1.0, [0.238567, 0.185796, 0.185796, 0.101967, 0.071855, 0.053232, 0.025145, 0.137641]),
        (1.0, 2, 1.0, [0.451863, 0.274069, 0.274069, 0, 0, 0, 0, 0]),
        (1.0, None, 0.6, [0.451863, 0.274069, 0.274069, 0, 0, 0, 0, 0]),
        (1.7, 5, 0.8, [0.331789, 0.247246, 0.247246, 0, 0, 0, 0, 0.173719]),
        (0.7, None, 0.9, [0.457283, 0.223859, 0.223859, 0, 0, 0, 0, 0.095]),
        (0.1, None, 0.95, [1, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_reshaped_probabilities_equal_those_of_transformers(temperature, top_k, top_p, expected):
    """Numbers from transformers 5.23: TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, then softmax."""
    row = torch.tensor([LOGITS]).log_softmax(-1)
    reshaped = reshape(row, temperature=temperature, top_k=top_k, top_p=top_p)
    assert reshaped[0].tolist() == pytest.approx(expected, abs=1e-6)


SETTINGS = [{}, {"temperature": 0.5}, {"temperature": 2.0, "top_k": 3}, {"top_p": 0.4}, {"top_k": 1}]


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_step_can_be_reshaped_with_any_settings(settings):
    """Compared with the logits of a full pass, in float64, with NumPy's sorting."""
    model = tiny_translator()
    decoding = model.translate("She likes the school.", max_new_tokens=3)
    trace = model.trace("She likes the school.", decoding.ids, record=("logits",))
    blocked = [i for i in range(len(model.tokenizer)) if model.tokenizer.is_special([i])[0] and i != model._end]
    for step, logits in zip(decoding.steps, trace["logits"].value.astype(np.float64), strict=False):
        logits[blocked] = -np.inf
        scaled = np.exp((logits - logits.max()) / settings.get("temperature", 1.0))
        order = np.argsort(-scaled)
        scaled[order[settings.get("top_k", len(scaled)) :]] = 0.0
        expected = scaled / scaled.sum()
        before = np.cumsum(expected[order]) - expected[order]
        expected[order[before >= settings.get("top_p", 1.0)]] = 0.0
        expected /= expected.sum()
        reshaped = step.reshaped(**settings)
        assert [c.drawn_probability for c in reshaped] == pytest.approx([expected[c.id] for c in reshaped], abs=1e-5)
        assert [c.probability for c in reshaped] == [c.probability for c in step.candidates]


def test_alternatives_that_look_alike_are_told_apart_by_their_space():
    """A full stop and one with a space before it were two candidates of one name."""
    model = tiny_translator()
    ids = range(len(model.tokenizer))
    alike = [i for i, n in Counter(model.tokenizer.shown([i])[0] for i in ids).items() if n > 1]
    assert alike, "this vocabulary has such tokens"
    shown = model._generator._apart(ids)
    assert len({*shown}) == len(shown)
    for token in alike:
        assert {token, f"␣{token}"} <= {*shown}


@pytest.mark.parametrize("settings", SETTINGS[1:])
def test_candidates_have_the_probabilities_that_were_sampled_from(settings):
    for step in tiny_translator().translate("She likes the school.", max_new_tokens=3, **settings).steps:
        assert step.reshaped(**settings) == step.candidates


def test_a_seed_gives_one_sample_and_other_seeds_others():
    model = tiny_translator()
    texts = {seed: model.translate("I went", temperature=2.0, seed=seed, max_new_tokens=8).text for seed in (1, 2, 3)}
    assert texts[1] == model.translate("I went", temperature=2.0, seed=1, max_new_tokens=8).text
    assert len(set(texts.values())) > 1


def test_the_target_begins_with_the_prefix():
    decoding = tiny_translator().translate("I went to school.", prefix="我喜欢", max_new_tokens=4)
    assert decoding.text.startswith("我喜欢")


def test_special_tokens_are_never_generated():
    model = tiny_translator()
    for seed in range(3):
        ids = model.translate("a", temperature=5.0, seed=seed, max_new_tokens=20).ids
        assert not any(model.tokenizer.is_special(ids))
