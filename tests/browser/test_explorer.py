"""The explorer on a bare page without a server: every view, key and option, compared with the Trace."""

import math
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.bare import BarePage, text_of
from tests.browser.boxes import RECORD_LABELS, labels
from tests.browser.support import (
    check_cell,
    click_head,
    colours_at,
    colours_of,
    displayed_weights,
    fingerprint,
    head_of,
    layout_of,
    opaque_pixels,
    point_of_cell,
    point_of_head,
    point_of_thumb,
    points_of_cells,
    points_of_thumb,
    state_of,
    tokens,
)
from tests.js.reference import Options, derived
from tests.web.support import made_up_trace
from visformer import i18n
from visformer.analysis.heads import SCORES, head_scores, strongest_word
from visformer.pictures.style import CURVES, SEQUENTIAL
from visformer.trace import TracedTensor
from visformer.web.message import write_message
from visformer.web.payload import HeadNotes, pack
from visformer.web.selection import VIEWS as NAMES
from visformer.web.selection import Selection
from visformer.web.words import words

ENCODER, DECODER, CROSS = "encoder.self_attn", "decoder.self_attn", "decoder.cross_attn"
LABELS = {ENCODER: "Encoder", DECODER: "Decoder", CROSS: "Cross"}
WORDS = {"src": [0, 0, 1, 2, 2, 2, 3, 4], "tgt": [0, 1, 1, 2, 3], "next": [0, 0, 1, 2, 3]}
TEXT = words(made_up_trace(), str, "en")["text"]
VIEWS = tuple(TEXT[f"view_{name}"] for name in NAMES)
CANVAS = ".vf-stage > div:visible canvas[tabindex]"


@pytest.fixture(scope="module")
def trace():
    """A Trace with stacks of unequal depth, rectangular patterns, and words of several tokens."""
    return made_up_trace(8, 5, n_layers=3, n_decoder_layers=2, n_heads=4, words=WORDS)


@pytest.fixture(scope="module")
def bare(chromium):
    """A page that records the labels on its canvases."""
    bare = BarePage(chromium, script=RECORD_LABELS)
    yield bare
    bare.close()


@pytest.fixture
def page(bare, trace):
    """A freshly mounted explorer; console messages fail the test."""
    bare.page.mouse.move(1, 1)
    yield bare.mount(trace)
    assert not bare.problems


def drawn(page, canvas):
    """Return the labels of the last painting of a canvas: text, and corners from the upper left one on."""
    return page.locator(canvas).evaluate("canvas => window.drawn.get(canvas)")


def with_pattern(trace, name, value):
    """Return the Trace with one pattern replaced."""
    tensor = TracedTensor(name, value.astype(np.float32), trace[name].axes)
    return replace(trace, tensors={**trace.tensors, name: tensor})


def four_digits(weight):
    return float(f"{weight:.3e}")


def ramp_steps(colours, scheme="light"):
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


def check_shades(steps, weights):
    """Check that steps of the ramp are 255 times the square roots of the weights."""
    assert np.abs(steps - np.rint(255 * np.sqrt(weights)).ravel()).max() <= 1


@pytest.mark.parametrize(("stack", "scheme"), [(ENCODER, "light"), (CROSS, "dark")])
def test_every_cell_has_the_colour_of_its_weight(page, trace, stack, scheme):
    page.emulate_media(color_scheme=scheme)
    try:
        choose(page, LABELS[stack])
        click_head(page, 1, 3)
        pattern = head_of(trace, stack, 1, 3)
        cells = list(np.ndindex(*pattern.shape))
        points = points_of_cells(page, cells, inside=0.15)
        steps, distance = ramp_steps(colours_at(page, ".vf-large", points), scheme)
        assert distance.max() <= 1
        check_shades(steps, pattern)
        assert cells[int(steps.argmax())] == np.unravel_index(pattern.argmax(), pattern.shape)
    finally:
        page.emulate_media(color_scheme="light")


def test_every_thumbnail_shows_the_largest_weight_at_its_position(page, trace):
    for stack, n_layers in ((ENCODER, 3), (CROSS, 2)):
        choose(page, LABELS[stack])
        for layer, head in np.ndindex(n_layers, 4):
            pattern = head_of(trace, stack, layer, head)
            points = points_of_thumb(page, 4 * layer + head, pattern.shape)
            steps, distance = ramp_steps(colours_at(page, ".vf-thumbs", points))
            assert distance.max() <= 1
            assert int(steps.argmax()) == int(pattern.argmax())


def test_the_view_one_layer_shows_all_its_heads_and_a_click_opens_one(page, trace):
    click_head(page, 2, 1)
    choose(page, "One layer")
    assert layout_of(page, ".vf-layer")["size"] >= 200
    check_tokens_of_a_layer(page, trace.tokens["src"])
    for head in range(4):
        pattern = head_of(trace, ENCODER, 2, head)
        points = points_of_thumb(page, head, pattern.shape, canvas=".vf-layer")
        steps, _ = ramp_steps(colours_at(page, ".vf-layer", points))
        check_shades(steps, pattern)
    page.locator(".vf-layer").click(position=point_of_thumb(page, 3, canvas=".vf-layer"))
    assert [state_of(page)[name] for name in ("view", "layer", "head")] == ["heatmap", "2", "3"]


def check_tokens_of_a_layer(page, tokens):
    """Check that each row of thumbnails has all tokens at its left, and each column all above it."""
    layout, written = layout_of(page, ".vf-layer"), drawn(page, ".vf-layer")
    above = [label for label in written if label["corners"][0][1] != label["corners"][1][1]]  # turned
    beside = [label for label in written if label not in above and label["corners"][1][0] < layout["left"]]
    for row in range(math.ceil(4 / layout["columns"])):
        top = layout["top"] + row * layout["rise"]
        lines = [label["text"] for label in beside if 0 < label["corners"][2][1] - top < layout["rise"]]
        assert lines == [*tokens]
    assert [label["text"] for label in above] == [*tokens] * int(layout["columns"])
    assert not labels(page)["found"], "cut, or touching"


def test_every_view_of_every_stack_has_a_picture_of_its_own_without_a_request(page, bare):
    pictures = set()
    for stack in LABELS.values():
        choose(page, stack)
        for view in VIEWS:
            choose(page, view)
            if page.locator(CANVAS).count():
                digest, n_colours = fingerprint(page, CANVAS)
                assert n_colours > 20, "not blank"
                pictures.add(digest)
            assert page.locator(".vf-stage > div:visible").count() == 1
            assert page.get_by_role("button", name=view, exact=True).get_attribute("aria-pressed") == "true"
    assert len(pictures) == 3 * (len(VIEWS) - 1), "all but the tokens, which are text"
    assert not bare.needed


def test_zoom_and_pan(page, trace):
    def first_cell():
        layout = layout_of(page, ".vf-large")
        return int(layout["row"]), int(layout["column"])

    page.locator(".vf-large").focus()
    for _ in range(3):
        page.keyboard.press("+")
    row, column = first_cell()
    assert (row, column) != (0, 0), "the whole matrix begins at (0, 0)"
    hover_cell(page, row + 1, column + 2)
    check_cell(page, trace, ENCODER, layer=0, head=0, query=row + 1, key=column + 2)

    box, layout = page.locator(".vf-large").bounding_box(), layout_of(page, ".vf-large")
    point = point_of_cell(page, row, column)
    x, y = box["x"] + point["x"], box["y"] + point["y"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 2.1 * layout["cellWidth"], y + 1.1 * layout["cellHeight"], steps=4)
    page.mouse.up()
    assert first_cell() == (row - 1, max(0, column - 2))
    assert state_of(page)["locked"] == "false", "a drag is not a click"

    for _ in range(9):
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Shift+ArrowDown")
    assert first_cell() == (4, 4), "the selected cell stays visible"
    page.keyboard.press("0")
    assert first_cell() == (0, 0)
    page.locator(".vf-large").hover(position=point_of_cell(page, 0, 7))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.wait_for_function("() => document.querySelector('.vf-large').dataset.column !== '0'")
    assert first_cell()[0] == 0, "around the pointer"
    page.get_by_role("button", name="The whole matrix").click()
    assert first_cell() == (0, 0)
    page.locator(".vf-large").dblclick(position=point_of_cell(page, 7, 0))
    assert first_cell()[0] > 0
    assert first_cell()[1] == 0


def test_arcs_of_several_heads_have_different_colours(page, bare):
    """In a Trace in which head h reads only the token h positions later."""
    value = np.stack([np.roll(np.eye(6), h, axis=1) for h in range(3)])
    bare.mount(with_pattern(made_up_trace(6, 6, n_layers=2, n_heads=3), "encoder.0.self_attn.pattern", value))
    choose(page, "Arcs")
    colours = {head: CURVES["light"][head] for head in range(3)}
    click_head(page, 0, 1, modifiers=["Shift"])
    assert {colours[0], colours[1]} <= colours_of(page, ".vf-lines")
    assert colours[2] not in colours_of(page, ".vf-lines")
    click_head(page, 0, 2, modifiers=["Shift"])
    assert set(colours.values()) <= colours_of(page, ".vf-lines")

    layout = layout_of(page, ".vf-lines")
    row, column = 1, 3  # the third head's arc
    share = 0.12  # of the way from left to right, where arcs are apart
    x = layout["left"] + share * (layout["right"] - layout["left"])
    y = layout["top"] + (row + 0.5 + share * (column - row)) * layout["line"]
    page.locator(".vf-lines").hover(position={"x": x, "y": y})
    assert (state_of(page)["query"], state_of(page)["key"]) == ("1", "3")
    assert float(state_of(page)["weight"]) == 1, "of the head that was added last"
    assert "1·1: 0 · 1·2: 0 · 1·3: 1.000" in " ".join(readout(page).split())

    page.locator(".vf-lines").click(position={"x": layout["right"] + 20, "y": layout["top"] + 3.5 * layout["line"]})
    assert state_of(page)["locked"] == "true"
    assert "\u2068a3\u2069 (4) is read most by: \u2068a1\u2069 (2) 1.000" in readout(page)
    click_head(page, 0, 1, modifiers=["Shift"])
    assert colours[2] not in colours_of(page, ".vf-lines"), "the remaining two have the first two colours"


def test_shift_click_shows_heads_together_where_a_view_shows_only_one(page, bare):
    """tests/js/view_state.test.js leaves every view so."""
    value = np.stack([np.roll(np.eye(6), h, axis=1) for h in range(3)])
    bare.mount(with_pattern(made_up_trace(6, 6, n_layers=2, n_heads=3), "encoder.0.self_attn.pattern", value))
    click_head(page, 0, 1, modifiers=["Shift"])
    assert (state_of(page)["view"], state_of(page)["head"]) == ("arcs", "1")
    assert set(CURVES["light"][:2]) <= colours_of(page, ".vf-lines")
    choose(page, "Heatmap")
    page.locator(".vf-thumbs").press("Escape")
    click_head(page, 0, 2)
    assert (state_of(page)["view"], state_of(page)["head"]) == ("heatmap", "2")
    page.locator(".vf-thumbs").press("l")
    assert state_of(page)["view"] == "arcs"
    assert set(CURVES["light"][:3]) <= colours_of(page, ".vf-lines")


def test_the_help_is_shown_wherever_no_text_is_typed(page):
    help_ = page.get_by_role("dialog", name="Shortcuts and scores")
    page.evaluate(
        """() => document.body.insertAdjacentHTML("beforeend",
          `<div id=extra><input id=typed><textarea id=long></textarea>
           <div id=edited contenteditable></div><a id=link href=#>a</a></div>`)"""
    )
    for name in ("typed", "long", "edited"):
        page.locator(f"#{name}").focus()
        page.keyboard.press("?")
        expect(help_).to_be_hidden()
    for place in (page.locator("#link"), page.get_by_label("whole words")):
        place.focus()
        page.keyboard.press("?")
        expect(help_).to_be_focused()
        page.keyboard.press("?")
        expect(help_).to_be_hidden()
    expect(page.get_by_label("whole words")).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    expect(help_).to_be_hidden()
    page.keyboard.press("v")
    assert state_of(page)["view"] == "arcs", "the keys just read work"
    page.evaluate("document.querySelector('#extra').remove()")


def test_a_token_shades_those_that_it_reads_and_those_that_read_it(page, trace):
    choose(page, "Cross")
    choose(page, "Shaded text")
    pattern = head_of(trace, CROSS, 0, 0)
    reads, read = (page.locator(f".vf-chip[data-side={side}]") for side in ("row", "column"))
    assert read.all_inner_texts() == list(trace.tokens["src"])
    assert reads.all_inner_texts() == list(trace.tokens["tgt"])

    def shades(chips):
        colours = chips.evaluate_all("all => all.map((e) => e.style.backgroundColor)")
        assert all(colours)
        steps, distance = ramp_steps([[int(part) for part in colour[4:-1].split(",")] for colour in colours])
        assert distance.max() <= 1
        return steps

    reads.nth(2).hover()
    check_shades(shades(read), pattern[2])
    read.nth(4).click()
    check_shades(shades(reads), pattern[:, 4])
    strongest = int(pattern[:, 4].argmax())
    assert f"is read most by: \u2068{trace.tokens['tgt'][strongest]}\u2069 ({strongest + 1})" in readout(page)
    reads.nth(3).hover()
    check_cell(page, trace, CROSS, layer=0, head=0, query=3, key=4)
    reads.nth(3).click()
    check_cell(page, trace, CROSS, layer=0, head=0, query=3, key=4)
    page.keyboard.press("Escape")
    assert "weight" not in state_of(page)


# Pointer and keys


def test_at_first_the_word_that_reads_another_most_is_chosen_in_large_letters(trace, bare):
    page = bare.mount(trace, plain=True, start={"stack": CROSS, "layer": 1, "head": 2})
    pattern, tgt, src = head_of(trace, CROSS, 1, 2), trace.tokens["tgt"], trace.tokens["src"]
    row = strongest_word(pattern, tgt, src, (trace.special["tgt"], trace.special["src"]))
    key = int(pattern[row].argmax())
    assert page.locator(".vf-claimed").inner_text() == f"\u2068{tgt[row]}\u2069 reads \u2068{src[key]}\u2069"
    assert float(page.locator(".vf-claimed-weight").inner_text()) == pytest.approx(pattern[row, key], abs=0.0051)
    assert page.locator(".vf-chosen").all_inner_texts() == [tgt[row]]
    sides = page.locator(".vf-chip").evaluate_all("all => all.map((chip) => chip.dataset.side)")
    assert sides == ["column"] * len(src) + ["row"] * len(tgt), "what is read stands above what reads it"
    assert "query" not in state_of(page) and not bare.problems, "nothing is locked"
    expect(page.locator("select.vf-order")).to_be_hidden()
    page.get_by_role("button", name="More controls").click()
    expect(page.locator("select.vf-order")).to_be_visible()


def test_hovering_shows_a_cell_and_a_click_locks_it(page, trace, bare):
    """Both tokens, layer, head and the exact weight, which is 0 under the mask."""
    choose(page, "Decoder")
    click_head(page, 1, 2)
    for query, key in ((3, 1), (4, 4), (1, 3)):
        hover_cell(page, query, key)
        check_cell(page, trace, DECODER, layer=1, head=2, query=query, key=key)
    assert page.locator(".vf-weight").inner_text() == "0"
    tgt = trace.tokens["tgt"]
    assert f"\u2068{tgt[1]}\u2069 (2) reads \u2068{tgt[3]}\u2069 (4)" in readout(page)
    assert "Layer 2 · Head 3" in readout(page)
    click_cell(page, 3, 1)
    hover_cell(page, 4, 0)
    check_cell(page, trace, DECODER, layer=1, head=2, query=3, key=1)
    assert bare.selection() == Selection(DECODER, 1, 2, "heatmap", 3, 1).start()
    click_cell(page, 3, 1)
    assert state_of(page)["locked"] == "false", "a second click unlocks it"


def test_all_of_the_readout_belongs_to_the_head_under_the_pointer_or_to_the_locked_one(page):
    click_cell(page, 3, 1)
    locked = readout(page)
    page.locator("canvas.vf-thumbs").hover(position=point_of_head(page, 1, 2))
    assert readout(page) == f"Layer 2 · Head 3\n{TEXT['click']}", "no weight of the locked head"
    page.locator(".vf-large").focus()
    page.keyboard.press("Shift+ArrowUp")
    assert "Layer 1 · Head 1\n\u2068a2\u2069 (3) reads" in readout(page), "a key overrides a resting pointer"
    page.keyboard.press("Shift+ArrowDown")
    assert readout(page) == locked


def test_arrow_keys_move_through_heads_layers_and_cells(page, trace):
    page.locator(".vf-large").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    assert (state_of(page)["layer"], state_of(page)["head"]) == ("1", "1")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(f"Shift+{key}")
    check_cell(page, trace, ENCODER, layer=1, head=1, query=0, key=1)
    page.keyboard.press("ArrowRight")
    check_cell(page, trace, ENCODER, layer=1, head=2, query=0, key=1)


def test_every_shortcut_in_the_help_works(page):
    press = page.keyboard.press

    def values_after(key, name, times):
        return [(press(key), state_of(page)[name])[1] for _ in range(times)]

    page.locator(".vf-large").focus()
    press("?")
    shortcuts = page.get_by_role("dialog", name="Shortcuts and scores")
    expect(shortcuts).to_be_visible()
    keys = shortcuts.locator(".vf-keys:not(.vf-meanings) .vf-key").all_inner_texts()
    assert keys == ["← → ↑ ↓", "Shift + ← → ↑ ↓", *"svmlowx", "+ − 0", "Esc", "?"]
    press("Escape")
    expect(shortcuts).to_be_hidden()
    page.locator(".vf-large").focus()
    assert values_after("s", "stack", 3) == [DECODER, CROSS, ENCODER]
    assert values_after("m", "combine", 3) == ["mean", "max", "one"]
    assert values_after("o", "order", 10) == ["similarity", *[score.name for score in SCORES], "place"]
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
    assert values_after("v", "view", len(NAMES)) == ["layer", "tokens", "heatmap", "arcs"], "l has shown arcs"
    press("?")
    press("?")
    expect(shortcuts).to_be_hidden()


# Options


SIDES = {ENCODER: ("src", "src"), DECODER: ("tgt", "tgt"), CROSS: ("tgt", "src")}


def expected_of(trace, stack, heads, options):
    rows, columns = SIDES[stack]
    special = [trace.special[rows], trace.special[columns]]
    if rows == "tgt":  # the row of the language token predicts the first word
        special[0] = [one and other for one, other in zip(trace.special["tgt"], trace.special["next"], strict=True)]
    heads = [head_of(trace, stack, layer, head) for layer, head in heads]
    return derived(heads, [trace.words[rows], trace.words[columns]], special, options)


def displayed_hidden_mass(page):
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
def test_several_heads_are_combined(page, trace, how, heads, title):
    choose(page, "Cross")
    page.locator("select.vf-combine").select_option(how)
    for layer, head in heads if "chosen" in title else ():
        click_head(page, layer, head, modifiers=["Shift"] if layer else [])
    assert state_of(page)["view"] == "heatmap"
    expected = expected_of(trace, CROSS, heads, Options(how))
    np.testing.assert_allclose(displayed_weights(page, 5, 8), expected.values, rtol=1e-3, atol=1e-6)
    assert title in readout(page)


def test_whole_words_hidden_special_tokens_and_renormalised_rows(page, trace, bare):
    choose(page, "Cross")
    page.get_by_label("whole words").check()
    expected = expected_of(trace, CROSS, [(0, 0)], Options(merging=True))
    assert expected.values.shape == (4, 5)
    np.testing.assert_allclose(displayed_weights(page, 4, 5), expected.values, rtol=1e-3, atol=1e-6)
    assert state_of(page)["hidden"] == "0"
    hover_cell(page, 1, 2)
    assert "\u2068b0b1\u2069 (2) reads \u2068a3a4a5\u2069 (4)" in readout(page)
    click_cell(page, 1, 2)
    assert bare.selection() | {"query": 1, "key": 3} == bare.selection(), "in tokens, not in words"

    page.locator("select.vf-named").select_option("both")
    page.get_by_label("hide special tokens").check()
    assert state_of(page)["locked"] == "true", "the locked cell is not hidden"
    page.locator(".vf-large").press("Escape")
    expected = expected_of(trace, CROSS, [(0, 0)], Options(merging=True, hiding=True))
    assert expected.values.shape == (4, 4), (
        "without </s>; the row of the language token stays, since it predicts a word"
    )
    np.testing.assert_allclose(displayed_weights(page, 4, 4), expected.values, rtol=1e-3, atol=1e-6)
    assert displayed_hidden_mass(page) == pytest.approx(expected.hidden.mean(), abs=0.006)
    assert float(state_of(page)["hidden"]) == pytest.approx(expected.hidden.mean(), rel=1e-3)
    hover_cell(page, 2, 0)
    assert f"weight hidden in this row: {expected.hidden[2]:.2f}" in readout(page)

    page.get_by_label("renormalise rows").check()
    values = displayed_weights(page, 4, 4)
    np.testing.assert_allclose(values.sum(axis=1), 1, rtol=2e-3)
    expected = expected_of(trace, CROSS, [(0, 0)], Options(merging=True, hiding=True, renormalising=True))
    np.testing.assert_allclose(values, expected.values, rtol=1e-3, atol=1e-6)


def test_rows_are_named_by_what_they_read_as_input_or_predict(bare, page, trace):
    choose(page, "Encoder")
    expect(page.locator("select.vf-named")).to_be_hidden()
    choose(page, "Cross")
    rows, chips = page.locator("select.vf-named"), page.locator(".vf-chip[data-side=row]")
    choose(page, "Shaded text")
    inputs, predictions = trace.tokens["tgt"], trace.tokens["next"]
    named = {
        "both": [f"{token} → {after}" for token, after in zip(inputs, predictions, strict=True)],
        "input": [*inputs],
        "prediction": [f"→ {after}" for after in predictions],
    }
    for name, expected in named.items():
        rows.select_option(name)
        expect(chips).to_have_text(expected)
        assert bare.selection()["rows"] == name
    special = {"input": trace.special["tgt"], "prediction": trace.special["next"]}
    page.get_by_label("hide special tokens").check()
    for name, flags in special.items():
        rows.select_option(name)
        expect(chips).to_have_text([text for text, flag in zip(named[name], flags, strict=True) if not flag])


@pytest.mark.parametrize(("kind", "value"), [("weight", 0.1), ("mass", 0.75)])
def test_a_threshold_hides_cells_and_their_mass_is_displayed(page, trace, kind, value):
    page.locator("select.vf-limit").select_option(kind)
    page.locator(".vf-slider").fill(str(value))
    expected = expected_of(trace, ENCODER, [(0, 0)], Options(kind=kind, value=value))
    assert 0 < expected.hidden.mean() < 1
    assert displayed_hidden_mass(page) == pytest.approx(expected.hidden.mean(), abs=0.006)
    points = points_of_cells(page, np.ndindex(8, 8), inside=0.15)
    steps, _ = ramp_steps(colours_at(page, ".vf-large", points))
    assert np.array_equal(steps > 0, (expected.kept & (expected.values > 2e-5)).ravel())
    query, key = np.argwhere(~expected.kept)[0]
    hover_cell(page, query, key)
    assert float(state_of(page)["weight"]) == four_digits(expected.values[query, key]), "a hidden cell is still read"
    choose(page, "Arcs")
    with_threshold = opaque_pixels(page, ".vf-lines")
    page.locator("select.vf-limit").select_option("none")
    assert opaque_pixels(page, ".vf-lines") > with_threshold
    assert displayed_hidden_mass(page) == 0


def scores_of(trace, stack):
    """Compute the scores of a stack's heads in Python."""
    rows, columns = SIDES[stack]
    labels = {"queries": trace.tokens[rows], "keys": trace.tokens[columns], "special": trace.special[columns]}
    return head_scores(trace.stack(stack), **labels, cross=stack == CROSS)


def test_overview_and_arrow_keys_follow_the_order_of_heads(page, trace):
    """tests/js/test_derive.py compares each order with NumPy."""
    ranks = [divmod(int(i), 4) for i in np.argsort(scores_of(trace, ENCODER)["entropy"].ravel(), kind="stable")]
    page.locator("select.vf-order").select_option("entropy")
    for place in (0, 1, 7, 11):
        page.locator(".vf-thumbs").hover(position=point_of_thumb(page, place))
        layer, head = ranks[place]
        assert readout(page).startswith(f"Layer {layer + 1} · Head {head + 1}")
    page.locator(".vf-thumbs").click(position=point_of_thumb(page, 2))
    page.locator("select.vf-order").select_option("similarity")
    page.locator(".vf-thumbs").hover(position=point_of_thumb(page, 0))
    assert readout(page).startswith("Layer {} · Head {}".format(*(i + 1 for i in ranks[2]))), "most similar to itself"
    page.locator("select.vf-order").select_option("entropy")
    page.locator(".vf-thumbs").focus()
    page.keyboard.press("ArrowRight")
    assert (int(state_of(page)["layer"]), int(state_of(page)["head"])) == ranks[3]


def test_captions_of_thumbnails_do_not_overlap(page, bare):
    """A head's score is left out where there is no space beside its name."""
    for width in (900, 1040, 1280):
        page.set_viewport_size({"width": width, "height": 720})
        bare.mount(made_up_trace(n_layers=3, n_heads=12))
        page.locator("select.vf-order").select_option("entropy")
        assert {"1·12", "3·1"} <= {label["text"] for label in drawn(page, ".vf-thumbs")}
        assert not labels(page)["found"], width


def test_an_order_that_the_other_stack_lacks_is_reset(page):
    page.locator("select.vf-order").select_option("distance")
    choose(page, "Cross")
    assert state_of(page)["order"] == "place"


@pytest.mark.parametrize("stack", [ENCODER, CROSS])
def test_badges_show_the_scores_of_the_head(page, trace, stack):
    choose(page, LABELS[stack])
    click_head(page, 1, 1)
    scores = scores_of(trace, stack)
    badges = page.locator(".vf-badge")
    assert badges.count() == len(scores)
    for score, badge in zip([s for s in SCORES if s.name in scores], badges.all(), strict=True):
        label, value = badge.locator("span").all_inner_texts()
        assert label == score.label
        assert float(value) == pytest.approx(scores[score.name][1, 1], abs=0.0051)
        assert badge.get_attribute("title") == score.about


# Accessibility


def test_controls_are_reached_by_tab_and_the_picture_has_a_name(page):
    """axe-core finds controls without names, see test_legible.py."""
    page.evaluate("document.activeElement?.blur()")
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.className"))
    controls = {"vf-tab", "vf-thumbs", "vf-large", "vf-order", "vf-combine", "vf-limit", "vf-merging", "vf-hiding",
                "vf-zoom-in", "vf-help-button"}  # fmt: skip
    assert controls <= reached
    name = "Encoder, layer 1, head 1. Shift and the arrow keys move between cells."
    expect(page.get_by_role("application", name=name)).to_be_visible()
    assert all(picture.get_attribute("aria-label") for picture in page.get_by_role("application").all())


def test_a_live_region_has_the_selected_cell_and_the_largest_weights_of_its_row(page, trace):
    page.locator(".vf-large").focus()
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    region = page.get_by_role("status").first
    assert region.get_attribute("aria-live") == "polite"
    row = head_of(trace, ENCODER, 0, 0)[1]
    first = int(row.argmax())
    assert "\u2068a1\u2069 (2) reads \u2068a0\u2069 (1)" in region.inner_text()
    largest = f"\u2068{trace.tokens['src'][first]}\u2069 ({first + 1}) {row[first]:.4f}"
    assert f"\u2068a1\u2069 (2) reads most: {largest}" in region.inner_text()


LONG = "如果 我们 中华人民共和国 国家图书馆 待在家里 义 Internationalization 和 ␣and wait 社 W".split()


ALL_LENGTHS = (3, 5, 8, 10, 13, 17, 20, 25, 34, 50)


@pytest.mark.parametrize(
    ("width", "lengths"),
    [(390, (8, 13, 34)), *(pytest.param(width, ALL_LENGTHS, marks=pytest.mark.full) for width in (320, 390, 760))],
)
def test_no_label_touches_another_or_is_cut(chromium, width, lengths):
    """Whatever the tokens are and however many."""
    bare, found = BarePage(chromium, width=width, height=844, script=RECORD_LABELS), []
    for at, n in enumerate(lengths):
        lang, tokens = ("en", "zh")[at % 2], [LONG[(i + n) % len(LONG)] for i in range(n)]
        trace = made_up_trace(tokens=tokens[:-1], n_tgt=n, n_layers=1, n_heads=4)
        sides = trace.tokens | {"tgt": ("<zh>", *tokens[:-1]), "next": (*tokens[:-1], "</s>")}
        page = bare.mount(replace(trace, tokens=sides), gettext=i18n.translations(lang).gettext, lang=lang)
        for view in NAMES:
            page.locator(f".vf-views [data-name={view}]").click()
            for stack in LABELS:
                page.locator(f".vf-stacks [data-name='{stack}']").click()
                found += [f"{lang} {n} {stack} {view}: {fault}" for fault in labels(page)["found"]]
    assert labels(page)["count"], "the labels are recorded"
    bare.close()
    assert not found, "\n".join(found)


def test_the_label_in_focus_covers_no_other(page, bare):
    """Where each row and column has a label, in a small font."""
    bare.mount(made_up_trace(34, n_layers=1, n_heads=1))
    choose(page, "Heatmap")
    layout = layout_of(page, ".vf-large")
    assert 13 < layout["cellHeight"] < 15
    click_cell(page, 7, 9)

    def is_covered(row):
        y = layout["top"] + (row + 0.5) * layout["cellHeight"]
        across = [{"x": x, "y": y + off} for x in range(int(layout["left"]) - 6) for off in (-4, 0, 4)]
        return any(any(colour) for colour in colours_at(page, ".vf-cursor", across))

    assert [row for row in range(5, 10) if is_covered(row)] == [7]


TOKENS = ["我们", "东北大学", "👩‍👩‍👧", "שלום", "عالم", "a" * 80, "<b>x</b>"]


def test_tokens_of_any_script_are_shown_unchanged(page, bare):
    bare.mount(made_up_trace(tokens=TOKENS))
    assert tokens(page) == [*TOKENS, "</s>"]
    assert page.locator(".vf-root b").count() == 0
    hover_cell(page, 3, 2)
    assert "\u2068שלום\u2069 (4) reads \u2068👩‍👩‍👧\u2069 (3)" in readout(page)
    for view in VIEWS:
        choose(page, view)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), view
    choose(page, "Shaded text")
    assert page.locator(".vf-chip[data-side=column]").all_inner_texts() == [*TOKENS, "</s>"]


def test_with_a_single_token_no_key_causes_an_error(page, bare):
    trace = made_up_trace(1, 1, n_layers=1, n_heads=1)
    bare.mount(trace)
    hover_cell(page, 0, 0)
    check_cell(page, trace, ENCODER, layer=0, head=0, query=0, key=0)
    page.locator(".vf-large").focus()
    for key in [*"xwmlov+-0", "Shift+ArrowRight", "ArrowRight", "ArrowDown", *"vvvsx", "Escape"]:
        page.keyboard.press(key)
    assert state_of(page)["painted"]


def test_every_view_keeps_a_locked_column(page, trace):
    choose(page, "Cross")
    choose(page, "Shaded text")
    page.locator(".vf-chip[data-side=column]").nth(4).click()
    for view in (*VIEWS, "Heatmap"):
        choose(page, view)
        assert state_of(page)["locked"] == "true", view
        assert "is read most by" in readout(page), view
        assert "weight" not in state_of(page), view
    hover_cell(page, 2, 4)
    check_cell(page, trace, CROSS, layer=0, head=0, query=2, key=4)
    layout = layout_of(page, ".vf-large")
    x = layout["left"] + 4 * layout["cellWidth"]
    rows = len(trace.tokens["tgt"])
    points = [{"x": x, "y": layout["top"] + (row + 0.5) * layout["cellHeight"]} for row in range(rows)]
    colours = {tuple(colour) for colour in colours_at(page, ".vf-cursor", points)}
    assert len(colours - {(0, 0, 0)}) == 1, "one frame around the column"


# Sizes


@pytest.mark.parametrize(
    ("width", "height", "scale"), [pytest.param(1440, 900, 2, marks=pytest.mark.full), (1280, 720, 1), (360, 740, 3)]
)
def test_every_view_fits_the_window_and_is_sharp(chromium, trace, width, height, scale):
    bare = BarePage(chromium, width=width, height=height, scale=scale, touch=width < 400)
    page = bare.mount(trace)
    for view in VIEWS:
        choose(page, view)
        canvas = CANVAS if page.locator(CANVAS).count() else ".vf-thumbs"
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), view
        box = page.locator(canvas).bounding_box()
        assert page.locator(canvas).evaluate("e => e.width") == pytest.approx(scale * box["width"], abs=1)
        if width > 1000:
            assert box["y"] + box["height"] <= height, view
    if width < 400:
        choose(page, "Heatmap")
        page.locator(".vf-large").tap(position=point_of_cell(page, 2, 1))
        check_cell(page, trace, ENCODER, layer=0, head=0, query=2, key=1)
        assert state_of(page)["locked"] == "true"
        page.locator(".vf-thumbs").tap(position=point_of_head(page, 2, 3))
        check_cell(page, trace, ENCODER, layer=2, head=3, query=2, key=1)
    bare.close()


@pytest.fixture(scope="module")
def long_trace():
    """A Trace too long to send all weights, or scores, without a request."""
    return made_up_trace(300, 290, n_layers=2, n_heads=4)


def test_the_weights_of_heads_of_a_long_trace_are_requested_when_they_are_selected(page, bare, long_trace):
    bare.mount(long_trace, complete=False)
    assert layout_of(page, ".vf-thumbs")["columns"] == 4
    assert bare.needed == []
    assert page.locator(".vf-badge").count() == 0
    click_head(page, 1, 2)
    assert bare.needed == [["encoder.self_attn/1/2"]]
    assert state_of(page)["exact"] == "false"
    hover_cell(page, 123, 45)
    assert page.locator(".vf-weight").inner_text() == "…"
    thumbnail = fingerprint(page, ".vf-large")
    assert thumbnail[1] > 20, "not blank"
    bare.answer()
    check_cell(page, long_trace, ENCODER, layer=1, head=2, query=123, key=45)
    assert state_of(page)["exact"] == "true"
    assert fingerprint(page, ".vf-large") != thumbnail
    assert page.locator(".vf-badge").count() == len(SCORES)

    page.locator("select.vf-combine").select_option("max")
    assert bare.needed[-1] == ["encoder.self_attn/1/max"]
    hover_cell(page, 123, 45)
    assert page.locator(".vf-weight").inner_text() == "…"
    bare.answer()
    layer = long_trace["encoder.1.self_attn.pattern"].value
    assert float(state_of(page)["weight"]) == four_digits(layer[:, 123, 45].max())
    page.locator("select.vf-combine").select_option("one")

    click_head(page, 0, 3)
    assert len(bare.needed) == 2, "the first message has the first layer"
    choose(page, "Arcs")
    click_head(page, 1, 3, modifiers=["Shift"])
    assert bare.needed[-1] == ["encoder.self_attn/1/3"]
    bare.answer()
    assert len(colours_of(page, ".vf-lines")) > 20


def test_the_largest_weight_of_a_long_trace_is_visible_in_its_thumbnail_and_arcs_scroll_to_it(page, bare, long_trace):
    value = long_trace["encoder.0.self_attn.pattern"].value.copy()
    value[0] = 1 / 600
    value[0, 250, 100] = 0.5
    bare.mount(with_pattern(long_trace, "encoder.0.self_attn.pattern", value), complete=False)
    steps, _ = ramp_steps(colours_at(page, ".vf-thumbs", points_of_thumb(page, 0, (64, 64))))
    row, column = divmod(int(steps.argmax()), 64)
    assert abs((row + 0.5) / 64 - 250.5 / 300) < 0.04
    assert abs((column + 0.5) / 64 - 100.5 / 300) < 0.04
    choose(page, "Arcs")
    arcs = page.locator(".vf-arcs")
    assert arcs.evaluate("e => e.scrollHeight > e.clientHeight")
    arcs.evaluate("e => { e.scrollTop = 250 * (e.scrollHeight / 300) - 200 }")
    page.wait_for_function("() => Number(document.querySelector('.vf-lines').dataset.top) < 0")
    layout = layout_of(page, ".vf-lines")
    page.locator(".vf-lines").click(position={"x": 20, "y": layout["top"] + 250.5 * layout["line"]})
    assert "\u2068a250\u2069 (251) reads most: \u2068a100\u2069 (101) 0.5000" in readout(page)


@pytest.mark.full
def test_1024_tokens_can_be_explored(page, bare):
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
    choose(page, "Shaded text")
    page.locator(".vf-chip[data-side=row]").nth(700).click()
    assert "reads most" in readout(page)


# Start, updates and end


def test_invalid_fields_of_a_start_are_ignored(page, bare, trace):
    """tests/js/view_state.test.js has more; here, those that only the explorer reads."""
    for cell in ({"query": 99, "key": "a"}, {"query": {}, "key": []}, {"cells": "9-9.x"}):
        bare.mount(trace, start={"layer": 99, "head": -3, "view": "y", **cell})
        state = state_of(page)
        place = [state[name] for name in ("stack", "layer", "head", "view", "locked")]
        assert place == [ENCODER, "2", "0", "tokens", "false"], cell


def test_a_locked_cell_tells_what_its_weight_does_once_it_is_measured(page, trace):
    def told(**place):
        place = {"stack": ENCODER, "layer": 1, "head": 1, "query": 2, "key": 3, "said": "It does this.", **place}
        page.evaluate("text => explorer.update(text)", text_of(write_message("effect", place)))
        return "It does this." in readout(page)

    click_head(page, 1, 1)
    click_cell(page, 2, 3)
    assert not told(key=4), "another cell"
    assert told()
    click_cell(page, 2, 3)
    assert not told(), "only while it is locked"


def test_a_cell_that_a_link_locks_is_reported_so_that_its_weight_is_measured(bare, trace):
    linked = Selection(ENCODER, 1, 1, "heatmap", 2, 3).start()
    bare.mount(trace, start={**linked, "opened": 1})
    assert bare.selection() == linked
    bare.update(trace, start={**linked, "key": 4, "opened": 2}, gettext=i18n.translations("zh").gettext, lang="zh")
    bare.page.wait_for_function("explorer.selections.length === 2")
    assert bare.selection() == {**linked, "key": 4}, "after Back, too"


@pytest.mark.parametrize("options", [{}, {"merging": True}])
def test_all_locked_cells_are_in_the_readout_and_in_a_link_by_their_tokens(page, bare, trace, options):
    """Those of merged words are those of their first tokens; tests/js/view_state.test.js adds and unlocks more."""
    bare.mount(trace, start=Selection(ENCODER, **options).start())
    for query, key in ((1, 1), (2, 3), (3, 2)):
        click_cell(page, query, key, modifiers=["Shift"])
    shown, linked = readout(page), bare.selection()
    if not options:
        label = " · \u2068a1\u2069 (2) reads \u2068a1\u2069 (2)"
        (weight,) = [line.removesuffix(label) for line in shown.splitlines() if line.endswith(label)]
        assert float(weight) == four_digits(head_of(trace, ENCODER, 0, 0)[1, 1])
    assert len(linked["cells"].split(".")) == 2
    bare.mount(trace, start=linked)
    assert readout(page) == shown
    assert bare.selection() == linked
    page.locator(".vf-large").press("Escape")
    assert (state_of(page)["locked"], "weight" in state_of(page)) == ("false", False)


def test_another_language_keeps_the_locked_cell_and_another_sentence_unlocks_it(page, bare, trace):
    click_head(page, 1, 1)
    click_cell(page, 2, 2)
    painted = state_of(page)["painted"]
    bare.update(trace, gettext=i18n.translations("zh").gettext, lang="zh")
    assert state_of(page)["painted"] != painted
    check_cell(page, trace, ENCODER, layer=1, head=1, query=2, key=2)
    assert bare.selection()["query"] == 2
    other = made_up_trace(3, 3, n_layers=1, n_heads=1, seed=7)
    bare.update(other)
    assert "weight" not in state_of(page)
    page.wait_for_function("explorer.selections.at(-1).query === null")
    hover_cell(page, 2, 2)
    check_cell(page, other, ENCODER, layer=0, head=0, query=2, key=2)


@pytest.mark.full
def test_200_mounts_leak_at_most_a_megabyte(chromium, trace):
    bare = BarePage(chromium)
    page, session = bare.page, bare.context.new_cdp_session(bare.page)

    def heap():
        for _ in range(3):
            session.send("HeapProfiler.collectGarbage")
        return session.send("Runtime.getHeapUsage")["usedSize"], session.send("Memory.getDOMCounters")["nodes"]

    page.evaluate("text => explorer.mountOften(text, 20)", text_of(pack(trace)))
    bytes_before, nodes_before = heap()
    page.evaluate("text => explorer.mountOften(text, 200)", text_of(pack(trace)))
    bytes_after, nodes_after = heap()
    assert bytes_after - bytes_before <= 1_000_000
    assert nodes_after <= nodes_before + 50
    bare.close()


def test_a_message_after_the_view_was_removed_causes_no_error(page, bare):
    """A visitor may leave a page while its sentence is computed."""
    page.evaluate("document.querySelector('#host').firstElementChild.remove()")
    bare.update(made_up_trace(n_layers=1, n_heads=2))
    page.evaluate("explorer.view.destroy()")


def test_a_known_head_has_its_label_and_heads_are_ordered_by_a_measured_effect(bare, trace):
    effects = tuple((ENCODER, layer, head, layer - head / 8) for layer in range(3) for head in range(4))
    notes = HeadNotes(effects=effects, labels=((ENCODER, 0, 0, "Positional head (−2)", 0.5, "how it was found"),))
    page = bare.mount(trace, notes=notes)
    label = page.locator(".vf-known")
    assert label.inner_text() == "Positional head (−2) 0.50"
    assert label.get_attribute("title") == "how it was found"
    assert page.locator(".vf-badge").last.inner_text() == "Effect 0.000"
    page.locator("select.vf-order").select_option("effect")
    page.locator("canvas.vf-thumbs").click(position={"x": 10, "y": 10})
    assert page.locator(".vf-place").inner_text() == "Layer 3 · Head 1", "the largest effect comes first"
    assert not label.count(), "another head has no label"
    assert not bare.problems
