"""Known heads, against the scores that the training computes, and on patterns made for the purpose."""

import numpy as np
import pytest

from tests.support import tiny_gpt, tiny_translator
from visformer.adapters.load import load
from visformer.analysis import known_heads
from visformer.analysis.known_heads import _scores, _Sequence
from visformer.errors import VisformerError


def test_the_induction_heads_of_mini_gpt_are_those_of_its_evaluation():
    table = known_heads(load("mini-gpt"))
    induction = table[table["label"] == "induction"]
    assert (induction.iloc[0]["layer"], induction.iloc[0]["score"] > 0.9) in {(1, True), (2, True)}
    assert (induction["null"] < 0.1).all() and (induction["null_high"] < induction["score"]).all()
    assert (induction["n"] == 32).all() and (induction["first"] < 0.1).all()
    before = table[table["label"] == "previous token"].iloc[0]
    assert (before["layer"], before["offset"]) == (0, -1)  # what induction heads need


def test_scores_are_the_weights_of_the_cells_that_they_name():
    rng = np.random.default_rng(0)
    sequence = _Sequence([7, 5, 6, 8, 5, 6, 8], period=3, begin=4)
    pattern = rng.random((2, 8, 8)) * np.tril(np.ones((8, 8)))  # the sequence begins at 1, after another token
    scores = _scores(pattern, 1, sequence, causal=True)
    rows = [5, 6, 7]
    wanted = {
        ("induction", 0): [(row, row - 2) for row in rows],  # the token after the previous occurrence
        ("duplicate token", 0): [(row, row - 3) for row in rows],
        ("previous token", -1): [(row, row - 1) for row in range(2, 8)],
        ("positional", -2): [(row, row - 2) for row in range(3, 8)],
    }
    for key, cells in wanted.items():
        np.testing.assert_allclose(scores[key][0], np.mean([pattern[:, q, k] for q, k in cells], axis=0))
        np.testing.assert_allclose(scores[key][1], np.mean([pattern[:, q, 0] for q, _ in cells], axis=0))
        shuffled = np.mean([pattern[:, q, : q + 1].mean(axis=1) for q, _ in cells], axis=0)
        np.testing.assert_allclose(scores[key][2], shuffled)
    assert ("positional", 1) not in scores
    both = _scores(pattern, 1, sequence, causal=False)
    assert ("positional", 1) in both and ("induction", 0) not in both


def test_an_untrained_model_has_no_induction_head_and_any_kind_of_model_can_be_asked():
    for model in (tiny_gpt(max_len=64, std=0.02), tiny_translator()):
        table = known_heads(model, each=2, periods=(5, 8))
        assert "induction" not in set(table["label"])
    some = known_heads(tiny_translator(), each=1, periods=(5,), least=0.0)
    assert {"encoder.self_attn", "decoder.self_attn"} >= set(some["stack"])
    with pytest.raises(VisformerError, match="at least 2 tokens"):
        known_heads(tiny_gpt(), periods=(1,))
