"""The plotly figures: heatmaps, curves, bars and trees."""

import math
import types

import numpy as np
import pytest

import visformer as vf
from tests.support import tiny_translator
from tests.web.support import made_up_trace
from visformer.errors import ConfigError, MissingTensor, TraceError
from visformer.pictures import positions
from visformer.pictures.charts.decoding import best_path


def test_a_panel_as_a_heatmap():
    panel = positions.encoding(5, 6)
    figure = vf.figures.matrix(panel)
    heat = figure.data[0]
    assert np.array_equal(np.asarray(heat.z), panel.values)
    assert (heat.zmin, heat.zmax) == (-1, 1)
    assert figure.layout.xaxis.ticktext == ("0", "1", "2", "3", "4", "5")
    assert figure.layout.yaxis.title.text == "pos, from 0"


def test_small_probabilities_have_visible_bars():
    """With two hundred equally likely tokens, the axis ends at their probability; the bar of the rest is cut off."""
    found = [types.SimpleNamespace(token=str(i), id=i, probability=0.005, drawn_probability=0.005) for i in range(3)]
    figure = vf.figures.candidate_bars(found, 1)
    assert figure.layout.xaxis.range[1] == pytest.approx(1.05 * 0.005)
    assert figure.data[2].text == (" 0.005", " 0.005", " 0.005", "▸ 0.985")
    likely = [types.SimpleNamespace(token="a", id=0, probability=0.3, drawn_probability=0.3)]
    assert vf.figures.candidate_bars(likely, 0).layout.xaxis.range[1] == pytest.approx(1.05)


def test_several_panels_are_one_figure():
    figure = vf.figures.matrix(*positions.outer_product(4, 6), theme="dark")
    assert len(figure.data) == 3
    assert [a.text for a in figure.layout.annotations] == ["position", "× frequency", "= angle in radians"]


def test_waves_name_their_wavelengths():
    figure = vf.figures.position_waves(20, 8, [0, 1, 6])
    named = [trace for trace in figure.data if trace.showlegend is not False]
    assert [trace.name.split(":")[0] for trace in named] == ["0", "1", "6"]
    assert f"{2 * math.pi:,.1f}" in named[0].name
    points = [trace for trace in figure.data if trace.mode == "markers"]
    table = positions.encoding(20, 8).values
    for trace, dimension in zip(points, (0, 1, 6), strict=True):
        assert np.allclose(trace.y, table[:, dimension])
    with pytest.raises(ConfigError, match="dimension 8"):
        vf.figures.position_waves(20, 8, [8])


def test_the_circle_holds_both_positions():
    figure = vf.figures.rotation_circle(3, 5, pair=1, d_model=8)
    rate = 10000 ** (-2 / 8)
    ends = [(trace.x[1], trace.y[1]) for trace in figure.data[2:]]
    assert ends == [pytest.approx((math.cos(p * rate), math.sin(p * rate))) for p in (3, 8)]


def candidate(token, probability, drawn, place):
    return types.SimpleNamespace(token=token, id=place, probability=probability, drawn_probability=drawn)


def test_bars_stand_for_candidates():
    figure = vf.figures.candidate_bars([candidate("<b>", 0.7, 0.9, 5), candidate("去", 0.2, 0.1, 7)], 7)
    model, drawn, texts = figure.data
    assert list(model.x) == pytest.approx([0.7, 0.2, 0.1]), "the last bar is all other tokens"
    assert list(drawn.x) == pytest.approx([0.9, 0.1, 0.0])
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;", "去 ◂", "<i>all others</i>")
    assert texts.text == (" 0.700 → 0.900", " 0.200 → 0.100", " 0.100 → 0")


def beam(parent, token, log_probability, *, finished=False):
    return types.SimpleNamespace(parent=parent, token=token, id=1, log_probability=log_probability, finished=finished)


def test_the_tree_draws_the_best_hypothesis_strong():
    steps = [[beam(0, "我", -0.1), beam(0, "他", -2.0)], [beam(0, "去", -1.9), beam(1, "</s>", -2.1, finished=True)]]
    figure = vf.figures.beam_tree(steps)
    weak, strong, spots = figure.data
    assert [x for x in strong.x if x is not None] == [-1, 0, 0, 1]
    assert spots.text == (
        "我<br>−0.10",
        "他<br>−2.00",
        "去<br>−1.90",
        "&lt;/s&gt; ◂<br>−2.10 / 2<br>= <b>−1.050</b>",
    ), "an end is ranked by its log-probability per token; the winner is marked"
    assert len([x for x in weak.x if x is not None]) == 4
    spots = vf.figures.beam_tree([*[[beam(0, "去", -1.0), beam(0, "他", -2.0)]] * 30]).data[2]
    assert [text.split("<")[0].strip(" ◂") for text in spots.text] == ["去", ""] * 30, (
        "of many steps the best path alone is written"
    )
    assert spots.hovertext == ("去", "他") * 30


def test_the_winner_of_beam_search_is_the_one_that_the_search_takes():
    """Compared with the decoding itself: its tokens are those along the path."""
    model = tiny_translator()
    for text in ("She likes the school.", "我喜欢学校。"):
        found = model.translate(text, beam_size=4, max_new_tokens=8)
        along = [found.beams[step][place].id for step, place in enumerate(best_path(found.beams))]
        assert along[: len(found.ids)] == list(found.ids)


def test_head_shows_the_weights_with_the_labels_of_its_axes():
    trace = made_up_trace()
    figure = vf.figures.attention_head(trace, "decoder.1.cross_attn.pattern", 2)
    heat = figure.data[0]
    pattern = trace["decoder.1.cross_attn.pattern"].value[2]
    assert np.array_equal(np.asarray(heat.text, dtype=np.float32), pattern)
    assert np.allclose(np.asarray(heat.z), np.sqrt(pattern))
    assert figure.layout.xaxis.ticktext == tuple(
        f"{t} {i + 1}" for i, t in enumerate(["a0", "a1", "a2", "a3", "&lt;/s&gt;"])
    )
    assert figure.layout.yaxis.ticktext[0] == "&lt;zh&gt; → b0 1"
    assert "key" in figure.layout.xaxis.title.text
    assert "query" in figure.layout.yaxis.title.text


def test_all_heads_are_one_heatmap():
    trace = made_up_trace()
    figure = vf.figures.attention_heads(trace, "encoder", theme="dark")
    assert len(figure.data) == 1
    mosaic = np.asarray(figure.data[0].text, dtype=np.float32)
    assert np.array_equal(mosaic[6:11, 12:17], trace["encoder.1.self_attn.pattern"].value[2])
    assert figure.layout.xaxis.ticktext == ("Head 1", "Head 2", "Head 3")


def test_text_never_becomes_markup():
    trace = made_up_trace(tokens=["<b>bold</b>", "&amp;"])
    figure = vf.figures.attention_head(trace, "encoder.0.self_attn.pattern")
    assert figure.layout.xaxis.ticktext[:2] == ("&lt;b&gt;bold&lt;/b&gt; 1", "&amp;amp; 2")


def test_errors_explain_what_cannot_be_shown():
    trace = made_up_trace()
    with pytest.raises(TraceError, match="3 heads"):
        vf.figures.attention_head(trace, "encoder.0.self_attn.pattern", 3)
    with pytest.raises(MissingTensor):
        vf.figures.attention_head(trace, "encoder.7.self_attn.pattern")
