"""The whole model in Chromium: what it says and draws of every kind of model, and its controls in the app."""

import re
from dataclasses import replace

import pytest
import torch
from playwright.sync_api import expect

import visformer as vf
from tests.browser.bare import BarePage, text_of
from tests.browser.boxes import RECORD_LABELS, labels
from tests.browser.conftest import visiting
from tests.browser.support import address_of, fingerprint, head_of, wait_until_done
from tests.kinds import KINDS, trace_of
from tests.web.support import made_up_trace, without_names
from visformer.app.session.url_state import start
from visformer.i18n import translations
from visformer.pictures.map import RECORD, steps
from visformer.web.bundle import stylesheet
from visformer.web.chunks import Focus
from visformer.web.map import pack_map

pytestmark = pytest.mark.browser

SENTENCE = "I like cats."
FIRST = start("en-zh").head + 1  # head in focus when the picture opens, counted from 1
REST = "The lines follow"
SOFTMAX = re.compile(r"Softmax(?: at the last token)?: “(.+)” (?:gets|would follow with) ([\d.]+)\.")
READS = re.compile(r"Head (\d+): “(.+)” reads most “(.+)” \(([\d.]+)\)\.")

# Without a server -----------------------------------------------------------------------------------------------------

MOUNT = """async (text) => {
  const { mountMap } = await import("./map/map.js")
  const { readMessage } = await import("./shared/message.js")
  window.map?.destroy()
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  window.map = mountMap(document.querySelector("#host"), readMessage(bytes))
}"""
STEPS = """async (limit) => {
  const said = []
  for (let i = 0; i < limit; i++) {
    document.querySelector(".vf-step-button:nth-of-type(3)").click()
    if (window.map.time === Infinity) return said
    said.push(document.querySelector(".vf-say").textContent)
  }
  throw new Error("the play does not end")
}"""
LABELS = """() => {
  const drawn = []
  const own = CanvasRenderingContext2D.prototype.fillText
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    drawn.push({ text, bold: /^600 1[24]px/.test(this.font), x: place[0], y: place[1] })
    return own.call(this, text, ...place)
  }
  window.map.repaint()
  CanvasRenderingContext2D.prototype.fillText = own
  return drawn
}"""
"""Paint, and return the texts that are written, in order; bold: the chosen candidate and the block that is computed."""

FIRST_AND_LAST = """async (button) => {
  const width = () => document.querySelector(".vf-place-button").getBoundingClientRect().width
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve(width())))
  button.click()
  const first = await frame()
  let [last, still] = [first, 0]
  for (const start = performance.now(); still < 10 || performance.now() - start < 1000;) {
    const now = await frame()
    still = now === last ? still + 1 : 0
    last = now
  }
  return [first, last]
}"""
"""Click, and return the width of the first place in the first frame after, and once it no longer changes."""


def mount(bare, trace, **options):
    """Mount the whole model, in place of the one before."""
    bare.page.add_style_tag(content=stylesheet("map/map.css"))
    bare.page.evaluate(MOUNT, text_of(pack_map(trace, **options)))
    return bare.page


def predictions(trace):
    """Return each token that follows with its probability, as torch computes it."""
    probabilities = torch.softmax(torch.from_numpy(trace["logits"].value.copy()).double(), dim=-1)
    following = probabilities.gather(1, torch.tensor(trace.meta["ids"]["next"])[:, None])[:, 0]
    return list(zip(trace.tokens["next"], following.tolist(), strict=True))


def check_predictions(said, expected):
    """Check what stages of softmax say: tokens in order, probabilities to two digits."""
    found = [match.groups() for match in map(SOFTMAX.match, said) if match]
    assert [token for token, _ in found] == [token for token, _ in expected]
    for (_, shown), (_, probability) in zip(found, expected, strict=True):
        assert re.fullmatch(r"[01]\.\d\d", shown)
        assert float(shown) == pytest.approx(probability, abs=0.00501)


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_of_every_kind_of_model_is_told_with_its_numbers(bare, kind):
    trace = trace_of(kind)
    said = mount(bare, trace).evaluate(STEPS, 400)
    assert all(said)
    assert not bare.problems
    assert not [words for words in said if re.search(r"undefined|null|NaN|Infinity|[{}]", words)]
    expected = predictions(trace) if steps(trace) else []
    check_predictions(said, expected if "encoder.0.self_attn.pattern" in trace else expected[-1:])


def test_the_candidate_that_follows_stands_out_whatever_its_name(bare):
    trace = trace_of("mini-gpt")
    third = steps(trace)[-1].ids[2]
    ids = {**trace.meta["ids"], "next": [*trace.meta["ids"]["next"][:-1], third]}
    trace = replace(trace, meta={**trace.meta, "ids": ids, "likeliest": [["same"] * 5 for _ in steps(trace)]})
    drawn = mount(bare, trace).evaluate(LABELS)
    assert [label["bold"] for label in drawn if label["text"] == "same"][:3] == [False, False, True]


def test_without_names_the_bar_is_that_of_the_token_that_follows(bare):
    trace = without_names(trace_of("bart"))
    drawn = [label["text"] for label in mount(bare, trace).evaluate(LABELS)]
    best, (_, following) = steps(trace)[0].probabilities[0], predictions(trace)[0]
    assert f"{best:.2f}" != f"{following:.2f}"
    assert f"{following:.2f}" in drawn
    assert f"{best:.2f}" not in drawn


WORDS = "如果 我们 中华人民共和国 在 Internationalization 和 Every 。 W teacher".split()
UNNAMED = {"en": r"… (\d+) more", "zh": r"… 其余 (\d+) 个"}


@pytest.mark.parametrize("width", [390, 1000, 1400])
def test_names_of_tokens_do_not_touch_and_those_left_out_are_counted(chromium, width):
    bare, found = BarePage(chromium, width=width, script=RECORD_LABELS), []
    for n, lang in ((8, "en"), (17, "zh"), (26, "en"), (41, "zh"), (60, "en")):
        trace = made_up_trace(n_tgt=n, n_layers=1, tokens=[WORDS[i % len(WORDS)] for i in range(n)])
        page = mount(bare, trace, gettext=translations(lang).gettext, lang=lang)
        found += [f"{lang} {n}: {fault}" for fault in labels(page)["found"]]
        drawn = [label["text"] for label in page.evaluate(LABELS)]
        named = [text for text in drawn if text in trace.tokens["tgt"]]
        counts = [int(match[1]) for match in (re.fullmatch(UNNAMED[lang], text) for text in drawn) if match]
        assert len(named) + sum(counts[1:]) == n, f"{n} tokens, named: {named}"
    bare.close()
    assert not found, "\n".join(found)


def test_the_first_step_completes_the_first_stage(bare):
    page = mount(bare, trace_of("en-zh"))
    page.get_by_role("button", name="One step on").click()
    expect(page.get_by_role("status")).to_have_text("The text is cut into 11 tokens.")
    assert trace_of("en-zh").tokens["src"][0] in [label["text"] for label in page.evaluate(LABELS)]


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
    page.evaluate("window.map.go(Infinity)")
    page.evaluate(PRESENTING, True)
    n = page.evaluate("window.map.stages.length")
    for step in (1, 2):
        page.get_by_role("button", name="One step on").click()
        expect(count).to_have_text(f"Step {step} of {n}")
    page.locator("canvas.vf-model").press("End")
    expect(count).to_have_text("")
    assert page.evaluate("window.map.time === Infinity || window.map.time") is True
    assert not page.evaluate("window.map.step(1)"), "the next key turns to the next page"
    page.evaluate(PRESENTING, False)


FRAMES = "n => new Promise((done) => { const on = () => n-- > 0 ? requestAnimationFrame(on) : done(); on() })"


def test_the_play_begins_with_letters_that_become_tokens(bare):
    trace = trace_of("en-zh")
    page = mount(bare, trace)
    letters = [letter for token, special in zip(trace.tokens["src"], trace.special["src"], strict=True)
               if not special for letter in token]  # fmt: skip
    drawn = {}
    for seconds in ("0.01", "1.2", "2.19"):
        page.get_by_role("slider", name="Where the play is").fill(seconds)
        drawn[seconds] = [label for label in page.evaluate(LABELS) if label["text"] in {*letters, *trace.tokens["src"]}]
    for seconds in ("0.01", "1.2"):
        assert [label["text"] for label in drawn[seconds]][: len(letters)] == letters, "in reading order"
    places = [[label["x"] for label in drawn[seconds]][: len(letters)] for seconds in ("0.01", "1.2")]
    assert places[0] == sorted(places[0])
    assert places[0] != places[1], "on their way"
    assert [label["text"] for label in drawn["2.19"]][: len(trace.tokens["src"])] == [*trace.tokens["src"]]


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_who_wants_no_motion_sees_whole_stages_and_zooms_at_once(bare, motion):
    bare.page.emulate_media(reduced_motion=motion)
    page = mount(bare, trace_of("en-zh"), focus=Focus("encoder.self_attn", 1, 2))
    seen = []
    for seconds in ("0.2", "1.2"):
        page.get_by_role("slider", name="Where the play is").fill(seconds)
        seen.append(fingerprint(page, ".vf-model"))
    assert (seen[0] == seen[1]) == (motion == "reduce")
    first, last = page.get_by_role("button", name="Zoom in").evaluate(FIRST_AND_LAST)
    assert (first == last) == (motion == "reduce")
    bare.page.emulate_media(reduced_motion="no-preference")


# In the app -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trace(model_name):
    model = vf.load(model_name)
    return model.trace(SENTENCE, record=model.available(RECORD))


@pytest.fixture(scope="module")
def visitor(server, chromium):
    """Streamlit first looks for its server below the page, so 404 errors are expected."""
    with visiting(server, chromium) as visitor:
        yield visitor


def open_map(visitor, query="", **settings):
    page = visitor.page(**settings)
    page.goto(f"{visitor.server}/?v=2&text={SENTENCE.replace(' ', '+')}{query}")
    page.locator(".vf-place-button").first.wait_for()
    wait_until_done(page)
    return page


@pytest.fixture(scope="module")
def shared_page(visitor):
    return open_map(visitor, width=1280, height=720)


@pytest.fixture
def page(visitor, shared_page):
    yield shared_page
    assert not visitor.problems


def said_by(page):
    return page.locator(".vf-say").inner_text()


def name_of(stack, layer, head):
    part = {"encoder.self_attn": "Encoder", "decoder.self_attn": "Decoder"}.get(stack, "Cross-attention")
    return f"{part}, layer {layer + 1}, head {head + 1}"


def clearest(trace, stack, layer, head):
    """Return row, key and weight of the clearest row of a head: text that reads most another token of text."""
    weights = head_of(trace, stack, layer, head)
    queries, keys = (
        ("src" if stack == "encoder.self_attn" else "tgt"),
        ("src" if stack != "decoder.self_attn" else "tgt"),
    )
    rows = [(row.max(), query, int(row.argmax())) for query, row in enumerate(weights)]
    telling = [
        (weight, query, key)
        for weight, query, key in rows
        if not (trace.special[queries][query] or trace.special[keys][key] or (queries == keys and query == key))
    ]
    weight, query, key = max(telling or rows)
    row = trace.tokens[queries][query]
    predicting = row if queries == "src" else f"{row} → {trace.tokens['next'][query]}"
    return predicting, trace.tokens[keys][key], weight


HEADS = [(stack, layer, (5 * layer + i) % 8) for i, stack in
         enumerate(("encoder.self_attn", "decoder.self_attn", "decoder.cross_attn")) for layer in range(3)]  # fmt: skip


def enter(page, stack, layer, head):
    """Zoom in on the sublayer of a head by the keyboard's buttons; return that of the head."""
    part, kind = stack.split(".")
    kinds = {"self_attn": "Self-attention", "cross_attn": "Cross-attention"}
    for name in (f"{part.capitalize()} · Layer {layer + 1}", kinds[kind]):
        page.locator(f'.vf-place-button[aria-label="{name}"]').press("Enter")
        page.evaluate(FRAMES, 45)
    return page.locator(f'.vf-place-button[aria-label="{name_of(stack, layer, head)}"]')


def test_the_head_under_the_pointer_says_what_it_reads_most(page, trace):
    for place in HEADS:
        box = enter(page, *place).bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        query, key, weight = clearest(trace, *place)
        said = said_by(page)
        assert said.startswith(f"{name_of(*place)}. ")
        assert READS.search(said).groups()[:3] == (str(place[2] + 1), query, key), place
        shown = READS.search(said)[4]
        assert re.fullmatch(r"[01]\.\d\d", shown)
        assert float(shown) == pytest.approx(weight, abs=0.00501)
        page.mouse.move(0, 0)
        page.get_by_role("button", name="The whole model", exact=True).last.click()
        page.evaluate(FRAMES, 45)  # the zoom takes half a second
    assert said_by(page).startswith(REST)


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


def test_the_caption_keeps_its_room_whatever_is_pointed_at(page):
    """Or the picture would move away under the pointer."""
    for width, height in ((390, 844), (1280, 720)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(FRAMES, 30)  # the side bar slides
        assert len(page.locator(".vf-map").evaluate(ROOMS)) == 1, width
    page.keyboard.press("p")
    page.locator(".vf-staged").wait_for()
    assert len(page.locator(".vf-map").evaluate(ROOMS)) == 1, "presenting"
    page.keyboard.press("Escape")


def test_steps_tell_every_word_with_its_probability_up_to_the_end(page, trace):
    said = []
    for _ in range(200):
        page.get_by_role("button", name="One step on").click()
        said.append(said_by(page))
        if said[-1].startswith(REST):
            break
    assert said[0] == f"The text is cut into {len(trace.tokens['src'])} tokens."
    check_predictions(said, predictions(trace))
    first, *words, last = trace.tokens["next"]
    assert f"The decoder begins with “{trace.tokens['tgt'][0]}” alone. It asks for Chinese." in said
    written = [words for words in said if "is written, and goes" in words]
    assert [one[1 : one.index("”")] for one in written] == [first, *words]
    assert said[-2] == f"“{last}” ends the text."
    page.get_by_role("button", name="One step back").click()
    assert said_by(page) == said[-2]
    page.get_by_role("slider", name="Where the play is").fill("1e9")
    assert said_by(page).startswith(REST)


def test_a_walk_by_keyboard_follows_a_head_plays_and_zooms_to_it_and_back(page):
    page.locator("canvas.vf-model").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(re.compile(f"head={FIRST - 1}"))
    wait_until_done(page)
    assert address_of(page)["head"] == str(FIRST - 1)
    assert said_by(page).startswith(f"{REST} {name_of('decoder.cross_attn', 2, FIRST - 2)}.")
    page.locator("canvas.vf-model").focus()
    zooms_in_and_out(page, ["The whole model", "Decoder · Layer 3", "Cross-attention", f"Head {FIRST - 1}"])
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    page.locator(".vf-say").filter(has_text="The text is cut into").wait_for()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    slider = page.get_by_role("slider", name="Where the play is")
    stopped = float(slider.input_value())
    page.evaluate(FRAMES, 3)
    assert 0 <= stopped == float(slider.input_value()) < 5
    page.keyboard.press("PageDown")
    assert said_by(page).startswith("Each token becomes a vector: a list of 256 numbers.")
    slider.fill("1e9")


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
        expect(page.locator(".vf-say")).to_have_text(re.compile(f"{REST} Cross-attention, layer 3, head {head}"))
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


def test_captions_are_chinese_on_a_chinese_page(visitor):
    page = open_map(visitor, "&lang=zh", width=1024, height=640)
    said = []
    for _ in range(12):
        said.append(said_by(page))
        page.locator(".vf-step-button").nth(1).click()
    assert len({*said}) == 12
    assert all(re.search("[\u4e00-\u9fff].*[。：]", words) for words in said)


def test_another_kind_of_model_replaces_the_picture(visitor):
    page = open_map(visitor)
    page.get_by_label("Model", exact=True).click()
    page.get_by_role("option", name="Decoder mini-gpt", exact=True).click()
    expect(page.locator(".vf-say")).to_contain_text(f"Decoder, layer 3, head {FIRST}")
    wait_until_done(page)
    assert address_of(page)["stack"] == "decoder", "the address opens as it is"
    page.get_by_role("button", name="Play", exact=True).click()
    page.locator(".vf-say").filter(has_text="The text is cut into").wait_for()
