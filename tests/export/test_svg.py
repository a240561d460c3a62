"""Heads and panels as SVG: labels, numbers and colours, also in the pixels drawn by resvg."""

import base64
import io
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from benchmarks.messages import read_message
from tests.support import tiny_translator
from tests.web.support import made_up_trace, with_gaps
from visformer.errors import TraceError, VisformerError
from visformer.export import attention_svg, panels_svg, to_csv, to_png
from visformer.export.marks import DRAWN_CELLS, ramp, steps_of, width_of
from visformer.export.svg import spelled
from visformer.panel import Labels, Panel, numbered, traced
from visformer.pictures.charts.panels import attention_heads
from visformer.pictures.style import SEQUENTIAL
from visformer.web.panels import pack_panels

HOSTILE = ["</text><script>alert(1)</script>", '"&<', "我", "\u202eabc", "\ud83d", "\x07", "مرحبا"]


def texts(svg):
    """Return every line of text in an SVG, its parts joined."""
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def pixels(svg, scale=1.0):
    """Return red, green and blue of each pixel, (row, column, 3)."""
    return np.asarray(Image.open(io.BytesIO(to_png(svg, scale=scale))).convert("RGB")).astype(int)


def colours_of(svg):
    packed = np.unique(pixels(svg) @ [1 << 16, 1 << 8, 1])  # tuples of half a million pixels take seconds
    return {(int(colour) >> 16, int(colour) >> 8 & 255, int(colour) & 255) for colour in packed}


def matrix(values, **settings):
    rows, columns = (numbered(n) for n in values.shape)
    return Panel(name="x", title="x", values=values, rows=rows, columns=columns, **settings)


def test_a_head_has_its_labels_and_numbers():
    trace = made_up_trace()
    lines = texts(attention_svg(trace, stack="decoder.cross_attn", layer=1, head=2))
    assert lines[0] == "Cross · Layer 2 · Head 3"
    assert not [line for line in lines if "→" in line] and {"<zh>", "b0", "b1", "b2"} <= {*lines}
    assert {"a01", "a12", "</s>5", "is read (key)", "reads (query)"} <= set(lines)
    pattern = trace["decoder.1.cross_attn.pattern"].value[2]
    numbers = [spelled(float(weight), 2, "weight") for weight in pattern.ravel()]
    first = lines.index(numbers[0])
    assert lines[first : first + len(numbers)] == numbers


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_cells_have_the_same_colours_as_in_the_browser(theme):
    """Between the stops of the ramp, at the square root of their weight."""
    values = np.array([[0.0, 0.01, 0.3], [0.5, 0.9, 1.0]])
    colours = colours_of(panels_svg(matrix(values, scale="weight", digits=0), theme=theme))
    stops = [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in SEQUENTIAL[theme]]
    for weight in values.ravel():
        position = round(255 * weight**0.5) / 255 * 5
        expected = [np.interp(position, range(6), [stop[c] for stop in stops]) for c in range(3)]
        assert any(np.abs(np.array(colour) - expected).max() <= 1 for colour in colours), weight


def test_the_signed_scale_has_0_in_the_middle():
    assert steps_of(np.array([-2.0, 0.0, 2.0, np.nan, 9.0]), "signed", 2.0).tolist() == [0, 128, 255, 128, 255]
    assert ramp("signed", "light")[0] == (0x8A, 0x3B, 0x12)


def test_many_cells_are_an_image_with_the_same_colours():
    values = np.random.default_rng(0).random((160, 160))
    assert values.size > DRAWN_CELLS
    svg = panels_svg(matrix(values, scale="weight"))
    assert "<image" in svg
    assert len(svg) < 80_000
    colours = ramp("weight", "light")
    assert {colours[step] for step in np.unique(steps_of(values, "weight", 1.0))} <= colours_of(svg)


def test_text_is_escaped():
    trace = made_up_trace(tokens=HOSTILE)
    for view in ("arcs", "tokens", "heatmap"):
        svg = attention_svg(trace, layer=0, head=0, view=view)
        assert "<script" not in svg
        lines = texts(svg)  # it can be parsed: invalid characters are replaced
    assert any(line.startswith("</text><script>") for line in lines)
    assert any(line.startswith("U+202Eabc") for line in lines)
    assert "我" in {line.rstrip("0123456789") for line in lines}
    svg.encode()


def test_chinese_characters_have_glyphs():
    """They differ from each other: a missing glyph would be the same box for all."""
    pngs = set()
    for character in ("我", "去", "一"):
        labels = {"rows": Labels((character,)), "columns": Labels(("",))}
        pngs.add(to_png(panels_svg(Panel(name="x", title="", values=np.zeros((1, 1)), **labels)), scale=2))
    assert len(pngs) == 3


def test_all_heads_are_a_grid():
    svg = attention_svg(made_up_trace(n_layers=2, n_heads=3), stack="encoder.self_attn", theme="dark")
    assert texts(svg)[:6] == ["Encoder self-attention: the source reads itself.", "1", "2", "3", "1", "2"]
    assert svg.count("crispEdges") == 2 * 3 + 1


def size_of(svg):
    return [float(ET.fromstring(svg).get(name)) for name in ("width", "height")]


def test_panels_are_placed_side_by_side_stacked_or_in_several_rows():
    one, two = matrix(np.ones((2, 3)), note="(2, 3)"), matrix(-np.ones((2, 3)), before="=")
    beside, stacked = panels_svg(one, two), panels_svg([one, two])
    assert size_of(beside)[0] > size_of(stacked)[0]
    assert size_of(beside)[1] < size_of(stacked)[1]
    assert {"=", "(2, 3)"} <= set(texts(beside))
    assert size_of(panels_svg(*[one] * 30))[0] < 1400


def test_numbers_of_a_panel_have_one_number_of_decimals():
    for values, scale, words in (
        ([1.0, 0.5, -0.456, 0.0], "signed", ["1.00", ".50", "-.46", "0"]),
        ([1.0, 0.996, 0.0051, 0.0049, 0.0], "weight", ["1.00", "1.00", ".01", "", "0"]),
        ([12.345, 0.5], "signed", ["12.35", ".50"]),
        ([123.45, 0.5], "signed", ["123.5", ".5"]),
        ([3.0, 0.0, -12.0], "signed", ["3", "0", "-12"]),
        ([0.5, -0.0049, 0.0012, 9e-7, 0.0], "signed", [".50", "", "", "", "0"]),
        ([0.5, -0.0049, 0.0012, 9e-7, np.nan], "signed", [".50", "≈0", "≈0", "0", ""]),
        ([2e6, 0.456, np.nan], "signed", ["2.00e+06", ".46", ""]),
    ):
        panel = matrix(np.array([values]), scale=scale)
        has_gaps = any(map(math.isnan, values))
        assert [spelled(value, panel.decimals, scale, has_gaps=has_gaps) for value in values] == words
        header, _ = read_message(pack_panels([panel]))
        assert header["panels"][0]["decimals"] == panel.decimals, "as the browser writes them"


def test_masked_cells_are_empty_in_a_head_and_0_in_a_mask():
    trace = tiny_translator().trace("I", "我去学校。", record=("*.pattern", "*.mask"))
    n, in_legend = len(trace.tokens["tgt"]), 1
    head = texts(attention_svg(trace, stack="decoder.self_attn", layer=0, head=0))
    mask = texts(panels_svg(traced(trace, "decoder.0.self_attn.mask", 0, title="mask", scale="weight")))
    assert head.count("0") == in_legend
    assert mask.count("0") == n * (n - 1) // 2 + in_legend


def test_files_and_figures_have_the_numbers_of_a_hybrid_model_s_layers():
    trace = with_gaps(made_up_trace(n_layers=3, n_heads=2))  # the layers 1, 3 and 5
    svg = attention_svg(trace, stack="encoder.self_attn")
    assert re.findall(r">(\d+)</text>", svg)[:5] == ["1", "2", "2", "4", "6"], "heads, then layers"
    figure = attention_heads(trace, "encoder.self_attn")
    assert figure.layout.yaxis.ticktext == ("Layer 2", "Layer 4", "Layer 6")
    one = attention_svg(trace, stack="encoder.self_attn", layer=5, head=1)
    assert "Layer 6 · Head 2" in one
    assert "Layer 2 · Head 2" in attention_svg(trace, stack="encoder.self_attn", head=1, view="arcs")
    assert {line.split(",")[0] for line in to_csv(trace).splitlines()[1:]} == set(trace.names())
    with pytest.raises(TraceError, match=r"encoder.self_attn has no layer 4: there are 1, 3, 5, counted from 0"):
        attention_svg(trace, stack="encoder.self_attn", layer=4, head=0)


def test_heads_stacks_and_scales_that_do_not_exist_are_refused():
    trace = made_up_trace()
    with pytest.raises(TraceError, match=r"encoder.self_attn has no head 7: there are 0–2, counted from 0"):
        attention_svg(trace, layer=0, head=7)
    with pytest.raises(TraceError, match="stack='nonsense' is unknown: choose one of encoder"):
        attention_svg(trace, stack="nonsense")
    svg = panels_svg(traced(trace, "encoder.0.self_attn.pattern", 0, title="x", scale="weight"))
    for scale in (0, -1, 1000, float("nan")):
        with pytest.raises(VisformerError, match="cannot be made"):
            to_png(svg, scale=scale)


def test_a_png_at_scale_3_is_three_times_as_large():
    svg = panels_svg(matrix(np.eye(3)))
    assert pixels(svg, 3.0).shape[:2] == tuple(3 * side for side in pixels(svg).shape[:2])


def test_chinese_characters_are_as_wide_as_the_font_size():
    assert width_of("我们", 10) == 20


def test_a_signed_scale_may_have_another_number_in_the_middle():
    svg = panels_svg(matrix(np.array([[0.6, 0.7], [0.7, 0.8]]), middle=0.7, digits=0))
    colours = ramp("signed", "light")
    assert {colours[0], colours[128], colours[255]} <= colours_of(svg)
    assert {"0.6", "0.7", "0.8"} <= set(texts(svg)), "in the legend"


@pytest.mark.parametrize("n_columns", [6, 20, 60, 200])
def test_slanted_labels_do_not_touch(n_columns):
    """However many columns there are, the baselines of neighbours are at least a line apart."""
    labels = Labels(("|token|",) * n_columns)
    svg = panels_svg(Panel(name="q", title="q", values=np.zeros((2, n_columns)), rows=numbered(2), columns=labels))
    rotated = re.findall(r'font-size="(\d+)"[^>]*rotate\(-(\d+) ([\d.]+) ', svg)
    (size, angle), *_ = {(int(size), int(angle)) for size, angle, _ in rotated}
    distance = np.diff([float(x) for *_, x in rotated]).min() * math.sin(math.radians(angle))
    assert distance >= 1.15 * size


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_panel_over_a_picture_shows_the_picture_below_its_veil(theme):
    rng = np.random.default_rng(0)
    picture = rng.integers(256, size=(9, 16, 3), dtype=np.uint8)  # three by four pixels in each cell
    values = np.array([[0, 0.1, 0.2, 0.3], [0.4, 0.5, 0.6, 0.05], [0.01, 0.25, 0.5, 0]])
    svg = panels_svg(matrix(values, scale="unsigned", limit=0.5, picture=picture), theme=theme)
    clear = np.sqrt(np.minimum(values / 0.5, 1)).repeat(3, axis=0).repeat(4, axis=1)[..., None]
    wanted = picture + 0.88 * (1 - clear) * ([18, 24, 38] - picture.astype(float))
    (drawn,) = ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}image")
    file = base64.b64decode(drawn.get("href").partition(",")[2])
    seen = np.asarray(Image.open(io.BytesIO(file)).convert("RGB")).astype(int)
    np.testing.assert_allclose(seen, wanted, atol=1)
    assert float(drawn.get("width")) / float(drawn.get("height")) == pytest.approx(4 / 3), "cells are square"
    assert {tuple(colour) for colour in seen.reshape(-1, 3).tolist()} <= colours_of(svg), "also in the PNG file"
    assert not [line for line in texts(svg) if "." in line], "neither numbers nor a scale over the picture"
