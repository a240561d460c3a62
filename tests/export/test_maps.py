"""Maps as files: their numbers, colours from 0 or on both sides of it, and a legend with the ends of the scale."""

import csv
import io

import numpy as np
import pytest

import visformer as vf
from tests.export.test_svg import colours_of, texts
from visformer.errors import TraceError
from visformer.pictures.style import DIVERGING, SEQUENTIAL
from visformer.trace import TracedTensor

TOKENS = ("a", "b", "c")
SIGNED = np.array([[[[0.0, -0.5, 0.25], [1.5, -2.0, 0.0], [0.125, 0.0, 1.0]]], [[[0.0, 0.0, 0.0]] * 3]])
COUNTS = np.array([[[[0, 1, 2], [40, 3, 0], [20, 0, 5]]], [[[7, 7, 7]] * 3]])


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", ["heatmap", "tokens"])
def test_the_ends_of_the_scale_have_the_ends_of_the_ramp(theme, view):
    """In the signed map, 0 has the colour in the middle."""
    look = {"theme": theme, "layer": 0, "head": 0, "view": view, "query": 1}
    signed, counts = (
        colours_of(vf.export.attention_svg(vf.Trace.from_maps(TOKENS, maps), **look)) for maps in (SIGNED, COUNTS)
    )
    assert {rgb(DIVERGING[theme][i]) for i in (0, -1)} <= signed
    assert {rgb(SEQUENTIAL[theme][i]) for i in (0, -1)} <= counts
    middle = rgb(DIVERGING[theme][3])
    assert any(np.abs(np.subtract(colour, middle)).max() <= 1 for colour in signed)


@pytest.mark.parametrize("where", [{"layer": 0, "head": 0}, {"layer": 1, "head": 0}, {}])
@pytest.mark.parametrize(("maps", "ends"), [(SIGNED, {"−2", "0", "2"}), (COUNTS, {"0", "20", "40"})])
def test_the_legend_has_the_ends_which_all_heads_share(where, maps, ends):
    lines = texts(vf.export.attention_svg(vf.Trace.from_maps(TOKENS, maps, quantity="effect"), **where))
    assert ends <= set(lines[-3:])
    assert lines[0] == (
        "Encoder · Layer {} · Head 1 · effect".format(where["layer"] + 1) if where else "Encoder · effect"
    )
    assert not any("read" in line for line in lines), "of maps, it is not said that tokens read each other"
    assert where == {} or {"query", "key"} <= set(lines)


def test_cells_hold_the_numbers_with_the_decimals_that_they_need():
    def numbers(maps):
        lines = texts(vf.export.attention_svg(vf.Trace.from_maps(TOKENS, maps), layer=0, head=0))
        return lines[1:10]

    assert numbers(COUNTS) == ["0", "1", "2", "40", "3", "0", "20", "0", "5"]
    assert numbers(SIGNED) == ["0", "-.50", ".25", "1.50", "-2.00", "0", ".12", "0", "1.00"]
    assert numbers(SIGNED / 1000) == ["0", "-.0005", ".0003", ".0015", "-.0020", "0", ".0001", "0", ".0010"]
    assert numbers(SIGNED * 1e-9)[1:5] == ["-5.0e-10", "2.5e-10", "1.5e-09", "-2.0e-09"]


def test_arcs_are_as_strong_as_their_share_of_the_largest_and_dashed_below_0():
    svg = vf.export.attention_svg(vf.Trace.from_maps(TOKENS, SIGNED), layer=0, head=0, view="arcs")
    lines = [line for line in svg.split("<path ") if "stroke-opacity" in line]
    shares = SIGNED[0, 0][SIGNED[0, 0] != 0] / 2
    assert [f'stroke-opacity="{abs(share) ** 0.7:.3f}"' in line for line, share in zip(lines, shares, strict=True)]
    assert ["dasharray" in line for line in lines] == (shares < 0).tolist()
    assert {"−2", "0", "2"} <= set(texts(svg))


@pytest.mark.parametrize("maps", [SIGNED, COUNTS])
def test_csv_and_tensors_hold_every_number_exactly(maps):
    trace = vf.Trace.from_maps(TOKENS, maps)
    rows = list(csv.DictReader(io.StringIO(vf.export.to_csv(trace).removeprefix("\ufeff"))))
    assert rows[0]["tensor"] == "encoder.0.self_attn.map"
    np.testing.assert_array_equal([float(row["value"]) for row in rows], maps.ravel())


def test_a_map_of_a_file_that_is_not_finite_is_not_drawn():
    trace = vf.Trace.from_maps(TOKENS, SIGNED)
    name = "encoder.1.self_attn.map"
    broken = np.full((1, 3, 3), np.nan, dtype=np.float32)
    tensor = TracedTensor(name, broken, trace[name].axes)
    spoilt = vf.Trace(trace.tokens, trace.special, trace.words, {**trace.tensors, name: tensor})
    for draw in (vf.export.attention_svg, vf.export.page):
        with pytest.raises(TraceError, match=r"encoder\.1\.self_attn\.map, head 0, query 0, key 0 \(from 0\) is nan"):
            draw(spoilt)
