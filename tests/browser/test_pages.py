"""All pages, what they show of a hostile sentence, and clicks in their pictures."""

import re
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
from playwright.sync_api import expect

import visformer as vf
from tests.browser.support import (
    address_of,
    click_cell,
    ensure_sentence,
    go_to,
    hover_cell,
    layout_of,
    wait_for_panels,
    wait_until_done,
)
from visformer.app.edits import silences
from visformer.edits import Silence
from visformer.pictures.registry.picture import pages

HOSTILE = (
    "<img src=x onerror=window.hit=1> $\\zeta^2$ **Bold** [Link](https://evil.example) :red[Zed] `Code` =1+1 "
    "<script>hit=1"
)
MARKUP = """() => ({
  hit: window.hit ?? null,
  texts: [...document.querySelectorAll("img[src='x'], a[href*='evil.example'], strong, code, .katex, [style*='color']")]
    .map((element) => element.textContent).filter((text) => /Bold|Code|ζ|zeta|Zed|Link/.test(text) && text.length < 12),
})"""
"""What the sentence became: a script that ran, elements, links, formulas or emphasis."""


@pytest.mark.parametrize("sections", [("see",), pytest.param(("understand", "research"), marks=pytest.mark.full)])
def test_every_page_opens_with_the_sentence_which_does_not_become_markup(open_app, sections):
    page = open_app(query=f"attention?text={quote(HOSTILE)}&target={quote(HOSTILE)}", width=1280, height=720)
    page.get_by_text("Target as typed:").wait_for()
    for declared in pages().values():
        if declared.section not in sections:
            continue
        go_to(page, declared.title)
        # A text so long is measured on a click only.
        shown = ".vf-root[data-painted] canvas, .js-plotly-plot .main-svg, [data-testid=stDataFrame] canvas"
        page.locator(f"{shown}, .st-key-effects_measure, .vf-learning .vf-play").first.wait_for()
        if declared.has_sentence and not declared.model:
            expect(page.get_by_label("Sentence", exact=True)).to_have_value(HOSTILE)
        else:
            expect(page.get_by_label("Sentence", exact=True)).to_have_count(0)
        assert not page.get_by_test_id("stException").count()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), declared.title
        assert page.evaluate(MARKUP) == {"hit": None, "texts": []}, declared.title


SET = ".stSlider, .stSelectbox, .st-key-formula"
"""What is set on a page, and its formula."""


@pytest.mark.parametrize("name", ["head", "heads", pytest.param("decoding", marks=pytest.mark.full)])
def test_on_a_phone_a_page_has_its_name_and_the_picture_stands_above_what_is_set(open_app, name):
    page = open_app(query=name, width=390, height=844)
    picture = page.locator(".vf-root[data-painted] canvas").first
    picture.wait_for()
    wait_until_done(page)
    assert picture.bounding_box()["y"] < 844 / 2
    lowest = max(
        box["y"] + box["height"] for box in (one.bounding_box() for one in page.locator(".vf-root[data-painted]").all())
    )
    for one in page.locator(".st-key-page_body").locator(SET).filter(visible=True).all():
        assert one.bounding_box()["y"] >= lowest - 1
    title, lang = page.get_by_role("heading", level=1).bounding_box(), page.locator(".st-key-lang").bounding_box()
    assert title["y"] >= 0
    assert title["height"] > 12
    assert 40 < title["x"] < title["x"] + title["width"] <= lang["x"]


def test_no_file_is_fetched_before_its_button_is_clicked(open_app, tmp_path):
    """On a slow line it may be gone by then."""
    page, fetched = open_app(query="embedding?embedding_view=sums"), []
    page.on("request", lambda request: "/media/" in urlsplit(request.url).path and fetched.append(request.url))
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").filter(has_text="CSV").get_by_role("button").click()
    download.value.save_as(tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text(encoding="utf-8-sig").count("\n") > 3
    page.get_by_test_id("stPopoverButton").filter(has_text="Save").click()
    page.get_by_role("button", name="State", exact=True).wait_for()
    wait_until_done(page)
    page.wait_for_timeout(300)  # a request would come late, too
    assert len([url for url in fetched if "/static/" not in url]) <= 1, "but the table"


@pytest.fixture(scope="module")
def shared_page(visitors):
    """Not at the start, which is another head with other weights."""
    return visitors.open(query="attention?stack=encoder")


def select(page, view):
    """Select a view, on either kind of switch."""
    page.get_by_role("radio", name=view).or_(page.get_by_role("button", name=view)).first.click()


def test_a_clicked_cell_has_the_weight_of_the_trace_and_a_written_out_sum(page, model_name):
    trace = vf.load(model_name).trace("I like cats.", record=("*.scores", "*.q", "*.k"))
    ensure_sentence(page, "I like cats.")
    go_to(page, "Inside a head")
    wait_for_panels(page)
    click_cell(page, "scores", 0, 2)
    weight = trace["encoder.0.self_attn.scores"].value[0, 1, 2]
    told = page.locator(".vf-told").first
    told.wait_for()
    assert float(told.inner_text().replace("−", "-").splitlines()[0].split(" = ")[1]) == pytest.approx(
        float(weight), abs=1e-6
    )
    root = page.locator(".vf-root:has(canvas[data-panel=scores])")
    assert np.float32(root.get_attribute("data-value")) == weight


@pytest.mark.full
def test_a_small_window_shows_the_panel_the_value_under_the_pointer_and_the_sum_without_scrolling(open_app):
    page = open_app(width=1280, height=720)
    for title, panel in (("Inside a head", "pattern"), ("Embedding + position", "input")):
        go_to(page, title)
        if panel == "input":
            page.get_by_text("Vectors", exact=True).click()
        page.locator(f"canvas[data-panel={panel}]").wait_for()
        hover_cell(page, panel, 0, 1)
        for selector in (f"canvas[data-panel={panel}]", f".vf-root:has([data-panel={panel}]) .vf-value"):
            box = page.locator(selector).bounding_box()
            assert box["y"] >= 0, title
            assert box["y"] + box["height"] <= 720, title
    go_to(page, "Inside a head")
    page.locator("canvas[data-panel=pattern]").wait_for()
    click_cell(page, "pattern", 0, 1)
    told = page.locator(".vf-told").first
    told.wait_for()
    wait_until_done(page)
    box = told.bounding_box()
    assert box["y"] + box["height"] <= 720


@pytest.mark.full
def test_a_click_selects_a_step_of_decoding(open_app):
    page = open_app(width=1280, height=720)
    go_to(page, "Decoding")
    wait_for_panels(page)
    page.locator(".js-plotly-plot .ytick").filter(has_text="我 ◂").wait_for()
    expect(page.get_by_text("click to see the candidates of its step")).to_be_visible()
    click_cell(page, "sure", 0, 1)
    page.locator(".js-plotly-plot .ytick").filter(has_text="去 ◂").wait_for()
    wait_until_done(page)
    box = page.locator(".js-plotly-plot").bounding_box()
    assert box["y"] + box["height"] <= 720, "all bars are inside the window"


def test_a_click_silences_a_head_and_the_model_translates_again(page, model_name):
    ensure_sentence(page, "I like cats.")
    go_to(page, "Inside a head")
    select(page, "Silence or scale a head")
    page.locator("canvas[data-panel=factors]").wait_for()
    click_cell(page, "factors", 2, 5)
    after = vf.load(model_name).trace("I like cats.", edits=[Silence("encoder.2.self_attn", head=5)])
    page.get_by_text(f"After: {after.meta['target']}", exact=True).wait_for()
    page.get_by_role("button", name="Reset").click()
    page.get_by_text("After: ").wait_for(state="detached")


@pytest.mark.full
def test_a_suggested_sentence_is_opened_once_and_later_clicks_are_not_undone(page):
    go_to(page, "Inside a head")
    select(page, "Silence or scale a head")
    text = silences.examples("en-zh").popitem()[0]
    page.get_by_text(text, exact=True).click()
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(text)
    page.get_by_text("After: ").wait_for()
    wait_until_done(page)
    page.get_by_role("button", name="Reset").click()
    page.get_by_text("After: ").wait_for(state="detached")
    wait_until_done(page)
    select(page, "Decoder")
    page.wait_for_url(re.compile("stack=decoder"))
    wait_until_done(page)
    assert "head_scales" not in address_of(page)


def test_a_click_on_a_cell_changes_the_mask_and_one_on_a_label_its_whole_row(page):
    go_to(page, "Masks")
    select(page, "Change it")
    wait_for_panels(page)
    click_cell(page, "mask", 1, 0)
    page.get_by_text("Before: ").wait_for()
    wait_until_done(page)
    layout = layout_of(page, "canvas[data-panel=mask]")
    position = {"x": layout["left"] - 12, "y": layout["top"] + 2.5 * layout["cellHeight"]}
    page.locator("canvas[data-panel=mask]").click(position=position)
    root = page.locator(".vf-root:has(canvas[data-panel=mask])")
    for column in range(3):
        hover_cell(page, "mask", 2, column)
        expect(root).to_have_attribute("data-value", "0")
    page.get_by_role("button", name="Reset").click()
    hover_cell(page, "mask", 2, 1)
    expect(root).to_have_attribute("data-value", "1")


def test_a_number_typed_into_a_box_of_the_lab_is_computed_with(page):
    go_to(page, "Course notes")
    page.get_by_text("3 Positions", exact=True).click()
    page.get_by_role("spinbutton", name="base").wait_for()
    wait_for_panels(page)
    page.get_by_role("spinbutton", name="base").fill("100")
    page.keyboard.press("Enter")
    page.get_by_text("These inputs have been changed").wait_for()
    hover_cell(page, "pos × frequency", 1, 1)
    expect(page.locator(".vf-root")).to_have_attribute("data-value", re.compile(r"^0\.1000000"))


@pytest.mark.full
def test_clearing_a_column_in_the_lab_removes_it(page):
    go_to(page, "Course notes")
    page.get_by_text("4 Attention by hand", exact=True).click()
    page.get_by_label("Worked example or experiment", exact=True).click()
    page.get_by_role("option", name="A product that does not exist", exact=True).click()
    page.get_by_text("3 is not 2").wait_for()
    q = page.get_by_test_id("stDataFrame").first
    for row in (0, 1):
        q.click(position={"x": 2.5 * 48, "y": 36 + (row + 0.5) * 26})
        page.keyboard.press("Delete")
        if row == 0:
            page.get_by_text("Q has an empty cell").wait_for()
    wait_for_panels(page)
    hover_cell(page, "Q·Kᵀ", 1, 2)
    expect(page.locator(".vf-root")).to_have_attribute("data-value", "104")
