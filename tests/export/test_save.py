"""vf.export.save: the ending selects the format of a Trace, of panels or of a figure."""

import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

import visformer as vf
from tests.export.test_formats import EXAMPLES
from tests.web.support import made_up_trace
from visformer import figures
from visformer.errors import TraceError, VisformerError
from visformer.export.formats import FORMATS
from visformer.i18n import translations
from visformer.pictures import positions


def test_the_ending_selects_the_format(tmp_path):
    trace = made_up_trace(tokens=["我", "=1"])
    for ending in (".html", ".svg", ".png", ".csv", ".json", ".safetensors", ".SVG"):
        vf.export.save(trace, tmp_path / f"x{ending}")
    files = {path.suffix: path.read_bytes() for path in tmp_path.iterdir()}
    assert files[".html"].startswith(b"<!doctype html>")
    assert files[".svg"] == files[".SVG"] == vf.export.attention_svg(trace).encode()
    assert files[".csv"] == vf.export.to_csv(trace).encode()
    assert files[".json"] == vf.export.to_json(trace).encode()
    assert Image.open(io.BytesIO(files[".png"])).format == "PNG"
    loaded = vf.Trace.load(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(loaded.stack("encoder.self_attn"), trace.stack("encoder.self_attn"))


def test_panels_are_saved_as_pictures_and_as_numbers(tmp_path):
    panel = positions.encoding(5, 6)
    vf.export.save([panel, [panel, panel]], tmp_path / "x.png", scale=1)
    for ending in ("svg", "csv", "json", "safetensors"):
        vf.export.save(panel, tmp_path / f"x.{ending}")
    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == vf.export.panels_svg(panel)
    assert (tmp_path / "x.csv").read_bytes() == vf.export.panels_csv(panel).encode()
    [saved] = json.loads((tmp_path / "x.json").read_text())["panels"]
    assert saved["rows"] == {"title": panel.rows.title, "labels": list(panel.rows.texts)}
    np.testing.assert_array_equal(np.array(saved["values"], dtype=panel.values.dtype), panel.values)
    np.testing.assert_array_equal(load_file(tmp_path / "x.safetensors")[f"0.{panel.name}"], panel.values)


def test_a_figure_is_saved_as_a_picture_and_as_numbers(tmp_path):
    figure = figures.position_waves(4, 4, [0])
    for ending, write in (
        ("svg", vf.export.figure_svg),
        ("csv", vf.export.figure_csv),
        ("json", vf.export.figure_json),
    ):
        vf.export.save(figure, tmp_path / f"x.{ending}")
        assert (tmp_path / f"x.{ending}").read_bytes() == write(figure).encode()


def test_json_of_a_panel_has_null_for_nan():
    [saved] = json.loads(vf.export.panels_json(positions.learned(3, 2, max_len=2)))["panels"]
    assert saved["values"][2] == [None, None]


def test_unknown_endings_and_themes_are_refused(tmp_path):
    for kind, name in (("trace", "x"), ("trace", "x.gif"), ("panels", "x.doc"), ("figure", "x.safetensors")):
        endings = ", ".join(one.ending for one in FORMATS if kind in one.offers)
        with pytest.raises(VisformerError, match=f"{name} does not end in any of {endings}:"):
            vf.export.save(EXAMPLES[kind](), tmp_path / name)
    with pytest.raises(VisformerError, match="theme is 'blue'"):
        vf.export.save(made_up_trace(), tmp_path / "x.svg", theme="blue")
    assert not list(tmp_path.iterdir())


def test_text_is_in_the_requested_language(tmp_path):
    def saved(**language):
        vf.export.save(made_up_trace(), tmp_path / "x.svg", **language)
        return (tmp_path / "x.svg").read_text()

    assert saved(lang="zh") == saved(lang="zh", gettext=translations("zh").gettext) != saved() == saved(lang="en")
    angles = positions.rotary(2, 2)
    assert ">每对维度旋转角度的余弦</text>" in vf.export.panels_svg(angles, gettext=translations("zh").gettext)
    with pytest.raises(VisformerError, match="lang is 'fr'; it can be en, zh"):
        saved(lang="fr")


def test_a_trace_without_attention_is_refused(tmp_path):
    empty = vf.Trace(tokens={}, special={}, words={}, tensors={})
    for ending in (".html", ".svg", ".csv"):
        with pytest.raises(TraceError, match="no attention"):
            vf.export.save(empty, tmp_path / f"x{ending}")


def test_files_name_model_and_sentence(tmp_path):
    trace = replace(made_up_trace(), meta={"model": "<b>&", "source": "I go.", "target": "我去。"})
    about, svgs = "<b>&: I go. → 我去。", []
    assert trace.about == about
    vf.export.save(trace, tmp_path / "x.html")
    html = (tmp_path / "x.html").read_text(encoding="utf-8")
    described = re.search('<meta name="description" content="(.*?)">', html)
    assert described and unescape(described[1]) == about
    assert "<small>&lt;b&gt;&amp;</small></h1>" in html
    for view in ("heatmap", "arcs", "tokens"):
        for place in ({}, {"layer": 0, "head": 0}):
            svgs.append(vf.export.attention_svg(trace, view=view, **place))
    for kind in ("panels", "figure"):
        for ending in ("svg", "json"):
            vf.export.save(EXAMPLES[kind](), tmp_path / f"x.{ending}", about=about)
        svgs.append((tmp_path / "x.svg").read_text(encoding="utf-8"))
        assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["about"] == about
    for svg in svgs:
        assert ET.fromstring(svg).find("{http://www.w3.org/2000/svg}desc").text == about
    assert "<desc>" not in vf.export.panels_svg(positions.encoding(5, 6))


def test_a_figure_of_panels_is_saved_as_its_panels_and_any_figure_as_a_page(tmp_path):
    figure = vf.figures.position_rotary()
    for ending in ("svg", "csv", "json", "png", "html"):
        vf.export.save(figure, tmp_path / f"panels.{ending}")
    assert (tmp_path / "panels.svg").read_text() == vf.export.panels_svg(*figure.panels)
    vf.export.save(vf.figures.waves(), tmp_path / "curves.html")
    for name in ("panels", "curves"):
        page = (tmp_path / f"{name}.html").read_text()
        assert "Plotly.newPlot" in page and "<script src=" not in page, "it loads nothing"
