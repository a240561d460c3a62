"""The small drawing of the model in the side bar: it follows the page and the selection, and leads to each part."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.support import address_of, click_head, go_to, state_of, wait_until_done

LIT = ".vf-here .vf-lit"
CURRENT = ".vf-here [aria-current=true]"


def cell(page, name):
    return page.locator(f".vf-here [data-name='{name}']")


def test_it_follows_the_head_that_is_chosen(open_app):
    page = open_app(query="")
    expect(page.locator(".vf-here a:not(.vf-lit)")).to_have_count(0)  # the whole model
    go_to(page, "Attention")
    expect(page.locator(CURRENT)).to_have_attribute("data-name", "decoder.cross_attn.0")
    click_head(page, 2, 1)
    expect(page.locator(CURRENT)).to_have_attribute("data-name", "decoder.cross_attn.2")
    page.get_by_role("button", name="Encoder", exact=True).click()
    expect(page.locator(CURRENT)).to_have_attribute("data-name", "encoder.self_attn.2")
    about = "The model; you are here: Encoder · Layer 3 · Self-attention"
    expect(page.get_by_role("navigation", name=about)).to_be_visible()
    go_to(page, "Embedding + position")
    expect(page.locator(LIT)).to_have_count(2)
    go_to(page, "Course notes")
    expect(page.locator(LIT)).to_have_count(0)


@pytest.mark.full
def test_its_parts_lead_to_their_pages_in_the_same_state(open_app):
    page = open_app(query="?v=2&text=I+like+cats.&view=arcs&stack=cross&head=4")
    cell(page, "decoder.self_attn.1").click()
    page.wait_for_url("**stack=decoder*")
    expect(page.locator(CURRENT)).to_have_attribute("data-name", "decoder.self_attn.1")
    wait_until_done(page)
    shown = state_of(page)
    assert (shown["stack"], shown["layer"], shown["head"], shown["view"]) == ("decoder.self_attn", "1", "3", "arcs")
    link = cell(page, "encoder.ffn.2")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/block?*")
    wait_until_done(page)
    expect(page.locator(CURRENT)).to_have_attribute("data-name", "encoder.ffn.2")
    address = address_of(page)
    assert (address["text"], address["block_view"], address["block_layer"]) == ("I like cats.", "added", "3")
    page.go_back()
    expect(page.locator(CURRENT)).to_have_attribute("data-name", "decoder.self_attn.1")


@pytest.mark.full
@pytest.mark.parametrize(("width", "height", "is_small"), [(1280, 720, False), (1024, 640, True)])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_chooser_and_the_drawing_are_in_a_low_window(open_app, width, height, is_small, lang):
    page = open_app(query=f"?lang={lang}", width=width, height=height)
    go_to(page, {"en": "Embedding + position", "zh": "词嵌入 + 位置"}[lang])
    drawing = page.locator(".vf-here")
    expect(page.locator(LIT)).to_have_count(2)  # of the source, and of the target
    assert (drawing.get_by_role("link").count() == 1) == is_small
    chooser, drawn = page.locator(".st-key-model").bounding_box(), drawing.bounding_box()
    assert chooser["y"] + chooser["height"] <= drawn["y"] + 1
    assert drawn["y"] + drawn["height"] <= height
    side = page.get_by_test_id("stSidebar").bounding_box()
    assert drawn["x"] + drawn["width"] <= side["x"] + side["width"]
    if is_small:
        drawing.get_by_role("link").click()
        page.wait_for_url(lambda url: urlsplit(url).path == "/")


def test_of_many_layers_the_first_the_last_and_the_one_shown_are_drawn(bare):
    cases = [(1, None, 4), (3, None, 4), (6, None, 4), (6, 4, 4), (48, 20, 3), (48, 47, 4)]
    drawn = bare.run("streamlit/locator.js", "return args.map((one) => m.shownLayers(...one))", cases)
    assert drawn == [[0], [0, 1, 2], [0, 1, 2, 5], [0, 1, 4, 5], [0, 20, 47], [0, 1, 2, 47]]


@pytest.mark.full
def test_on_a_phone_a_part_closes_the_list_of_pages(open_app):
    page = open_app(width=390, height=844)
    page.get_by_test_id("stExpandSidebarButton").click()
    cell(page, "encoder.tokens.").first.click()
    page.wait_for_url("**/embedding?*")
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()
