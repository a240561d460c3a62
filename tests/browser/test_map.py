"""The whole model in Chromium: what it says and draws of every kind of model, and its controls in the app."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.bare import BarePage
from tests.browser.boxes import RECORD_LABELS, labels
from tests.browser.map_page import DRAWN, mount, open_map
from tests.browser.support import address_of, fingerprint, wait_until_done
from tests.kinds import trace_of
from tests.web.support import made_up_trace
from visformer.app.session.url_state import start
from visformer.i18n import translations
from visformer.web.chunks import Focus

FIRST, LAYER = start("en-zh").head + 1, start("en-zh").layer + 1  # in focus when the picture opens, counted from 1
REST = "Each Chinese word is joined to the English word it reads most."
FRAMES = "n => new Promise((done) => { const on = () => n-- > 0 ? requestAnimationFrame(on) : done(); on() })"

# Without a server -----------------------------------------------------------------------------------------------------

FIRST_AND_LAST = """async (button) => {
  const width = () => document.querySelector(".vf-place-button").getBoundingClientRect().width
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve(width())))
  button.click()
  const first = await frame()
  while (window.map.zooming) await frame()
  return [first, width()]
}"""
"""Click, and return the width of the first place in the first frame after, and once it no longer changes."""


WORDS = "如果 我们 中华人民共和国 在 Internationalization 和 Every 。 W teacher".split()
UNNAMED = {"en": r"… (\d+) more", "zh": r"… 其余 (\d+) 个"}


@pytest.mark.parametrize("width", [390, pytest.param(1000, marks=pytest.mark.full), 1400])
def test_names_of_tokens_do_not_touch_and_those_left_out_are_counted(chromium, width):
    bare, found = BarePage(chromium, width=width, script=RECORD_LABELS), []
    for n, lang in ((8, "en"), (17, "zh"), (26, "en"), (41, "zh"), (60, "en")):
        trace = made_up_trace(n_tgt=n, n_layers=1, tokens=[WORDS[i % len(WORDS)] for i in range(n)])
        page = mount(bare, trace, gettext=translations(lang).gettext, lang=lang)
        found += [f"{lang} {n}: {fault}" for fault in labels(page)["found"]]
        drawn = page.evaluate(DRAWN)
        named = [text for text in drawn if text in trace.tokens["tgt"]]
        counts = [int(match[1]) for match in (re.fullmatch(UNNAMED[lang], text) for text in drawn) if match]
        assert len(named) + sum(counts[1:]) == n, f"{n} tokens, named: {named}"
    bare.close()
    assert not found, "\n".join(found)


def test_the_first_step_completes_the_first_stage(bare):
    page = mount(bare, trace_of("en-zh"))
    page.get_by_role("button", name="One step on").click()
    expect(page.get_by_role("status")).to_have_text("The text is cut into 11 tokens.")
    assert trace_of("en-zh").tokens["src"][0] in page.evaluate(DRAWN)


PRESENTING = "on => { globalThis[Symbol.for('visformer.stage')].on = on }"


def test_a_step_that_there_is_not_is_left_to_the_page(bare):
    """In a presentation, the remote control goes on with the next page, also while the picture has the focus."""
    page = mount(bare, trace_of("bert"))
    page.evaluate("() => { window.passed = []; window.onkeydown = ({ key }) => window.passed.push(key) }")
    page.locator("canvas.vf-model").focus()
    for key in ("PageDown", "PageDown", "PageUp", "PageUp"):
        page.keyboard.press(key)
    assert page.evaluate("window.passed") == ["PageUp"]
    page.evaluate("window.map.go(Infinity)")
    page.evaluate(PRESENTING, True)
    page.keyboard.press("PageDown")
    assert page.evaluate("window.passed") == ["PageUp", "PageDown"]
    page.get_by_role("button", name="One step on").click()
    expect(page.get_by_role("status")).to_have_text("The text is cut into 12 tokens.")
    page.evaluate(PRESENTING, False)
    page.evaluate("() => { window.onkeydown = null }")


def test_a_presentation_counts_the_steps_of_the_play_and_leaves_it_at_once(bare):
    page, count = mount(bare, trace_of("bert")), bare.page.locator(".vf-count")
    page.get_by_role("button", name="One step on").click()
    expect(count).to_have_text("")
    page.evaluate("window.map.go(0)")
    page.evaluate(PRESENTING, True)
    n = page.evaluate("window.map.stops.length")
    for step in (1, 2):
        page.evaluate("window.map.advance(1)")
        expect(count).to_have_text(f"Step {step} of {n}")
        page.evaluate("window.map.advance(1)")  # what is playing is at its end at once
        assert page.evaluate(f"window.map.time === window.map.stops[{step - 1}]")
    page.locator("canvas.vf-model").press("End")
    expect(count).to_have_text("")
    assert page.evaluate("window.map.time === Infinity || window.map.time") is True
    assert not page.evaluate("window.map.advance(1)"), "the next key turns to the next page"
    page.evaluate(PRESENTING, False)


def test_the_first_play_ends_with_one_word_and_then_offers_the_others(bare):
    page = mount(bare, trace_of("en-zh"), focus=Focus("decoder.cross_attn", 0, 7))
    page.evaluate("window.map.toggle(); window.map.time = window.map.firstWord - 0.2")
    others = len(trace_of("en-zh").tokens["next"]) - 1
    button = page.get_by_role("button", name=f"Play the other {others} words")
    button.wait_for()
    n = len(trace_of("en-zh").tokens["src"])
    expect(page.get_by_role("status")).to_contain_text(
        f"the encoder hands over {n} vectors, one for each token of the source"
    )
    first, *_, last, _ = trace_of("en-zh").tokens["next"]
    drawn = page.evaluate(DRAWN)
    assert first in drawn
    assert last not in drawn, "not written yet"
    button.click()
    page.evaluate("window.map.speed = 100")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    assert last in page.evaluate(DRAWN)


def test_a_play_that_begins_close_by_is_followed_and_shows_no_numbers_before_they_are_computed(bare):
    page = mount(
        bare, trace_of("en-zh"), "decoder.1.cross_attn.8", hosted=True, focus=Focus("decoder.cross_attn", 0, 7)
    )
    digits = re.compile(r"[01]\.\d\d")
    assert [text for text in page.evaluate(DRAWN) if digits.fullmatch(text)]
    page.evaluate("window.map.time = 0.1; window.map.paint()")
    assert not [text for text in page.evaluate(DRAWN) if digits.fullmatch(text)]
    page.get_by_role("button", name="One step on").click()
    page.wait_for_function("!window.map.zooming")
    assert page.evaluate("window.map.place") is None
    assert page.evaluate("window.map.seen.scale") > 1, "where the tokens are"


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_who_wants_no_motion_sees_whole_stages_and_zooms_at_once(bare, motion):
    bare.page.emulate_media(reduced_motion=motion)
    page = mount(bare, trace_of("en-zh"), focus=Focus("encoder.self_attn", 1, 2))
    seen = []
    for seconds in ("0.2", "0.9"):
        page.get_by_role("slider", name="Where the play is").fill(seconds)
        seen.append(fingerprint(page, ".vf-model"))
    assert (seen[0] == seen[1]) == (motion == "reduce")
    page.get_by_role("slider", name="Where the play is").fill("1e9")
    first, last = page.get_by_role("button", name="Zoom in").evaluate(FIRST_AND_LAST)
    assert (first == last) == (motion == "reduce")
    bare.page.emulate_media(reduced_motion="no-preference")


# In the app -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared_page(visitors):
    return open_map(visitors)


def said_by(page):
    return page.locator(".vf-say").inner_text()


@pytest.fixture
def still(page):
    """No motion, so that a place is zoomed to at once."""
    page.emulate_media(reduced_motion="reduce")
    yield page
    page.emulate_media(reduced_motion="no-preference")


def test_the_head_under_the_pointer_says_what_it_reads_most(still):
    """tests/js/test_map.py compares what is said of every head with its weights."""
    page, name = still, "Cross-attention, layer 2, head 6"
    for place in ("Decoder · Layer 2", "Cross-attention"):
        page.locator(f'.vf-place-button[aria-label="{place}"]').press("Enter")
    box = page.locator(f'.vf-place-button[aria-label="{name}"]').bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert re.match(f"{name}. Head 6: “.+” reads most “.+” ", said_by(page))
    page.mouse.move(0, 0)
    page.get_by_role("button", name="The whole model", exact=True).last.click()
    expect(page.locator(".vf-say")).to_contain_text(REST)


SAID = """map => {
  const [say, canvas] = [map.querySelector(".vf-say"), map.querySelector("canvas.vf-model")]
  const { left, top, width, height } = canvas.getBoundingClientRect()
  const said = new Set()
  for (let y = 0; y < height; y += 2) for (let x = 1; x < width; x += width / 20) {
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: left + x, clientY: top + y }))
    said.add(say.textContent)
  }
  canvas.dispatchEvent(new PointerEvent("pointerleave"))
  return [...said]
}"""
"""Point at everything, and return what the caption says."""


def test_pointing_at_a_strand_says_whose_it_is_and_what_is_computed_from_it(still):
    handed = [text for text in still.locator(".vf-map").evaluate(SAID) if "(memory)" in text]
    assert len(handed) == 5 and all(
        "a vector of 256 numbers" in text and "a key and a value" in text for text in handed
    )
    for token in ("I", "like", "cats", ".", "</s>"):
        assert sum(f"“{token}”" in text for text in handed) == 1, token


AT_REST = """async () => {
  await Promise.allSettled(document.getAnimations().map((one) => one.finished))
}"""
ROOMS = """map => {
  const [say, canvas] = [map.querySelector(".vf-say"), map.querySelector("canvas.vf-model")]
  const rooms = new Set([say.offsetHeight])
  const { left, top, width, height } = canvas.getBoundingClientRect()
  for (let y = 4; y < height; y += 14) for (let x = 4; x < width; x += width / 5) {
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: left + x, clientY: top + y }))
    rooms.add(say.offsetHeight)
  }
  canvas.dispatchEvent(new PointerEvent("pointerleave"))
  return [...rooms]
}"""
"""Point at everything, and return the heights that the caption takes."""


@pytest.mark.full
def test_the_caption_keeps_its_room_whatever_is_pointed_at(page):
    """Or the picture would move away under the pointer."""
    for width, height in ((390, 844), (1280, 720)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(AT_REST)  # the side bar slides
        assert len(page.locator(".vf-map").evaluate(ROOMS)) == 1, width
    page.keyboard.press("p")
    page.locator(".vf-staged").wait_for()
    assert len(page.locator(".vf-map").evaluate(ROOMS)) == 1, "presenting"
    page.keyboard.press("Escape")


@pytest.mark.parametrize("size", [(1280, 720), (1024, 640), (390, 844)])
def test_words_and_lines_are_inside_the_window(page, size):
    width, height = size
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate(AT_REST)
    box = page.locator(".st-key-boxes").bounding_box()
    edge = box["y"] if box["y"] > height / 2 else height  # on a phone the sentence is there
    picture = page.locator("canvas.vf-model").bounding_box()
    assert picture["y"] + picture["height"] <= edge + 1, "the words and the lines are its lower edge"


def test_steps_lead_from_the_first_stage_to_the_end_and_back(page):
    """tests/js/test_map.py compares what is said of every stage."""
    on, back = (page.get_by_role("button", name=f"One step {direction}") for direction in ("on", "back"))
    slider = page.get_by_role("slider", name="Where the play is")
    on.click()
    assert re.fullmatch(r"The text is cut into \d+ tokens\.", said_by(page))
    on.click()
    assert said_by(page).startswith("Each token becomes a vector: a list of 256 numbers.")
    slider.fill(str(float(slider.get_attribute("max")) - 0.1))
    assert said_by(page) == "“</s>” ends the text."
    on.click()
    assert said_by(page).startswith(REST)
    back.click()
    assert said_by(page) == "“</s>” ends the text."
    slider.fill("1e9")
    assert said_by(page).startswith(REST)


def test_a_walk_by_keyboard_follows_a_head_plays_and_zooms_to_it_and_back(page):
    page.locator("canvas.vf-model").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile(f"head={FIRST - 1}"))
    wait_until_done(page)
    assert address_of(page)["head"] == str(FIRST - 1)
    assert said_by(page).startswith(REST)
    assert said_by(page).endswith(f"The lines are those of Cross-attention, layer {LAYER}, head {FIRST - 1}.")
    page.locator("canvas.vf-model").focus()
    zooms_in_and_out(page, ["The whole model", f"Decoder · Layer {LAYER}", "Cross-attention", f"Head {FIRST - 1}"])
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    page.locator(".vf-say").filter(has_text="The text is cut into").wait_for()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    slider = page.get_by_role("slider", name="Where the play is")
    stopped = float(slider.input_value())
    page.evaluate(FRAMES, 3)
    assert 0 <= stopped == float(slider.input_value())
    slider.fill("0.5")
    page.locator("canvas.vf-model").press("PageDown")
    assert said_by(page).startswith("Each token becomes a vector: a list of 256 numbers.")
    slider.fill("1e9")


@pytest.mark.full
def test_back_and_forward_follow_the_heads_of_their_addresses(visitor):
    page = open_map(visitor)
    page.locator("canvas.vf-model").focus()
    for head in (FIRST - 1, FIRST - 2):
        page.keyboard.press("ArrowLeft")
        page.wait_for_url(re.compile(f"head={head}"))
        wait_until_done(page)
    for go, back in ((page.go_back, 1), (page.go_back, 0), (page.go_forward, 1), (page.go_forward, 2)):
        head = FIRST - back
        go()
        expect(page.locator(".vf-say")).to_have_text(
            re.compile(REST if back == 0 else f"Cross-attention, layer {LAYER}, head {head}")
        )
        wait_until_done(page)
        assert address_of(page).get("head", str(FIRST)) == str(head)


def zooms_in_and_out(page, names):
    """Check the path of names while + zooms in and - zooms out."""
    path = page.locator(".vf-path button")
    expect(path).to_have_count(0)
    for n in range(2, len(names) + 1):
        page.keyboard.press("+")
        expect(path).to_have_text(names[:n])
    for n in range(len(names) - 1, 1, -1):
        page.keyboard.press("-")
        expect(path).to_have_text(names[:n])
    page.keyboard.press("-")
    expect(path).to_have_count(0)
    expect(page.get_by_role("button", name="Zoom out")).to_be_disabled()


def test_another_kind_of_model_replaces_the_picture(visitor):
    page = open_map(visitor)
    page.get_by_label("Model", exact=True).click()
    page.get_by_role("option", name="Decoder mini-gpt", exact=True).click()
    expect(page.locator(".vf-say")).to_contain_text("Each word is joined to the word it reads most.")
    wait_until_done(page)
    assert address_of(page)["stack"] == "decoder", "the address opens as it is"
    page.get_by_role("button", name="Play", exact=True).click()
    page.locator(".vf-say").filter(has_text="The text is cut into").wait_for()
