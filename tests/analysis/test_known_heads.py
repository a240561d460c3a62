"""Known heads, against the scores that the training computes, and on patterns made for the purpose."""

import numpy as np
import pandas as pd
import pytest

from tests.analysis.test_sentences import ALIGNED
from tests.support import tiny_gpt, tiny_translator
from visformer.adapters.load import load
from visformer.analysis import appears, head_history, known_heads
from visformer.analysis.known_heads import _scores, _Sequence
from visformer.errors import VisformerError
from visformer.training.evaluation.alignment import align, heads_by_reading, read_aligned

HEAD = ["stack", "layer", "head", "label"]


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


def test_a_history_scores_every_head_at_every_moment_by_the_same_method():
    models = [tiny_translator(seed=1), tiny_translator(seed=2)]
    done = []
    history = head_history(iter(models), each=1, progress=done.append)
    assert done == [1, 2] and history["moment"].unique().tolist() == [0, 1]
    info = models[0].info
    heads = info.n_heads * (info.n_encoder_layers * 3 + info.n_decoder_layers * 4)  # encoders have no induction heads
    assert len(history) == 2 * heads and not history.duplicated(["moment", *HEAD]).any()
    known = known_heads(models[1], each=1, least=0.0)
    both = history[history["moment"] == 1].merge(known, on=[*HEAD, "offset"])
    assert (
        len(both) and (both["score_x"] == both["score_y"]).all() and (both["null_high_x"] == both["null_high_y"]).all()
    )


def test_a_history_with_gold_links_scores_cross_attention():
    gold = read_aligned(ALIGNED)[:3]
    model = load("en-zh")
    history = head_history([model], pairs=gold, to="zh", each=1)
    aligning = history[history["label"] == "alignment"]
    rates = heads_by_reading(model, gold, to="zh")["input"].error_rates
    assert (1 - aligning["score"]).tolist() == pytest.approx(rates.tolist())
    assert aligning["n"].unique().tolist() == [3] and aligning["stack"].unique().tolist() == ["decoder.cross_attn"]
    assert (1 - aligning["null"]).unique() == pytest.approx(align(model, gold, to="zh")["diagonal"])


def history_of(*scores, **more):
    """Make the history of one head from its scores."""
    row = {"stack": "decoder.self_attn", "layer": 0, "head": 0, "label": "induction", "null_high": 0.1, **more}
    return pd.DataFrame([{"moment": moment, **row, "score": score} for moment, score in enumerate(scores)])


def test_a_head_appears_once_it_has_its_label_at_every_later_moment():
    for scores, null, moment in (
        ([0.1, 0.3, 0.9], 0.1, 1),  # the least score is enough
        ([0.1, 0.29, 0.9], 0.1, 2),
        ([0.9, 0.9], 0.1, 0),
        ([0.1, 0.8, 0.2, 0.9], 0.1, 3),  # it did not stay
        ([0.1, 0.8, 0.2], 0.1, None),
        ([0.1, 0.5, 0.9], 0.6, 2),  # not above the null before
        ([0.1, 0.1], 0.1, None),
    ):
        found = appears(history_of(*scores, null_high=null).sample(frac=1, random_state=0))
        assert found["moment"].tolist() == ([] if moment is None else [moment]), (scores, null)
        assert found["score"].tolist() == ([] if moment is None else [scores[moment]])


def test_heads_that_appear_are_in_the_order_of_moments_then_scores():
    tables = [history_of(0.1, 0.4, head=0), history_of(0.5, 0.5, head=1), history_of(0.1, 0.6, head=2)]
    assert appears(pd.concat(tables))["head"].tolist() == [1, 2, 0]
    assert appears(head_history([])).empty
