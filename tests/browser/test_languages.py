"""Languages in the browser: no text is hard-coded, and switching keeps what is on the page."""

import re
import shutil

import pytest
from playwright.sync_api import expect

from tests import pseudo
from tests.browser.conftest import ROOT, serving, visiting
from tests.browser.support import go_to, wait_until_done

SENTENCE = "我喜欢猫。"
TOKENS = ("我", "喜欢", "猫", "like", "cats", "谢谢", "Thanks")
"""Tokens of the sentence, of its translation, and of the short sentence in the batch of masks."""
RECORD_DRAWN_TEXT = """
  window.drawn = new Set()
  for (const { prototype } of [CanvasRenderingContext2D, OffscreenCanvasRenderingContext2D]) {
    const draw = prototype.fillText
    prototype.fillText = function (text, ...place) {
      window.drawn.add(String(text))
      return draw.call(this, text, ...place)
    }
  }
"""
ALL_TEXT = """
  () => {
    const texts = [], attributes = ["aria-label", "title", "placeholder", "alt", "data-title", "aria-description"]
    const skipped = `script, style, .vf-sheet, noscript, pre, code, .katex, [data-testid=stIconMaterial], .vf-token,
      [data-testid=stText], [data-testid=stSelectbox] [role=option], .ytick, .scatterlayer, canvas table`
    const read = (node) => {
      if (node.nodeType === Node.TEXT_NODE) texts.push(node.data)
      if (node.nodeType === Node.ELEMENT_NODE) {
        if (node.matches(skipped)) return
        texts.push(...attributes.map((name) => node.getAttribute(name)).filter(Boolean))
        if (node.shadowRoot) read(node.shadowRoot)
      }
      node.childNodes.forEach(read)
    }
    read(document)
    return [...new Set([...texts, ...window.drawn])].filter((text) => text.trim())
  }
"""
"""Visible text, text for screen readers, and what was drawn on a canvas."""
UNTRANSLATED = {"number": "Streamlit's name for a type of column", "中文": "a language's own name"}
"""Text that stays as it is, and why."""


@pytest.fixture(scope="module")
def app_folder(tmp_path_factory):
    """A copy of the app with a catalogue of the pseudo-language."""
    folder = tmp_path_factory.mktemp("app")
    for name in ("app.py", "pages", ".streamlit"):
        (folder / name).symlink_to(ROOT / name)
    package = folder / "visformer"
    package.mkdir()
    for path in (ROOT / "visformer").iterdir():
        if path.name not in ("i18n", "app", "__pycache__"):
            (package / path.name).symlink_to(path)
    for name in ("i18n", "app"):
        shutil.copytree(ROOT / "visformer" / name, package / name)
    pseudo.write(package / "i18n" / "locale")
    for path in (package / "app" / "lessons" / "shipped").glob("*.yaml"):
        path.write_bytes(pseudo.lesson(path.read_bytes()))
    return folder


def settle(page):
    wait_until_done(page)
    page.wait_for_timeout(100)


class Reader:
    """Records text that is not in brackets, and where it was first seen."""

    def __init__(self, page):
        self.page, self.hard_coded = page, {}

    def read(self, where):
        for text in self.page.evaluate(ALL_TEXT):
            words = [word for word in pseudo.unbracketed(text) if word not in TOKENS]
            if words and text not in UNTRANSLATED:
                self.hard_coded.setdefault(text, where)

    def hover(self, elements, where):
        for element in elements:
            element.hover()
            self.page.wait_for_timeout(120)
            self.read(where)

    def open_popovers(self, where):
        for button in self.page.get_by_test_id("stMain").get_by_test_id("stPopoverButton").filter(visible=True).all():
            button.click()
            settle(self.page)
            self.read(where)
            self.page.keyboard.press("Escape")
            settle(self.page)


def read_explorer(page, reader):
    """Read the explorer after every key, over a cell, in its help, in a search without results, and in popovers."""
    reader.read("at first")
    for key in "vvvvmlowxs?":
        page.locator(".vf-thumbs").press(key)
        reader.read(f"key {key}")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="⟦Heatmap⟧", exact=True).click()
    reader.hover([page.locator(".vf-large")], "a cell")
    reader.hover(page.get_by_test_id("stTooltipHoverTarget").filter(visible=True).all(), "help")
    box = page.get_by_test_id("stMain").get_by_role("combobox").first
    box.fill("zzzz")
    page.wait_for_timeout(120)
    reader.read("a search without results")
    box.press("Escape")
    reader.open_popovers("popover")


def read_page(page, reader):
    """Read a page and the menu of a column of its first table."""
    title = page.title()
    reader.read(title)
    for table in page.get_by_test_id("stDataFrame").all()[:1]:
        table.hover()
        box = table.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 14)
        page.wait_for_timeout(120)
        reader.read(f"{title}, table")
        page.keyboard.press("Escape")
    if "Masks" in title:  # has every kind of popover
        reader.open_popovers(title)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.full)], ids=["first", "every"])
def test_no_visible_or_spoken_text_is_hard_coded(app_folder, chromium, model_name, tmp_path, every):
    """In a language that one file added, whose messages are all in brackets; on the first page, or on every one."""
    with serving(model_name, tmp_path, app_folder) as address, visiting(address, chromium) as visitors:
        query = f"attention?text={SENTENCE}&lang={pseudo.CODE}&nonsense=1"
        page = visitors.open(query=query, width=1280, height=720, script=RECORD_DRAWN_TEXT)
        reader = Reader(page)
        settle(page)
        expect(page.locator("html")).to_have_attribute("lang", pseudo.CODE)
        assert page.title() == "⟦Attention⟧ · Visformer"
        read_explorer(page, reader)
        links = page.get_by_test_id("stSidebar").get_by_test_id("stPageLink-NavLink")
        for title in [*dict.fromkeys(links.all_text_contents())][1:] if every else ():
            go_to(page, title)
            settle(page)
            read_page(page, reader)
        assert reader.hard_coded == {}


def test_switching_the_language_keeps_page_sentence_view_and_scroll_position(open_app):
    page = open_app(query="attention?lang=zh&text=" + SENTENCE, width=1280, height=720)
    go_to(page, "Transformer 块")
    page.get_by_test_id("stMain").get_by_text("相似度", exact=True).click()
    page.locator("canvas[data-panel=cosine0]").wait_for()
    settle(page)
    main = page.get_by_test_id("stMain")
    main.evaluate("element => element.scrollTo(0, 80)")
    scrolled = main.evaluate("element => element.scrollTop")
    assert scrolled > 0
    switch = main.get_by_test_id("stButtonGroup").filter(has_text="中文").get_by_text("EN", exact=True)
    switch.evaluate("element => element.click()")  # Playwright's click would scroll to it
    expect(page).to_have_title("Through the block · Visformer")
    settle(page)
    expect(page.locator("html")).to_have_attribute("lang", "en")
    assert page.get_by_label("Sentence", exact=True).input_value() == SENTENCE
    expect(page.locator("canvas[data-panel=cosine0]")).to_be_visible()
    expect(page).to_have_url(re.compile("block_view=similar"))
    assert main.evaluate("element => element.scrollTop") == scrolled


@pytest.mark.full
def test_switching_the_language_there_and_back_keeps_every_choice(open_app):
    """Browsers send a choice by its label, which another language changes."""
    page = open_app(query="attention?lang=zh")
    go_to(page, "掩码")
    page.get_by_text("修改掩码", exact=True).click()
    expect(page).to_have_url(re.compile("masks_view=edit"))
    labels = []
    for language, title in (("EN", "Masks"), ("中文", "掩码"), ("EN", "Masks")):
        settle(page)
        labels.append(page.get_by_role("combobox").evaluate_all("all => all.map(({ value }) => value)"))
        page.get_by_test_id("stMain").get_by_text(language, exact=True).click()
        expect(page).to_have_title(f"{title} · Visformer")
    settle(page)
    labels.append(page.get_by_role("combobox").evaluate_all("all => all.map(({ value }) => value)"))
    chinese, english = labels[0], labels[1]
    assert labels == [chinese, english, chinese, english]
    assert any(re.search("[\u4e00-\u9fff]", label) for label in chinese)
    assert not any(re.search("[\u4e00-\u9fff]", label) for label in english)
    expect(page).to_have_url(re.compile(r"^[^=]*\?v=2&lang=en&masks_view=edit$"))


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "page_title", "kept"),
    [
        pytest.param("Stop Open", "词嵌入 + 位置", "[role=option] :text-is('Stop')", marks=pytest.mark.full),
        pytest.param("停。打开。", "解码", ".stPlotlyChart text:text-is('Stop')", marks=pytest.mark.full),
        ("Stop", "词嵌入 + 位置", "[data-testid=stText]:text-is('Stop')"),
    ],
    ids=["choice", "curve", "text"],
)
def test_the_visitors_words_stay_as_they_are(open_app, text, page_title, kept):
    """Stop and Open are tokens here, and buttons of Streamlit's."""
    page = open_app(query=f"attention?lang=zh&text={text}")
    go_to(page, page_title)
    if "option" in kept:
        page.get_by_test_id("stMain").get_by_role("combobox").nth(
            1
        ).click()  # the first is the examples', above every page
    if "stText" in kept:
        page.get_by_test_id("stText").first.evaluate("element => element.replaceChildren('Stop')")
    page.wait_for_timeout(300)
    expect(page.locator(kept).first).to_be_visible()


@pytest.mark.full
def test_on_a_phone_the_language_switch_is_visible_without_the_side_bar(open_app):
    page = open_app(query="attention?lang=en", width=390, height=844, locale="zh-HK")
    switch = page.get_by_test_id("stMain").get_by_test_id("stButtonGroup").filter(has_text="中文")
    box = switch.bounding_box()
    assert box["y"] + box["height"] < 844
    assert box["x"] + box["width"] <= 390
    switch.get_by_text("中文", exact=True).click()
    page.get_by_label("句子", exact=True).wait_for()
    expect(page).to_have_url(re.compile("lang=zh"))
