"""The page Attention in Chromium."""

import re

import pytest
from playwright.sync_api import expect

import visformer as vf
from tests.browser.support import (
    address_of,
    check_cell,
    click_head,
    ensure_sentence,
    point_of_cell,
    state_of,
    submit,
    type_sentence,
    wait_for_panels,
    wait_until_done,
)
from visformer.pictures.examples import EXAMPLES

SENTENCE = "I like cats."


@pytest.fixture(scope="session")
def model(model_name):
    return vf.load(model_name)


def test_a_long_sentence_fetches_the_weights_of_the_selected_head(page, model):
    """With many tokens not all exact weights are sent: those of the selected head are fetched by a fragment rerun."""
    sentence, target = "a b c d e f g h i j " * 9, "一二三四五六七八九十" * 9
    ensure_sentence(page, sentence)
    type_sentence(page, target, box="Target")
    trace = model.trace(sentence, target)
    assert trace.nbytes > 1_000_000
    page.get_by_role("button", name="Encoder", exact=True).click()
    page.get_by_role("button", name="Heatmap", exact=True).click()
    click_head(page, 1, 3)
    page.locator(".vf-large").click(position=point_of_cell(page, 40, 7))
    page.locator(".vf-root[data-weight]:not([data-weight=''])").wait_for()
    check_cell(page, trace, "encoder.self_attn", layer=1, head=3, query=40, key=7)


def test_a_lone_surrogate_in_the_text_box_is_replaced(page):
    """Otherwise, Streamlit loses the connection when it sends the text."""
    ensure_sentence(page, SENTENCE)
    before = state_of(page)["painted"]
    box = page.get_by_label("Sentence", exact=True)
    box.focus()
    page.evaluate("document.execCommand('insertText', false, ' \\ud83d')")
    page.keyboard.press("Enter")
    page.locator(f".vf-root[data-painted]:not([data-painted='{before}'])").wait_for()
    assert "\ufffd" in box.input_value()


def test_a_book_in_the_sentence_box_is_cut(page):
    """Otherwise, the server ends the connection because of the long message."""
    ensure_sentence(page, SENTENCE)
    box = page.get_by_label("Sentence", exact=True)
    box.focus()
    page.evaluate("document.execCommand('insertText', false, '猫'.repeat(400_000))")
    page.keyboard.press("Enter")
    page.get_by_text("tokens, and this model takes at most 512").wait_for()
    box.fill(SENTENCE)
    page.keyboard.press("Enter")
    page.locator(".vf-root[data-painted]").wait_for()


def test_the_selection_reaches_the_address_and_a_link_restores_it(open_app, model):
    trace = model.trace(EXAMPLES[0])
    page = open_app(query="attention?lang=en&stack=cross&layer=2&head=3&query=2&key=5")
    check_cell(page, trace, "decoder.cross_attn", layer=1, head=2, query=1, key=4)
    page.get_by_role("link", name="Inside this head: layer 2, head 3").wait_for()
    painted = state_of(page)["painted"]
    click_head(page, 2, 4)
    page.get_by_role("button", name="Arcs", exact=True).click()
    inside = page.get_by_role("link", name="Inside this head: layer 3, head 5")
    inside.wait_for()
    page.wait_for_url("**/attention?*view=arcs*")
    expected = {"stack": "cross", "layer": "3", "head": "5", "view": "arcs", "query": "2", "key": "5"}
    assert address_of(page) == {"lang": "en", **expected}
    query = page.url.partition("?")[2]
    assert state_of(page)["painted"] == painted, "the picture is not sent again"
    inside.click()
    wait_for_panels(page)
    for name, value in (("Layer", "3"), ("Head", "5")):
        expect(page.get_by_role("slider", name=name)).to_have_value(value)
    page.go_back()
    page.wait_for_selector(".vf-root[data-view]")
    restored = open_app(query=f"attention?{query}")
    check_cell(restored, trace, "decoder.cross_attn", layer=2, head=4, query=1, key=4)
    assert state_of(restored)["view"] == "arcs"


@pytest.mark.full
def test_a_page_opened_at_once_begins_with_the_head_just_selected(open_app):
    page = open_app(query="attention?stack=cross")
    link = page.get_by_test_id("stPageLink-NavLink").filter(has_text="Inside a head", visible=True)
    link.hover()
    click_head(page, 1, 4)
    link.click(delay=50)  # milliseconds, as a finger takes
    wait_for_panels(page)
    for name, value in (("Layer", "2"), ("Head", "5")):
        expect(page.get_by_role("slider", name=name)).to_have_value(value)
    expect(page).to_have_url(re.compile(r"/head\?v=2&stack=cross&layer=2&head=5$"))


@pytest.mark.full
def test_a_selection_that_arrives_behind_a_click_on_a_page_does_not_empty_that_page(open_app):
    page = open_app()
    page.get_by_role("button", name="Arcs", exact=True).click()
    link = page.get_by_test_id("stPageLink-NavLink").filter(has_text="Inside a head", visible=True)
    link.evaluate("link => (document.dispatchEvent(new PointerEvent('pointerdown')), link.click())")
    wait_for_panels(page)
    expect(page.get_by_role("slider", name="Head")).to_be_visible()
    expect(page).to_have_title(re.compile("^Inside a head"))


@pytest.mark.full
def test_the_dark_page_fits_windows_of_any_size(open_app):
    page = open_app(query="attention?stack=cross&head=8", scheme="dark")
    assert page.locator(".vf-root").evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(17, 22, 29)"
    for width, height in ((1440, 900), (1280, 720), (360, 740)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(500)  # the side bar slides
        box = page.locator(".vf-large").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width + 1
        if width > 1000:
            assert box["y"] + box["height"] <= height, "the whole head without scrolling"


def test_the_component_above_the_page_takes_no_space(page):
    ensure_sentence(page, SENTENCE)
    head = page.locator(".st-key-page_head")
    before = head.bounding_box()
    type_sentence(page, "Nobody goes ahead of them.")
    assert head.bounding_box()["y"] == before["y"]
    assert page.locator(".st-key-attention_ahead").count() == 1
    assert not page.locator(".st-key-attention_ahead").is_visible()


HOLD_MESSAGES = """window.WebSocket = class extends WebSocket {
  addEventListener(name, listener, ...options) {
    if (name !== "message") return super.addEventListener(name, listener, ...options)
    const held = []
    super.addEventListener(name, (event) => (window.hold ? held.push(event) : listener.call(this, event)), ...options)
    window.release = () => {
      window.hold = false
      held.forEach((event) => listener.call(this, event))
    }
  }
}"""


def test_a_sentence_that_returns_before_the_last_one_is_complete_is_drawn(visitors):
    """The server then refers to a picture of two sentences before, which the browser may have dropped meanwhile."""
    page = visitors.open(script=HOLD_MESSAGES)
    first = "The keeper of the old house sold the books that we bought."
    for text in (first, "I like cats."):
        type_sentence(page, text)
    page.evaluate("window.hold = true")
    submit(page, "It was late.")
    page.wait_for_timeout(3000)  # for the server to send it
    submit(page, first)
    page.evaluate("window.release()")
    page.locator(".vf-chip").get_by_text("books", exact=True).filter(visible=True).first.wait_for()
    wait_until_done(page)
