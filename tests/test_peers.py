"""The comparison with other tools: checks of readouts, tables and goals, on made-up costs. Nothing needs a browser."""

import re

import numpy as np

from benchmarks.peers import report, subjects, visformer_side
from benchmarks.peers.costs import Costs, Enters


def test_a_readout_is_compared_in_four_digits(tmp_path):
    subject = subjects.Subject(("a", "b"), np.full((2, 3, 2, 2), 0.123449, np.float32), tmp_path)
    assert visformer_side.readout_is_true("1 2 0 1 0.1234", subject)
    assert not visformer_side.readout_is_true("1 2 0 1 0.1235", subject)
    assert not visformer_side.readout_is_true("1 2 0 1 ", subject)


def result_of(**ours):
    """Make a result at 128 tokens: visformer with these costs, and three peers."""
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
    text = report.tables(result_of())
    rows = text[text.index("built and painted") :].splitlines()[2:7]
    cells = [re.split(r" {2,}", row.strip()) for row in rows]
    assert cells[0] == ["visformer", "0.10"]
    assert cells[1] == ["BertViz, head view", "6.00 x60.0"]
    assert cells[2] == ["BertViz, model view", "18.0 x180"]  # medians, not means
    assert cells[4] == ["CircuitsVis", ">120 s", "not at 128"]
    assert "53000 x132" in text


def test_goals_are_met_or_missed():
    first_enter = "built and painted / our first Enter after a start, 128 tokens"
    expected = {
        "one Plotly figure per head / ours, Enter to painted, 128 tokens": "met",  # 30, the goal is 15
        "ours / the forward pass alone, Enter to painted, 128 tokens": "MISSED",  # 2 of 1.6
        f"BertViz, model view, {first_enter}": "met",  # 45 of 40
        f"Inspectus (one summed matrix), {first_enter}": "MISSED",
        "BertViz, head view / ours, layer switch, 128 tokens": "met",  # 145 of 100
        "our script for a layer switch, 128 tokens": "met",
        "our overview, labels apart, 128 tokens": "",  # not measured
    }
    assert expected.items() <= verdicts(result_of()).items()


def test_a_readout_has_to_change_with_every_move():
    name = "part of the moves that changed our readout, 128 tokens"
    assert verdicts(result_of(hover_moves=200, hover_changes=200, hover_p95_ms=16.8))[name] == "met"
    assert verdicts(result_of(hover_moves=200, hover_changes=199, hover_p95_ms=16.8))[name] == "MISSED"
