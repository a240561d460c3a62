"""The plotly figures: heatmaps, curves, bars and trees."""

import math

import numpy as np
import pytest

import visformer as vf
from tests.support import tiny_translator
from tests.web.support import made_up_trace
from visformer.errors import ConfigError, MissingTensor, TraceError
from visformer.model.decoding import Beam, Candidate
from visformer.pictures import positions
from visformer.pictures.charts.decoding import best_path
from visformer.pictures.style import CURVES, probability


def test_a_heatmap_has_values_scale_and_labels_of_its_panel():
    panel = positions.encoding(5, 6)
    figure = vf.figures.matrix(panel)
    heat = figure.data[0]
    assert np.array_equal(np.asarray(heat.z), panel.values)
    assert (heat.zmin, heat.zmax) == (-1, 1)
    assert figure.layout.xaxis.ticktext == ("0", "1", "2", "3", "4", "5")
    assert figure.layout.yaxis.title.text == "pos, from 0"


def test_several_panels_are_one_figure():
    figure = vf.figures.matrix(*positions.rotation(3, 2, pair=1, d_model=8), theme="dark")
    assert len(figure.data) == 4
    assert [a.text for a in figure.layout.annotations] == ["R(2)", "× PE(3)", "= R(2) · PE(3)", "≈ PE(5)"]


def test_waves_have_the_encoding_of_their_dimensions_and_wavelengths_in_the_legend():
    figure = vf.figures.position_waves(20, 8, [0, 1, 6])
    legend = [curve.name for curve in figure.data if curve.showlegend is not False]
    assert [name.split(":")[0] for name in legend] == ["0", "1", "6"]
    assert f"{2 * math.pi:,.1f}" in legend[0]
    points = [curve for curve in figure.data if curve.mode == "markers"]
    table = positions.encoding(20, 8).values
    for curve, dimension in zip(points, (0, 1, 6), strict=True):
        assert np.allclose(curve.y, table[:, dimension])
    with pytest.raises(ConfigError, match="dimension 8"):
        vf.figures.position_waves(20, 8, [8])


def test_the_circle_shows_both_positions_at_their_angles():
    figure = vf.figures.rotation_circle(3, 5, pair=1, d_model=8)
    rate = 10000 ** (-2 / 8)
    ends = [(trace.x[1], trace.y[1]) for trace in figure.data[2:]]
    assert ends == [pytest.approx((math.cos(p * rate), math.sin(p * rate))) for p in (3, 8)]


def candidate(token, i, probability, drawn):
    return Candidate(token=token, id=i, probability=probability, drawn_probability=drawn)


def test_bars_have_the_two_probabilities_of_each_candidate_and_of_the_rest():
    figure = vf.figures.candidate_bars([candidate("<b>", 5, 0.7, 0.9), candidate("去", 7, 0.2, 0.1)], 7)
    model, drawn, texts = figure.data
    assert list(model.x) == pytest.approx([0.7, 0.2, 0.1]), "the last bar is all other tokens"
    assert list(drawn.x) == pytest.approx([0.9, 0.1, 0.0])
    assert figure.layout.yaxis.ticktext == ("&lt;b&gt;", "去 ◂", "<i>all others</i>")
    assert texts.text == (" 0.700 → 0.900", " 0.200 → 0.100", " 0.100 → 0")


def test_small_probabilities_are_written_for_people():
    """At most three decimals, and never with an exponent."""
    figure = vf.figures.candidate_bars([candidate("a", 0, 0.99996, 1.0), candidate("b", 1, 4e-5, 0.0)], 0)
    assert figure.data[2].text == (" 1.000", " <0.001 → 0", " 0")
    shares = (0.99, 0.004, 0.0009, 0.0008, 0.0007)
    listed = [candidate(token, i, share, share) for i, (token, share) in enumerate(zip("abcde", shares, strict=True))]
    bars, texts = vf.figures.candidate_bars(listed, 4).data
    assert bars.name == "model", "sampling changes nothing, so it has no bars of its own"
    assert texts.text == (" 0.990", " 0.004", " <0.001", " <0.001", " 0.004"), "three, the chosen one, the rest"
    assert [probability(share) for share in (0.0, 1e-30, 0.000999, 0.001, 0.25)] == [
        *("0", "<0.001", "<0.001", "0.001", "0.250")
    ]


def test_the_axis_of_bars_ends_at_the_largest_candidate_if_all_are_small():
    """With two hundred equally likely tokens, the bar of all others does not fit and is cut off."""
    figure = vf.figures.candidate_bars([candidate(str(i), i, 0.005, 0.005) for i in range(3)], 1)
    assert figure.layout.xaxis.range[1] == pytest.approx(1.05 * 0.005)
    assert figure.data[1].text == (" 0.005", " 0.005", " 0.005", "▸ 0.985")
    assert vf.figures.candidate_bars([candidate("a", 0, 0.3, 0.3)], 0).layout.xaxis.range[1] == pytest.approx(1.05)


def beam(token, log_probability, *, parent=0, i=9, finished=False):
    return Beam(parent=parent, id=i, token=token, log_probability=log_probability, finished=finished)


def test_the_tree_marks_the_best_hypothesis():
    """Finished ones are ranked by their log-probability per token."""
    steps = [[beam("我", -0.1), beam("他", -2.0)], [beam("去", -1.9), beam("</s>", -2.1, parent=1, finished=True)]]
    others, best, labels = vf.figures.beam_tree(steps).data
    assert [x for x in best.x if x in (-1, 0, 1)] == [-1, 0, 0, 1]
    assert len([x for x in others.x if x in (-1, 0, 1)]) == 4
    assert best.y[:5] == (1, 1, 0, 0, None), "level below the labels at both ends"
    winner = "&lt;/s&gt; ◂<br>−2.10 / 2<br>= <b>−1.050</b>"
    assert labels.text == ("我<br>−0.10", "他<br>−2.00", "去<br>−1.90", winner)


def test_a_tree_of_many_steps_has_labels_along_the_best_path_only():
    labels = vf.figures.beam_tree([[beam("去", -1.0), beam("他", -2.0)]] * 30).data[2]
    assert [text.split("<")[0].strip(" ◂") for text in labels.text] == ["去", ""] * 30
    assert labels.hovertext == ("去", "他") * 30


@pytest.mark.parametrize("text", ["She likes the school.", "我喜欢学校。"])
def test_the_best_path_has_the_tokens_of_the_decoding(text):
    decoding = tiny_translator().translate(text, beam_size=4, max_new_tokens=8)
    path = [decoding.beams[step][rank].id for step, rank in enumerate(best_path(decoding.beams))]
    assert path[: len(decoding.ids)] == list(decoding.ids)


def test_the_heatmap_of_a_head_has_its_weights_and_labels():
    trace = made_up_trace()
    figure = vf.figures.attention_head(trace, "decoder.1.cross_attn.pattern", 2)
    heat = figure.data[0]
    pattern = trace["decoder.1.cross_attn.pattern"].value[2]
    assert np.array_equal(np.asarray(heat.text, dtype=np.float32), pattern)
    assert np.allclose(np.asarray(heat.z), np.sqrt(pattern))
    assert figure.layout.xaxis.ticktext == ("a0 1", "a1 2", "a2 3", "a3 4", "&lt;/s&gt; 5")
    assert figure.layout.yaxis.ticktext[0] == "&lt;zh&gt; 1"
    assert "key" in figure.layout.xaxis.title.text
    assert "query" in figure.layout.yaxis.title.text


def test_all_heads_are_one_heatmap():
    trace = made_up_trace()
    figure = vf.figures.attention_heads(trace, "encoder.self_attn", theme="dark")
    assert len(figure.data) == 1
    mosaic = np.asarray(figure.data[0].text, dtype=np.float32)
    assert np.array_equal(mosaic[6:11, 12:17], trace["encoder.1.self_attn.pattern"].value[2])
    assert figure.layout.xaxis.ticktext == ("Head 1", "Head 2", "Head 3")


CHAT = (None, "user", "user", "poet", None)
SAID = (7, 1, 1, 4, 7)
"""The places of their colours: those of known roles first, then the others, and grey for the template."""


def chat_trace(roles=CHAT):
    weights = np.tril(np.random.default_rng(0).random((2, 5, 5), dtype=np.float32))
    weights /= weights.sum(axis=-1, keepdims=True)
    roles = {} if roles is None else {"tgt": roles}
    return vf.Trace.from_attention(target=list("abcd<"), decoder=[weights], roles=roles)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_tokens_of_a_chat_have_the_colours_of_their_roles_a_legend_and_their_role_in_the_hover(theme):
    figure = vf.figures.attention_head(chat_trace(), "decoder.0.self_attn.pattern", theme=theme)
    for axis, order in ((figure.layout.xaxis, r"{mark} {token}"), (figure.layout.yaxis, r"{token} {mark}")):
        for i, (label, token) in enumerate(zip(axis.ticktext, ("a", "b", "c", "d", "&lt;"), strict=True)):
            mark = f'<span style="color:{CURVES[theme][SAID[i]]}">■</span>'
            assert label == order.format(mark=mark, token=f"{token} {i + 1}")
    legend = {trace.name: trace.marker.color for trace in figure.data if trace.showlegend}
    assert legend == {"user": CURVES[theme][1], "poet": CURVES[theme][4], "template": CURVES[theme][7]}
    assert figure.data[0].customdata[3, 1].tolist() == ["d 4 (poet)", "b 2 (user)"]
    plain = vf.figures.attention_head(chat_trace(None), "decoder.0.self_attn.pattern", theme=theme)
    assert plain.layout.yaxis.ticktext == ("a 1", "b 2", "c 3", "d 4", "&lt; 5") and len(plain.data) == 1
    assert plain.layout.legend == type(plain.layout.legend)()


def test_roles_are_left_out_of_a_head_and_of_all_heads():
    trace = chat_trace()
    weights, kept = trace["decoder.0.self_attn.pattern"].value, [1, 2]
    figure = vf.figures.attention_head(trace, "decoder.0.self_attn.pattern", 1, without=["template", "poet"])
    np.testing.assert_array_equal(np.asarray(figure.data[0].text, dtype=np.float32), weights[1][np.ix_(kept, kept)])
    assert [label.split(" <")[0] for label in figure.layout.yaxis.ticktext] == ["b 2", "c 3"], "they keep their places"
    mosaic = np.asarray(vf.figures.attention_heads(trace, "decoder", without=["user"]).data[0].text, dtype=np.float32)
    np.testing.assert_array_equal(mosaic[:3, 4:7], weights[1][np.ix_([0, 3, 4], [0, 3, 4])])
    everything = vf.figures.attention_heads(trace, "decoder", without=["user", "poet", "template"])
    assert everything == vf.figures.attention_heads(trace, "decoder"), "where nothing would be left, all is shown"


def test_a_role_that_a_text_does_not_have_is_refused():
    with pytest.raises(TraceError, match="without has 'usr': the roles of this text are user, poet, template"):
        vf.figures.attention_head(chat_trace(), "decoder.0.self_attn.pattern", without=["usr"])
    with pytest.raises(TraceError, match="without has 'user', and this text has no roles: trace a chat"):
        vf.figures.attention_heads(chat_trace(None), "decoder", without=["user"])


@pytest.mark.parametrize(
    ("maps", "ends"), [([[[-0.5, 0.25], [2.0, 0.0]]], (-2.0, 2.0)), ([[[0.5, 0.25], [40.0, 0.0]]], (0.0, 40.0))]
)
def test_a_map_has_a_colour_scale_that_fits_with_its_ends_written(maps, ends):
    """For one head and for all: linear from 0, or on both sides of it."""
    trace = vf.Trace.from_maps(("a", "<b>"), np.array([maps, np.zeros((1, 2, 2))]), quantity="<effect>")
    one = vf.figures.attention_head(trace, "encoder.0.self_attn.map")
    for figure in (one, vf.figures.attention_heads(trace, "encoder.self_attn")):
        heat = figure.data[0]
        assert (heat.zmin, heat.zmax) == ends
        assert (heat.colorbar.tickvals[0], heat.colorbar.tickvals[-1]) == ends
        assert [float(text.replace("−", "-")) for text in heat.colorbar.ticktext][::2] == list(ends)
        assert "%{text:.6g}" in heat.hovertemplate
    assert np.array_equal(np.asarray(one.data[0].z), maps[0])
    assert one.layout.title.text == "Encoder · Layer 1 · Head 1 · &lt;effect&gt;"
    assert (one.layout.yaxis.title.text, one.layout.xaxis.title.text) == ("query", "key")


def test_figures_count_layers_and_heads_from_1_as_pages_do():
    trace = made_up_trace()
    titles = {
        "decoder.1.cross_attn.pattern": "Cross · Layer 2 · Head 3",
        "decoder.0.self_attn.pattern": "Decoder · Layer 1 · Head 3",
    }
    for name, title in titles.items():
        assert vf.figures.attention_head(trace, name, 2).layout.title.text == title
    whole = vf.figures.attention_heads(trace, "decoder.cross_attn").layout
    assert whole.title.text == "Cross-attention: the target reads the source."
    assert whole.yaxis.ticktext == ("Layer 1", "Layer 2")


def test_scores_are_not_coloured_as_weights():
    trace = tiny_translator().trace("She likes the school.", record=("*.scores", "*.mask"))
    figure = vf.figures.attention_head(trace, "encoder.0.self_attn.scores", 1)
    scores = trace["encoder.0.self_attn.scores"].value[1]
    assert np.allclose(np.asarray(figure.data[0].z), scores)
    assert figure.data[0].zmax == pytest.approx(np.abs(scores).max())
    assert figure.layout.title.text == "Encoder · Layer 1 · Head 2 · scores"


def test_text_never_becomes_markup():
    trace = made_up_trace(tokens=["<b>bold</b>", "&amp;"])
    figure = vf.figures.attention_head(trace, "encoder.0.self_attn.pattern")
    assert figure.layout.xaxis.ticktext[:2] == ("&lt;b&gt;bold&lt;/b&gt; 1", "&amp;amp; 2")


def test_heads_and_layers_that_do_not_exist_are_refused():
    trace = made_up_trace()
    with pytest.raises(TraceError, match="3 heads"):
        vf.figures.attention_head(trace, "encoder.0.self_attn.pattern", 3)
    with pytest.raises(MissingTensor):
        vf.figures.attention_head(trace, "encoder.7.self_attn.pattern")


def test_every_legend_above_a_plot_hangs_from_the_top_of_the_figure():
    """One placed by the plot covers it where the figure is low, or its lines are many."""
    drawn = (vf.figures.candidate_bars([candidate("a", 0, 0.5, 0.5)], 0), vf.figures.position_waves(5, 4, [1, 2]))
    for figure in drawn:
        assert (figure.layout.legend.yref, figure.layout.legend.yanchor) == ("container", "top")
