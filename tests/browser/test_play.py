"""How the weights of a query are computed, played on the page "Inside a head"."""

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
    inputs, weights, _ = head.steps(trace, place)
    bare.page.evaluate(MOUNT, text_of(pack_panels([inputs, weights], stages=head.stages(trace, place))))


def visible(page):
    """Return the names of the panels that are seen."""
    canvases = page.locator("canvas[data-panel]").all()
    return [canvas.get_attribute("data-panel") for canvas in canvases if canvas.is_visible()]


ALL = ["q", "k", "products", "scores", "masked", "pattern"]


def button(page, name):
    return page.get_by_role("button", name=name)


def test_play_shows_one_stage_after_the_other(playing, trace):
    page, told = playing.page, head.stages(trace, PLACE)
    say = page.locator(".vf-say")
    assert visible(page) == ALL
    expect(say).to_have_text("")
    button(page, "Play").click()
    for number, (panel, said) in enumerate(told):
        expect(say).to_have_text(said)
        assert visible(page) == ALL[: 3 + number]
        assert page.locator(".vf-now canvas").get_attribute("data-panel") == panel
        expect(button(page, "Pause")).to_be_visible()
        page.clock.run_for(STAGE_TIME)
    expect(button(page, "Play")).to_be_visible()
    expect(say).to_have_text(told[-1][1])
    assert visible(page) == ALL


def test_it_pauses_and_goes_step_by_step(playing, trace):
    page, said = playing.page, [said for _, said in head.stages(trace, PLACE)]
    say, back, on = page.locator(".vf-say"), button(page, "One step back"), button(page, "One step on")
    assert back.is_disabled() and on.is_enabled()
    button(page, "Play").click()
    page.clock.run_for(STAGE_TIME)
    button(page, "Pause").click()
    page.clock.run_for(3 * STAGE_TIME)
    expect(say).to_have_text(said[1])
    on.click()
    on.click()
    expect(say).to_have_text(said[3])
    assert on.is_disabled()
    back.click()
    expect(say).to_have_text(said[2])
    assert visible(page) == ALL[:5]


def test_another_query_begins_anew(playing, trace):
    page = playing.page
    button(page, "One step on").click()
    mount(playing, trace, head.Place(PLACE.path, PLACE.head, 1))
    expect(page.locator(".vf-say")).to_have_text("")
    assert visible(page) == ALL


@pytest.mark.parametrize(("motion", "moves"), [("no-preference", 1), ("reduce", 0)])
def test_panels_move_unless_motion_is_to_be_reduced(playing, motion, moves):
    page = playing.page
    page.emulate_media(reduced_motion=motion)
    button(page, "One step on").click()
    assert (button(page, "One step on").evaluate(MOVING) > 0) == bool(moves)
    assert visible(page) == ALL[:4]


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
    token, following = trace.tokens["tgt"][PLACE.query], trace.tokens["next"][PLACE.query]
    assert said.startswith(f"{value} q · \u2068{token} → {following}\u2069 · dimension (d_k) 0")


AT_REST = "async (one) => { await Promise.all(one.getRootNode().getAnimations().map((each) => each.finished)) }"
"""Wait until nothing moves: a row that comes in is fainter than it will be."""


@pytest.mark.full
def test_it_plays_in_the_app_and_is_legible(visitor):
    page = visitor.page(width=1280, height=720)
    page.goto(f"{visitor.server}/head?stack=decoder&layer=1&head=1&query=3")
    button(page, "Play").wait_for()
    wait_until_done(page)
    for part in ("The query of “去”", "Divided by √32", "Masked: 3 of 6 keys", "Softmax"):
        button(page, "One step on").click()  # not on the clock: a loaded machine may be slower than a stage
        expect(page.locator(".vf-say").first).to_contain_text(part)
    page.locator(".vf-say").first.evaluate(AT_REST)
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
    expect(page.locator(".vf-say").first).to_contain_text("The query of")
    assert not button(page, "Pause").is_visible()
