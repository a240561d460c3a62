"""The guided lesson, in the app and as a file without a network."""

import pytest
from playwright.sync_api import expect

from tests.browser.support import state_of, wait_for_panels
from visformer.app.lessons import lesson_file
from visformer.app.session import url_state
from visformer.cli import main

pytestmark = pytest.mark.browser

LESSON, _faults = lesson_file.read(lesson_file.content(url_state.SHIPPED))
COUNT = len(LESSON.steps)


def test_every_step_in_the_app_has_its_text_in_the_window_and_its_selection(open_app):
    page = open_app(width=1280, height=720)
    page.get_by_role("button", name="Guided lesson").click()
    panel = page.locator(".st-key-lesson")
    for number, step in enumerate(LESSON.steps, 1):
        for name in ("title", "say", "try"):
            expect(panel.get_by_text(step.text(name, "en"), exact=True)).to_be_in_viewport(ratio=1)
        if not step.state.page:
            selection = step.state.selection
            root = page.locator(f".vf-root[data-stack='{selection.stack}'][data-layer='{selection.layer}']")
            expect(root.and_(page.locator(f"[data-head='{selection.head}']"))).to_have_count(1)
            if selection.query is not None:
                cell = (state_of(page)["query"], state_of(page)["key"])
                assert cell == (str(selection.query), str(selection.key))
        elif step.state.page in ("embedding", "head", "masks", "block"):
            wait_for_panels(page)
        assert panel.bounding_box()["height"] < 140, "most of the window is left for the picture"
        if number < COUNT:
            page.get_by_role("button", name="Next", exact=True).click()


def export_lesson(folder, language):
    """Return the path of the lesson as a file."""
    path = folder / "lesson.html"
    main(["lesson", "export", "--out", str(path), "--lang", language], standalone_mode=False)
    return path


def test_the_file_opens_from_disk_without_a_network(visit, tmp_path):
    language = "zh"
    page = visit(export_lesson(tmp_path, language).as_uri(), width=1280, height=720, scheme="dark", offline=True)
    for number, step in enumerate(LESSON.steps, 1):
        expect(page.locator("section:visible h2")).to_contain_text(step.text("title", language))
        expect(page.locator("nav [aria-current]")).to_contain_text(step.text("title", language))
        expect(page.get_by_text(step.text("say", language))).to_be_in_viewport(ratio=1)
        for host in page.locator("section:visible .vf-host").all():
            expect(host.locator("canvas").first).to_be_in_viewport()
            assert host.locator("canvas").first.bounding_box()["height"] > 20
        for image in page.locator("section:visible img").all():
            assert image.evaluate("image => image.complete && image.naturalWidth") > 100
        if number < COUNT:
            page.locator("body").press("ArrowRight")
    page.locator("nav a").nth(3).click()
    expect(page.locator("section:visible .vf-root")).to_have_attribute("data-query", "2")
    page.locator("section:visible").get_by_role("button", name="交叉", exact=True).click()
    expect(page.locator("section:visible .vf-root")).to_have_attribute("data-stack", "decoder.cross_attn")


def test_the_file_fits_a_phone(visit, tmp_path):
    """Cells of matrices are visible, no button wraps, and only pictures scroll sideways."""
    path = export_lesson(tmp_path, "en")
    page = visit(path.as_uri(), width=390, height=844, has_touch=True, is_mobile=True, offline=True)
    for number, step in enumerate(LESSON.steps, 1):
        expect(page.locator("section:visible h2")).to_contain_text(step.text("title", "en"))
        expect(page.locator("section:visible h2")).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        for button in page.locator(".ways a:visible").all():
            assert button.bounding_box()["height"] < 44
        for matrix in page.locator("section:visible canvas.vf-matrix").all():
            cells = matrix.evaluate("({ dataset, width }) => ({ ...dataset, width })")
            assert float(cells["cellWidth"]) >= 0.8
            assert float(cells["cellHeight"]) >= 4
            assert matrix.bounding_box()["width"] > 150
        for image in page.locator("section:visible img").all():
            assert image.bounding_box()["width"] > 600
        for line in page.locator("section:visible .vf-line .vf-where").all():
            assert "Tap a cell" in line.inner_text(), "a phone has no pointer"
        if number < COUNT:
            page.locator("section:visible .ways a").last.tap()
