"""The explorer on a bare page without a server: every view, key and mode, compared with the Trace."""

from itertools import pairwise

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.bare import Bare, text_of
from tests.browser.reference import Options, derived
from tests.browser.support import (
    check_cell,
    click_head,
    colours_at,
    colours_of,
    head_of,
    inked,
    pixels,
    place_of,
    point_of_cell,
    point_of_head,
    point_of_thumb,
    points_of_cells,
    points_of_thumb,
    shown,
    tokens,
)
from tests.web.support import made_up_trace
from visformer import i18n
from visformer.analysis.heads import SCORES, head_scores
from visformer.pictures.theme import CURVES, SEQUENTIAL
from visformer.trace import TracedTensor
from visformer.web.payload import pack
from visformer.web.selection import VIEWS as NAMES
from visformer.web.selection import Selection
from visformer.web.words import words

pytestmark = pytest.mark.browser

ENCODER, DECODER, CROSS = "encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"
LABELS = {ENCODER: "Encoder", DECODER: "Decoder", CROSS: "Cross"}
WORDS = {"src": [0, 0, 1, 2, 2, 2, 3, 4], "tgt": [0, 1, 1, 2, 3], "next": [0, 0, 1, 2, 3]}
TEXT = words(made_up_trace(), str, "en")["text"]
VIEWS = tuple(TEXT[f"view_{name}"] for name in NAMES)
DRAWN = ".vf-stage > div:visible canvas[tabindex]"


@pytest.fixture(scope="module")
def trace():
    """A Trace with stacks of unequal depth, rectangular patterns, and words of several tokens."""
    return made_up_trace(8, 5, n_layers=3, n_decoder_layers=2, n_heads=4, words=WORDS)


@pytest.fixture
def page(bare, trace):
    """A freshly mounted explorer; console messages fail the test."""
    bare.page.mouse.move(1, 1)
    yield bare.mount(trace)
    assert not bare.complaints


def with_pattern(trace, name, value):
    """Return the Trace with one pattern replaced."""
    tensors = {**trace.tensors, name: TracedTensor(name, value.astype(np.float32), trace[name].axes)}
    return type(trace)(trace.tokens, trace.special, trace.words, tensors)


def four_digits(weight):
    return float(f"{weight:.3e}")


def steps_of(colours, scheme="light"):
    """Return the steps of colours on the ramp, 0..255, and their distances from it."""
    stops = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in SEQUENTIAL[scheme]])
    at = np.linspace(0, 255, len(stops))
    ramp = np.stack([np.interp(np.arange(256), at, stops[:, c]) for c in range(3)], axis=1)
    distance = np.abs(np.array(colours)[:, None, :] - ramp).max(axis=2)
    return distance.argmin(axis=1), distance.min(axis=1)


def choose(page, view):
    page.get_by_role("button", name=view, exact=True).click()


def hover_cell(page, query, key):
    page.locator(".vf-large").hover(position=point_of_cell(page, query, key))


def click_cell(page, query, key, **options):
    page.locator(".vf-large").click(position=point_of_cell(page, query, key), **options)


def readout(page):
    return page.locator(".vf-readout").inner_text()


# Views


@pytest.mark.parametrize(("stack", "scheme"), [(ENCODER, "light"), (CROSS, "dark")])
def test_every_cell_has_the_colour_of_its_weight(page, trace, stack, scheme):
    """On the ramp, at 255 times the square root of the Trace's weight, including the largest."""
    page.emulate_media(color_scheme=scheme)
    try:
        choose(page, LABELS[stack])
        click_head(page, 1, 3)
        pattern = head_of(trace, stack, 1, 3)
        cells = list(np.ndindex(*pattern.shape))
        points = points_of_cells(page, cells, inside=0.15)
        steps, off = steps_of(colours_at(page, ".vf-large", points), scheme)
        assert off.max() <= 1
        expected = np.rint(255 * np.sqrt(pattern)).ravel()
        assert np.abs(steps - expected).max() <= 1
        assert cells[int(steps.argmax())] == np.unravel_index(pattern.argmax(), pattern.shape)
    finally:
        page.emulate_media(color_scheme="light")


def test_every_thumbnail_has_its_hottest_cell_where_the_trace_says(page, trace):
    for stack, n_layers in ((ENCODER, 3), (CROSS, 2)):
        choose(page, LABELS[stack])
        for layer, head in np.ndindex(n_layers, 4):
            pattern = head_of(trace, stack, layer, head)
            points = points_of_thumb(page, 4 * layer + head, pattern.shape)
            steps, off = steps_of(colours_at(page, ".vf-thumbs", points))
            assert off.max() <= 1
            assert int(steps.argmax()) == int(pattern.argmax())


def test_one_layer_shows_all_its_heads_large(page, trace):
    click_head(page, 2, 1)
    choose(page, "One layer")
    assert place_of(page, ".vf-layer")["size"] >= 200
    for head in range(4):
        pattern = head_of(trace, ENCODER, 2, head)
        points = points_of_thumb(page, head, pattern.shape, canvas=".vf-layer")
        steps, _ = steps_of(colours_at(page, ".vf-layer", points))
        assert np.abs(steps - np.rint(255 * np.sqrt(pattern)).ravel()).max() <= 1
    page.locator(".vf-layer").click(position=point_of_thumb(page, 3, canvas=".vf-layer"))
    assert [shown(page)[name] for name in ("view", "layer", "head")] == ["heatmap", "2", "3"], "a click opens the head"


def test_views_stacks_and_heads_switch_without_the_host(page, bare):
    pictures = set()
    for stack in LABELS.values():
        choose(page, stack)
        for view in VIEWS:
            choose(page, view)
            if page.locator(DRAWN).count():
                digest, n_colours = pixels(page, DRAWN)
                assert n_colours > 20, "not blank"
                pictures.add(digest)
            visible = page.locator(".vf-stage > div:visible")
            assert visible.count() == 1
            assert page.get_by_role("button", name=view, exact=True).get_attribute("aria-pressed") == "true"
    assert len(pictures) == 3 * (len(VIEWS) - 1), "all but the tokens, which are text"
    assert not bare.needed


def test_stacks_of_unequal_depth_keep_to_heads_that_they_have(page, trace):
    click_head(page, 2, 3)
    choose(page, "Cross")
    hover_cell(page, 4, 7)
    check_cell(page, trace, CROSS, layer=1, head=3, query=4, key=7)
    assert "\u2068b3\u2069 (5) → \u2068</s>\u2069 reads \u2068</s>\u2069 (8)" in readout(page)


def test_zoom_and_pan(page, trace):
    def lens():
        place = place_of(page, ".vf-large")
        return int(place["row"]), int(place["column"])

    whole = place_of(page, ".vf-large")["cellWidth"]
    page.locator(".vf-large").focus()
    for _ in range(3):
        page.keyboard.press("+")
    assert place_of(page, ".vf-large")["cellWidth"] >= whole
    row, column = lens()
    assert (row, column) != (0, 0)
    hover_cell(page, row + 1, column + 2)
    check_cell(page, trace, ENCODER, layer=0, head=0, query=row + 1, key=column + 2)

    box, place = page.locator(".vf-large").bounding_box(), place_of(page, ".vf-large")
    point = point_of_cell(page, row, column)
    x, y = box["x"] + point["x"], box["y"] + point["y"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 2.1 * place["cellWidth"], y + 1.1 * place["cellHeight"], steps=4)
    page.mouse.up()
    assert lens() == (row - 1, max(0, column - 2))
    assert shown(page)["locked"] == "false", "a drag is no click"

    for _ in range(9):
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Shift+ArrowDown")
    assert lens() == (4, 4), "a cell in focus stays in sight"
    page.keyboard.press("0")
    assert lens() == (0, 0)
    page.locator(".vf-large").hover(position=point_of_cell(page, 0, 7))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.wait_for_function("() => document.querySelector('.vf-large').dataset.column !== '0'")
    assert lens()[0] == 0, "around the pointer"
    page.get_by_role("button", name="The whole matrix").click()
    assert lens() == (0, 0)
    page.locator(".vf-large").dblclick(position=point_of_cell(page, 7, 0))
    assert lens()[0] > 0
    assert lens()[1] == 0


@pytest.fixture(scope="module")
def one_hot():
    """A Trace in which head h reads only the position h further on."""
    trace = made_up_trace(6, 6, n_layers=2, n_heads=3)
    value = np.stack([np.roll(np.eye(6), h, axis=1) for h in range(3)])
    return with_pattern(trace, "encoder.0.self_attn.pattern", value)


def test_arcs_of_several_heads_in_their_colours(page, bare, one_hot):
    bare.mount(one_hot)
    choose(page, "Arcs")
    colours = {head: CURVES["light"][head] for head in range(3)}
    click_head(page, 0, 1, modifiers=["Shift"])
    assert {colours[0], colours[1]} <= colours_of(page, ".vf-lines")
    assert colours[2] not in colours_of(page, ".vf-lines")
    click_head(page, 0, 2, modifiers=["Shift"])
    assert set(colours.values()) <= colours_of(page, ".vf-lines")

    place = place_of(page, ".vf-lines")
    row, column = 1, 3  # what the third head reads
    share = 0.12  # from the left, where lines part
    x = place["left"] + share * (place["right"] - place["left"])
    y = place["top"] + (row + 0.5 + share * (column - row)) * place["line"]
    page.locator(".vf-lines").hover(position={"x": x, "y": y})
    assert (shown(page)["query"], shown(page)["key"]) == ("1", "3")
    assert float(shown(page)["weight"]) == 1, "of the head in focus, the one that came last"
    assert "1·1: 0 1·2: 0 1·3: 1.000" in " ".join(readout(page).split())

    page.locator(".vf-lines").click(position={"x": place["right"] + 20, "y": place["top"] + 3.5 * place["line"]})
    assert shown(page)["locked"] == "true"
    assert "\u2068a3\u2069 (4) is read most by: \u2068a1\u2069 (2) 1.000" in readout(page)
    click_head(page, 0, 1, modifiers=["Shift"])
    assert colours[2] not in colours_of(page, ".vf-lines"), "two are left, in the first two colours"


def test_a_token_shades_those_that_it_reads_and_those_that_read_it(page, trace):
    choose(page, "Cross")
    choose(page, "Tokens")
    pattern = head_of(trace, CROSS, 0, 0)
    reads, read = (page.locator(f".vf-chip[data-side={side}]") for side in ("row", "column"))
    assert read.all_inner_texts() == list(trace.tokens["src"])
    assert reads.all_inner_texts() == [
        f"{a} → {b}" for a, b in zip(trace.tokens["tgt"], trace.tokens["next"], strict=True)
    ]

    def shades(chips):
        colours = chips.evaluate_all("all => all.map((e) => e.style.backgroundColor)")
        assert all(colours)
        steps, off = steps_of([[int(part) for part in colour[4:-1].split(",")] for colour in colours])
        assert off.max() <= 1
        return steps

    reads.nth(2).hover()
    assert np.abs(shades(read) - np.rint(255 * np.sqrt(pattern[2]))).max() <= 1
    read.nth(4).click()
    assert np.abs(shades(reads) - np.rint(255 * np.sqrt(pattern[:, 4]))).max() <= 1
    strongest = int(pattern[:, 4].argmax())
    assert f"is read most by: \u2068{trace.tokens['tgt'][strongest]}\u2069 ({strongest + 1})" in readout(page)
    reads.nth(3).hover()
    check_cell(page, trace, CROSS, layer=0, head=0, query=3, key=4)
    reads.nth(3).click()
    check_cell(page, trace, CROSS, layer=0, head=0, query=3, key=4)
    page.keyboard.press("Escape")
    assert "weight" not in shown(page)


# Touch


def test_hover_reads_and_a_click_locks(page, trace, bare):
    """Both tokens, layer, head and the exact weight, also if it is small, and 0 under the mask."""
    choose(page, "Decoder")
    click_head(page, 1, 2)
    for query, key in ((3, 1), (4, 4), (1, 3)):
        hover_cell(page, query, key)
        check_cell(page, trace, DECODER, layer=1, head=2, query=query, key=key)
    assert page.locator(".vf-weight").inner_text() == "0"
    said = readout(page)
    tgt, following = trace.tokens["tgt"], trace.tokens["next"]
    assert f"\u2068{tgt[1]}\u2069 (2) → \u2068{following[1]}\u2069 reads \u2068{tgt[3]}\u2069 (4)" in said
    assert "Layer 2 · Head 3" in said
    click_cell(page, 3, 1)
    hover_cell(page, 4, 0)
    check_cell(page, trace, DECODER, layer=1, head=2, query=3, key=1)
    assert bare.selection() == Selection(DECODER, 1, 2, "heatmap", 3, 1).start()
    click_cell(page, 3, 1)
    assert shown(page)["locked"] == "false", "a click on what is locked frees it"


def test_a_small_weight_is_read_to_four_digits(page, bare, trace):
    value = np.tile(np.array([1 - 3e-6 - 0.00012345, 0.00012345, 3.2155e-06, 0, 0, 0, 0, 0]), (4, 8, 1))
    bare.mount(with_pattern(trace, "encoder.0.self_attn.pattern", value))
    for key, spelled in enumerate(("0.9999", "0.0001234", "3.215e-6", "0")):
        hover_cell(page, 5, key)
        assert page.locator(".vf-weight").inner_text() in (spelled, "0.0001235", "3.216e-6")
        assert float(shown(page)["weight"]) == four_digits(np.float32(value[0, 5, key]))


def test_shift_click_adds_cells_and_escape_frees_them(page, trace):
    click_cell(page, 1, 1)
    click_cell(page, 2, 3, modifiers=["Shift"])
    click_cell(page, 6, 0, modifiers=["Shift"])
    check_cell(page, trace, ENCODER, layer=0, head=0, query=6, key=0)
    lines = readout(page).splitlines()
    for query, key in ((1, 1), (2, 3)):
        says = f"\u2068a{query}\u2069 ({query + 1}) reads \u2068a{key}\u2069 ({key + 1})"
        (weight,) = [line.removesuffix(says) for line in lines if line.endswith(says)]
        assert float(weight) == four_digits(head_of(trace, ENCODER, 0, 0)[query, key])
    click_cell(page, 6, 0, modifiers=["Shift"])
    check_cell(page, trace, ENCODER, layer=0, head=0, query=2, key=3)
    page.keyboard.press("Escape")
    assert shown(page)["locked"] == "false"
    assert "weight" not in shown(page)


def test_arrow_keys_move_through_heads_layers_and_cells(page, trace):
    page.locator(".vf-large").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    assert (shown(page)["layer"], shown(page)["head"]) == ("1", "1")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(f"Shift+{key}")
    check_cell(page, trace, ENCODER, layer=1, head=1, query=0, key=1)
    page.keyboard.press("ArrowRight")
    check_cell(page, trace, ENCODER, layer=1, head=2, query=0, key=1)


def test_every_key_that_is_listed_does_what_it_says(page, trace):
    page.locator(".vf-large").focus()
    press = page.keyboard.press

    def at(name):
        return shown(page)[name]

    press("?")
    listed = page.get_by_role("dialog", name="Shortcuts and scores")
    expect(listed).to_be_visible()
    keys = listed.locator(".vf-keys:not(.vf-meanings) .vf-key").all_inner_texts()
    assert keys == ["← → ↑ ↓", "Shift + ← → ↑ ↓", *"svmlowx", "+ − 0", "Esc", "?"]
    press("Escape")
    expect(listed).to_be_hidden()
    page.locator(".vf-large").focus()
    assert [(press("s"), at("stack"))[1] for _ in range(3)] == [DECODER, CROSS, ENCODER]
    assert [(press("m"), at("combine"))[1] for _ in range(3)] == ["mean", "max", "one"]
    orders = [(press("o"), at("order"))[1] for _ in range(10)]
    assert orders == ["similarity", *[score.name for score in SCORES], "place"]
    for key, box in (("w", "whole words"), ("x", "hide special tokens")):
        press(key)
        expect(page.get_by_label(box)).to_be_checked()
        press(key)
        expect(page.get_by_label(box)).not_to_be_checked()
    press("l")
    press("m")
    assert "Average of 4 chosen heads" in readout(page)
    press("Escape")
    assert "Layer 1 · average of its heads" in readout(page)
    press("m")
    press("m")
    assert [(press("v"), at("view"))[1] for _ in NAMES] == [*NAMES[1:], NAMES[0]]
    press("?")
    press("?")
    expect(listed).to_be_hidden()


# Declutter


def shown_matrix(page, rows, columns):
    """Return every weight as the explorer displays it."""
    found = page.locator(".vf-large").evaluate(
        """(canvas, points) => points.map(({ x, y }) => {
          const { left, top } = canvas.getBoundingClientRect()
          canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: left + x, clientY: top + y }))
          return Number(document.querySelector(".vf-root").dataset.weight)
        })""",
        points_of_cells(page, np.ndindex(rows, columns)),
    )
    return np.array(found).reshape(rows, columns)


SIDES = {ENCODER: ("src", "src"), DECODER: ("tgt", "tgt"), CROSS: ("tgt", "src")}


def expected_of(trace, stack, heads, options):
    rows, columns = SIDES[stack]
    special = [trace.special[rows], trace.special[columns]]
    if rows == "tgt":  # the row of the language token predicts the first word
        special[0] = [one and other for one, other in zip(trace.special["tgt"], trace.special["next"], strict=True)]
    heads = [head_of(trace, stack, layer, head) for layer, head in heads]
    return derived(heads, [trace.words[rows], trace.words[columns]], special, options)


def hidden_said(page):
    text = page.locator(".vf-hidden-mass").inner_text()
    return float(text.removeprefix("weight hidden, mean over rows: ")) if text else 0.0


@pytest.mark.parametrize(
    ("how", "heads", "title"),
    [
        ("mean", [(0, 0), (0, 1), (0, 2), (0, 3)], "Layer 1 · average of its heads"),
        ("max", [(0, 0), (0, 1), (0, 2), (0, 3)], "Layer 1 · maximum of its heads"),
        ("mean", [(0, 0), (1, 3)], "Average of 2 chosen heads"),
    ],
)
def test_heads_together(page, trace, how, heads, title):
    choose(page, "Cross")
    for layer, head in heads if "chosen" in title else ():
        click_head(page, layer, head, modifiers=["Shift"] if layer else [])
    page.locator("select.vf-combine").select_option(how)
    expected = expected_of(trace, CROSS, heads, Options(how))
    np.testing.assert_allclose(shown_matrix(page, 5, 8), expected.values, rtol=1e-3, atol=1e-6)
    assert title in readout(page)


def test_words_specials_and_rows_to_one(page, trace, bare):
    choose(page, "Cross")
    page.get_by_label("whole words").check()
    expected = expected_of(trace, CROSS, [(0, 0)], Options(merging=True))
    assert expected.values.shape == (4, 5)
    np.testing.assert_allclose(shown_matrix(page, 4, 5), expected.values, rtol=1e-3, atol=1e-6)
    assert shown(page)["hidden"] == "0"
    hover_cell(page, 1, 2)
    assert "\u2068b0b1\u2069 (2) → \u2068b1b2\u2069 reads \u2068a3a4a5\u2069 (4)" in readout(page)
    click_cell(page, 1, 2)
    assert bare.selection() | {"query": 1, "key": 3} == bare.selection(), "in tokens, not in words"

    page.get_by_label("hide special tokens").check()
    assert shown(page)["locked"] == "true", "the cell is still there"
    page.locator(".vf-large").press("Escape")
    expected = expected_of(trace, CROSS, [(0, 0)], Options(merging=True, hiding=True))
    assert expected.values.shape == (4, 4), "no end of the source; the language token's row predicts a word"
    np.testing.assert_allclose(shown_matrix(page, 4, 4), expected.values, rtol=1e-3, atol=1e-6)
    assert hidden_said(page) == pytest.approx(expected.hidden.mean(), abs=0.006)
    assert float(shown(page)["hidden"]) == pytest.approx(expected.hidden.mean(), rel=1e-3)
    hover_cell(page, 2, 0)
    assert f"weight hidden in this row: {expected.hidden[2]:.2f}" in readout(page)

    page.get_by_label("renormalise rows").check()
    values = shown_matrix(page, 4, 4)
    np.testing.assert_allclose(values.sum(axis=1), 1, rtol=2e-3)
    expected = expected_of(trace, CROSS, [(0, 0)], Options(merging=True, hiding=True, renormalising=True))
    np.testing.assert_allclose(values, expected.values, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(("kind", "value"), [("weight", 0.1), ("mass", 0.75)])
def test_thresholds_leave_cells_out_and_say_how_much_mass_is_hidden(page, trace, kind, value):
    page.locator("select.vf-limit").select_option(kind)
    page.locator(".vf-slider").fill(str(value))
    expected = expected_of(trace, ENCODER, [(0, 0)], Options(kind=kind, value=value))
    assert 0 < expected.hidden.mean() < 1
    assert hidden_said(page) == pytest.approx(expected.hidden.mean(), abs=0.006)
    cells = list(np.ndindex(8, 8))
    points = points_of_cells(page, cells, inside=0.15)
    steps, _ = steps_of(colours_at(page, ".vf-large", points))
    assert np.array_equal(steps > 0, (expected.kept & (expected.values > 2e-5)).ravel())
    query, key = np.argwhere(~expected.kept)[0]
    hover_cell(page, query, key)
    assert float(shown(page)["weight"]) == four_digits(expected.values[query, key]), "still read exactly"
    choose(page, "Arcs")
    few = inked(page, ".vf-lines")
    page.locator("select.vf-limit").select_option("none")
    assert inked(page, ".vf-lines") > few
    assert hidden_said(page) == 0


def test_heads_in_another_order(page, trace):
    """The overview and the arrow keys follow it; tests/browser/test_derive.py compares each order with NumPy."""
    given = {"queries": trace.tokens["src"], "keys": trace.tokens["src"], "special": trace.special["src"]}
    scores = head_scores(trace.stack("encoder").value, **given, cross=False)["entropy"]
    ranks = [divmod(int(i), 4) for i in np.argsort(scores.ravel(), kind="stable")]
    page.locator("select.vf-order").select_option("entropy")
    for place in (0, 1, 7, 11):
        page.locator(".vf-thumbs").hover(position=point_of_thumb(page, place))
        layer, head = ranks[place]
        assert readout(page).startswith(f"Layer {layer + 1} · Head {head + 1}")
    page.locator(".vf-thumbs").click(position=point_of_thumb(page, 2))
    page.locator("select.vf-order").select_option("similarity")
    page.locator(".vf-thumbs").hover(position=point_of_thumb(page, 0))
    assert readout(page).startswith("Layer {} · Head {}".format(*(i + 1 for i in ranks[2]))), "similar to itself"
    page.locator("select.vf-order").select_option("entropy")
    page.locator(".vf-thumbs").focus()
    page.keyboard.press("ArrowRight")
    assert (int(shown(page)["layer"]), int(shown(page)["head"])) == ranks[3]


WRITTEN = """() => {
  window.written = []
  const { fillText } = CanvasRenderingContext2D.prototype
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const { width } = this.measureText(text)
    const left = x - { left: 0, center: 0.5, right: 1 }[this.textAlign] * width
    if (this.canvas.classList.contains("vf-thumbs")) window.written.push({ text, y, left, right: left + width })
    return fillText.call(this, text, x, y)
  }
}"""


@pytest.mark.parametrize("width", [900, 1040, 1280])
def test_captions_of_heads_in_order_stand_apart(chromium, width):
    """However narrow the thumbnails, a head's score does not overlap its name, or is left out."""
    bare = Bare(chromium, width=width)
    page = bare.mount(made_up_trace(n_layers=3, n_heads=12))
    page.evaluate(WRITTEN)
    page.locator("select.vf-order").select_option("entropy")
    drawn = page.evaluate("written")
    bare.close()
    assert {"1·12", "3·1"} <= {one["text"] for one in drawn}
    for y in {one["y"] for one in drawn}:
        line = sorted((one["left"], one["right"]) for one in drawn if one["y"] == y)
        assert all(left >= right + 2 for (_, right), (left, _) in pairwise(line)), line


def test_an_order_that_the_other_stack_lacks_goes_back_to_places(page):
    page.locator("select.vf-order").select_option("distance")
    choose(page, "Cross")
    assert shown(page)["order"] == "place"


# Reading aids


@pytest.mark.parametrize("stack", [ENCODER, CROSS])
def test_badges_are_the_scores_of_the_head(page, trace, stack):
    choose(page, LABELS[stack])
    click_head(page, 1, 1)
    rows, columns = SIDES[stack]
    given = {"queries": trace.tokens[rows], "keys": trace.tokens[columns], "special": trace.special[columns]}
    scores = head_scores(trace.stack(*stack.split(".")).value, **given, cross=stack == CROSS)
    badges = page.locator(".vf-badge")
    assert badges.count() == len(scores)
    for score, badge in zip([s for s in SCORES if s.name in scores], badges.all(), strict=True):
        label, value = badge.locator("span").all_inner_texts()
        assert label == score.label
        assert float(value) == pytest.approx(scores[score.name][1, 1], abs=0.0051)
        assert badge.get_attribute("title") == score.about


# Access


def test_all_of_it_by_keyboard_and_with_a_name(page, trace):
    """Everything focusable is reached by Tab, and has a name in the accessibility tree."""
    page.evaluate("document.activeElement?.blur()")
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.className"))
    expected = {"vf-tab", "vf-thumbs", "vf-large", "vf-order", "vf-combine", "vf-limit", "vf-merging", "vf-hiding",
                "vf-zoom-in", "vf-help-button"}  # fmt: skip
    assert expected <= reached
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    focusable = [
        node for node in nodes
        if any(p["name"] == "focusable" for p in node.get("properties", ())) and node["role"]["value"] != "RootWebArea"
    ]  # fmt: skip
    assert len(focusable) >= 15
    assert not [node["role"]["value"] for node in focusable if not node.get("name", {}).get("value")]
    names = [node["name"]["value"] for node in focusable]
    assert "Encoder, layer 1, head 1. Shift and the arrow keys move between cells." in names


def test_the_row_in_focus_is_spoken(page, trace):
    """A live region has the cell, and the tokens that its row reads most."""
    page.locator(".vf-large").focus()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    spoken = page.get_by_role("status").first
    assert spoken.get_attribute("aria-live") == "polite"
    row = head_of(trace, ENCODER, 0, 0)[1]
    first = int(row.argmax())
    text = spoken.inner_text()
    assert "\u2068a1\u2069 (2) reads \u2068a0\u2069 (1)" in text
    assert (
        f"\u2068a1\u2069 (2) reads most: \u2068{trace.tokens['src'][first]}\u2069 ({first + 1}) {row[first]:.4f}"
        in text
    )


TOKENS = ["我们", "东北大学", "👩‍👩‍👧", "שלום", "عالم", "a" * 80, "<b>x</b>"]


def test_any_script_is_shown_as_it_is(page, bare):
    odd = made_up_trace(tokens=TOKENS)
    bare.mount(odd)
    assert tokens(page) == [*TOKENS, "</s>"]
    assert page.locator(".vf-root b").count() == 0
    hover_cell(page, 3, 2)
    assert "\u2068שלום\u2069 (4) reads \u2068👩‍👩‍👧\u2069 (3)" in readout(page)
    for view in VIEWS:
        choose(page, view)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), view
    choose(page, "Tokens")
    assert page.locator(".vf-chip[data-side=column]").all_inner_texts() == [*TOKENS, "</s>"]


def test_of_one_token(page, bare):
    """With nothing to hide or zoom into, no key causes an error."""
    one = made_up_trace(1, 1, n_layers=1, n_heads=1)
    bare.mount(one)
    hover_cell(page, 0, 0)
    check_cell(page, one, ENCODER, layer=0, head=0, query=0, key=0)
    page.locator(".vf-large").focus()
    for key in [*"xwmlov+-0", "Shift+ArrowRight", "ArrowRight", "ArrowDown", *"vvvsx", "Escape"]:
        page.keyboard.press(key)
    assert shown(page)["painted"]


@pytest.mark.parametrize("view", VIEWS)
def test_a_whole_row_or_column_is_taken_from_view_to_view(page, trace, view):
    choose(page, "Cross")
    choose(page, "Tokens")
    page.locator(".vf-chip[data-side=column]").nth(4).click()
    choose(page, view)
    assert shown(page)["locked"] == "true"
    assert "is read most by" in readout(page)
    assert "weight" not in shown(page)
    if view != "Heatmap":
        return
    hover_cell(page, 2, 4)
    check_cell(page, trace, CROSS, layer=0, head=0, query=2, key=4)
    place = place_of(page, ".vf-large")
    x = place["left"] + 4 * place["cellWidth"]
    rows = len(trace.tokens["tgt"])
    points = [{"x": x, "y": place["top"] + (row + 0.5) * place["cellHeight"]} for row in range(rows)]
    assert len({tuple(colour) for colour in colours_at(page, ".vf-cursor", points)} - {(0, 0, 0)}) == 1, "one frame"


# Sizes


@pytest.mark.parametrize(("width", "height", "scale"), [(1440, 900, 2), (1280, 720, 1), (360, 740, 3)])
def test_fits_and_is_sharp(chromium, trace, width, height, scale):
    small = Bare(chromium, width=width, height=height, scale=scale, touch=width < 400)
    page = small.mount(trace)
    for view in VIEWS:
        choose(page, view)
        canvas = DRAWN if page.locator(DRAWN).count() else ".vf-thumbs"
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), view
        box = page.locator(canvas).bounding_box()
        assert page.locator(canvas).evaluate("e => e.width") == pytest.approx(scale * box["width"], abs=1)
        if width > 1000:
            assert box["y"] + box["height"] <= height, "all of it without scrolling"
    if width < 400:
        choose(page, "Heatmap")
        page.locator(".vf-large").tap(position=point_of_cell(page, 2, 1))
        check_cell(page, trace, ENCODER, layer=0, head=0, query=2, key=1)
        assert shown(page)["locked"] == "true"
        page.locator(".vf-thumbs").tap(position=point_of_head(page, 2, 3))
        check_cell(page, trace, ENCODER, layer=2, head=3, query=2, key=1)
    small.close()


@pytest.fixture(scope="module")
def long_trace():
    """A Trace too long to send all weights, or scores, without a request."""
    return made_up_trace(300, 290, n_layers=2, n_heads=4)


def test_long_the_head_in_focus_is_fetched_exactly(page, bare, long_trace):
    bare.mount(long_trace, complete=False)
    assert place_of(page, ".vf-thumbs")["columns"] == 4
    assert bare.needed == []
    assert page.locator(".vf-badge").count() == 0
    click_head(page, 1, 2)
    assert bare.needed == [["encoder.self_attn/1/2"]]
    assert shown(page)["exact"] == "false"
    hover_cell(page, 123, 45)
    assert page.locator(".vf-weight").inner_text() == "…"
    before = pixels(page, ".vf-large")
    assert before[1] > 20, "the thumbnail until then"
    bare.answer()
    check_cell(page, long_trace, ENCODER, layer=1, head=2, query=123, key=45)
    assert shown(page)["exact"] == "true"
    assert pixels(page, ".vf-large") != before
    assert page.locator(".vf-badge").count() == len(SCORES)

    page.locator("select.vf-combine").select_option("max")
    assert bare.needed[-1] == ["encoder.self_attn/1/max"]
    hover_cell(page, 123, 45)
    assert page.locator(".vf-weight").inner_text() == "…"
    bare.answer()
    layer = long_trace["encoder.1.self_attn.pattern"].value
    assert float(shown(page)["weight"]) == four_digits(layer[:, 123, 45].max())
    page.locator("select.vf-combine").select_option("one")

    click_head(page, 0, 3)
    assert len(bare.needed) == 2, "the layer of the first message is here"
    choose(page, "Arcs")
    click_head(page, 1, 3, modifiers=["Shift"])
    assert bare.needed[-1] == ["encoder.self_attn/1/3"]
    bare.answer()
    assert len(colours_of(page, ".vf-lines")) > 20


def test_long_arcs_scroll_and_the_strongest_cell_is_seen_in_the_thumbnail(page, bare, long_trace):
    value = long_trace["encoder.0.self_attn.pattern"].value.copy()
    value[0] = 1 / 600
    value[0, 250, 100] = 0.5
    bare.mount(with_pattern(long_trace, "encoder.0.self_attn.pattern", value), complete=False)
    steps, _ = steps_of(colours_at(page, ".vf-thumbs", points_of_thumb(page, 0, (64, 64))))
    row, column = divmod(int(steps.argmax()), 64)
    assert abs((row + 0.5) / 64 - 250.5 / 300) < 0.04
    assert abs((column + 0.5) / 64 - 100.5 / 300) < 0.04
    choose(page, "Arcs")
    arcs = page.locator(".vf-arcs")
    assert arcs.evaluate("e => e.scrollHeight > e.clientHeight")
    arcs.evaluate("e => { e.scrollTop = 250 * (e.scrollHeight / 300) - 200 }")
    page.wait_for_function("() => Number(document.querySelector('.vf-lines').dataset.top) < 0")
    place = place_of(page, ".vf-lines")
    page.locator(".vf-lines").click(position={"x": 20, "y": place["top"] + 250.5 * place["line"]})
    assert "\u2068a250\u2069 (251) reads most: \u2068a100\u2069 (101) 0.5000" in readout(page)


def test_of_1024_tokens(page, bare):
    longest = made_up_trace(1024, 1024, n_layers=1, n_heads=2)
    bare.mount(longest, complete=False)
    hover_cell(page, 1000, 7)
    check_cell(page, longest, ENCODER, layer=0, head=0, query=1000, key=7)
    choose(page, "Cross")
    click_head(page, 0, 1)
    hover_cell(page, 500, 1023)
    assert page.locator(".vf-weight").inner_text() == "…"
    bare.answer()
    check_cell(page, longest, CROSS, layer=0, head=1, query=500, key=1023)
    choose(page, "Tokens")
    page.locator(".vf-chip[data-side=row]").nth(700).click()
    assert "reads most" in readout(page)


# Links and lifetimes


@pytest.mark.parametrize(
    "start",
    [
        {},
        {"stack": "x", "view": "y"},
        {"layer": 99, "head": -3, "query": 99, "key": "a"},
        {"layer": None, "head": 1.5, "query": {}, "key": []},
    ],
)
def test_opens_on_any_start(page, bare, trace, start):
    bare.mount(trace, start=start)
    data = shown(page)
    assert (data["stack"], data["view"], data["locked"]) == (ENCODER, "heatmap", "false")
    assert (int(data["layer"]), int(data["head"])) == ((2, 0) if start.get("layer") == 99 else (0, 0))


def test_another_language_keeps_the_locked_cell_and_another_sentence_unlocks_it(page, bare, trace):
    click_head(page, 1, 1)
    click_cell(page, 2, 2)
    revision = shown(page)["painted"]
    page.evaluate(
        "text => explorer.update(text)", text_of(pack(trace, gettext=i18n.translations("zh").gettext, lang="zh"))
    )
    assert shown(page)["painted"] != revision
    check_cell(page, trace, ENCODER, layer=1, head=1, query=2, key=2)
    other = made_up_trace(3, 3, n_layers=1, n_heads=1, seed=7)
    page.evaluate("text => explorer.update(text)", text_of(pack(other)))
    assert "weight" not in shown(page)
    hover_cell(page, 2, 2)
    check_cell(page, other, ENCODER, layer=0, head=0, query=2, key=2)


def test_200_mounts_leave_at_most_a_megabyte(chromium, trace):
    often = Bare(chromium)
    page, session = often.page, often.context.new_cdp_session(often.page)
    session.send("Memory.getDOMCounters")

    def heap():
        for _ in range(3):
            session.send("HeapProfiler.collectGarbage")
        return session.send("Runtime.getHeapUsage")["usedSize"], session.send("Memory.getDOMCounters")["nodes"]

    page.evaluate("text => explorer.mountOften(text, 20)", text_of(pack(trace)))
    before, nodes = heap()
    page.evaluate("text => explorer.mountOften(text, 200)", text_of(pack(trace)))
    after, nodes_after = heap()
    assert after - before <= 1_000_000
    assert nodes_after <= nodes + 50
    often.close()


def test_a_message_after_the_view_was_removed_causes_no_error(bare, trace):
    """A page may be left while its sentence is computed; errors fail the fixture."""
    page = bare.mount(trace)
    page.evaluate("document.querySelector('#host').firstElementChild.remove()")
    page.evaluate("text => explorer.update(text)", text_of(pack(made_up_trace(n_layers=1, n_heads=2))))
    page.evaluate("explorer.view.destroy()")
