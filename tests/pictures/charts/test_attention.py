"""Plotly pictures of attention."""

import numpy as np
import pytest

import visformer as vf
from tests.web.support import made_up_trace
from visformer.errors import MissingTensor, TraceError


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


def test_what_was_typed_is_no_markup():
    trace = made_up_trace(tokens=["<b>bold</b>", "&amp;"])
    figure = vf.figures.attention_head(trace, "encoder.0.self_attn.pattern")
    assert figure.layout.xaxis.ticktext[:2] == ("&lt;b&gt;bold&lt;/b&gt; 1", "&amp;amp; 2")


def test_what_cannot_be_shown_says_why():
    trace = made_up_trace()
    with pytest.raises(TraceError, match="3 heads"):
        vf.figures.attention_head(trace, "encoder.0.self_attn.pattern", 3)
    with pytest.raises(MissingTensor):
        vf.figures.attention_head(trace, "encoder.7.self_attn.pattern")
