"""The keys of a presentation, its help and its text, on a bare page without a server."""

from itertools import count

import pytest
from playwright.sync_api import expect

from tests.browser.support import layout_of, state_of
from tests.web.support import made_up_trace
from visformer.app.presentation import presenting
from visformer.web.bundle import stylesheet

SHEET = stylesheet("streamlit_private/presentation.css")
MOUNT = """
  window.presented?.view.destroy()
  document.querySelector("#present")?.remove()
  const element = document.body.appendChild(document.createElement("div"))
  element.id = "present"
  const asked = []
  const host = { sheet: args.sheet, body: () => document.querySelector("#host"), onAsk() {},
    pictures: () => (args.pictures ? [document.querySelector("#host")] : []),
    onStep: (by) => asked.push(["step", by]), onTurn: (by) => asked.push(["turn", by]),
    onMoment: (to) => asked.push(["moment", to]) }
  window.presented = { asked, view: m.mountPresent(element, args.message, host) }
"""
TITLE, SAY = "Who reads whom", "Each row is a token of the translation, each column a token of the sentence."
STACKS = ["encoder.self_attn", "decoder.self_attn"]
TAKEN = count()  # no test waits for a step of the one before
OWN = ["t", "n", "q", "d", "p", "Esc", "?"]
TURNS = ["→ ↓ PageDown", "← ↑ PageUp"]
OF_EXPLORER = [*"svmlowx", "+ − 0"]


@pytest.fixture
def present(bare):
    """Returns a function that presents the explorer, or a page without it, and ends when the test does."""
    page = bare.page

    def begin(*, guided=False, explorer=True, size=(1280, 720), **texts):
        page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
        if explorer:
            bare.mount(made_up_trace(7, 7, n_heads=8))
        message = {
            "words": {name: str(text) for name, text in presenting._WORDS.items()},
            "keys": (presenting._LESSON_TURNS if guided else presenting._TURNS) + presenting._KEYS,
            "picture_keys": presenting._LESSON_PICTURE_KEYS if guided else presenting._PICTURE_KEYS,
            **{
                "tables": [],
                "place": "page 1/4",
                "at": "1/4",
                "note": "",
                "typed": "I like cats.",
                "guided": guided,
                "taken": next(TAKEN),
            },
            **texts,
        }
        page.add_style_tag(content=stylesheet("presentation/present.css"))
        args = {"message": message, "sheet": SHEET, "pictures": explorer}
        bare.run("presentation/present.js", MOUNT, args)
        page.keyboard.press("p")
        page.locator("html.vf-presenting").wait_for(state="attached")
        return page

    yield begin
    page.evaluate(
        """() => {
          if (document.documentElement.classList.contains("vf-presenting")) window.presented.view.show(false)
          window.presented.view.destroy()
          window.explorer.view?.destroy()
          window.explorer.view = null
        }"""
    )


def asked(page):
    return page.evaluate("presented.asked")


def listed(page):
    """Return the keys in the help."""
    return page.locator("#present .vf-help .vf-keys:not(.vf-meanings) .vf-key").all_inner_texts()


@pytest.mark.parametrize("size", [(1280, 720), (390, 844), (640, 300)], ids=["projector", "phone", "low"])
def test_the_help_is_in_the_window_above_all_else_and_scrolls(present, size):
    page = present(size=size)
    page.keyboard.press("?")
    help_ = page.get_by_role("dialog", name="Keys")
    expect(help_).to_be_focused()
    box = help_.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= size[0]
    assert 0 <= box["y"] <= 20 and box["y"] + box["height"] <= size[1]
    assert help_.evaluate(
        """(help) => {
          const { left, top, width, height } = help.getBoundingClientRect()
          return [0.02, 0.5, 0.98].every((part) =>
            help.contains(document.elementFromPoint(left + width * part, top + height * part)))
        }"""
    ), "nothing covers it"
    assert help_.evaluate("help => help.scrollWidth <= help.clientWidth")
    if help_.evaluate("help => help.scrollHeight > help.clientHeight"):
        page.keyboard.press("PageDown")
        page.wait_for_function("document.querySelector('#present .vf-help').scrollTop > 0")
        expect(help_).to_be_visible()
        assert state_of(page)["stack"] == STACKS[0]
    else:
        assert size == (1280, 720)
        page.keyboard.press("PageDown")
        expect(help_).to_be_hidden()
        assert state_of(page)["stack"] == STACKS[1], "a remote control goes on"
        page.keyboard.press("?")
    page.keyboard.press("Escape")
    expect(help_).to_be_hidden()
    expect(page.locator("html.vf-presenting")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("html.vf-presenting")).to_have_count(0)


def test_comma_and_full_stop_turn_the_history_where_it_is_open(present):
    page = present(moments=True)
    page.keyboard.press(",")
    page.keyboard.press(".")
    assert asked(page) == [["moment", "back"], ["moment", "on"]]
    page.keyboard.press("p")
    page = present()
    page.keyboard.press(",")
    assert asked(page) == []


def test_the_help_lists_the_keys_that_work_where_it_is_shown(present):
    page = present(guided=False)
    page.keyboard.press("?")
    assert listed(page) == [*TURNS, *OWN, "Space", "← → ↑ ↓", "Shift + ← → ↑ ↓", *OF_EXPLORER]
    assert page.locator("#present .vf-meanings .vf-key").count() > 5
    page.keyboard.press("p")
    page = present(guided=True)
    page.keyboard.press("?")
    assert listed(page) == [*TURNS, *OWN, "Space", "Shift + ← → ↑ ↓", *OF_EXPLORER]


def test_a_page_without_the_explorer_has_the_help_too(present):
    page = present(explorer=False)
    page.keyboard.press("?")
    assert listed(page) == [*TURNS, *OWN]
    page.keyboard.press("Escape")
    expect(page.locator("#present .vf-help")).to_be_hidden()
    expect(page.locator("html.vf-presenting")).to_have_count(1)
    page.keyboard.press("?")
    page.keyboard.press("p")
    expect(page.locator("html.vf-presenting")).to_have_count(0)


def test_the_explorers_own_help_gives_way_to_that_of_the_presentation(present, bare):
    page = present()
    page.keyboard.press("p")
    page.keyboard.press("?")
    expect(page.locator("#host .vf-help")).to_be_visible()
    page.keyboard.press("p")
    expect(page.locator("#host .vf-help")).to_be_hidden()


def test_in_a_lesson_the_arrows_turn_its_steps_wherever_the_focus_is(present):
    page = present(guided=True)
    page.locator(".vf-thumbs").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert asked(page) == [["turn", 1], ["turn", -1]]
    assert state_of(page)["head"] == "0"


def test_without_a_lesson_the_arrows_belong_to_a_picture_that_has_the_focus(present):
    page = present()
    page.locator(".vf-thumbs").focus()
    page.keyboard.press("ArrowRight")
    assert asked(page) == []
    assert state_of(page)["head"] == "1"
    page.keyboard.press("PageDown")
    assert state_of(page)["stack"] == STACKS[1]


@pytest.mark.parametrize("guided", [True, False])
def test_shift_and_an_arrow_move_the_cell_and_turn_nothing(present, guided):
    page = present(guided=guided)
    page.evaluate("document.activeElement.blur()")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(f"Shift+{key}")
    state = state_of(page)
    assert (state["query"], state["key"]) == ("1", "1")
    page.keyboard.press("Shift+PageDown")
    page.keyboard.press("v")
    assert state_of(page)["view"] == "arcs", "the letters work, too"
    assert asked(page) == []


def test_a_remote_control_turns_while_a_note_is_typed(present):
    page = present(explorer=False)
    page.keyboard.press("n")
    note = page.locator(".vf-note-line input")
    expect(note).to_be_focused()
    assert "Enter or Esc" in note.get_attribute("placeholder")
    page.keyboard.type("a")
    page.keyboard.press("PageDown")
    page.keyboard.press("PageUp")
    assert asked(page) == [["step", 1]], "the next waits until this step is drawn"
    expect(note).to_have_value("a")


def test_the_line_that_says_how_it_ends_covers_neither_text_nor_picture(present):
    for size in ((1280, 720), (390, 844)):
        page = present(sentence="I like cats.", caption=SAY, size=size)
        says = page.locator(".vf-stage").get_by_text("p or Esc ends the presentation").bounding_box()
        lines = [page.locator(f".vf-{name}").bounding_box() for name in ("said", "look-for")]
        assert max(box["y"] + box["height"] for box in lines) <= says["y"] + 2
        above = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--vf-above')")
        assert says["y"] + says["height"] <= float(above.removesuffix("px")) + 24, "the picture begins there"
        assert says["x"] >= 0 and says["x"] + says["width"] <= size[0]
        page.keyboard.press("p")


def test_a_presented_step_has_its_title_its_place_and_where_there_is_room_its_task(present):
    texts = {"title": TITLE, "sentence": "I like cats.", "caption": SAY, "task": "Point at the cells of one row."}
    page = present(guided=True, size=(1920, 1080), **texts)
    expect(page.locator(".vf-step-title")).to_have_text(f"1/4 · {TITLE}")
    expect(page.locator(".vf-step-title")).to_be_visible()
    task = page.locator(".vf-task")
    expect(task).to_have_text("TryPoint at the cells of one row.")
    expect(task).to_be_visible()
    size = "element => parseFloat(getComputedStyle(element).fontSize)"
    assert task.evaluate(size) < page.locator(".vf-look-for").evaluate(size)
    page.set_viewport_size({"width": 640, "height": 400})
    expect(task).to_be_hidden()
    expect(page.locator(".vf-step-title")).to_be_visible()


def test_the_closing_card_is_text_alone_and_leads_back(present):
    texts = {"title": "What you know now", "at": "End", "caption": SAY, "over": True, "sentence": "I like cats."}
    page = present(guided=True, **texts)
    expect(page.locator(".vf-step-title")).to_have_text("End · What you know now")
    expect(page.locator(".vf-look-for")).to_have_text(SAY)
    expect(page.locator(".vf-said")).to_be_hidden()
    expect(page.locator("html.vf-text-alone")).to_have_count(1)
    page.keyboard.press("v")
    page.keyboard.press("PageUp")
    assert asked(page) == [["turn", -1]]
    assert state_of(page)["view"] == "heatmap"
    page.keyboard.press("p")
    expect(page.locator("html.vf-text-alone")).to_have_count(0)


def test_all_heads_of_a_layer_keep_their_tokens_in_a_presentation(present):
    page = present(sentence="I like cats.", caption=SAY * 2)
    page.evaluate("document.activeElement.blur()")
    while state_of(page)["view"] != "layer":
        page.keyboard.press("v")
    layout = layout_of(page, ".vf-layer")
    assert layout["left"] > 10 and layout["top"] > 20, "room for tokens"
    assert page.locator("#host .vf-root").evaluate("root => root.style.zoom") == "1.6"
