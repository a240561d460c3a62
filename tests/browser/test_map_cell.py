"""The whole model in Chromium: its numbers at three levels of the zoom, cells, blocks that are empty, and addresses."""

import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

from tests.browser.bare import text_of
from tests.browser.conftest import visiting
from tests.browser.support import address_of, wait_until_done
from tests.kinds import TARGET, TEXT, model_of
from tests.kinds import trace_of as trace_of_kind
from visformer.pictures.head import Place
from visformer.pictures.map import RECORD, layers
from visformer.trace.stacks import STACKS
from visformer.web.bundle import stylesheet
from visformer.web.chunks import Focus
from visformer.web.map import pack_map
from visformer.web.places.cell import RECORD as CELL
from visformer.web.places.cell import cell
from visformer.web.places.message import pack_place
from visformer.web.places.zoom import Zoom

pytestmark = pytest.mark.browser

MOUNT = """async ({ texts, hosted }) => {
  const { mountMap } = await import("./map/map.js")
  const { readMessage } = await import("./shared/message.js")
  const read = (text) => readMessage(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)))
  window.map?.destroy()
  Object.assign(window, { zooms: [], followed: [] })
  const host = { onSelect: ({ stack, layer, head }) => followed.push([stack, layer, head]) }
  if (hosted) host.onZoom = (place) => zooms.push(place)
  const [first, ...others] = texts.map(read)
  window.map = mountMap(document.querySelector("#host"), first, host)
  for (const message of others) map.update(message)
}"""
DRAWN = """() => {
  const drawn = []
  const own = CanvasRenderingContext2D.prototype.fillText
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    drawn.push(String(text))
    return own.call(this, text, ...place)
  }
  window.map.repaint()
  CanvasRenderingContext2D.prototype.fillText = own
  return drawn
}"""
"""Paint, and return the texts that are written, in order."""

SUBLAYERS = {"self_attn": "Self-attention", "cross_attn": "Cross-attention", "ffn": "Feed-forward"}
HEADS = {
    "en-zh": "decoder.1.cross_attn", "mini-gpt": "decoder.2.self_attn", "bert": "encoder.1.self_attn",
    "gpt2": "decoder.1.self_attn", "bart": "decoder.2.cross_attn", "t5": "encoder.1.self_attn",
    "gpt_oss": "decoder.0.self_attn",
}  # fmt: skip
"""Bundled models, an encoder of MiniLM's type, and tiny ones of four other families; T5 has a bias, GPT-OSS sinks."""
PLACE = (1, 3, 2)  # head, query, key


def mount(bare, trace, zoom="", *, hosted=True, opened=1, **options):
    """Mount the whole model at a place, in place of the one before."""
    bare.page.add_style_tag(content=stylesheet("map/map.css"))
    stack = next(stack for stack in STACKS if stack.in_trace(trace))
    focus = Focus(stack.name, next(iter(stack.layers(trace))), 0)
    messages = [pack_place(zoom, opened=opened, **options), pack_map(trace, focus=focus)]
    texts = [text_of(message) for message in (messages if hosted else messages[1:])]
    bare.page.evaluate(MOUNT, {"texts": texts, "hosted": hosted})
    return bare.page


@pytest.fixture(scope="module")
def trace_of():
    """Return the Trace of a kind with all that the whole model and the cells of one attention need."""
    traces = {}

    def traced(kind):
        if kind not in traces:
            model = model_of(kind)
            record = [*RECORD, *(glob.format(path=HEADS[kind]) for glob in CELL)]
            target = TARGET if kind in ("bart", "t5") else None
            traces[kind] = model.trace(TEXT, target, record=model.available(record))
        return traces[kind]

    return traced


def number(text):
    """Read a number as it is spelled for people."""
    return 0.0 if text.startswith("<") else float(text.strip("()").replace("−", "-"))


def close(value):
    return pytest.approx(value, rel=6e-4, abs=6e-5)


# Numbers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", HEADS)
def test_numbers_of_the_whole_are_those_of_the_trace(bare, trace_of, kind):
    trace = trace_of(kind)
    drawn = mount(bare, trace).evaluate(DRAWN)
    lengths = iter([one.norms for stack in ("encoder", "decoder") for layer in layers(trace, stack)
                    for one in layer.sublayers])  # fmt: skip
    seen = 0
    for name, after in zip(drawn, [*drawn[1:], ""], strict=True):
        if name in SUBLAYERS.values():
            norms = next(lengths)
            if match := re.fullmatch(r"length ([\d.e+-]+)", after):
                assert float(match[1]) == pytest.approx(float(np.mean(norms)), rel=6e-3)
                seen += 1
    assert not [*lengths]
    assert seen > 0 or all(one.norms is None for layer in layers(trace, "encoder") for one in layer.sublayers[:1])
    if "logits" in trace and "tgt" in trace.tokens:
        shown = [float(text) for text in drawn if re.fullmatch(r"[01]\.\d\d", text)]
        logits = torch.from_numpy(trace["logits"].value.copy()).double()
        row = torch.softmax(logits[0 if "src" in trace.tokens else -1], dim=-1)
        assert len(shown) == 5
        assert shown == pytest.approx(row.sort(descending=True).values[:5].tolist(), abs=0.00501)


@pytest.mark.parametrize("kind", HEADS)
def test_numbers_of_a_head_are_its_weights(bare, trace_of, kind):
    trace, path = trace_of(kind), HEADS[kind]
    head = PLACE[0]
    page = mount(bare, trace, str(Zoom(*path_of(path), head)))
    page.wait_for_function("map.view.scale > 1")
    shown = [float(text) for text in page.evaluate(DRAWN) if re.fullmatch(r"[01]\.\d\d", text)]
    weights = trace[f"{path}.pattern"].value[head]
    if f"{path}.sink" in trace:  # its column is the last
        weights = np.concatenate([weights, trace[f"{path}.sink"].value[head][:, None]], axis=1)
    np.testing.assert_allclose(shown[-weights.size :], weights.ravel(), atol=0.00501)


def path_of(path):
    stack, layer, kind = path.split(".")
    return stack, int(layer), kind


@pytest.mark.parametrize("kind", HEADS)
def test_numbers_of_a_cell_are_computed_from_q_and_k(bare, trace_of, kind):
    trace, path = trace_of(kind), HEADS[kind]
    head, query, key = PLACE
    found = cell(trace, Place(path, head, query), key)
    drawn = mount(bare, trace, str(Zoom(*path_of(path), *PLACE)), cell=found).evaluate(DRAWN)
    q, k = (trace[f"{path}.{name}"].value for name in "qk")
    q, k = q[head, query].astype(float), k[head * len(k) // len(q), key].astype(float)
    drawn = drawn[drawn.index(f"q · k, the sum of {len(q)} products") :]
    terms = [(name, said) for name, said in pairwise(drawn) if name.startswith("dimension ")]
    assert len(terms) == min(6, len(q))
    rest = float(q @ k)
    for name, said in terms:
        i = int(name.split()[1])
        a, b, product = map(number, re.fullmatch(r"(\S+) · (\S+) = (\S+)", said).groups())
        assert (a, b, product) == (close(q[i]), close(k[i]), close(q[i] * k[i]))
        rest -= q[i] * k[i]
    if len(q) > 6:
        assert number(drawn[drawn.index(f"{len(q) - 6} others") + 1]) == close(rest)
    (total,) = [text.removeprefix("q · k = ") for text in drawn if text.startswith("q · k = ")]
    assert number(total) == close(float(q @ k))
    scores = trace[f"{path}.scores"].value[head, query].astype(float)
    assert number(drawn[drawn.index("Score") + 1]) == close(scores[key])
    check_row(drawn, trace, path, scores)


def check_row(drawn, trace, path, scores):
    """Check the row of keys: places, scores under the mask and weights; then the softmax of the cell."""
    head, query, key = PLACE
    mask = trace[f"{path}.mask"].value[head, query]
    sink = float(trace[f"{path}.sink"].value[head, query]) if f"{path}.sink" in trace else 0.0
    raised = np.where(mask, np.exp(scores), 0)
    weights = raised / raised.sum() * (1 - sink)
    start = drawn.index("Weight") + 1
    tokens = trace.tokens["src" if path.startswith("encoder") or "cross" in path else "tgt"]
    shown = {}
    joined = re.compile(r"\d+ other keys|sink")
    while not joined.fullmatch(drawn[start]) and re.fullmatch(r"\d+", drawn[start + 1]):
        token, place, score, weight = drawn[start : start + 4]
        at = int(place) - 1
        assert token.lstrip("␣") == tokens[at].strip() or token.endswith("…")
        assert score == "−∞" if not mask[at] else number(score) == close(scores[at])
        assert number(weight) == close(weights[at])
        shown[at] = number(weight)
        start += 4
    assert key in shown
    while joined.fullmatch(drawn[start]):
        shown[drawn[start]] = number(drawn[start + 1])
        start += 2
    assert sum(shown.values()) == pytest.approx(1, abs=1e-3)
    assert ("sink" in shown) == (sink > 0)
    assert number(drawn[start]) == close(weights[key])
    if mask[key]:
        top, below = map(number, re.fullmatch(r"= (\S+) / (\S+)", drawn[start + 1]).groups())
        assert top / below == close(weights[key])
        assert drawn[start + 2].endswith("/ Σ exp")


def test_a_model_without_queries_shows_the_row_and_says_why(bare):
    trace = trace_of_kind("lfm2")
    found = cell(trace, Place("decoder.2.self_attn", *PLACE[:2]), PLACE[2])
    page = mount(bare, trace, "decoder.3.self_attn.2.4.3", cell=found, lacks="Because of this.")
    drawn = page.evaluate(DRAWN)
    assert "Because of this." in drawn
    assert not [text for text in drawn if "q · k" in text]
    expect(page.get_by_role("status")).to_contain_text("Because of this.")


# The way to a cell ----------------------------------------------------------------------------------------------------


def rested(page, n):
    page.wait_for_function("n => zooms.length >= n", arg=n)
    return page.evaluate("zooms")


def rows_of(trace):
    """Return the names of a decoder's rows: each token with the one that it predicts."""
    return [" → ".join(pair) for pair in zip(trace.tokens["tgt"], trace.tokens["next"], strict=True)]


def test_arrow_keys_choose_a_cell_of_a_head_and_then_the_next(bare, trace_of):
    trace = trace_of("en-zh")
    page = mount(bare, trace, "decoder.2.cross_attn.2")
    page.locator("canvas.vf-model").focus()
    page.keyboard.press("ArrowDown")
    first = page.get_by_role("status").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("status").inner_text() != first
    assert page.evaluate("zooms") == []
    cursor = page.evaluate("map.cursor")
    page.keyboard.press("Enter")
    opened = str(Zoom("decoder", 1, "cross_attn", 1, cursor["query"], cursor["key"]))
    assert rested(page, 1) == [opened]
    row, key = rows_of(trace)[cursor["query"]], trace.tokens["src"][cursor["key"]]
    expect(page.locator(".vf-path button").last).to_have_text(f"“{row}” reads “{key}”")
    page.keyboard.press("ArrowLeft")
    assert rested(page, 2)[-1] == str(Zoom("decoder", 1, "cross_attn", 1, cursor["query"], cursor["key"] - 1))
    page.keyboard.press("Escape")
    assert rested(page, 3)[-1] == "decoder.2.cross_attn.2"
    page.keyboard.press("+")
    assert rested(page, 4)[-1] == rested(page, 2)[1], "back at the cell that one came from"
    assert page.evaluate("followed") == []


def test_a_click_on_a_cell_of_the_head_opens_it_and_one_on_another_head_follows_that(bare, trace_of):
    page = mount(bare, trace_of("bert"), "encoder.2.self_attn.2")
    box = page.locator("canvas.vf-model").bounding_box()
    rect = page.evaluate("""() => {
      const head = map.layout.columns[0].layers[1].sublayers[0].heads[1].rect
      const { x, y, scale } = map.view
      return { x: (head.x - x) * scale, y: (head.y - y) * scale, w: head.w * scale, h: head.h * scale }
    }""")
    n = len(trace_of("bert").tokens["src"])
    middle = box["y"] + rect["y"] + (4.5 / n) * rect["h"]
    page.mouse.click(box["x"] + rect["x"] + rect["w"] + 30, middle)
    assert page.evaluate("followed") == [["encoder.self_attn", 1, 2]]
    page.mouse.click(box["x"] + rect["x"] + (2.5 / n) * rect["w"], middle)
    assert rested(page, 1) == ["encoder.2.self_attn.2.5.3"]


def test_buttons_of_a_head_are_the_cells_that_its_rows_read_most(bare, trace_of):
    trace, path = trace_of("mini-gpt"), HEADS["mini-gpt"]
    page = mount(bare, trace, "decoder.3.self_attn.2")
    weights = trace[f"{path}.pattern"].value[1]
    tokens = trace.tokens["tgt"]
    rows = rows_of(trace)
    names = [f"“{rows[i]}” reads “{tokens[int(row.argmax())]}”" for i, row in enumerate(weights)]
    buttons = page.locator(".vf-place-button")
    labels = [one.get_attribute("aria-label") for one in buttons.all()]
    assert [label.replace("␣", "") for label in labels] == [name.replace("␣", "") for name in names]
    buttons.nth(3).press("Enter")
    assert rested(page, 1) == [f"decoder.3.self_attn.2.4.{int(weights[3].argmax()) + 1}"]


def test_without_a_server_a_head_is_the_end_of_the_zoom(bare, trace_of):
    bare.page.emulate_media(reduced_motion="reduce")  # it is there at once
    page = mount(bare, trace_of("bert"), hosted=False)
    page.evaluate("map.zoomTo({ stack: 'encoder', layer: 1, kind: 'self_attn', head: 1 })")
    page.wait_for_function("map.view.scale > 3")
    expect(page.locator(".vf-place-button")).to_have_count(0)
    page.locator("canvas.vf-model").focus()
    page.keyboard.press("+")
    expect(page.locator(".vf-path button").last).to_have_text("Head 2")
    bare.page.emulate_media(reduced_motion="no-preference")


# Blocks that are empty ------------------------------------------------------------------------------------------------


def test_a_block_that_cannot_be_shown_says_why(bare):
    trace = trace_of_kind("lfm2")
    page = mount(bare, trace)
    why = str(trace.lacks("decoder.0.self_attn.pattern"))
    assert why
    first = page.get_by_role("button", name=re.compile(r"^Decoder · Layer 1\."))
    assert why in first.get_attribute("aria-label")
    first.focus()
    expect(page.get_by_role("status")).to_contain_text(f"It is not shown here: {why}.")
    page.locator("canvas.vf-model").focus()
    expect(page.get_by_role("status")).not_to_contain_text(why)
    box = page.locator("canvas.vf-model").bounding_box()
    x, y = page.evaluate("""() => {
      const { x, y, w, h } = map.layout.columns[0].layers[1].sublayers[0].rect
      return [x + w / 2, y + h / 2]
    }""")
    page.mouse.move(box["x"] + x, box["y"] + y)
    expect(page.get_by_role("status")).to_have_text(re.compile(f"Decoder · Layer 2 · Self-attention.*{why}"))
    assert page.evaluate(DRAWN).count("Self-attention") == 6
    page.mouse.move(0, 0)


# In the app -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def visitor(server, chromium):
    """Streamlit first looks for its server below the page, so 404 errors are expected."""
    with visiting(server, chromium) as visitor:
        yield visitor


def open_map(visitor, zoom=""):
    page = visitor.page(width=1280, height=720)
    page.goto(f"{visitor.server}/?v=2&text=I+like+cats.{zoom and f'&zoom={zoom}'}")
    page.locator(".vf-model").wait_for()
    wait_until_done(page)
    return page


def test_the_address_of_a_cell_opens_it_and_leads_to_the_inside_of_its_head_and_back(visitor):
    page = open_map(visitor, "decoder.2.cross_attn.3.2.1")
    expect(page.locator(".vf-path button")).to_have_count(5)
    expect(page.get_by_role("status").first).to_contain_text("q · k is")
    page.locator(".vf-onward").click()
    page.wait_for_url(re.compile(r"/head\?"))
    wait_until_done(page)
    place = address_of(page)
    assert [place[name] for name in ("stack", "layer", "head", "query")] == ["cross", "2", "3", "2"]
    page.go_back()
    page.wait_for_url(re.compile("zoom="))
    expect(page.locator(".vf-path button")).to_have_count(5)
    assert address_of(page)["zoom"] == "decoder.2.cross_attn.3.2.1"


def test_places_replace_the_address_and_add_nothing_to_the_history(visitor):
    page = open_map(visitor)
    entries = page.evaluate("history.length")
    page.locator("canvas.vf-model").focus()
    for zoom in ("decoder.3", "decoder.3.cross_attn"):
        page.keyboard.press("+")
        page.wait_for_url(re.compile(f"zoom={zoom}$"))
    expect(page.locator(".vf-onward")).to_have_text("Attention: all heads")
    page.keyboard.press("0")
    page.wait_for_url(lambda url: "zoom" not in url)
    assert page.evaluate("history.length") == entries


def test_an_address_of_a_place_that_there_is_not_shows_the_whole_and_says_so(visitor):
    page = open_map(visitor, "decoder.9")
    expect(page.get_by_text("zoom=decoder.9: the layers of this stack are 1–3.")).to_be_visible()
    expect(page.locator(".vf-path button")).to_have_count(0)
    assert "zoom" not in address_of(page)


def test_a_new_sentence_keeps_as_much_of_the_place_as_it_has(visitor):
    page = open_map(visitor, "encoder.2.self_attn.3.4.4")
    expect(page.locator(".vf-path button")).to_have_count(5)
    box = page.get_by_role("textbox", name="Sentence")
    box.fill("Go.")
    box.press("Enter")
    expect(page.locator(".vf-path button")).to_have_count(4)
    wait_until_done(page)
    assert address_of(page)["zoom"] == "encoder.2.self_attn.3"
