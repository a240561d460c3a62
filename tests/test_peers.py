"""The comparison with other tools: what they are fed, and what is made of what they cost. No browser in here."""

import re

import numpy as np
import pytest

from benchmarks.peers import report, subjects, visformer_side
from benchmarks.peers.costs import FULL, Costs, Enters
from visformer.pictures.theme import SEQUENTIAL


@pytest.mark.parametrize("n", [2, 9, 64])
def test_rows_of_synthetic_patterns_sum_to_1(n):
    patterns = subjects.synthetic(n)
    assert patterns.shape == (6, 12, n, n)
    assert patterns.dtype == np.float32
    assert (patterns > 0).all()
    np.testing.assert_allclose(patterns.sum(axis=-1, dtype=np.float64), 1, atol=1e-6)


def test_a_sentence_has_as_many_words_as_it_needs_and_none_comes_twice():
    sentences = [subjects.sentence(128, start) for start in range(FULL.rounds + 1)]
    assert len(set(sentences)) == len(sentences)
    assert {len(sentence.split()) for sentence in sentences} == {126}


def test_our_side_shows_the_patterns_that_it_is_given():
    patterns = subjects.synthetic(9)
    trace = visformer_side.trace_of(subjects.text(9), patterns)
    np.testing.assert_array_equal(trace.stack("encoder", "self_attn").value, patterns)
    assert trace.special["src"] == (True, *[False] * 7, True)


def test_colours_run_from_the_first_stop_to_the_last():
    patterns = np.zeros((1, 1, 2, 2), np.float32)
    patterns[0, 0] = np.eye(2)
    colours = {(query, key): colour for query, key, colour in visformer_side.expected(patterns)[0]}
    ends = [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in (SEQUENTIAL["light"][0], SEQUENTIAL["light"][-1])]
    assert colours[0, 1] == ends[0]
    assert colours[0, 0] == colours[1, 1] == ends[1]


def test_a_readout_is_true_to_four_digits(tmp_path):
    subject = subjects.Subject(("a", "b"), np.full((2, 3, 2, 2), 0.123449, np.float32), tmp_path)
    assert visformer_side.readout_is_true("1 2 0 1 0.1234", subject)
    assert not visformer_side.readout_is_true("1 2 0 1 0.1235", subject)
    assert not visformer_side.readout_is_true("1 2 0 1 ", subject)


def run_of(**ours):
    """Ours and three peers at 128 tokens, and an Enter that takes 100 ms."""
    ours = {"build_s": [0.02], "paint_s": [0.08], "switch_ms": [20.0], "script_ms": [4.0], "kilobytes": 400.0} | ours
    enters = Enters(128, first_ms=[400.0], ms={"visformer": [100.0], "plotly": [3000.0], "forward": [50.0]})
    return report.Result(
        [
            Costs("visformer", 128, **ours),
            Costs("bertviz-head", 128, build_s=[2.0], paint_s=[4.0], switch_ms=[2900.0], kilobytes=53000.0),
            Costs("bertviz-model", 128, build_s=[2.0], paint_s=[14.0, 16.0, 90.0]),
            Costs("inspectus", 128, build_s=[0.1], paint_s=[0.8]),
            Costs("circuitsvis", 128, build_s=[1.0], failed=">120 s"),
            Costs("circuitsvis", 256, failed="not at 128"),
        ],
        enters,
    )


def verdicts(result):
    return {goal.name: goal.verdict for goal in report.goals(result)}


def test_the_table_shows_each_peer_as_a_multiple_of_ours():
    text = report.tables(run_of())
    painted = text[text.index("built and painted") :].splitlines()[2:7]
    cells = [re.split(r" {2,}", line.strip()) for line in painted]
    assert cells[0] == ["visformer", "0.10"]
    assert cells[1] == ["BertViz, head view", "6.00 x60.0"]
    assert cells[2] == ["BertViz, model view", "18.0 x180"]  # medians, not means
    assert cells[4] == ["CircuitsVis", ">120 s", "not at 128"]
    assert "53000 x132" in text


def test_goals_are_met_or_missed():
    found = verdicts(run_of())
    assert found["one Plotly figure per head / ours, Enter to painted, 128 tokens"] == "met"  # 30 of 15
    assert found["ours / the forward pass alone, Enter to painted, 128 tokens"] == "MISSED"  # 2 of 1.6
    assert (
        found["BertViz, model view, built and painted / our first Enter after a start, 128 tokens"] == "met"
    )  # 45 of 40
    assert (
        found["Inspectus (one summed matrix), built and painted / our first Enter after a start, 128 tokens"]
        == "MISSED"
    )
    assert found["BertViz, head view / ours, layer switch, 128 tokens"] == "met"  # 145 of 100
    assert found["our script for a layer switch, 128 tokens"] == "met"
    assert found["our overview, labels apart, 128 tokens"] == ""  # not measured


def test_a_goal_is_missed_where_ours_failed():
    found = verdicts(run_of(failed="failed: read out: nothing"))
    assert found["our hover, p95 of the longest frame of each of 0 moves, 128 tokens"] == "MISSED"
    assert found["part of the moves that changed our readout, 128 tokens"] == "MISSED"


def test_a_readout_has_to_change_with_every_move():
    name = "part of the moves that changed our readout, 128 tokens"
    assert verdicts(run_of(hover_moves=200, hover_changes=200, hover_p95_ms=16.8))[name] == "met"
    assert verdicts(run_of(hover_moves=200, hover_changes=199, hover_p95_ms=16.8))[name] == "MISSED"


def test_what_was_not_measured_is_said_to_be_so():
    result = report.Result(run_of().costs, Enters(128, failed="failed: no server"))
    assert verdicts(result)["ours / the forward pass alone, Enter to painted, 128 tokens"] == ""
    assert re.search(r"visformer, first after a start +- *\n", report.tables(result))
