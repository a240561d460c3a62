"""One call for every format, which the ending selects."""

import io
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import escape

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

import visformer as vf
from tests.export.test_formats import THINGS
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
    read = {path.suffix: path.read_bytes() for path in tmp_path.iterdir()}
    assert read[".html"].startswith(b"<!doctype html>")
    assert read[".svg"] == read[".SVG"] == vf.export.attention_svg(trace).encode()
    assert read[".csv"] == vf.export.to_csv(trace).encode()
    assert read[".json"] == vf.export.to_json(trace).encode()
    assert Image.open(io.BytesIO(read[".png"])).format == "PNG"
    again = vf.Trace.load(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(again.stack("encoder").value, trace.stack("encoder").value)


def test_panels_as_pictures_and_as_numbers(tmp_path):
    panel = positions.encoding(5, 6)
    vf.export.save([panel, [panel, panel]], tmp_path / "x.png", scale=1)
    for ending in ("svg", "csv", "json", "safetensors"):
        vf.export.save(panel, tmp_path / f"x.{ending}")
    assert (tmp_path / "x.svg").read_text(encoding="utf-8") == vf.export.panels_svg(panel)
    assert (tmp_path / "x.csv").read_bytes() == vf.export.panels_csv(panel).encode()
    [written_panel] = json.loads((tmp_path / "x.json").read_text())["panels"]
    assert written_panel["rows"] == {"title": panel.rows.title, "labels": list(panel.rows.texts)}
    np.testing.assert_array_equal(np.array(written_panel["values"], dtype=panel.values.dtype), panel.values)
    np.testing.assert_array_equal(load_file(tmp_path / "x.safetensors")[f"0.{panel.name}"], panel.values)


def test_a_figure_as_a_picture_and_as_numbers(tmp_path):
    figure = figures.position_waves(4, 4, [0])
    for ending, write in (
        ("svg", vf.export.figure_svg),
        ("csv", vf.export.figure_csv),
        ("json", vf.export.figure_json),
    ):
        vf.export.save(figure, tmp_path / f"x.{ending}")
        assert (tmp_path / f"x.{ending}").read_bytes() == write(figure).encode()


def test_json_of_a_panel_has_null_for_nan():
    panel = positions.learned(3, 2, max_len=2)
    [written_panel] = json.loads(vf.export.panels_json(panel))["panels"]
    assert written_panel["values"][2] == [None, None]


@pytest.mark.parametrize(
    ("kind", "name"), [("trace", "x"), ("trace", "x.pdf"), ("panels", "x.html"), ("figure", "x.html")]
)
def test_an_unknown_ending_is_refused(tmp_path, kind, name):
    endings = ", ".join(one.ending for one in FORMATS if kind in one.offers)
    with pytest.raises(VisformerError, match=f"{name} does not end in any of {endings}:"):
        vf.export.save(THINGS[kind](), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_unknown_theme_is_refused(tmp_path):
    with pytest.raises(VisformerError, match="theme is 'blue'"):
        vf.export.save(made_up_trace(), tmp_path / "x.svg", theme="blue")


def test_words_are_in_the_requested_language(tmp_path):
    def saved(**how):
        vf.export.save(made_up_trace(), tmp_path / "x.svg", **how)
        return (tmp_path / "x.svg").read_text()

    assert saved(lang="zh") == saved(lang="zh", gettext=translations("zh").gettext) != saved() == saved(lang="en")
    assert ">频率</text>" in vf.export.panels_svg(*positions.outer_product(2, 2), gettext=translations("zh").gettext)
    with pytest.raises(VisformerError, match="lang is 'fr'; it can be en, zh"):
        saved(lang="fr")


def test_a_trace_without_attention_is_refused(tmp_path):
    empty = vf.Trace(tokens={}, special={}, words={}, tensors={})
    for ending in (".html", ".svg", ".csv"):
        with pytest.raises(TraceError, match="no attention"):
            vf.export.save(empty, tmp_path / f"x{ending}")


def test_files_name_the_model_of_their_numbers(tmp_path):
    trace = replace(made_up_trace(), meta={"model": "<b>&", "source": "I go.", "target": "我去。"})
    about, written = "<b>&: I go. → 我去。", {}
    assert trace.about == about
    vf.export.save(trace, tmp_path / "x.html")
    html = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert f'<meta name="description" content="{escape(about)}">' in html
    assert "<small>&lt;b&gt;&amp;</small></h1>" in html
    for view in ("heatmap", "arcs", "tokens"):
        for place in ({}, {"layer": 0, "head": 0}):
            written[view, len(place)] = vf.export.attention_svg(trace, view=view, **place)
    panel, figure = positions.encoding(5, 6), figures.position_waves(4, 4, [0])
    for name, what in (("panel", panel), ("figure", figure)):
        for ending in ("svg", "json"):
            vf.export.save(what, tmp_path / f"{name}.{ending}", about=about)
        written[name] = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))["about"] == about
    for svg in written.values():
        assert ET.fromstring(svg).find("{http://www.w3.org/2000/svg}desc").text == about
    assert "<desc>" not in vf.export.panels_svg(panel)
