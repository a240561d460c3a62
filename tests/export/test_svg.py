"""Pictures without a browser: labels, colours and numbers of a panel, in the SVG and in the pixels that resvg draws."""

import io
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from tests.support import tiny_translator
from tests.web.support import made_up_trace
from visformer.errors import TraceError, VisformerError
from visformer.export import attention_svg, panels_svg, to_png
from visformer.export.marks import DRAWN_CELLS, ramp, steps_of, width_of
from visformer.export.svg import spelled
from visformer.panel import Labels, Panel, numbered, traced
from visformer.pictures.theme import SEQUENTIAL

HOSTILE = ["</text><script>alert(1)</script>", '"&<', "我", "\u202eabc", "\ud83d", "\x07", "مرحبا"]


def texts(svg):
    """Return every line of text in an SVG, its parts joined."""
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def pixels(svg, scale=1.0):
    return np.asarray(Image.open(io.BytesIO(to_png(svg, scale=scale))).convert("RGB")).astype(int)


def matrix(values, **settings):
    rows, columns = (numbered(n) for n in values.shape)
    return Panel(name="x", title="x", values=values, rows=rows, columns=columns, **settings)


def test_a_head_has_its_labels_and_numbers():
    trace = made_up_trace()
    found = texts(attention_svg(trace, stack="decoder.cross_attn", layer=1, head=2))
    assert found[0] == "Cross · Layer 2 · Head 3"
    assert [line for line in found if "→" in line] == ["<zh> → b0", "b0 → b1", "b1 → b2", "b2 → </s>"]
    assert {"a01", "a12", "</s>5", "is read (key)", "reads (query)"} <= set(found)
    pattern = trace["decoder.1.cross_attn.pattern"].value[2]
    numbers = [spelled(float(weight), 2, "weight") for weight in pattern.ravel()]
    at = found.index(numbers[0])
    assert found[at : at + len(numbers)] == numbers


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_cells_have_the_colours_of_the_canvas(theme):
    """Each cell, as drawn by resvg, has the colour between the stops at the square root of its weight."""
    values = np.array([[0.0, 0.01, 0.3], [0.5, 0.9, 1.0]])
    picture = pixels(panels_svg(matrix(values, scale="weight", digits=0), theme=theme))
    there = {tuple(colour) for colour in picture.reshape(-1, 3).tolist()}
    stops = [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in SEQUENTIAL[theme]]
    for weight in values.ravel():
        place = round(255 * weight**0.5) / 255 * 5
        wanted = [np.interp(place, range(6), [stop[c] for stop in stops]) for c in range(3)]
        assert any(np.abs(np.array(colour) - wanted).max() <= 1 for colour in there), weight


def test_signed_values_meet_in_the_middle():
    assert steps_of(np.array([-2.0, 0.0, 2.0, np.nan, 9.0]), "signed", 2.0).tolist() == [0, 128, 255, 128, 255]
    assert ramp("signed", "light")[0] == (0x8A, 0x3B, 0x12)


def test_many_cells_become_an_image_of_the_same_pixels():
    values = np.random.default_rng(0).random((160, 160))
    assert values.size > DRAWN_CELLS
    svg = panels_svg(matrix(values, scale="weight"))
    assert "<image" in svg
    assert len(svg) < 80_000
    there = {tuple(colour) for colour in pixels(svg).reshape(-1, 3).tolist()}
    colours = ramp("weight", "light")
    assert {colours[step] for step in np.unique(steps_of(values, "weight", 1.0))} <= there


def test_text_is_escaped():
    trace = made_up_trace(tokens=HOSTILE)
    for view in ("arcs", "tokens", "heatmap"):
        svg = attention_svg(trace, layer=0, head=0, view=view)
        assert "<script" not in svg
        found = texts(svg)  # it parses: illegal characters were replaced
    assert any(line.startswith("</text><script>") for line in found)
    assert any(line.startswith("U+202Eabc") for line in found)
    assert "我" in {line.rstrip("0123456789") for line in found}
    svg.encode()


def test_chinese_is_drawn():
    """Different characters give different pixels: a missing glyph would be the same box for all."""
    drawn = []
    for token in ("我", "去", "一"):
        labels = Labels((token,))
        panel = Panel(name="x", title="", values=np.zeros((1, 1)), rows=labels, columns=Labels(("",)))
        drawn.append(to_png(panels_svg(panel), scale=2))
    assert len(set(drawn)) == 3


def test_all_heads_are_a_grid():
    svg = attention_svg(made_up_trace(n_layers=2, n_heads=3), stack="encoder.self_attn", theme="dark")
    assert texts(svg)[:6] == ["Encoder self-attention: the source reads itself.", "1", "2", "3", "1", "2"]
    assert svg.count("crispEdges") == 2 * 3 + 1


def test_panels_are_placed_side_by_side_or_stacked():
    one, two = matrix(np.ones((2, 3)), note="(2, 3)"), matrix(-np.ones((2, 3)), before="=")
    side, column = panels_svg(one, two), panels_svg([one, two])
    sizes = [[float(ET.fromstring(svg).get(name)) for name in ("width", "height")] for svg in (side, column)]
    assert sizes[0][0] > sizes[1][0]
    assert sizes[0][1] < sizes[1][1]
    assert "=" in texts(side)
    assert "(2, 3)" in texts(side)
    many = ET.fromstring(panels_svg(*[one] * 30))
    assert float(many.get("width")) < 1400, "they wrap"


@pytest.mark.parametrize(
    ("value", "digits", "words"),
    [(0.0, 2, "0"), (0.456, 2, ".46"), (-0.456, 2, "-.46"), (12.345, 2, "12.3"), (3.0, 2, "3"), (2e6, 2, "2.00e+06")],
)
def test_numbers_are_shortened_to_fit_a_cell(value, digits, words):
    assert spelled(value, digits) == words
    assert spelled(float("nan"), digits) == ""


def test_masked_cells_are_empty_in_a_head_and_0_in_a_mask():
    trace = tiny_translator().trace("I", "我去学校。", record=("*.pattern", "*.mask"))
    n, in_legend = len(trace.tokens["tgt"]), 1
    head = texts(attention_svg(trace, stack="decoder.self_attn", layer=0, head=0))
    mask = texts(panels_svg(traced(trace, "decoder.0.self_attn.mask", 0, title="mask", scale="weight")))
    assert head.count("0") == in_legend
    assert mask.count("0") == n * (n - 1) // 2 + in_legend


def test_a_weight_that_rounds_to_zero_is_left_out():
    assert [spelled(weight, 2, "weight") for weight in (0.0, 0.0049, 0.0051)] == ["0", "", ".01"]
    assert spelled(0.0049, 2) == ".00", "on a signed scale it is a number like others"


def test_errors_give_the_reason():
    trace = made_up_trace()
    with pytest.raises(TraceError, match=r"encoder.self_attn has no head 7: there are 3, counted from 0"):
        attention_svg(trace, layer=0, head=7)
    with pytest.raises(TraceError, match="no attention named nonsense; there is encoder"):
        attention_svg(trace, stack="nonsense")
    svg = panels_svg(traced(trace, "encoder.0.self_attn.pattern", 0, title="x", scale="weight"))
    for scale in (0, -1, 1000, float("nan")):
        with pytest.raises(VisformerError, match="cannot be made"):
            to_png(svg, scale=scale)


def test_a_picture_at_scale_3():
    svg = panels_svg(matrix(np.eye(3)))
    small, large = pixels(svg), pixels(svg, 3.0)
    assert large.shape[:2] == tuple(3 * side for side in small.shape[:2])
    assert width_of("我们", 10) == 20


def test_a_signed_scale_is_centred_on_its_middle():
    """The mean of all cells has the middle colour, and the legend gives that number."""
    values = np.array([[0.6, 0.7], [0.7, 0.8]])
    svg = panels_svg(matrix(values, middle=0.7, digits=0))
    there = {tuple(colour) for colour in pixels(svg).reshape(-1, 3).tolist()}
    colours = ramp("signed", "light")
    assert {colours[0], colours[128], colours[255]} <= there
    assert {"0.6", "0.7", "0.8"} <= set(texts(svg))


@pytest.mark.parametrize("n_columns", [6, 20, 60, 200])
def test_slanted_labels_do_not_touch(n_columns):
    """However many columns there are, the baselines of neighbours are at least a line apart."""
    labels = Labels(tuple("|token|" for _ in range(n_columns)))
    svg = panels_svg(Panel(name="q", title="q", values=np.zeros((2, n_columns)), rows=numbered(2), columns=labels))
    found = re.findall(r'font-size="(\d+)"[^>]*rotate\(-(\d+) ([\d.]+) ', svg)
    (size, turn), *_ = {(int(size), int(turn)) for size, turn, _ in found}
    apart = np.diff([float(x) for *_, x in found]).min() * math.sin(math.radians(turn))
    assert apart >= 1.15 * size
