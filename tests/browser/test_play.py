"""How the output of a query is computed, played on the page "Inside a head"."""

import pytest
from playwright.sync_api import expect

from tests.browser.bare import BarePage, text_of
from tests.browser.support import wait_until_done
from tests.browser.test_legible import examined
from tests.support import tiny_translator
from visformer.pictures import head
from visformer.web.panels import pack_panels

PLACE = head.Place("decoder.1.self_attn", 1, 2)  # later tokens are masked
STAGE_TIME = 4000
MOUNT = """async (text) => {
  const { mountPanels } = await import("./panels/panels.js")
  const { readMessage } = await import("./shared/message.js")
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  if (window.panels) window.panels.update(readMessage(bytes))
  else window.panels = mountPanels(document.querySelector("#host"), readMessage(bytes))
}"""
MOVING = "button => { button.click(); return document.getAnimations().length }"


@pytest.fixture(scope="module")
def trace():
    return tiny_translator().trace("She likes the school.", "我喜欢学校。", record=("*",))


@pytest.fixture
def playing(chromium, trace):
    """The panels of a query, whose clock stands."""
    bare = BarePage(chromium)
    bare.page.clock.install(time=0)
    mount(bare, trace, PLACE)
    bare.page.clock.pause_at(3600)
    yield bare
    bare.close()


def mount(bare, trace, place):
    shown = pack_panels(head.steps(trace, place), stages=head.stages(trace, place))
    bare.page.evaluate(MOUNT, text_of(shown))


def visible(page):
    """Return the names of the panels that are seen."""
    canvases = page.locator("canvas[data-panel]").all()
    return [canvas.get_attribute("data-panel") for canvas in canvases if canvas.is_visible()]


AT_REST = ["input", "q", "k", "products", "scores", "masked", "pattern", "v", "heads"]
STAGES = (
    *(["input", f"w_{what}", f"b_{what}", what] for what in "qkv"),
    *(["q", "k", "products", "scores", "masked", "pattern"][:end] for end in (3, 4, 5, 6)),
    ["pattern", "v", "heads"],
    ["heads"],
    ["heads", "w_o", "share", "others", "out"],
)
"""The panels that are seen at each stage: of a few stages, one after the other."""


def button(page, name):
    return page.get_by_role("button", name=name)


def test_play_shows_one_stage_after_the_other(playing, trace):
    page, told = playing.page, head.stages(trace, PLACE)
    say = page.locator(".vf-say")
    assert visible(page) == AT_REST
    expect(say).to_have_text("")
    button(page, "Play").click()
    for number, (stage, seen) in enumerate(zip(told, STAGES, strict=True)):
        expect(say).to_have_text(stage.said)
        expect(page.locator(".vf-count")).to_have_text(f"{number + 1} / {len(STAGES)}")
        assert visible(page) == seen
        assert page.locator(".vf-now canvas").get_attribute("data-panel") == stage.panel
        expect(button(page, "Pause")).to_be_visible()
        page.clock.run_for(STAGE_TIME)
    expect(button(page, "Play")).to_be_visible()
    expect(say).to_have_text(told[-1].said)
    assert visible(page) == STAGES[-1]


def test_it_pauses_and_goes_step_by_step(playing, trace):
    page, said = playing.page, [stage.said for stage in head.stages(trace, PLACE)]
    say, back, on = page.locator(".vf-say"), button(page, "One step back"), button(page, "One step on")
    assert back.is_disabled() and on.is_enabled()
    button(page, "Play").click()
    page.clock.run_for(STAGE_TIME)
    button(page, "Pause").click()
    page.clock.run_for(3 * STAGE_TIME)
    expect(say).to_have_text(said[1])
    for at in range(2, len(said)):
        on.click()
        expect(say).to_have_text(said[at])
    assert on.is_disabled()
    for at in reversed(range(5, len(said) - 1)):
        back.click()
        expect(say).to_have_text(said[at])
    assert visible(page) == STAGES[5]


def test_another_query_begins_anew(playing, trace):
    page = playing.page
    button(page, "One step on").click()
    mount(playing, trace, head.Place(PLACE.path, PLACE.head, 1))
    expect(page.locator(".vf-say")).to_have_text("")
    assert visible(page) == AT_REST


@pytest.mark.parametrize(("motion", "moves"), [("no-preference", 1), ("reduce", 0)])
def test_panels_move_unless_motion_is_to_be_reduced(playing, motion, moves):
    page = playing.page
    page.emulate_media(reduced_motion=motion)
    button(page, "One step on").click()
    assert (button(page, "One step on").evaluate(MOVING) > 0) == bool(moves)
    assert visible(page) == STAGES[1]


def test_other_panels_have_no_such_bar(chromium, trace):
    bare = BarePage(chromium)
    bare.page.evaluate(MOUNT, text_of(pack_panels(head.joined(trace, PLACE))))
    assert not bare.page.locator(".vf-playbar").is_visible()
    bare.close()


def test_the_readout_separates_the_value_the_panel_and_the_cell(playing, trace):
    """Also for a screen reader, which knows no margins."""
    playing.page.locator("canvas[data-panel=q]").focus()
    playing.page.keyboard.press("ArrowRight")
    (value,) = playing.page.locator(".vf-value").all_inner_texts()
    said = playing.page.locator(".vf-line").evaluate("line => line.textContent")
    token = trace.tokens["tgt"][PLACE.query]
    assert said.startswith(f"{value} q = x · W_Q + b_Q · \u2068{token}\u2069 · dimension (d_k) 0")


def test_the_arithmetic_of_a_clicked_cell_stands_below_the_picture_as_long_as_it_is_locked(playing, trace):
    page, told = playing.page, head.written_out(trace, PLACE, "q", 0)
    box, q = page.locator(".vf-told"), page.locator("canvas[data-panel=q]")
    page.evaluate("window.panels.destroy()")
    page.locator("#host").evaluate("(host) => { host.replaceChildren(); window.panels = null }")
    shown = head.steps(trace, PLACE)
    for text in ("", told):  # the page answers the click
        message = text_of(pack_panels(shown, stages=head.stages(trace, PLACE), told=text))
        page.evaluate(MOUNT.replace("readMessage(bytes))\n}", "readMessage(bytes), { onClick: () => {} })\n}"), message)
        if not text:
            assert not box.is_visible()
            q.focus()
            page.keyboard.press("ArrowRight")
            page.keyboard.press("Enter")
    expect(box).to_have_text(told)
    page.keyboard.press("ArrowRight")
    assert not box.is_visible(), "of another cell"
    page.keyboard.press("ArrowLeft")
    expect(box).to_be_visible()
    page.keyboard.press("Escape")
    assert not box.is_visible()


@pytest.mark.parametrize("size", [(1280, 720), (1024, 640)], ids=str)
def test_every_stage_fits_the_window(playing, size):
    page = playing.page
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    page.locator("#host").evaluate("(host) => { host.style.paddingTop = '420px' }")  # what a page has above it
    for _ in STAGES:
        button(page, "One step on").click()
        for part in (".vf-playbar", ".vf-now", ".vf-strip"):
            top, bottom = page.locator(part).evaluate(
                "(e) => { const r = e.getBoundingClientRect(); return [r.top, r.bottom] }"
            )
            assert top >= 0 and bottom <= size[1], (page.locator(".vf-say").inner_text(), part)


STILL = "async (one) => { await Promise.all(one.getRootNode().getAnimations().map((each) => each.finished)) }"
"""Wait until nothing moves: a row that comes in is fainter than it will be."""


@pytest.mark.full
def test_it_plays_in_the_app_and_is_legible(visitor):
    page = visitor.page(width=1280, height=720)
    page.goto(f"{visitor.server}/head?stack=decoder&layer=1&head=1&query=3")
    button(page, "Play").wait_for()
    wait_until_done(page)
    for part in (
        "x is the vector of “去”",
        "W_K",
        "W_V",
        "“去” times",
        "Divided by √32",
        "Masked: 3 of 6 keys",
        "Softmax",
    ):
        button(page, "One step on").click()  # not on the clock: a loaded machine may be slower than a stage
        expect(page.locator(".vf-say").first).to_contain_text(part)
    page.locator(".vf-say").first.evaluate(STILL)
    assert not examined(page)


@pytest.mark.full
def test_the_space_bar_plays_in_a_presentation(visitor):
    page = visitor.page(width=1280, height=720)
    page.goto(f"{visitor.server}/head")
    button(page, "Play").wait_for()
    wait_until_done(page)
    page.keyboard.press("p")
    page.locator("html.vf-presenting").wait_for(state="attached")
    page.keyboard.press(" ")
    expect(page.locator(".vf-say").first).to_contain_text("x is the vector of")
    assert not button(page, "Pause").is_visible()
