"""Links: right after a start, to a page that does not exist, copied, and too long."""

import json
import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import visiting
from tests.browser.support import address_of, go_to, state_of, submit, wait_for_panels, wait_until_done
from tests.deploy.conftest import RUN, STREAMLIT, UVICORN
from tests.deploy.conftest import serving as deployed
from visformer.app.widgets.component import _LINK_HTML

CLIPBOARD = """() => {
  window.copied = []
  const writeText = async (text) => void window.copied.push(text)
  Object.defineProperty(navigator, "clipboard", { value: { writeText }, configurable: true })
}"""


def test_a_link_to_a_page_that_does_not_exist_opens_the_first_page_with_its_valid_options(visitor, server):
    """Everything else is reported, as text that does not become markup."""
    invalid = "foo=<img src=x onerror=alert(1)>&view=**pie**"
    page = visitor.open(query=f"nowhere?layer=2&text=I+like+cats.&{invalid}")
    for notice in (
        "/nowhere: there is no page with this name.",
        "foo=<img src=x onerror=alert(1)>: no page has such an option.",
        "view=**pie**: choose one of tokens, heatmap, arcs, layer.",
    ):
        page.get_by_text(notice).wait_for()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).to_have_url(f"{server}/?v=2&text=I+like+cats.&layer=2")
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_text("/nowhere")).to_have_count(0)


WAYS = [
    pytest.param(RUN, id="visformer"),
    pytest.param(STREAMLIT, id="streamlit", marks=pytest.mark.full),
    pytest.param(UVICORN, id="uvicorn", marks=pytest.mark.full),
]


@pytest.mark.parametrize("command", WAYS)
def test_however_a_server_is_started_its_first_visit_may_be_a_deep_link(command, chromium, tmp_path):
    """No dialog covers the page. The folder that it is started in is not the app's, whose options hold all the same."""
    with deployed(tmp_path, command) as server, visiting(server.address, chromium) as visitors:
        page = visitors.open(query="masks?masks_view=steps")
        wait_for_panels(page)
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_role("slider", name="Tokens read so far")).to_have_count(1)
        assert "Noto Sans CJK SC" in page.evaluate("getComputedStyle(document.body).fontFamily")


def test_map_is_a_name_of_the_first_page(visitor, server):
    page = visitor.open(query="map?stack=cross&layer=2")
    expect(page).to_have_url(f"{server}/?v=2&stack=cross&layer=2")
    expect(page.get_by_text("there is no page with this name")).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
    page = visitor.open(query="map?lesson=from-text-to-translation&step=5")
    expect(page).to_have_url(f"{server}/head?v=2&lesson=from-text-to-translation&step=5")


def test_copy_link_copies_the_address_and_says_so(open_app):
    page = open_app(query="attention?stack=cross&layer=2&head=3")
    page.evaluate(CLIPBOARD)
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Link copied").wait_for()
    assert page.evaluate("window.copied") == [page.url]
    page.get_by_role("button", name="Copy link").wait_for()
    page.goto(page.evaluate("window.copied")[0])
    page.wait_for_selector(".vf-root[data-painted]")
    assert {name: state_of(page)[name] for name in ("stack", "layer", "head")} == {
        "stack": "decoder.cross_attn",
        "layer": "1",
        "head": "2",
    }


COPIED = """
  const parentElement = document.createElement("div")
  parentElement.innerHTML = args.html
  document.body.append(parentElement)
  const end = m.copyButton({ data: new TextEncoder().encode(JSON.stringify(args.words)), parentElement })
  parentElement.querySelector("button").click()
  await Promise.resolve()
  end()
  const shown = [...parentElement.querySelectorAll("button, p, input")].filter((part) => part.checkVisibility())
  parentElement.remove()
  return shown.map((part) => part.value || part.textContent)
"""


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_what_is_not_in_a_link_is_said_when_it_is_copied(bare, has_clipboard):
    words = {"copy": "copy", "copied": "copied", "address": "address", "byHand": "by hand.", "unlinked": "without."}
    if has_clipboard:
        bare.page.evaluate(CLIPBOARD)
    else:
        bare.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
    shown = bare.run("streamlit/copy_link.js", COPIED, {"html": _LINK_HTML, "words": words})
    assert shown == (["copied", "without."] if has_clipboard else ["copy", "by hand. without.", bare.page.url])


@pytest.mark.full
def test_without_clipboard_access_the_address_is_shown_for_copying(open_app):
    page = open_app(query="attention?layer=2", width=390, height=844)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_role("button", name="Copy link").click()
    field = page.get_by_label("Address of this page")
    expect(field).to_have_value(page.url)
    expect(field).to_be_in_viewport(ratio=1)
    selected = field.evaluate("field => field.value.slice(field.selectionStart, field.selectionEnd)")
    assert selected == page.url
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()


@pytest.mark.full
def test_a_text_too_long_for_a_link_is_saved_to_a_file_and_restored_from_it(open_app, tmp_path):
    page = open_app(query="attention?layer=2")
    text = "我去东北大学。" * 70
    submit(page, text)
    page.get_by_text("This cannot be shown").wait_for()
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("too long for a link").wait_for()
    page.get_by_test_id("stPopoverButton").filter(has_text="Save").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="State", exact=True).click()
    download.value.save_as(tmp_path / "state.json")
    assert json.loads((tmp_path / "state.json").read_text(encoding="utf-8"))["text"] == text
    page.keyboard.press("Escape")
    submit(page, "I like cats.")
    page.wait_for_selector(".vf-root[data-painted]")
    wait_until_done(page)
    page.get_by_test_id("stPopoverButton").filter(has_text="Save").click()
    page.locator("input[type=file]").set_input_files(tmp_path / "state.json")
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(text)


def test_a_sentence_typed_before_a_click_on_a_page_is_shown_on_that_page(open_app):
    """Streamlit sends the sentence when the click leaves its box, after the click itself."""
    page = open_app(query="attention?lang=en")
    for title, text in (("Embedding + position", "They like birds."), ("Masks", "We went home.")):
        page.get_by_label("Sentence", exact=True).fill(text)
        go_to(page, title)
        expect(page).to_have_url(re.compile(re.escape(text.replace(" ", "+"))))
        expect(page.get_by_label("Sentence", exact=True)).to_have_value(text)
    page.get_by_role("button", name="From a sentence to its translation").click()
    page.get_by_placeholder("Type a sentence").fill("It was late.")
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.locator(".vf-lesson-bar .vf-dot").nth(1)).to_have_attribute("aria-current", "step")
    wait_until_done(page)
    expect(page.locator(".vf-lesson-bar .vf-dot").nth(1)).to_have_attribute("aria-current", "step")


@pytest.mark.full
def test_on_a_phone_the_side_bar_closes_when_one_of_its_entries_is_selected(open_app):
    """A page, the lesson, and the way back to a lesson that was left."""
    page = open_app(width=390, height=844)
    side_bar = page.get_by_test_id("stSidebar")
    masks = side_bar.get_by_test_id("stPageLink-NavLink").filter(has_text="Masks", visible=True)
    back = side_bar.get_by_role("button", name="Back to step 1")
    for entry in (masks, side_bar.get_by_role("button", name="From a sentence to its translation"), back):
        if entry is back:
            page.get_by_role("button", name="Leave the lesson").click()
            wait_until_done(page)
        page.get_by_test_id("stExpandSidebarButton").click()
        expect(side_bar).to_have_attribute("data-collapsed", "false")
        entry.click()
        wait_until_done(page)
        expect(side_bar).to_have_attribute("data-collapsed", "true")


CUT = """all => all.filter(({ scrollWidth, clientWidth }) => clientWidth && scrollWidth > clientWidth)
  .map(({ textContent }) => textContent)"""


@pytest.mark.full
def test_the_way_back_to_a_lesson_is_named_whole(open_app):
    page = open_app(query="?lesson=from-text-to-translation&step=5", width=1280, height=720)
    page.get_by_role("button", name="Leave the lesson").click()
    back = page.get_by_role("button", name="From a sentence to its translation: back to step 5")
    expect(back).to_be_visible()
    assert back.locator("*").evaluate_all(CUT) == []


def test_the_names_of_all_pages_are_whole_in_a_low_window(open_app):
    page = open_app(query="heads?lang=zh", width=1280, height=720)
    links = page.get_by_test_id("stSidebar").get_by_test_id("stPageLink-NavLink").filter(visible=True)
    expect(links.filter(has_text="各头的重要性")).to_be_visible()
    assert links.locator("*").evaluate_all(CUT) == []


@pytest.mark.full
def test_the_first_page_opens_in_a_tab_of_its_own(open_app):
    page = open_app(query="attention?text=I+like+cats.")
    with page.context.expect_page() as opened:
        page.get_by_test_id("stPageLink-NavLink").filter(has_text="The whole model", visible=True).click(
            modifiers=["ControlOrMeta"]
        )
    opened.value.wait_for_url("**/?*")
    expect(opened.value.locator("canvas.vf-model")).to_be_visible()
    assert address_of(opened.value)["text"] == "I like cats."
    assert urlsplit(page.url).path == "/attention"
