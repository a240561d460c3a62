"""Two linked explorers: the link in both directions and the difference, in the app and in a file."""

import numpy as np
import pytest
from playwright.sync_api import expect

import visformer as vf
from tests.browser.support import address_of
from tests.kinds import model_of
from tests.support import tiny_translator
from visformer.analysis import match_heads
from visformer.pictures.compare import SIDES, mapped
from visformer.pictures.registry.picture import picture

A, B = ".vf-half-a .vf-root", ".vf-half-b .vf-root"


def point_at(page, part, row, column, *, click=False):
    """Point at a cell of the large matrix in a part of the page, or click it."""
    canvas = page.locator(f"{part} canvas.vf-large")
    canvas.scroll_into_view_if_needed()
    layout = canvas.evaluate("e => Object.fromEntries(Object.entries(e.dataset).map(([k, v]) => [k, Number(v)]))")
    x = layout["left"] + (column + 0.5) * layout["cellWidth"]
    y = layout["top"] + (row + 0.5) * layout["cellHeight"]
    (canvas.click if click else canvas.hover)(position={"x": x, "y": y})


def expect_cell(page, part, query, key):
    for name, value in (("query", query), ("key", key)):
        expect(page.locator(part)).to_have_attribute(f"data-{name}", str(value))


def test_what_is_pointed_at_or_locked_in_one_is_in_the_other_and_in_the_address(open_app):
    page = open_app(query="compare?lang=en&stack=cross&layer=3&head=4")
    page.locator(".vf-pair[data-painted]").wait_for()
    point_at(page, A, 2, 4)
    expect_cell(page, B, 2, 4)
    point_at(page, B, 1, 3, click=True)
    expect_cell(page, A, 1, 3)
    expect(page.locator(A)).to_have_attribute("data-locked", "true")
    page.locator(f"{B} canvas.vf-thumbs").press("ArrowUp")
    expect(page.locator(A)).to_have_attribute("data-layer", "1")
    page.wait_for_url("**layer=2&head=4&query=2&key=4**")
    assert address_of(page)["stack"] == "cross"


def test_a_saved_pair_of_two_models_links_matched_heads_and_their_map(visit, tmp_path):
    name = picture("compare-models")
    setting = name.setting(vf.figures.source_of(model_of("mini-gpt"), "I went to school."), {})
    sides = mapped(setting, SIDES[name.view](setting))
    (tmp_path / "pair.html").write_text(vf.export.pair_page(sides), encoding="utf-8")
    page = visit((tmp_path / "pair.html").as_uri())
    page.locator(".vf-pair[data-painted]").wait_for()
    table = match_heads(sides.first, sides.second, "decoder.self_attn")
    point_at(page, ".vf-map-of-heads", 2, 3, click=True)
    match = table.iloc[2 * 6 + 3]
    for part, layer, head in ((A, 2, 3), (B, match["other_layer"], match["other_head"])):
        expect(page.locator(part)).to_have_attribute("data-layer", str(layer))
        expect(page.locator(part)).to_have_attribute("data-head", str(head))
    point_at(page, ".vf-difference", 4, 2)
    expect_cell(page, A, 4, 2)
    a, b = (float(page.locator(part).get_attribute("data-weight")) for part in (A, B))
    shown = float(page.locator(".vf-pair").get_attribute("data-difference"))
    assert shown == pytest.approx(b - a, abs=1e-3)


def of_texts():
    model = tiny_translator()
    return vf.compare(*(model.trace(text, "我") for text in ("I went to school", "I went to bed")))


def of_models():
    models = tiny_translator(), tiny_translator(norm="pre")
    return vf.compare(*models, "I went", target="我", titles=("post", "pre"))


def of_arrays():
    rows = np.tril(np.ones((2, 3, 4, 4))) / np.arange(1, 5)[:, None]
    return vf.compare(*(vf.Trace.from_attention(words.split(), [*rows]) for words in ("a b c d", "a b e d")))


@pytest.mark.parametrize("compared", [of_texts, of_models, of_arrays])
def test_what_a_notebook_compares_has_a_map_of_all_heads(compared, visit, tmp_path):
    vf.export.save(compared(), tmp_path / "pair.html")
    page = visit((tmp_path / "pair.html").as_uri())
    page.locator(".vf-pair[data-painted]").wait_for()
    point_at(page, ".vf-map-of-heads", 1, 1, click=True)
    expect(page.locator(A)).to_have_attribute("data-layer", "1")
