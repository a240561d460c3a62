"""A language added by one file: text that is drawn, text for screen readers, and Streamlit's own labels."""

import re
import shutil

import pytest
from playwright.sync_api import expect

from tests import pseudo
from tests.browser.conftest import ROOT, serving, visiting
from tests.browser.support import turn_to, wait_until_done

pytestmark = pytest.mark.browser

SENTENCE = "我喜欢猫。"
SPOKEN = ("我", "喜欢", "猫", "like", "cats", "谢谢", "Thanks")  # its tokens, and those of the short one in the batch
RECORDED = """
  window.drawn = new Set()
  for (const { prototype } of [CanvasRenderingContext2D, OffscreenCanvasRenderingContext2D]) {
    const draw = prototype.fillText
    prototype.fillText = function (text, ...place) {
      window.drawn.add(String(text))
      return draw.call(this, text, ...place)
    }
  }
"""
READ = """
  () => {
    const found = [], attributes = ["aria-label", "title", "placeholder", "alt", "data-title", "aria-description"]
    const apart = `script, style, .vf-sheet, noscript, pre, code, .katex, [data-testid=stIconMaterial], .vf-token,
      [data-testid=stText], [data-testid=stSelectbox] [role=option], .ytick, .scatterlayer, canvas table`
    const read = (node) => {
      if (node.nodeType === Node.TEXT_NODE) found.push(node.data)
      if (node.nodeType === Node.ELEMENT_NODE) {
        if (node.matches(apart)) return
        found.push(...attributes.map((name) => node.getAttribute(name)).filter(Boolean))
        if (node.shadowRoot) read(node.shadowRoot)
      }
      node.childNodes.forEach(read)
    }
    read(document)
    return [...new Set([...found, ...window.drawn])].filter((text) => text.trim())
  }
"""
KEPT = {"number": "Streamlit's kind of a column; our word means a token's number", "中文": "a language's own name"}
"""Text that is not translated, and why."""


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """The app with one additional catalogue."""
    folder = tmp_path_factory.mktemp("house")
    for name in ("app.py", "pages", ".streamlit"):
        (folder / name).symlink_to(ROOT / name)
    package = folder / "visformer"
    package.mkdir()
    for inner in (ROOT / "visformer").iterdir():
        if inner.name not in ("i18n", "__pycache__"):
            (package / inner.name).symlink_to(inner)
    shutil.copytree(ROOT / "visformer" / "i18n", package / "i18n")
    pseudo.write(package / "i18n" / "locale")
    return folder


@pytest.fixture(scope="module")
def foreign(house, chromium, model_name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign")
    with serving(model_name, folder, house) as address, visiting(address, chromium) as opened:
        yield opened


def settle(page):
    wait_until_done(page)
    page.wait_for_timeout(100)


class Reader:
    """Records text that is not in brackets, and where it was first seen."""

    def __init__(self, page):
        self.page, self.found = page, {}

    def read(self, where):
        for text in self.page.evaluate(READ):
            words = [word for word in pseudo.bare(text) if word not in SPOKEN]
            if words and text not in KEPT:
                self.found.setdefault(text, where)

    def point_at(self, things, where):
        for thing in things:
            thing.hover()
            self.page.wait_for_timeout(120)
            self.read(where)

    def open_popovers(self, where):
        for one in self.page.get_by_test_id("stMain").get_by_test_id("stPopoverButton").filter(visible=True).all():
            one.click()
            settle(self.page)
            self.read(where)
            self.page.keyboard.press("Escape")
            settle(self.page)


def explore(page, reader):
    """Try every key of the explorer, a cell, a search without results, and the help."""
    reader.read("at first")
    for key in "vvvvmlowxs?":
        page.locator(".vf-thumbs").press(key)
        reader.read(f"key {key}")
    page.keyboard.press("Escape")
    reader.point_at([page.locator(".vf-large")], "a cell")
    reader.point_at(page.get_by_test_id("stTooltipHoverTarget").all(), "help")
    box = page.get_by_test_id("stMain").get_by_role("combobox").first
    box.fill("zzzz")
    page.wait_for_timeout(120)
    reader.read("nothing is found")
    box.press("Escape")
    reader.open_popovers("popover")


def test_all_visible_and_spoken_text_comes_from_one_file(foreign):
    page = foreign.open(query="?text=" + SENTENCE + "&lang=xx&nonsense=1", width=1280, height=720, script=RECORDED)
    reader = Reader(page)
    settle(page)
    expect(page.locator("html")).to_have_attribute("lang", pseudo.CODE)
    assert page.title() == "⟦Attention⟧ · Visformer"
    explore(page, reader)
    links = page.get_by_test_id("stSidebar").get_by_test_id("stPageLink-NavLink")
    for place in range(1, links.count()):
        links.nth(place).click()
        settle(page)
        where = page.title()
        reader.read(where)
        for table in page.get_by_test_id("stDataFrame").all()[:1]:
            table.hover()
            box = table.bounding_box()
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 14)
            page.wait_for_timeout(120)
            reader.read(f"{where}, table")
            page.keyboard.press("Escape")
        if "Masks" in where:  # has each kind of them
            reader.open_popovers(where)
    assert not [*reader.found.items()], reader.found


def test_another_language_keeps_page_sentence_view_and_scroll_position(open_app):
    page = open_app(query="?lang=zh&text=" + SENTENCE, width=1280, height=720)
    turn_to(page, "逐个子层看一个块")
    page.get_by_test_id("stMain").get_by_text("相似度", exact=True).click()
    page.locator("canvas[data-panel=cosine0]").wait_for()
    settle(page)
    main = page.get_by_test_id("stMain")
    main.evaluate("element => element.scrollTo(0, 80)")
    place = main.evaluate("element => element.scrollTop")
    assert place > 0
    switch = main.get_by_test_id("stButtonGroup").filter(has_text="中文").get_by_text("EN", exact=True)
    switch.evaluate("element => element.click()")  # Playwright's click would scroll to it
    expect(page).to_have_title("Through the block · Visformer")
    settle(page)
    expect(page.locator("html")).to_have_attribute("lang", "en")
    assert page.get_by_label("Sentence", exact=True).input_value() == SENTENCE
    expect(page.locator("canvas[data-panel=cosine0]")).to_be_visible()
    expect(page).to_have_url(re.compile("block_view=similar"))
    assert main.evaluate("element => element.scrollTop") == place


@pytest.mark.parametrize(
    ("text", "page_title", "kept"),
    [
        ("Stop Open", "词元", "[role=option] :text-is('Stop')"),
        ("停。打开。", "解码", ".stPlotlyChart text:text-is('Open')"),
        ("Stop", "词元", "[data-testid=stText]:text-is('Stop')"),
    ],
    ids=["choice", "curve", "text"],
)
def test_the_visitors_words_stay_as_they_are(open_app, text, page_title, kept):
    """Stop and Open are tokens here, and buttons of Streamlit's."""
    page = open_app(query=f"?lang=zh&text={text}")
    turn_to(page, page_title)
    if "option" in kept:
        page.get_by_test_id("stMain").get_by_role("combobox").last.click()
    if "stText" in kept:
        page.get_by_test_id("stText").first.evaluate("element => element.replaceChildren('Stop')")
    page.wait_for_timeout(300)
    expect(page.locator(kept).first).to_be_visible()


def test_on_a_phone_the_switch_is_there_without_the_side_bar(open_app):
    page = open_app(query="?lang=en", width=390, height=844, locale="zh-HK")
    switch = page.get_by_test_id("stMain").get_by_test_id("stButtonGroup").filter(has_text="中文")
    box = switch.bounding_box()
    assert box["y"] + box["height"] < 844
    assert box["x"] + box["width"] <= 390
    switch.get_by_text("中文", exact=True).click()
    page.get_by_label("句子", exact=True).wait_for()
    expect(page).to_have_url(re.compile("lang=zh"))
