"""The guided lesson, in the app and as a file without a network."""

import re
from functools import partial
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.app.lessons.test_lesson_file import model, told
from tests.browser.slow import DELAY_MESSAGES
from tests.browser.stage import present
from tests.browser.support import address_of, layout_of, wait_for_panels, wait_until_done
from tests.waiting import until
from visformer.app.lessons import handout, lesson_file
from visformer.app.session import url_state
from visformer.cli import main

LESSON = lesson_file.load(url_state.SHIPPED)
COUNT = len(LESSON.steps)
SIZES = {"projector": (1280, 720), "small laptop": (1024, 640), "phone": (390, 844)}


def at(step):
    """Return the query of an address of a step."""
    return f"?lesson={url_state.SHIPPED}&step={step}"


def go_on(page, step):
    """Click Next, and wait until this step is drawn."""
    page.get_by_role("button", name="Next", exact=True).click()
    expect_step(page, step)


def expect_step(page, step):
    title = page.locator(".st-key-lesson").get_by_text(step.text("title", "en"), exact=True)
    expect(title).to_be_in_viewport(ratio=1)
    wait_until_done(page)


def controls(page):
    """Return the places of the bar's buttons."""
    return [page.locator(f".vf-lesson-bar .vf-{name}").bounding_box() for name in ("back", "on", "again", "leave")]


NAMED = {
    "": ".st-key-page_body canvas",
    "embedding": ".st-key-picture_embedding_sums .vf-matrix, "
    ".st-key-page_body:not(:has(.vf-matrix)) [data-testid=stDataFrame]",
    "attention": ".vf-large, .vf-layer",
    "decoding": ".st-key-picture_decoding_sure .vf-matrix, .st-key-picture_decoding_bars",
}
"""By page, the pictures that the steps' texts speak of; on every other page all matrices."""


@pytest.mark.full
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("size", [SIZES["projector"], SIZES["small laptop"]], ids=["projector", "small laptop"])
@pytest.mark.parametrize("name", [url_state.SHIPPED, url_state.SHORT])
def test_all_that_a_step_speaks_of_is_in_the_window_with_its_text(open_app, name, size, lang):
    lesson = lesson_file.load(name)
    page = open_app(query=f"?lesson={name}&step=1&lang={lang}", width=size[0], height=size[1])
    panel, bar = page.locator(".st-key-lesson"), page.locator(".vf-lesson-bar")
    for number, step in enumerate(lesson.steps, 1):
        if number > 1:
            page.locator(".vf-lesson-bar .vf-dot").nth(number - 1).click()
        expect(panel.get_by_text(step.text("title", lang), exact=True)).to_be_in_viewport(ratio=1)
        wait_until_done(page)
        expect(panel).to_be_in_viewport(ratio=1)
        assert not re.search("[{}…]", panel.inner_text()), "all fields are filled in"
        shown = page.locator(NAMED.get(step.state.page, ".st-key-page_body .vf-matrix")).filter(visible=True)
        expect(shown.first).to_be_visible()
        until(partial(all_end_above, shown, bar))


def all_end_above(elements, bar):
    return all(bottom_of(element) <= bar.bounding_box()["y"] + 1 for element in elements.all())


@pytest.mark.full
def test_the_controls_and_the_formula_of_a_step_are_folded_until_they_are_asked_for(open_app):
    page = open_app(query=at(5), width=1280, height=720)
    wait_for_panels(page)
    wait_until_done(page)
    folded = [page.locator(one) for one in (".st-key-formula", ".st-key-head_view", ".st-key-page_body .stSlider")]
    for one in folded:
        expect(one.first).to_be_hidden()
    page.locator(".st-key-lesson_unfolded label").click()
    for one in folded:
        expect(one.first).to_be_visible()


def test_who_clicks_next_twice_without_waiting_goes_two_steps_on(open_app):
    page = open_app(query=at(8), width=1280, height=720)
    wait_until_done(page)
    page.get_by_role("button", name="Next", exact=True).dblclick()
    expect_step(page, LESSON.steps[9])


BAR = """
  const element = document.createElement("div")
  const bar = m.mountLessonBar(element, { ...args, at: 1 }, {})
  const draw = (at) => bar.update({ ...args, at })
  const click = (name) => element.querySelector(`.vf-${name}`).click()
  const steps = []
  for (const act of args.acts) {
    typeof act === "number" ? draw(act) : click(act)
    steps.push(Number(new URLSearchParams(location.search).get("step")))
  }
  bar.destroy()
  history.replaceState({}, "", "/")
  return steps
"""


def test_a_step_that_is_drawn_late_takes_back_no_click(bare):
    """Step 2 is drawn after a second click, as on a slow line."""
    steps = ["./"] * 6
    words = dict.fromkeys(("lesson", "back", "next", "end", "again", "leave"), "x")
    bar = {
        "kind": "lesson",
        "words": words,
        "titles": steps,
        "pages": steps,
        "query": "?lesson=x&step=",
        "changed": False,
        "fits": [True] * 6,
        "sentence": "",
        "box": "I like cats.",
        "longest": 100,
    }
    acts = [1, "on", "on", 2, "on", 3, 4, "back", "back", "on"]
    assert bare.run("streamlit/lesson.js", BAR, bar | {"acts": acts}) == [0, 2, 3, 3, 4, 4, 4, 3, 2, 3]


@pytest.mark.full
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_the_bar_stands_still_and_covers_no_picture(open_app, size):
    width, height = size
    page = open_app(query=at(4), width=width, height=height)
    wait_until_done(page)
    places = controls(page)
    for box in places:
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert height - 72 <= box["y"] and box["y"] + box["height"] <= height
    for step in LESSON.steps[4:]:
        go_on(page, step)
        assert controls(page) == places
        dots, dot = (
            page.locator(f".vf-lesson-bar {one}").bounding_box() for one in (".vf-dots", "[aria-current=step]")
        )
        assert dots["x"] <= dot["x"] + 1 and dot["x"] + dot["width"] <= dots["x"] + dots["width"] + 1
        page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, main.scrollHeight)")
        pictures = page.get_by_test_id("stMain").locator(".vf-strips, .vf-large, .vf-layer, .vf-matrix")
        for canvas in pictures.filter(visible=True).all():
            box = canvas.bounding_box()
            assert box["y"] + box["height"] <= places[0]["y"], "where one can scroll to, all of it can be seen"


@pytest.mark.full
def test_every_dot_is_named_after_its_step_and_opens_it(open_app):
    page = open_app(query=at(4), width=1280, height=720)
    titles = [step.text("title", "en") for step in LESSON.steps]
    dots = page.locator(".vf-lesson-bar .vf-dot")
    assert dots.evaluate_all("dots => dots.map((dot) => dot.title)") == titles
    for name in (titles[5], titles[9]):
        page.get_by_role("button", name=name, exact=True).click()
        expect_step(page, LESSON.steps[titles.index(name)])
        expect(page.locator(".vf-lesson-bar [aria-current=step]")).to_have_attribute("title", name)
    title = page.locator(".st-key-lesson").get_by_text(titles[9], exact=True)
    large, small = (
        element.evaluate("element => parseFloat(getComputedStyle(element).fontSize)")
        for element in (title, page.locator(".st-key-lesson").get_by_text(told(LESSON.steps[9], "say")))
    )
    assert large > 1.2 * small


@pytest.mark.full
def test_the_arithmetic_of_a_cell_stands_below_the_picture_and_is_gone_when_the_step_is_opened_again(open_app):
    page = open_app(query=at(5), width=1280, height=720)
    weights = page.locator(".vf-matrix[data-panel=pattern]")
    before = weights.bounding_box()
    layout = layout_of(page, ".vf-matrix[data-panel=pattern]")
    point = {"x": layout["left"] + 4.5 * layout["cellWidth"], "y": layout["top"] + 0.5 * layout["cellHeight"]}
    weights.click(position=point)
    box = page.locator(".vf-told").first
    expect(box).to_be_visible()
    wait_until_done(page)
    assert {**weights.bounding_box(), "y": 0} == {**before, "y": 0}, "at most scrolled"
    expect(page.locator(".vf-line .vf-where").first).to_contain_text("locked")
    weights.press("ArrowDown")
    expect(page.locator(".vf-line .vf-where").first).to_contain_text("locked")
    page.get_by_role("button", name=LESSON.steps[4].text("title", "en"), exact=True).click()
    expect(box).not_to_be_visible()
    expect(page.locator(".vf-line .vf-where").first).not_to_contain_text("locked")


@pytest.mark.full
def test_what_gets_the_focus_is_not_behind_the_bar(open_app):
    page = open_app(query=at(5), width=1024, height=640)
    last = page.locator(".st-key-page_body button:visible").last
    last.evaluate(
        """(button) => {
          const below = () => button.getBoundingClientRect().bottom - innerHeight + 10
          document.querySelector("[data-testid=stMain]").scrollTop += below()
          button.focus()
        }"""
    )
    box = last.bounding_box()
    assert box["y"] + box["height"] <= page.locator(".vf-lesson-bar").bounding_box()["y"]


@pytest.mark.full
def test_a_lesson_is_presented_without_its_bar_and_goes_on(open_app):
    page = open_app(query=at(10), width=1280, height=720)
    wait_until_done(page)
    places = controls(page)
    go_on(page, LESSON.steps[10])
    present(page)
    expect(page.locator(".vf-lesson-bar")).not_to_be_visible()
    expect(page.locator(".vf-weight")).to_have_text(re.compile(r"^(<0\.001|[01]\.\d{3})$"))
    before = page.evaluate("history.length")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".vf-look-for")).to_have_text(told(LESSON.steps[11], "say"))
    assert LESSON.steps[10].state.page != LESSON.steps[11].state.page
    assert page.evaluate("history.length") == before + 1, "one entry, on another page, too"
    page.keyboard.press("Escape")
    expect_step(page, LESSON.steps[11])
    assert controls(page) == places


@pytest.mark.full
def test_a_presented_lesson_ends_with_its_card_and_turns_back(open_app):
    short = lesson_file.load(url_state.SHORT)
    page = open_app(query=f"?lesson={url_state.SHORT}&step={len(short.steps)}", width=1280, height=720)
    wait_until_done(page)
    present(page)
    title, last = page.locator(".vf-step-title"), f"4/4 · {short.steps[-1].text('title', 'en')}"
    expect(title).to_have_text(last)
    page.keyboard.press("PageDown")
    expect(title).to_have_text("End · What you know now")
    expect(page.locator(".vf-look-for")).to_have_text(short.learnt_in("en"))
    expect(page.locator(".st-key-page_body canvas").first).not_to_be_visible()
    wait_until_done(page)
    page.keyboard.press("PageDown")  # there is nothing behind it
    page.keyboard.press("PageUp")
    expect(title).to_have_text(last)
    expect(page.locator(".st-key-page_body canvas").first).to_be_visible()


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
        expect(page.get_by_text(told(step, "say", language))).to_be_in_viewport(ratio=1)
        for host in page.locator("section:visible .vf-host").all():
            expect(host.locator("canvas").first).to_be_in_viewport()
            assert host.locator("canvas").first.bounding_box()["height"] > 10
        for image in page.locator("section:visible img").all():
            assert image.evaluate("image => image.complete && image.naturalWidth") > 100
        if number < COUNT:
            page.locator("body").press("ArrowRight")
    page.locator("nav a").nth(3).click()
    expect(page.locator("section:visible .vf-root")).to_have_attribute("data-query", "3")
    page.locator("section:visible").get_by_role("button", name="交叉注意力", exact=True).click()
    expect(page.locator("section:visible .vf-root")).to_have_attribute("data-stack", "decoder.cross_attn")


@pytest.mark.full
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
            assert "comes from" not in line.inner_text(), "only the app can tell"
        if number < COUNT:
            page.locator("section:visible .ways a").last.tap()


OWN = "I like cats."


@pytest.mark.full
def test_a_sentence_typed_right_before_next_goes_on_and_back(open_app):
    """Nobody presses Enter: the click comes before the server knows the sentence."""
    page = open_app(query=at(3), width=1280, height=720)
    box = page.get_by_label("Sentence", exact=True)
    box.fill(OWN)
    go_on(page, LESSON.steps[3])
    expect(box).to_have_value(OWN)
    go_on(page, LESSON.steps[4])
    expect(box).to_have_value(OWN)
    expect(page.locator(".st-key-lesson")).to_contain_text(told(LESSON.steps[4], "say", sentence=OWN))
    page.get_by_role("button", name="Back to step 5").click()
    expect(box).to_have_value(LESSON.steps[4].sentence)
    page.go_back()
    expect(box).to_have_value(OWN)
    page.go_back()
    expect_step(page, LESSON.steps[3])
    expect(box).to_have_value(OWN)


@pytest.mark.full
def test_on_a_slow_line_a_sentence_typed_right_before_next_goes_on_to_the_next_step(visitor):
    """The page that was left must not come back with its run."""
    page = visitor.page(width=1280, height=720)
    page.context.add_init_script(f"({DELAY_MESSAGES})(40)")
    page.goto(f"{visitor.server}/{at(3)}")
    page.locator(".vf-lesson-bar").wait_for()
    wait_until_done(page)
    box = page.get_by_label("Sentence", exact=True)
    box.fill(OWN)
    go_on(page, LESSON.steps[3])
    expect(box).to_have_value(OWN)
    assert (urlsplit(page.url).path, address_of(page)["step"]) == ("/attention", "4")
    page.go_back()
    expect_step(page, LESSON.steps[2])
    assert urlsplit(page.url).path == "/embedding"


@pytest.mark.full
def test_behind_the_last_step_no_step_is_put_back_and_the_box_takes_ones_own_sentence(open_app):
    count = len(lesson_file.load(url_state.SHORT).steps)
    page = open_app(query=f"?lesson={url_state.SHORT}&step={count}", width=1280, height=720)
    again = page.locator(".vf-lesson-bar .vf-again")
    expect(again).to_be_visible()
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.get_by_text("What you know now")).to_be_visible()
    expect(again).to_be_hidden()
    page.get_by_role("button", name="Your own sentence").click()
    box = page.get_by_label("Sentence", exact=True)
    expect(box).to_be_focused()
    page.keyboard.type(OWN)
    expect(box).to_have_value(OWN)
    page.go_back()
    expect_step(page, lesson_file.load(url_state.SHORT).steps[-1])


def bottom_of(element):
    box = element.bounding_box()
    return box["y"] + box["height"]


@pytest.mark.full
@pytest.mark.parametrize("size", [SIZES["projector"], SIZES["small laptop"]], ids=["projector", "small laptop"])
def test_the_line_below_a_picture_covers_none_of_it_until_a_cell_is_pointed_at(open_app, size):
    page = open_app(query=f"?lesson={url_state.SHORT}&step=4", width=size[0], height=size[1])
    picture = page.locator(".st-key-picture_decoding_attention")
    matrix, line = (picture.locator(one) for one in (".vf-matrix", ".vf-line"))
    matrix.wait_for()
    until(lambda: line.bounding_box()["y"] >= bottom_of(matrix))


def test_back_from_a_link_to_a_step_leaves_the_app(open_app):
    page = open_app(query="masks")
    page.goto(urlsplit(page.url)._replace(path="/", query=at(5).removeprefix("?")).geturl())
    expect_step(page, LESSON.steps[4])
    page.go_back()
    expect(page).to_have_url(re.compile("/masks"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_worksheet_asks_what_every_step_lets_one_try_and_answers_on_its_second_page(chromium, language):
    tab = chromium.new_page()
    tab.set_content(handout.worksheet(LESSON, language, model_of=model))
    asked, answered = (tab.locator(f"section:nth-of-type({n}) li").all_inner_texts() for n in (1, 2))
    assert len(asked) == len(answered) == COUNT
    assert "University" in asked[4], "the sentence's own words"
    assert not re.search("[{}]", " ".join([*asked, *answered]))
    assert len(re.findall(rb"/Type\s*/Page\b", tab.pdf(prefer_css_page_size=True))) == 2
    tab.close()
