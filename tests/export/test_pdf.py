"""PDF files, opened by pypdf: their page, their text in both languages, and what is drawn as curves."""

import io
import sys

import numpy as np
import pytest
from pypdf import PdfReader

import visformer as vf
from tests.web.support import made_up_trace
from visformer.errors import BudgetError, VisformerError
from visformer.export import heads_svg, to_pdf
from visformer.i18n import translations

PLACE = {"stack": "decoder.cross_attn", "layer": 1, "head": 0}


def page_of(path):
    (page,) = PdfReader(path).pages
    return page


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_head_is_a_page_of_its_size_with_its_words_as_text(tmp_path, lang):
    trace = vf.load("en-zh").trace("I went to Northeastern University.")
    for ending in ("svg", "pdf"):
        vf.export.save(trace, tmp_path / f"head.{ending}", **PLACE, lang=lang)
    page, svg = page_of(tmp_path / "head.pdf"), (tmp_path / "head.svg").read_text(encoding="utf-8")
    width, height = (int(svg.split(f'{side}="')[1].split('"')[0]) for side in ("width", "height"))
    assert [float(size) for size in page.mediabox[2:]] == pytest.approx([width * 0.75, height * 0.75], abs=0.01)
    text = page.extract_text()
    gettext = translations(lang).gettext
    for word in (
        "Northeastern",
        "东北",
        "大学",
        gettext("query"),
        gettext("Layer {layer} · Head {head}").format(layer=2, head=1),
    ):
        assert word in text, word
    assert not page.images, "cells are curves"
    fonts = [font.get_object() for font in page["/Resources"]["/Font"].get_object().values()]
    assert fonts and all("+" in font["/BaseFont"] for font in fonts), "embedded, as far as they are used"
    reader = PdfReader(tmp_path / "head.pdf")
    assert reader.metadata.title == svg.split("<title>")[1].split("</title>")[0]


def test_a_pair_is_one_head_of_both_side_by_side(tmp_path):
    model = vf.load("en-zh")
    traces = [model.trace(text) for text in ("I saw a cat.", "I saw a car.")]
    vf.export.save(vf.compare(*traces, titles=("cat", "car")), tmp_path / "pair.pdf", **PLACE)
    both, widths = page_of(tmp_path / "pair.pdf"), []
    for trace, title in zip(traces, ("cat", "car"), strict=True):
        vf.export.save(trace, tmp_path / "alone.pdf", **PLACE)
        alone = page_of(tmp_path / "alone.pdf")
        widths.append(float(alone.mediabox.width))
        own = alone.extract_text().split()
        assert own and not {*own} - {*both.extract_text().split()}, title
        assert f"{title} · Cross" in both.extract_text()
    assert float(both.mediabox.width) > 1.5 * min(widths)


def test_the_same_picture_is_the_same_file(tmp_path):
    figure = vf.figures.position_waves(8, 8, [0, 1])
    files = []
    for name in ("a.pdf", "b.pdf"):
        vf.export.save(figure, tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]
    assert "d_model 8" in PdfReader(io.BytesIO(files[0])).pages[0].extract_text()


def test_all_heads_of_a_large_model_are_a_page_and_too_many_weights_are_refused():
    def heads(n_tokens):
        return dict.fromkeys(range(32), np.full((32, n_tokens, n_tokens), 1 / n_tokens, dtype=np.float32))

    page = page_of(io.BytesIO(to_pdf(heads_svg(heads(4), title="1,024"))))
    assert float(page.mediabox.width) > 2000 and "1,024" in page.extract_text()
    assert heads_svg(heads(32)).count("<image") == 1024, "a million cells are no curves"
    said = "all 1,024 heads would hold 16,777,216 weights, over the limit of 16,000,000: choose a layer and a head"
    with pytest.raises(BudgetError, match=said):
        heads_svg(heads(128))


def test_what_cannot_be_a_pdf_is_told_with_the_remedy(tmp_path, monkeypatch):
    wide = '<svg xmlns="http://www.w3.org/2000/svg" width="20000" height="10"/>'
    with pytest.raises(VisformerError, match="20000 x 10 pixels cannot be a PDF: a side may have up to 19200"):
        to_pdf(wide)
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(VisformerError, match="pip install typst"):
        vf.export.save(made_up_trace(), tmp_path / "x.pdf")
    assert not (tmp_path / "x.pdf").exists()
