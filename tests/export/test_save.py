"""One call, six formats: the ending says which."""

import io

import numpy as np
import pytest
from PIL import Image

import visformer as vf
from tests.canvas.support import made_up_trace
from visformer.errors import TraceError, VisformerError
from visformer.pictures import positions


def test_the_ending_says_what_is_written(tmp_path):
    trace = made_up_trace(tokens=["我", "=1"])
    for ending in (".html", ".svg", ".png", ".csv", ".json", ".safetensors", ".SVG"):
        vf.export.save(trace, tmp_path / f"x{ending}")
    read = {path.suffix: path.read_bytes() for path in tmp_path.iterdir()}
    assert read[".html"].startswith(b"<!doctype html>")
    assert read[".svg"] == read[".SVG"] == vf.export.attention_svg(trace).encode()
    assert read[".csv"] == vf.export.to_csv(trace).encode()
    assert read[".json"] == vf.export.to_json(trace).encode()
    assert Image.open(io.BytesIO(read[".png"])).format == "PNG"
    again = vf.Trace.load(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(again.stack("encoder").value, trace.stack("encoder").value)


def test_panels_are_pictures_only(tmp_path):
    panel = positions.encoding(5, 6)
    vf.export.save(panel, tmp_path / "x.svg")
    vf.export.save([panel, [panel, panel]], tmp_path / "x.png", scale=1)
    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == vf.export.panels_svg(panel)
    with pytest.raises(VisformerError, match=r"x.csv does not end in any of .svg, .png: the ending says"):
        vf.export.save(panel, tmp_path / "x.csv")


@pytest.mark.parametrize("name", ["x", "x.gif", "x.pdf"])
def test_another_ending_is_refused(tmp_path, name):
    with pytest.raises(VisformerError, match=f"{name} does not end in any of .html, .svg, .png, .csv"):
        vf.export.save(made_up_trace(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_theme_that_there_is_not(tmp_path):
    with pytest.raises(VisformerError, match="theme is 'blue'"):
        vf.export.save(made_up_trace(), tmp_path / "x.svg", theme="blue")


def test_a_trace_without_attention_is_no_picture(tmp_path):
    empty = vf.Trace(tokens={}, special={}, words={}, tensors={})
    for ending in (".html", ".svg", ".csv"):
        with pytest.raises(TraceError, match="no attention"):
            vf.export.save(empty, tmp_path / f"x{ending}")
