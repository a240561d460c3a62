"""Figures as files: positions in the SVG, pixels drawn by resvg, and numbers in CSV and JSON."""

import csv
import io
import json
import math
import re

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.export.test_svg import pixels, texts
from tests.pictures.charts.test_panels import beam, candidate
from visformer import figures
from visformer.errors import VisformerError
from visformer.export import figure_csv, figure_json, figure_svg
from visformer.export.curves import least_width
from visformer.pictures.style import BACKGROUND, CURVES


def bars(token="<b>我"):
    candidates = [candidate(token, 0, 0.5, 0.4), candidate("&c", 1, 0.25, 0.6)]
    return figures.candidate_bars(candidates, 1, names=("模型", "drawn", "others"))


def tree():
    return figures.beam_tree([[beam("我", -0.5)], [beam("</s>", -1.0, finished=True)]])


def rgb(colour):
    """Return red, green and blue of "#rrggbb"."""
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def test_bars_are_as_long_as_their_numbers():
    svg = figure_svg(bars())
    rects = re.findall(r'<rect x="[\d.]+" y="[\d.]+" width="([\d.]+)" height="([\d.]+)" fill="(#\w+)"', svg)
    bar_rects = [(float(width), fill) for width, height, fill in rects if float(height) != 12]  # those of the legend
    model, drawn = ([width for width, fill in bar_rects if fill == colour] for colour in CURVES["light"][:2])
    unit = model[0] / 0.5
    np.testing.assert_allclose(model, [0.5 * unit, 0.25 * unit, 0.25 * unit], atol=0.01)
    np.testing.assert_allclose(drawn, [0.4 * unit, 0.6 * unit, 0.0], atol=0.01)
    assert {"<b>我", "&c ◂", "others", "模型", "drawn", "0.500 → 0.400"} <= {line.strip() for line in texts(svg)}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_curve_reaches_from_its_lowest_to_its_highest_value(theme):
    """The outermost pixels in the colour of a cosine are as far apart as the labels −1 and 1."""
    svg = figure_svg(figures.position_waves(64, 8, [1], theme=theme))
    picture = pixels(svg)
    rows = np.flatnonzero((np.abs(picture - rgb(CURVES[theme][0])).max(axis=-1) <= 2)[60:].any(axis=1)) + 60
    labels = re.findall(r'y="([\d.]+)" font-size="13"[^>]*text-anchor="end">([^<]+)<', svg)
    heights = {label: float(y) for y, label in labels}
    assert rows.max() - rows.min() == pytest.approx(heights["−1"] - heights["1"], abs=8)
    assert picture[0, 0].tolist() == rgb(BACKGROUND[theme])


def test_panels_below_one_another_have_scales_of_their_own():
    figure = go.Figure()
    for axis, values in (("y", [0, 100]), ("y2", [0, 1])):
        figure.add_scatter(x=[0, 1], y=values, yaxis=axis, mode="lines", line={"color": f"#0000{len(axis)}0"})
    figure.update_layout(
        height=300, margin={"t": 20, "b": 80},
        yaxis={"domain": [0.5, 1], "range": [0, 100], "title": {"text": "upper"}},
        yaxis2={"domain": [0, 0.5], "range": [0, 1], "title": {"text": "lower"}},
    )  # fmt: skip
    svg = figure_svg(figure)
    places = [float(y) for y in re.findall(r'translate\([\d.]+[ ,]([\d.]+)\)"><path d="M', svg)]
    assert places == [20, 120], "each is half of the 200 pixels"
    for colour in ("#000010", "#000020"):
        (path,) = re.findall(rf'<path d="M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)" stroke="{colour}"', svg)
        assert [float(y) for y in path] == [100, 0], "each line goes from the lower end of its panel to the upper one"
    assert {"upper", "lower", "80", "0.8"} <= {line.strip() for line in texts(svg)}


def test_a_circle_is_round():
    svg = figure_svg(figures.rotation_circle(3, 5, pair=1, d_model=64))
    points = np.array([[float(n) for n in point.split()] for point in re.search(r'd="M([^"]+)"', svg)[1].split("L")])
    spans = np.ptp(points, axis=0)
    assert spans[0] == pytest.approx(spans[1], abs=0.05)


def test_a_tree_has_tokens_scores_and_the_best_score_in_bold():
    svg = figure_svg(tree())
    assert {"我", "</s> ◂", "−0.50", "−1.00 / 2", "= −0.500", "1", "2"} <= set(texts(svg))
    assert '<tspan font-weight="600">−0.500</tspan>' in svg


def test_labels_of_a_tree_of_many_steps_do_not_overlap():
    svg = figure_svg(figures.beam_tree([[beam("Northeastern", -0.5)] for _ in range(19)]))
    xs = sorted({float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="middle">Northeastern<', svg)})
    assert len(xs) == 18  # the last token is marked
    assert min(np.diff(xs)) > 75


def test_a_figure_with_labels_over_its_places_needs_a_width():
    """Plotly would draw them over each other in a narrower frame; nothing else needs one."""
    least = least_width(figures.beam_tree([[beam("Northeastern", -0.5)] for _ in range(10)]))
    assert 11 * 75 < least < 11 * 110
    assert least_width(tree()) < 320, "fits a phone"
    assert least_width(bars("a")) == 0


def rows_of(figure):
    """Return the rows of a figure from CSV and from JSON."""
    table = list(csv.DictReader(io.StringIO(figure_csv(figure).removeprefix("\ufeff"))))
    rows = json.loads(figure_json(figure))["rows"]
    assert [list(row) for row in rows] == [list(row) for row in table]
    return table, rows


def test_rows_of_bars_are_candidates():
    table, rows = rows_of(bars("=1+1"))
    assert rows == [
        {"step": 0, "token": "=1+1", "id": 0, "probability": 0.5, "drawn_probability": 0.4, "chosen": False},
        {"step": 0, "token": "&c", "id": 1, "probability": 0.25, "drawn_probability": 0.6, "chosen": True},
    ]
    assert [row["probability"] for row in table] == ["0.5", "0.25"]
    assert table[0]["token"] == "'=1+1"


def test_rows_of_a_tree_are_hypotheses():
    last = [beam("b", -1, i=3), beam("c", -2, i=4, finished=True)]
    table, rows = rows_of(figures.beam_tree([[beam("我", -0.5)], last]))
    assert [[row[name] for name in ("step", "beam", "token", "id", "score", "parent", "best")] for row in rows] == [
        [0, 0, "我", 9, -0.5, None, True],
        [1, 0, "b", 3, -1, 0, False],
        [1, 1, "c", 4, -2, 0, True],
    ]
    assert table[0]["parent"] == ""


def test_rows_of_waves_are_the_encoding_at_every_position():
    """Not the finer samples of the curve."""
    _, rows = rows_of(figures.position_waves(5, 4, [1, 2]))
    assert [(row["dimension"], row["position"]) for row in rows] == [(d, pos) for d in (1, 2) for pos in range(5)]
    expected = [*(math.cos(pos) for pos in range(5)), *(math.sin(pos / 100) for pos in range(5))]
    np.testing.assert_allclose([row["value"] for row in rows], expected, atol=1e-12)


def test_rows_of_a_rotation_are_both_positions():
    _, rows = rows_of(figures.rotation_circle(3, 5, pair=1, d_model=64))
    angles = [position / 10000 ** (2 / 64) for position in (3, 8)]
    assert [row["position"] for row in rows] == [3, 8]
    np.testing.assert_allclose([row["sin"] for row in rows], np.sin(angles))


def test_a_figure_has_a_title():
    svg = figure_svg(figures.candidate_bars([candidate("a", 1, 0.5, 0.5)], 1, step=2))
    assert "<title>step 3: candidates for the next token</title>" in svg
    assert texts(svg)[0] == "step 3: candidates for the next token"
    assert "beam search: beam width 1" in texts(figure_svg(tree()))


def test_a_line_that_crosses_a_label_is_interrupted():
    steps = [[beam("a", -0.5)] * 6, [*[beam("c", -0.5)] * 5, beam("W" * 40, -0.5)]]
    svg = figure_svg(figures.beam_tree(steps))
    without_outline = re.sub(rf'<g stroke="{BACKGROUND["light"]}"[^>]*paint-order="stroke">', "<g>", svg)
    assert (pixels(svg) != 255).any(axis=-1).sum() < (pixels(without_outline) != 255).any(axis=-1).sum()


def test_figures_not_made_by_visformer_are_refused():
    with pytest.raises(VisformerError, match=r"not made by visformer\.figures"):
        figure_csv(go.Figure(go.Scatter(x=[1], y=[2])))
    with pytest.raises(VisformerError, match="A figure of kind heatmap cannot be saved directly: save the Trace"):
        figure_svg(go.Figure(go.Heatmap(z=[[1]])))
