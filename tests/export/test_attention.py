"""Arcs and tokens as SVG: a line for each visible weight, a shade for each token."""

import re

import numpy as np
import pytest

import visformer as vf
from tests.export.test_svg import texts
from tests.web.support import made_up_trace
from visformer.errors import TraceError, VisformerError
from visformer.export.attention import FAINTEST
from visformer.export.marks import hexadecimal, ramp, steps_of
from visformer.pictures.style import CURVES

CROSS = {"stack": "decoder.cross_attn", "layer": 1, "head": 2}


def pattern():
    return made_up_trace()["decoder.1.cross_attn.pattern"].value[2]


def test_arcs_have_a_line_for_each_visible_weight_from_query_to_key():
    svg = vf.export.attention_svg(made_up_trace(), **CROSS, view="arcs")
    paths = re.findall(r'M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"[^>]*stroke-opacity="([\d.]+)"', svg)
    lines = np.array([[float(n) for n in path] for path in paths])
    weights = pattern()
    rows, columns = np.nonzero(weights >= FAINTEST)
    assert len(lines) == len(rows)
    heights = sorted(set(lines[:, 1]) | set(lines[:, 3]))
    np.testing.assert_array_equal(np.searchsorted(heights, lines[:, 1]), rows)
    np.testing.assert_array_equal(np.searchsorted(heights, lines[:, 3]), columns)
    np.testing.assert_allclose(lines[:, 4] ** (1 / 0.7), weights[rows, columns], atol=2e-3)
    assert {"<zh>", "b2", "a0", "</s>"} <= set(texts(svg)), "tokens without their positions"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_tokens_have_the_shade_of_their_weight(theme):
    svg = vf.export.attention_svg(made_up_trace(), **CROSS, view="tokens", query=2, theme=theme)
    shades = re.findall(r'rx="4" fill="(#\w+)"', svg)
    assert shades == [hexadecimal(ramp("weight", theme)[step]) for step in steps_of(pattern()[2], "weight", 1.0)]


def test_queries_and_views_that_do_not_exist_are_refused():
    with pytest.raises(TraceError, match=r"decoder.cross_attn has no query 4: there are 0–3, counted from 0"):
        vf.export.attention_svg(made_up_trace(), **CROSS, view="tokens", query=4)
    with pytest.raises(VisformerError, match="view is 'pie'; it can be heatmap, arcs, tokens"):
        vf.export.attention_svg(made_up_trace(), view="pie")


@pytest.mark.parametrize("view", ["heatmap", "arcs"])
def test_tokens_of_a_chat_have_the_colours_of_their_roles(view):
    roles = [None, "user", "user", "poet", None]
    given = {"target": list("abcde"), "decoder": np.full((1, 1, 5, 5), 0.2)}
    plain = vf.Trace.from_attention(**given)
    assert "template" not in texts(vf.export.attention_svg(plain, layer=0, head=0, view=view))
    trace = vf.Trace.from_attention(**given, roles={"tgt": roles})
    svg = vf.export.attention_svg(trace, layer=0, head=0, view=view, theme="dark")
    user, poet, template = (CURVES["dark"][place] for place in (1, 4, 7))
    rows, columns = (re.findall(rf'{line} fill="(#\w+)"', svg) for line in (r'width="3" height="[\d.]+"', 'height="3"'))
    for side in (rows[:5], columns or rows[5:]):
        assert side == [template, user, user, poet, template]
    assert {"user", "poet", "template"} <= set(texts(svg))
