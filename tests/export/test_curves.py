"""Curves, bars and trees without a browser: positions in the SVG, and in the pixels that resvg draws."""

import csv
import io
import json
import math
import re

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.export.test_svg import pixels, texts
from visformer import figures
from visformer.errors import VisformerError
from visformer.export import figure_csv, figure_json, figure_svg
from visformer.model.decoding import Beam, Candidate
from visformer.pictures.theme import BACKGROUND, CURVES


def candidate(token, i, probability, drawn):
    return Candidate(token=token, id=i, probability=probability, drawn_probability=drawn)


def beam(token, *, parent=0, i=9, score=-0.5, finished=False):
    return Beam(parent=parent, id=i, token=token, log_probability=score, finished=finished)


def bars(token="<b>我"):
    found = [candidate(token, 0, 0.5, 0.4), candidate("&c", 1, 0.25, 0.6)]
    return figures.candidate_bars(found, 1, names=("模型", "drawn", "others"))


def tree():
    return figures.beam_tree([[beam("我")], [beam("</s>", score=-1.0, finished=True)]])


def rects(svg):
    found = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="(#\w+)"', svg)
    return [(*map(float, numbers), colour) for *numbers, colour in found]


def test_bars_are_as_long_as_their_numbers():
    svg = figure_svg(bars())
    drawn = [rect for rect in rects(svg) if rect[2:4] != (12.0, 12.0)]  # those are the legend's
    widths = {colour: [rect[2] for rect in drawn if rect[4] == colour] for colour in CURVES["light"][:2]}
    unit = widths[CURVES["light"][0]][0] / 0.5
    np.testing.assert_allclose(widths[CURVES["light"][0]], [0.5 * unit, 0.25 * unit, 0.25 * unit], atol=0.01)
    np.testing.assert_allclose(widths[CURVES["light"][1]], [0.4 * unit, 0.6 * unit, 0.0], atol=0.01)
    assert {"<b>我", "&c ◂", "others", "模型", "drawn", "0.500 → 0.400"} <= {line.strip() for line in texts(svg)}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_curve_runs_through_its_values(theme):
    """The highest and the lowest pixel of a period of cos are as far apart as −1 and 1, and in its colour."""
    figure = figures.position_waves(64, 8, [1], theme=theme)
    picture = pixels(figure_svg(figure))
    colour = [int(CURVES[theme][0][i : i + 2], 16) for i in (1, 3, 5)]
    rows = np.flatnonzero((np.abs(picture - colour).max(axis=-1) <= 2)[60:].any(axis=1)) + 60
    svg = figure_svg(figure)
    ticks = dict(re.findall(r'y="([\d.]+)" font-size="13"[^>]*text-anchor="end">([^<]+)<', svg))
    heights = {words: float(y) for y, words in ticks.items()}
    assert rows.max() - rows.min() == pytest.approx(heights["−1"] - heights["1"], abs=8)
    corner = [int(BACKGROUND[theme][i : i + 2], 16) for i in (1, 3, 5)]
    assert picture[0, 0].tolist() == corner


def test_a_circle_is_round():
    svg = figure_svg(figures.rotation_circle(3, 5, pair=1, d_model=64))
    points = np.array([[float(n) for n in point.split()] for point in re.search(r'd="M([^"]+)"', svg)[1].split("L")])
    spans = np.ptp(points, axis=0)
    assert spans[0] == pytest.approx(spans[1], abs=0.05)


def test_a_tree_has_its_tokens_scores_and_bold_path():
    found = texts(figure_svg(tree()))
    assert {"我", "</s> ◂", "−0.50", "−1.00 / 2", "= −0.500", "1", "2"} <= set(found)
    assert '<tspan font-weight="600">−0.500</tspan>' in figure_svg(tree())


def test_texts_of_many_steps_do_not_overlap():
    """Neighbouring texts keep their distance, however many there are."""
    svg = figure_svg(figures.beam_tree([[beam("Northeastern")] for _ in range(19)]))
    places = sorted({float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="middle">Northeastern<', svg)})
    assert len(places) == 18  # the last one is marked
    assert min(np.diff(places)) > 75


def rows_of(figure):
    """Return the rows of a figure from CSV and from JSON."""
    table = list(csv.DictReader(io.StringIO(figure_csv(figure).removeprefix("\ufeff"))))
    rows = json.loads(figure_json(figure))["rows"]
    assert [list(row) for row in rows] == [list(row) for row in table]
    return table, rows


def test_candidates_as_numbers():
    table, rows = rows_of(bars("=1+1"))
    assert rows == [
        {"step": 0, "token": "=1+1", "id": 0, "probability": 0.5, "drawn_probability": 0.4, "chosen": False},
        {"step": 0, "token": "&c", "id": 1, "probability": 0.25, "drawn_probability": 0.6, "chosen": True},
    ]
    assert [row["probability"] for row in table] == ["0.5", "0.25"]
    assert table[0]["token"] == "'=1+1"


def test_hypotheses_as_numbers():
    last = [beam("b", i=3, score=-1), beam("c", i=4, score=-2, finished=True)]
    table, rows = rows_of(figures.beam_tree([[beam("我")], last]))
    assert [[row[name] for name in ("step", "beam", "token", "id", "score", "parent", "best")] for row in rows] == [
        [0, 0, "我", 9, -0.5, None, True],
        [1, 0, "b", 3, -1, 0, False],
        [1, 1, "c", 4, -2, 0, True],
    ]
    assert table[0]["parent"] == ""


def test_waves_as_numbers():
    """The encoding at every position, not the finer samples of the curve."""
    _, rows = rows_of(figures.position_waves(5, 4, [1, 2]))
    assert [(row["dimension"], row["position"]) for row in rows] == [(d, pos) for d in (1, 2) for pos in range(5)]
    expected = [*(math.cos(pos) for pos in range(5)), *(math.sin(pos / 100) for pos in range(5))]
    np.testing.assert_allclose([row["value"] for row in rows], expected, atol=1e-12)


def test_a_rotation_as_numbers():
    _, rows = rows_of(figures.rotation_circle(3, 5, pair=1, d_model=64))
    angles = [position / 10000 ** (2 / 64) for position in (3, 8)]
    assert [row["position"] for row in rows] == [3, 8]
    np.testing.assert_allclose([row["sin"] for row in rows], np.sin(angles))


def test_a_figure_has_a_title():
    svg = figure_svg(figures.candidate_bars([candidate("a", 1, 0.5, 0.5)], 1, step=2))
    assert "<title>step 3: candidates for the next token</title>" in svg
    assert texts(svg)[0] == "step 3: candidates for the next token"
    assert "beam search: beam width 1" in texts(figure_svg(tree()))


def test_lines_leave_room_around_the_labels_of_a_tree():
    """A line is interrupted around a label that it crosses."""
    steps = [[beam("a")] * 6, [*[beam("c")] * 5, beam("WWWWWW")]]
    svg = figure_svg(figures.beam_tree(steps))
    bare = re.sub(rf'<g stroke="{BACKGROUND["light"]}"[^>]*paint-order="stroke">', "<g>", svg)
    inked = [(pixels(one) != 255).any(axis=-1).sum() for one in (svg, bare)]
    assert inked[0] < inked[1]


def test_another_figure_is_refused():
    with pytest.raises(VisformerError, match=r"not made by visformer\.figures"):
        figure_csv(go.Figure(go.Scatter(x=[1], y=[2])))
    with pytest.raises(VisformerError, match="A figure of kind heatmap cannot be saved directly: save the Trace"):
        figure_svg(go.Figure(go.Heatmap(z=[[1]])))
