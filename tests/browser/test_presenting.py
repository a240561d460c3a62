"""Presentations: how they start and end, their keys and notes, and phones that follow."""

import io
import re
from urllib.parse import quote_plus

import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import expect

from tests.browser.stage import OVERFLOW, VISIBLE, check_in_window, open_at, present, settled, stable
from tests.browser.support import address_of, go_to, point_of_cell, state_of, wait_for_panels, wait_until_done
from visformer.pictures.lab import examples

LONG = "The northeastern universities and their visualisations of incomprehensibly differentiated architectures."

STATE = """() => ({ scrolled: document.querySelector("[data-testid=stMain]").scrollTop,
  boxes: [...document.querySelectorAll("[data-testid=stElementContainer]")].map((one) => {
    const box = one.getBoundingClientRect()
    return [box.left, box.top, box.width, box.height].map(Math.round)
  }),
  style: document.querySelector("[data-testid=stMainBlockContainer]").getAttribute("style"),
  focused: document.activeElement.outerHTML.slice(0, 80) })"""
"""The state of the page that ending a presentation has to restore."""


@pytest.mark.parametrize("name", ["masks", pytest.param("decoding", marks=pytest.mark.full)])
def test_ending_a_presentation_restores_the_page(visitor, name):
    """A page of panels and one of curves; test_presentation_steps.py tests the others while they are presented."""
    page = open_at(visitor, name)
    page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 30)")
    before = stable(page, STATE)
    present(page)
    check_in_window(page)
    page.keyboard.press("Escape")
    page.locator("html:not(.vf-presenting)").wait_for(state="attached")
    page.wait_for_timeout(600)
    assert stable(page, STATE) == before


def test_a_presentation_is_1_6_times_as_large_and_has_maximum_contrast(visitor):
    page = open_at(visitor, "attention", query="?view=heatmap")
    canvas = page.locator(".vf-large")
    font_size = "element => parseFloat(getComputedStyle(element).fontSize)"
    label_width = "canvas => Number(canvas.dataset.left)"
    caption = page.get_by_text("Each word reads others").first
    font_before, height_before = caption.evaluate(font_size), page.locator(".vf-place").bounding_box()["height"]
    label_before = canvas.evaluate(label_width)
    present(page)
    assert page.locator(".vf-look-for").evaluate(font_size) == pytest.approx(1.6 * font_before)
    assert page.locator(".vf-place").bounding_box()["height"] == pytest.approx(1.6 * height_before, rel=0.02)
    zoom = canvas.evaluate("canvas => canvas.getBoundingClientRect().width / parseFloat(canvas.style.width)")
    assert zoom == pytest.approx(1.6, rel=1e-3)
    assert canvas.evaluate("canvas => canvas.width") == pytest.approx(canvas.bounding_box()["width"], abs=2), "sharp"
    assert canvas.evaluate(label_width) == label_before, "in units that are 1.6 times as large"
    check_contrast(page)
    check_cell_under_the_pointer(page)


def check_contrast(page):
    """Check for black on white in light mode, and white on black in dark mode."""
    for scheme, ink, paper in (
        ("light", "rgb(0, 0, 0)", "rgb(255, 255, 255)"),
        ("dark", "rgb(255, 255, 255)", "rgb(0, 0, 0)"),
    ):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("[data-testid=stApp]")).to_have_css("background-color", paper)
        assert page.locator(".vf-look-for").evaluate("element => getComputedStyle(element).color") == ink
        for selector in (".vf-root", "[data-testid=stApp]"):
            colour = page.locator(selector).evaluate("element => getComputedStyle(element).backgroundColor")
            assert colour == paper, selector


def check_cell_under_the_pointer(page):
    box, point = page.locator(".vf-large").bounding_box(), point_of_cell(page, 2, 3)
    page.mouse.move(box["x"] + 1.6 * point["x"], box["y"] + 1.6 * point["y"])
    assert (state_of(page)["query"], state_of(page)["key"]) == ("2", "3")


def rows_of(figure):
    """Return the texts of the rows of a presented table that are on the screen."""
    return [row.locator("td").all_text_contents() for row in figure.locator("tbody tr").filter(visible=True).all()]


@pytest.mark.full
def test_tables_are_sharp_text_in_whole_rows_with_their_titles(visitor):
    page = open_at(
        visitor,
        "embedding",
        query=f"?text={quote_plus(LONG)}",
    )
    present(page)
    expect(page.locator("canvas:visible")).to_have_count(0)
    figures = page.locator(".vf-table-box")
    titles = [figure.locator("figcaption").text_content() for figure in figures.all()]
    assert titles == ["The tokens and their ids", "How letters are merged"]
    shown = {title: [] for title in titles}
    for _ in range(50):
        check_in_window(page)
        for figure in figures.filter(visible=True).all():
            shown[figure.locator("figcaption").inner_text()] += rows_of(figure)
            assert figure.locator("td").first.evaluate("cell => getComputedStyle(cell).fontSize") == "22.4px"
        part, count = page.locator(".vf-rows").inner_text().removeprefix("Part ").split(":")[0].split(" of ")
        if part == count:
            break
        page.keyboard.press("ArrowRight")
        page.locator(".vf-rows").get_by_text(f"Part {int(part) + 1} of").wait_for()
    assert int(count) == int(part) > 2
    for title, figure in zip(titles, figures.all(), strict=True):
        every = figure.locator("tbody tr").evaluate_all(
            "rows => rows.map((row) => [...row.cells].map((c) => c.textContent))"
        )
        assert shown[title] == every
        assert not [cell for row in every for cell in row if cell.endswith("…")]
    page.set_viewport_size({"width": 3840, "height": 2160})
    expect(figures.filter(visible=True)).to_have_count(2)
    stable(page, VISIBLE)
    check_in_window(page)


@pytest.mark.full
def test_an_example_that_cannot_be_computed_shows_its_inputs(visitor):
    page = open_at(visitor, "lab", query="?lab_example=broken")
    present(page)
    check_in_window(page)
    expect(page.locator("canvas:visible")).to_have_count(0)
    inputs = examples()["broken"].inputs
    assert page.locator(".vf-table-title").all_inner_texts() == [*inputs]
    for figure, values in zip(page.locator(".vf-table-box").all(), inputs.values(), strict=True):
        assert rows_of(figure) == [[f"{value:g}" for value in row] for row in values]


@pytest.mark.full
def test_long_text_is_smaller_and_not_cut(visitor):
    page = open_at(visitor, "masks", query=f"?text={'The+old+cat+sleeps+on+the+chair.+' * 12}")
    present(page)
    for line in (".vf-said", ".vf-look-for"):
        box = page.locator(line)
        assert box.evaluate(
            "line => line.scrollWidth <= line.clientWidth && line.scrollHeight <= line.clientHeight + 1"
        )
        assert box.evaluate("line => getComputedStyle(line).textOverflow") == "clip"
        assert box.evaluate("line => getComputedStyle(line).webkitLineClamp") == "none"
    assert page.locator(".vf-lines").bounding_box()["height"] <= 0.25 * 720
    check_in_window(page)


@pytest.mark.full
def test_curves_are_enlarged_below_the_text(visitor):
    page = open_at(visitor, "decoding")
    present(page)
    check_in_window(page)
    zoom = page.evaluate("Number(getComputedStyle(document.documentElement).getPropertyValue('--vf-zoom'))")
    text = page.locator(".vf-lines").bounding_box()
    for one in page.locator(".stPlotlyChart .main-svg").filter(visible=True).all():
        box = one.bounding_box()
        assert box["width"] == pytest.approx(zoom * one.evaluate("element => element.clientWidth"), rel=0.01)
        assert box["y"] >= text["y"] + text["height"]
        assert box["x"] >= 20 and box["x"] + box["width"] <= 1280 - 20


@pytest.mark.full
def test_the_rows_beside_curves_are_apart_and_have_their_numbers(visitor):
    """The last step of the short lesson: two lines of text, a row of its own, and a matrix beside a curve."""
    page = open_at(visitor, "decoding", query="?lesson=attention-in-three-minutes&step=4")
    present(page)
    rows = page.locator(".st-key-picture_decoding_attention .vf-matrix")
    assert float(rows.get_attribute("data-cell-height")) >= 15, "a line of a label"
    check_in_window(page)


@pytest.mark.full
def test_a_step_may_come_while_the_page_has_no_width(visitor):
    """A browser that is still laying out the page calls the pictures all the same."""
    page = open_at(visitor, "positions", query="?v=2&positions_view=learned")
    present(page)
    before = settled(page)
    narrow = page.add_style_tag(content="[data-testid=stMainBlockContainer] { display: none }")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile("positions_view=rotary"))
    wait_until_done(page)
    narrow.evaluate("style => style.remove()")
    after = settled(page, after=before)
    check_in_window(page, after)


@pytest.mark.full
def test_a_presentation_says_how_it_ends(visitor):
    page = open_at(visitor, "masks")
    page.keyboard.press("p")
    says = page.locator(".vf-stage").get_by_text("p or Esc ends the presentation")
    expect(says).to_be_visible()
    expect(page.locator(".vf-leave")).to_be_hidden()
    expect(says).to_be_hidden()
    page.mouse.move(640, 700)
    expect(page.locator(".vf-leave")).to_be_visible()


@pytest.mark.full
def test_on_a_phone_the_buttons_stay_below_the_picture(visitor):
    page = open_at(visitor, "masks", size=(390, 844), touch=True)
    present(page)
    page.wait_for_timeout(6000)  # longer than the buttons stay elsewhere
    bar = page.locator(".vf-acts")
    expect(bar.locator("button:visible")).to_have_count(6)
    expect(page.locator(".vf-leaving")).to_be_hidden()
    box = bar.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    for button in bar.get_by_role("button").all():
        assert min(button.bounding_box()[side] for side in ("width", "height")) >= 44
    for matrix in page.locator(".vf-matrix:visible").all():
        assert matrix.bounding_box()["y"] + matrix.bounding_box()["height"] <= box["y"]
    bar.get_by_role("button", name="End").tap()
    expect(page.locator("html.vf-presenting")).to_have_count(0)


@pytest.mark.full
@pytest.mark.parametrize(
    "size",
    [pytest.param((1280, 720), id="projector"), pytest.param((390, 844), id="phone")],
)
def test_a_curve_takes_its_half_of_the_window_without_plotlys_buttons(visitor, size):
    page = open_at(visitor, "decoding", size=size, scheme="dark")  # later, another theme would draw the curve anew
    present(page)
    plot = page.locator(".stPlotlyChart .main-svg").first
    curve, panel = plot.bounding_box(), page.locator(".st-key-picture_decoding_attention").bounding_box()
    zoom = page.evaluate("Number(document.documentElement.style.getPropertyValue('--vf-zoom'))")
    assert curve["width"] == pytest.approx(max(150 * zoom, panel["width"]), abs=2)  # 150: Plotly's least
    assert curve["x"] < panel["x"] and panel["y"] < curve["y"] + curve["height"], "beside each other"
    assert size[1] - 40 < curve["y"] + curve["height"] <= size[1]
    if size[0] > 400:
        matrix = page.locator(".st-key-picture_decoding_attention .vf-matrix").bounding_box()
        assert matrix["width"] > 0.85 * panel["width"], "a low matrix is wide"
    whole = page.locator(".st-key-picture_decoding_bars").bounding_box()  # which cuts off what is outside
    assert whole["y"] + whole["height"] >= curve["y"] + curve["height"] - 1
    assert plot.evaluate("element => getComputedStyle(element).backgroundColor") == "rgba(0, 0, 0, 0)"
    plot.hover(force=True)
    expect(page.locator(".modebar")).to_be_hidden()


@pytest.mark.full
def test_the_button_starts_a_presentation_and_letters_typed_in_a_box_do_not(visitor):
    page = open_at(visitor, "attention")
    box = page.get_by_label("Sentence", exact=True)
    box.press("p")
    box.press("n")
    expect(page.locator("html.vf-presenting")).to_have_count(0)
    button = page.get_by_role("button", name="Present")
    assert "p" in button.get_attribute("title")
    button.click()
    page.locator("html.vf-presenting").wait_for(state="attached")
    page.mouse.move(640, 700)
    for name in ("←", "→", "Note", "QR code", "End"):
        target = page.locator(".vf-acts").get_by_role("button", name=name, exact=True).bounding_box()
        assert min(target["width"], target["height"]) >= 44
    page.locator(".vf-acts").get_by_role("button", name="End").click()
    expect(page.locator("html.vf-presenting")).to_have_count(0)


def test_arrow_keys_and_a_remote_control_go_to_the_next_step_and_page(visitor):
    page = open_at(visitor, "attention")
    present(page)
    expect(page.locator(".vf-part")).to_have_text("Part 1 of 3")
    stacks = [state_of(page)["stack"]]
    for key in ("ArrowRight", "PageDown"):
        page.keyboard.press(key)
        stacks.append(state_of(page)["stack"])
        page.wait_for_timeout(150)  # nobody presses keys faster
    assert stacks == ["decoder.cross_attn", "encoder.self_attn", "decoder.self_attn"]
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/embedding*")
    expect(page.get_by_text("There is no sentence yet")).to_have_count(0)
    expect(page.locator(".vf-look-for")).to_contain_text("A word in the vocabulary is one token")
    expect(page.locator("html.vf-presenting")).to_have_count(1)
    page.keyboard.press("PageUp")
    page.locator(".vf-thumbs").wait_for()
    page.locator(".vf-thumbs").focus()
    page.keyboard.press("ArrowLeft")  # goes to the head before when the overview has the focus
    assert state_of(page)["head"] == "6"


@pytest.mark.full
def test_a_note_belongs_to_its_step(visitor):
    page = open_at(visitor, "masks")
    present(page)
    expect(page.locator(".vf-note-line input")).to_be_hidden()
    page.keyboard.press("n")
    page.locator(".vf-note-line input").fill("padding q p")
    page.keyboard.press("Enter")
    assert page.evaluate(OVERFLOW) <= 0
    position = settled(page)
    for _ in range(8):  # the first step has several parts
        page.keyboard.press("ArrowRight")
        position = settled(page, after=position)
        if position[1] == "2/4":
            break
    expect(page.locator(".vf-step")).to_have_text("2/4")
    expect(page.locator(".vf-note-line input")).to_have_value("")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".vf-note-line input")).to_have_value("padding q p")
    page.mouse.move(640, 700)
    bar, note = (page.locator(name).bounding_box() for name in (".vf-acts", ".vf-note-line"))
    expect(page.locator(".vf-acts")).to_be_visible()
    assert bar["y"] + bar["height"] <= note["y"], "the buttons do not cover the note"
    page.keyboard.press("Escape")
    page.keyboard.press("p")
    page.locator("html.vf-presenting").wait_for(state="attached")
    expect(page.locator(".vf-note-line input")).to_be_hidden()


def read_qr_code(page):
    """Return the text of the QR code on the screen."""
    page.locator(".vf-code-image svg").wait_for()
    (code,) = zxingcpp.read_barcodes(Image.open(io.BytesIO(page.screenshot())))
    return code.text


def test_the_note_takes_the_focus_and_gives_it_back(visitor):
    page = open_at(visitor, "masks")
    page.locator(".vf-matrix").first.focus()
    present(page)
    note, code = page.locator(".vf-note-line input"), page.locator(".vf-code-box")
    page.keyboard.press("n")
    expect(note).to_be_focused()
    page.keyboard.type("pnq?")  # all of them are shortcuts elsewhere
    expect(note).to_have_value("pnq?")
    expect(code).to_be_hidden()
    page.keyboard.press("Escape")
    expect(note).to_be_hidden()
    expect(page.locator(".vf-matrix").first).to_be_focused()
    expect(page.locator("html.vf-presenting")).to_have_count(1)
    page.keyboard.press("n")
    expect(note).to_have_value("pnq?")
    page.keyboard.press("Enter")
    expect(note).to_be_visible()
    expect(page.locator(".vf-matrix").first).to_be_focused()
    page.keyboard.press("q")
    expect(code).to_be_visible()
    assert read_qr_code(page) == page.url
    page.keyboard.press("n")
    expect(note).to_be_visible()


@pytest.mark.full
def test_keys_typed_in_any_editable_element_are_no_shortcuts_and_others_are(visitor):
    page = open_at(visitor, "masks")
    page.evaluate(
        """() => { for (const [id, value] of [["a", ""], ["b", "true"], ["c", "plaintext-only"]]) {
          const box = document.createElement("div")
          box.id = `edited_${id}`
          box.setAttribute("contenteditable", value)
          document.body.append(box)
        } }"""
    )
    for box in ("a", "b", "c"):
        page.locator(f"#edited_{box}").focus()
        page.keyboard.type("p")
        expect(page.locator(f"#edited_{box}")).to_have_text("p")
        expect(page.locator("html.vf-presenting")).to_have_count(0)
    page.locator("[role=radio]:visible").first.focus()
    page.keyboard.press("p")
    expect(page.locator("html.vf-presenting")).to_have_count(1)


KEYS = """
  const element = document.body.appendChild(document.createElement("div"))
  const asked = [], counts = []
  const host = { sheet: "", body: () => null, pictures: () => [], onStep: (by) => asked.push(by), onAsk() {} }
  const message = (taken) => ({ words: {}, tables: [], place: "masks", at: "", note: "", taken })
  const view = m.mountPresent(element, message(0), host)
  const frame = () => new Promise(requestAnimationFrame)
  for (const act of args) {
    if (typeof act === "number") view.update(message(act))
    else document.body.dispatchEvent(new KeyboardEvent("keydown", { key: act, bubbles: true }))
    await frame()
    await frame()
    counts.push(asked.length)
  }
  view.destroy()
  element.remove()
  return [asked, counts]
"""


def test_keys_pressed_before_a_step_is_drawn_are_taken_one_by_one(bare):
    acts = ["p", "ArrowRight", "ArrowRight", "ArrowLeft", 1, 2, 3, "ArrowRight", "p"]
    asked, counts = bare.run("presentation/present.js", KEYS, acts)
    assert asked == [1, 1, -1, 1]
    assert counts == [0, 1, 1, 1, 2, 3, 3, 4, 4]


def open_following_phone(page, visitor, server):
    """Let the room follow, and open the address in the QR code on a phone.

    Its scale gives it a browser context of its own: a new page clears the storage of its context, where the presenter's
    tab has the key of the room.
    """
    page.get_by_role("button", name="Let the room follow").click()
    expect(page.locator(".vf-address")).to_contain_text("follow=")
    phone = open_at(visitor, "attention", query=read_qr_code(page).removeprefix(f"{server}/"), scale=2)
    page.keyboard.press("Escape")
    return phone


@pytest.mark.full
def test_a_phone_that_scans_the_qr_code_follows_until_it_leaves(visitor, server):
    page = open_at(visitor, "masks", query="?masks_view=scores&text=I+like+cats.")
    present(page)
    page.keyboard.press("q")
    assert read_qr_code(page) == page.url
    assert address_of(page) == {"masks_view": "scores", "text": "I like cats."}
    expect(page.locator(".vf-code-hint")).to_contain_text("Only this computer")
    phone = open_following_phone(page, visitor, server)
    phone.wait_for_url("**/masks?*follow=*")
    expect(page.locator("html.vf-presenting")).to_have_count(1)
    while address_of(page)["masks_view"] == "scores":  # shown in parts
        page.keyboard.press("ArrowRight")
        settled(page)
    phone.get_by_role("slider", name="Tokens read so far").wait_for()
    position = settled(page)
    for _ in range(2):
        page.keyboard.press("ArrowRight")
        position = settled(page, after=position)
    phone.wait_for_url("**/head?*follow=*")
    wait_for_panels(phone)
    phone.get_by_role("button", name="Browse on my own").click()
    phone.get_by_role("button", name="Follow the presenter again").wait_for()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**/masks*")
    page.wait_for_timeout(500)
    assert "/head" in phone.url
    phone.get_by_role("button", name="Follow the presenter again").click()
    phone.wait_for_url("**/masks?*follow=*")


@pytest.mark.full
def test_the_safe_button_beside_the_code_of_a_room_is_the_primary_one(visitor):
    page = open_at(visitor, "masks")
    page.get_by_role("button", name="QR code").first.click()
    dialog = page.locator(".vf-code-box")
    follow, hide, end = (
        dialog.get_by_role("button", name=name) for name in ("Let the room follow", "Hide the code", "End the room")
    )
    expect(end).to_be_hidden()
    follow.click()
    expect(end).to_be_visible()
    expect(follow).to_be_hidden()
    expect(hide).to_be_focused()
    expect(hide).to_have_css("background-color", "rgb(0, 0, 0)")
    end.hover()
    expect(end).to_have_css("background-color", "rgb(255, 255, 255)")
    assert hide.bounding_box()["x"] < end.bounding_box()["x"], "where the button was that opened the room"
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.get_by_text("The audience follows")).to_be_visible()


@pytest.mark.full
def test_a_room_survives_a_reload_and_its_phones_say_when_the_presenter_is_gone(visitor, server):
    page = open_at(visitor, "masks")
    page.get_by_role("button", name="QR code").first.click()
    phone = open_following_phone(page, visitor, server)
    expect(page.get_by_text("The audience follows")).to_be_visible()
    page.reload()
    page.reload()
    expect(page.get_by_text("The audience follows")).to_be_visible()
    secret = page.evaluate("sessionStorage.getItem('visformer.room')")
    assert secret
    assert not {secret, secret.partition(".")[2]} & {page.url, *address_of(page).values()}
    go_to(page, "Embedding + position")
    phone.wait_for_url("**/embedding?*follow=*")
    expect(phone.get_by_text("You are following the presenter.")).to_be_visible()
    page.goto("about:blank")
    expect(phone.get_by_text("The presenter's browser is not connected")).to_be_visible()
    page.go_back()
    expect(phone.get_by_text("You are following the presenter.")).to_be_visible()
    page.get_by_role("button", name="End the room").click()
    expect(phone.get_by_text("this room is closed")).to_be_visible()
    page.wait_for_function("() => !sessionStorage.getItem('visformer.room')")


@pytest.mark.full
def test_a_remote_control_begins_the_play_and_another_sentence_is_typed_while_presenting(visitor):
    page = open_at(visitor, "", query="?v=2&text=I+like+cats.")
    present(page)
    page.keyboard.press("PageDown")
    play = page.locator(".vf-play")
    expect(play).to_have_text("Pause")
    count = page.locator(".vf-count")
    expect(count).to_have_text("Step 1 of 8")
    for step in (1, 2):  # what is playing is at its end at once
        page.keyboard.press("PageDown")
        expect(play).to_have_text("Play" if step == 1 else "Pause")
        expect(count).to_have_text(f"Step {step} of 8")
    expect(play).to_have_text("Play")  # it pauses by itself
    expect(count).to_have_text("Step 2 of 8")
    page.keyboard.press("t")
    box = page.get_by_role("textbox", name="Another sentence")
    expect(box).to_have_value("I like cats.")
    page.keyboard.type("I like books.")
    page.keyboard.press("Enter")
    expect(page.locator(".vf-said")).to_contain_text("I like books.    Translation: 我喜欢书。")
    expect(box).to_be_hidden()
    page.keyboard.press("t")
    page.keyboard.type("no")
    page.keyboard.press("Escape")
    expect(page.locator(".vf-said")).to_contain_text("I like books.")
    page.wait_for_url(re.compile("books"))  # the address comes last
    page.reload()
    expect(page.locator("html.vf-presenting")).to_have_count(1)
    expect(page.locator(".vf-said")).to_contain_text("I like books.")
    page.keyboard.press("p")
    expect(page.locator("html.vf-presenting")).to_have_count(0)
    page.reload()
    expect(page.locator("canvas.vf-model")).to_be_visible()
    expect(page.locator("html.vf-presenting")).to_have_count(0)


def test_the_presenters_own_window_has_notes_and_what_comes_next_and_the_projector_has_not(visitor):
    page = open_at(visitor, "", query="?lesson=from-text-to-translation&step=4&lang=en")
    present(page)
    with page.context.expect_page() as opening:
        page.keyboard.press("d")
    own = opening.value
    expect(own.get_by_role("heading", level=1)).to_have_text("Who attends to whom")
    note = own.get_by_role("textbox")
    expect(note).to_have_value(re.compile("Attention says what the head collects"))
    expect(own.locator(".vf-next-title")).to_have_text("Query, key and value")
    assert own.url.endswith("#") or "#" not in own.url, "the key is in no address"
    wait_until_done(page)
    page.keyboard.press("PageDown")
    expect(own.get_by_role("heading", level=1)).to_have_text("Query, key and value")
    note.fill("my own words")
    own.reload()
    expect(note).to_have_value("my own words")
    assert "my own words" not in page.locator("body").inner_text()
    assert own.evaluate("document.documentElement.scrollWidth <= innerWidth")
