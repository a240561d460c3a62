"""The whole model in Chromium: the way to a cell, blocks that are empty, and addresses."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.map_page import DRAWN, open_map
from tests.browser.map_page import mount as mount_at
from tests.browser.support import address_of, wait_until_done
from tests.kinds import trace_of
from visformer.app.session.url_state import start
from visformer.pictures.head import Place
from visformer.trace.stacks import STACKS
from visformer.web.chunks import Focus
from visformer.web.places import Zoom, cell


def mount(bare, trace, zoom="", *, hosted=True, **options):
    """Mount the whole model at a place; the lines are those of its first head."""
    stack = next(stack for stack in STACKS if stack.in_trace(trace))
    focus = Focus(stack.name, next(iter(stack.layers(trace))), 0)
    return mount_at(bare, trace, zoom, hosted=hosted, focus=focus, **options)


def test_a_model_without_queries_shows_the_row_and_says_why(bare):
    trace = trace_of("lfm2")
    found = cell(trace, Place("decoder.2.self_attn", 1, 3), 2)
    page = mount(bare, trace, "decoder.3.self_attn.2.4.3", cell=found, lacks="Because of this.")
    drawn = page.evaluate(DRAWN)
    assert "Because of this." in drawn
    assert not [text for text in drawn if "q · k" in text]
    expect(page.get_by_role("status")).to_contain_text("Because of this.")


# The way to a cell ----------------------------------------------------------------------------------------------------


def rested(page, n):
    page.wait_for_function("n => zooms.length >= n", arg=n)
    return page.evaluate("zooms")


def rows_of(trace):
    """Return the names of a decoder's rows: each token with the one that it predicts."""
    return [" → ".join(pair) for pair in zip(trace.tokens["tgt"], trace.tokens["next"], strict=True)]


def test_arrow_keys_choose_a_cell_of_a_head_and_then_the_next(bare):
    trace = trace_of("en-zh")
    page = mount(bare, trace, "decoder.2.cross_attn.2")
    page.locator("canvas.vf-model").focus()
    page.keyboard.press("ArrowDown")
    first = page.get_by_role("status").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("status").inner_text() != first
    assert page.evaluate("zooms") == []
    cursor = page.evaluate("map.cursor")
    page.keyboard.press("Enter")
    opened = str(Zoom("decoder", 1, "cross_attn", 1, cursor["query"], cursor["key"]))
    assert rested(page, 1) == [opened]
    row, key = rows_of(trace)[cursor["query"]], trace.tokens["src"][cursor["key"]]
    expect(page.locator(".vf-path button").last).to_have_text(f"“{row}” reads “{key}”")
    page.keyboard.press("ArrowLeft")
    assert rested(page, 2)[-1] == str(Zoom("decoder", 1, "cross_attn", 1, cursor["query"], cursor["key"] - 1))
    page.keyboard.press("Escape")
    assert rested(page, 3)[-1] == "decoder.2.cross_attn.2"
    page.keyboard.press("+")
    assert rested(page, 4)[-1] == rested(page, 2)[1], "back at the cell that one came from"
    assert page.evaluate("followed") == []


def test_a_click_on_a_cell_of_the_head_opens_it_and_one_on_another_head_follows_that(bare):
    page = mount(bare, trace_of("bert"), "encoder.2.self_attn.2")
    box = page.locator("canvas.vf-model").bounding_box()
    rect = page.evaluate("""() => {
      const head = map.layout.columns[0].layers[1].sublayers[0].heads[1].rect
      const { x, y, scale } = map.view
      return { x: (head.x - x) * scale, y: (head.y - y) * scale, w: head.w * scale, h: head.h * scale }
    }""")
    n = len(trace_of("bert").tokens["src"])
    middle = box["y"] + rect["y"] + (4.5 / n) * rect["h"]
    page.mouse.click(box["x"] + rect["x"] + rect["w"] + 30, middle)
    assert page.evaluate("followed") == [["encoder.self_attn", 1, 2]]
    page.mouse.click(box["x"] + rect["x"] + (2.5 / n) * rect["w"], middle)
    assert rested(page, 1) == ["encoder.2.self_attn.2.5.3"]


def test_buttons_of_a_head_are_the_cells_that_its_rows_read_most(bare):
    trace, path = trace_of("mini-gpt"), "decoder.2.self_attn"
    page = mount(bare, trace, "decoder.3.self_attn.2")
    weights = trace[f"{path}.pattern"].value[1]
    tokens = trace.tokens["tgt"]
    rows = rows_of(trace)
    names = [f"“{rows[i]}” reads “{tokens[int(row.argmax())]}”" for i, row in enumerate(weights)]
    buttons = page.locator(".vf-place-button")
    labels = [one.get_attribute("aria-label") for one in buttons.all()]
    assert [label.replace("␣", "") for label in labels] == [name.replace("␣", "") for name in names]
    buttons.nth(3).press("Enter")
    assert rested(page, 1) == [f"decoder.3.self_attn.2.4.{int(weights[3].argmax()) + 1}"]


def test_without_a_server_a_head_is_the_end_of_the_zoom(bare):
    bare.page.emulate_media(reduced_motion="reduce")  # it is there at once
    page = mount(bare, trace_of("bert"), hosted=False)
    page.evaluate("map.zoomTo({ stack: 'encoder', layer: 1, kind: 'self_attn', head: 1 })")
    page.wait_for_function("map.view.scale > 3")
    expect(page.locator(".vf-place-button")).to_have_count(0)
    page.locator("canvas.vf-model").focus()
    page.keyboard.press("+")
    expect(page.locator(".vf-path button").last).to_have_text("Head 2")
    bare.page.emulate_media(reduced_motion="no-preference")


# Blocks that are empty ------------------------------------------------------------------------------------------------


def test_a_block_that_cannot_be_shown_says_why(bare):
    trace = trace_of("lfm2")
    page = mount(bare, trace)
    why = str(trace.lacks("decoder.0.self_attn.pattern"))
    assert why
    first = page.get_by_role("button", name=re.compile(r"^Decoder · Layer 1\."))
    assert why in first.get_attribute("aria-label")
    first.focus()
    expect(page.get_by_role("status")).to_contain_text(f"It is not shown here: {why}.")
    page.locator("canvas.vf-model").focus()
    expect(page.get_by_role("status")).not_to_contain_text(why)
    box = page.locator("canvas.vf-model").bounding_box()
    x, y = page.evaluate("""() => {
      const { x, y, w, h } = map.layout.columns[0].layers[1].sublayers[0].rect
      return [x + w / 2, y + h / 2]
    }""")
    page.mouse.move(box["x"] + x, box["y"] + y)
    expect(page.get_by_role("status")).to_have_text(re.compile(f"Decoder · Layer 2 · Self-attention.*{why}"))
    assert page.evaluate(DRAWN).count("Self-attention") == 6
    page.mouse.move(0, 0)


# In the app -----------------------------------------------------------------------------------------------------------


def test_the_address_of_a_cell_opens_it_and_leads_to_the_inside_of_its_head_and_back(visitor):
    page = open_map(visitor, "&zoom=decoder.2.cross_attn.3.2.1")
    expect(page.locator(".vf-path button")).to_have_count(5)
    expect(page.get_by_role("status").first).to_contain_text("q · k is")
    page.locator(".vf-onward").click()
    page.wait_for_url(re.compile(r"/head\?"))
    wait_until_done(page)
    place = address_of(page)
    assert [place[name] for name in ("stack", "layer", "head", "query")] == ["cross", "2", "3", "2"]
    page.go_back()
    page.wait_for_url(re.compile("zoom="))
    expect(page.locator(".vf-path button")).to_have_count(5)
    assert address_of(page)["zoom"] == "decoder.2.cross_attn.3.2.1"


def test_places_replace_the_address_and_add_nothing_to_the_history(visitor):
    page = open_map(visitor)
    entries = page.evaluate("history.length")
    page.locator("canvas.vf-model").focus()
    layer = start("en-zh").layer + 1
    for zoom in (f"decoder.{layer}", f"decoder.{layer}.cross_attn"):
        page.keyboard.press("+")
        page.wait_for_url(re.compile(f"zoom={zoom}$"))
    expect(page.locator(".vf-onward")).to_have_text("Attention: all heads")
    page.keyboard.press("0")
    page.wait_for_url(lambda url: "zoom" not in url)
    assert page.evaluate("history.length") == entries


@pytest.mark.full
def test_a_new_sentence_keeps_as_much_of_the_place_as_it_has(visitor):
    page = open_map(visitor, "&zoom=encoder.2.self_attn.3.4.4")
    expect(page.locator(".vf-path button")).to_have_count(5)
    box = page.get_by_role("textbox", name="Sentence")
    box.fill("Go.")
    box.press("Enter")
    expect(page.locator(".vf-path button")).to_have_count(4)
    wait_until_done(page)
    assert address_of(page)["zoom"] == "encoder.2.self_attn.3"
