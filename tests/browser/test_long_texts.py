"""Long texts in the explorer: a map that zooms, sentences before words, and parts that are fetched or asked for."""

import re
import urllib.parse
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import expect

import visformer as vf
from benchmarks.messages import decode
from tests.browser.bare import PARTS, BarePage
from tests.browser.support import address_of, click_head, colours_at, state_of, wait_until_done
from visformer.pictures.style import CURVES
from visformer.trace.tokens import sentences_of
from visformer.web.codes import encode
from visformer.web.page import page as saved_page

ENCODER = "encoder.self_attn"
MAP = ".vf-tiles"
MODEL = "untrained-64x16-enc6-dec1-ff64"
"""Its heads of 505 tokens take more than a page keeps."""

SENTENCES = (
    "We went to school .",
    "Did you see the river ?",
    "It was a cold and dark night !",
    "The birds are small .",
)


def long_trace(n=700, *, n_heads=4, n_layers=2):
    model = vf.untrained(
        d_model=8 * n_heads, n_heads=n_heads, n_encoder_layers=n_layers, n_decoder_layers=1, d_ff=16, position="rotary"
    )
    trace = model.trace(np.random.default_rng(0).integers(10, 400, n), [11, 12], record="overview")
    written = [word for i in range(n) for word in SENTENCES[i % len(SENTENCES)].split()][:n]
    written[n // 7] = "Nile"
    n = len(trace.tokens["src"])
    tokens = {**trace.tokens, "src": (*written, *trace.tokens["src"][len(written) :])}
    return replace(trace, tokens=tokens, words={**trace.words, "src": tuple(range(n))})


@pytest.fixture(scope="module")
def trace():
    return long_trace()


@pytest.fixture
def bare(chromium, trace):
    bare = BarePage(chromium)
    bare.trace = trace
    yield bare
    bare.close()


def mount(bare, trace, view="heatmap", **start):
    start = {"stack": ENCODER, "layer": 1, "head": 2, "view": view, **start}
    page = bare.mount(trace, parts=PARTS, start=start, complete=False)
    if view == "heatmap":
        settle(page)
    return page


def settle(page):
    page.locator(f"{MAP}[data-settled=true]").wait_for()


def place_of(page, query, key):
    """Return the middle of a pair of tokens in the map, as a position in its canvas."""
    at = {
        name: float(value)
        for name, value in page.locator(MAP).evaluate("e => ({...e.dataset})").items()
        if name in PLACE
    }
    x = at["left"] + (key + 0.5 - at["column"]) * at["cellWidth"]
    return {"x": x, "y": at["top"] + (query + 0.5 - at["row"]) * at["cellHeight"]}


PLACE = ("left", "top", "cellWidth", "cellHeight", "row", "column")


def zoom_at(page, query, key, times):
    """Turn the wheel over a pair of tokens, which stays where it is."""
    page.locator(MAP).hover(position=place_of(page, query, key))
    for _ in range(times):
        page.mouse.wheel(0, -200)
    page.wait_for_timeout(150)
    settle(page)


def test_a_map_zooms_from_the_largest_of_many_weights_to_each_exact_one(bare, trace):
    page = mount(bare, trace)
    weights = trace["encoder.1.self_attn.pattern"].value[2]
    assert page.locator(MAP).get_attribute("data-level") == "1"
    expect(page.locator(".vf-tiled-said")).to_contain_text("the largest of 2 × 2 weights")
    page.locator(MAP).hover(position=place_of(page, 301, 411))
    expect(page.locator(".vf-sentence")).to_contain_text("the largest of 2 × 2 weights")
    assert state_of(page)["weight"] == "", "no weight is said to be exact that is not"
    zoom_at(page, 301, 411, 14)
    page.locator(MAP).hover(position=place_of(page, 301, 411))
    state = state_of(page)
    assert (state["query"], state["key"]) == ("301", "411")
    assert float(state["weight"]) == decode(encode(weights[301, 411]))
    expect(page.locator(".vf-tiled-said")).to_contain_text("Each cell shows one weight.")
    page.locator(MAP).press("0")
    page.wait_for_timeout(150)
    assert page.locator(MAP).get_attribute("data-row") == "0"
    assert len(bare.fetched) == len(set(bare.fetched)), "nothing is fetched twice"


def test_a_locked_pair_shows_its_exact_weight_and_a_link_begins_there(bare, trace):
    page = mount(bare, trace)
    page.locator(MAP).click(position=place_of(page, 301, 411))
    page.locator(".vf-root[data-weight]:not([data-weight=''])").wait_for()
    state = state_of(page)
    weights = trace["encoder.1.self_attn.pattern"].value[2]
    assert float(state["weight"]) == decode(encode(weights[int(state["query"]), int(state["key"])]))
    page = mount(bare, trace, query=301, key=411)
    settle(page)
    at = place_of(page, 301, 411)
    assert float(page.locator(MAP).get_attribute("data-cell-width")) >= 17
    assert at["x"] > 100
    assert state_of(page)["query"] == "301"


def test_a_word_is_found_and_enter_goes_on(bare, trace):
    page = mount(bare, trace)
    page.locator(MAP).press("f")
    expect(page.locator(".vf-find")).to_be_focused()
    page.keyboard.insert_text("nile")
    expect(page.locator(".vf-count")).to_have_text("1 of 1")
    page.wait_for_timeout(150)
    row, height = (float(page.locator(MAP).get_attribute(f"data-{name}")) for name in ("row", "cell-height"))
    assert row < 100 < row + 400 / height
    page.locator(".vf-find").fill("river")
    total = sum(token == "river" for token in trace.tokens["src"])
    expect(page.locator(".vf-count")).to_have_text(f"1 of {total}")
    page.keyboard.press("Enter")
    expect(page.locator(".vf-count")).to_have_text(f"2 of {total}")
    page.locator(".vf-find").fill("xyzzy")
    expect(page.locator(".vf-count")).to_have_text("not found")


def test_rows_are_added_up_by_dragging_along_their_words(bare, trace):
    page = mount(bare, trace)
    zoom_at(page, 301, 411, 14)
    box = page.locator(MAP).bounding_box()
    at = place_of(page, 301, 411)
    height = float(page.locator(MAP).get_attribute("data-cell-height"))
    page.mouse.move(box["x"] + 40, box["y"] + at["y"])
    page.mouse.down()
    page.mouse.move(box["x"] + 40, box["y"] + at["y"] + height)
    page.mouse.up()
    weights = trace["encoder.1.self_attn.pattern"].value[2][301:303].sum(0)
    most = int(weights.argmax())
    expect(page.locator(".vf-summed")).to_contain_text(
        f"{trace.tokens['src'][most]} ({most + 1}) {weights[most]:.4g}"[:-1]
    )


def test_sentences_are_linked_and_lead_to_their_words(bare, trace):
    page = mount(bare, trace)
    line = page.locator(".vf-link-button").first
    expect(line).to_contain_text(re.compile(r"sentence \d+ .* reads sentence \d+"))
    line.click()
    page.wait_for_timeout(150)
    settle(page)
    expect(page.locator(".vf-found .vf-name")).to_have_text("Strongest links in sight")
    page.locator(".vf-link-button").first.click()
    page.locator(".vf-root[data-locked=true]").wait_for()
    state = state_of(page)
    weights = trace["encoder.1.self_attn.pattern"].value[2]
    assert float(state["weight"]) == decode(encode(weights[int(state["query"]), int(state["key"])]))


@pytest.mark.parametrize("view", ["tokens", "arcs"])
def test_text_and_arcs_show_sentences_then_the_words_of_two(bare, trace, view):
    page = mount(bare, trace, view)
    page.locator(".vf-root[data-exact=true]").wait_for()
    if view == "arcs":
        canvas = page.locator(".vf-lines")
        canvas.click(position={"x": 30, "y": 60})
    page.locator(".vf-scope-open").click()
    page.locator(".vf-root[data-exact=true]").wait_for()
    expect(page.locator(".vf-scope-said")).to_contain_text("The words of sentence")
    for _ in range(2):
        page.locator(".vf-stage > div:visible [tabindex], .vf-stage > div[tabindex]:visible").first.press("Escape")
    expect(page.locator(".vf-scope-said")).to_contain_text("by sentence")


ROLES = ("system", "user", "assistant")


def chat_of(trace):
    """The same text as a chat: messages of some hundred tokens, with a template before each."""
    n = len(trace.tokens["src"])
    return replace(trace, roles={"src": tuple(None if i % 120 < 4 else ROLES[i // 120 % 3] for i in range(n))})


def test_a_role_that_is_switched_off_leaves_the_map_and_what_is_left_is_exact_at_every_zoom(bare, trace):
    bare.trace = chat = chat_of(trace)
    page = mount(bare, chat)
    roles = np.array(chat.roles["src"])
    place = {name: float(page.locator(MAP).get_attribute(f"data-{name}")) for name in ("left", "top")}
    height = float(page.locator(MAP).get_attribute("data-cell-height"))
    beside = [{"x": place["left"] - 7.5, "y": place["top"] + row * height} for row in (60, 180, 300)]
    expected = [[int(CURVES["light"][i][at : at + 2], 16) for at in (1, 3, 5)] for i in range(3)]
    assert np.abs(np.array(colours_at(page, MAP, beside)) - expected).max() <= 2
    page.get_by_role("button", name="user").click()
    page.get_by_role("button", name="template").click()
    settle(page)
    kept = np.flatnonzero((roles != "user") & (roles != None))  # noqa: E711
    weights = chat["encoder.1.self_attn.pattern"].value[2][kept]
    left = weights[:, kept]
    assert bare.selection()["without"] == "user.template"
    mass = 1 - left.sum(axis=1).mean()
    expect(page.locator(".vf-hidden-mass")).to_have_text(f"weight hidden, mean over rows: {mass:.2f}")
    expect(page.locator(".vf-tiled-said")).to_contain_text("What is left out has no rows and columns here")
    zoom_at(page, 130, 40, 8)
    page.locator(MAP).hover(position=place_of(page, 130, 40))
    state = state_of(page)
    assert (state["query"], state["key"]) == (str(kept[130]), str(kept[40])), "tokens keep their numbers"
    assert float(state["weight"]) == decode(encode(left[130, 40]))
    expect(page.locator(".vf-sentence")).to_contain_text(f"in this row: {1 - left[130].sum():.2f}")
    expect(page.locator(".vf-found .vf-name")).to_have_text("Strongest links in sight")
    named = re.findall(r"\((\d+)\)", "".join(page.locator(".vf-linked").all_text_contents()))
    assert {int(number) - 1 for number in named} <= {*kept[100:160].tolist(), *kept[10:70].tolist()}
    page.locator("input.vf-renormalising").check()
    page.wait_for_timeout(150)
    settle(page)
    page.locator(MAP).hover(position=place_of(page, 130, 40))
    assert float(state_of(page)["weight"]) == pytest.approx(left[130, 40] / left[130].sum(), rel=2e-3)


def test_a_sentence_that_is_switched_off_is_not_listed_and_the_others_keep_their_numbers(bare, trace):
    bare.trace = chat = chat_of(trace)
    page = mount(bare, chat, "tokens", without="system")
    page.locator(".vf-root[data-exact=true]").wait_for()
    numbers = np.array(sentences_of(chat.tokens["src"], chat.special["src"]))
    left = np.unique(numbers[np.array(chat.roles["src"]) != "system"])
    chips = page.locator(".vf-chip[data-side=row]")
    assert [int(text.split()[0]) for text in chips.all_text_contents()] == (left + 1).tolist()
    chips.nth(-2).click()
    page.locator(".vf-scope-open").click()
    expect(page.locator(".vf-scope-said")).to_contain_text(f"The words of sentence {left[-2] + 1}")
    role = chat.roles["src"][int(np.flatnonzero(numbers == left[-2])[0])]
    page.get_by_role("button", name=role).click()
    expect(page.locator(".vf-scope-said")).to_have_text("Shown by sentence.")


def test_where_requests_fail_the_host_is_asked_once(bare, trace):
    bare.status = 404
    page = bare.mount(
        trace, parts=PARTS, start={"stack": ENCODER, "layer": 1, "head": 2, "view": "heatmap"}, complete=False
    )
    page.wait_for_function("explorer.needed.length")
    assert page.locator(MAP).get_attribute("data-settled") == "false"
    for n in range(1, 9):  # until all has been answered
        bare.answer()
        page.wait_for_timeout(200)
        if len(bare.needed) == n:
            break
    settle(page)
    asked = [path for paths in bare.needed for path in paths]
    assert len(asked) == len(set(asked)) == len(set(bare.fetched)) == len(bare.fetched)
    assert max(map(len, bare.needed)) <= 8
    expect(page.locator(".vf-tiled-said")).to_contain_text("the largest of 2 × 2 weights")
    assert all("404" in problem for problem in bare.problems)
    bare.problems.clear()


def test_controls_that_take_all_weights_are_absent_with_a_reason(bare, trace):
    page = mount(bare, trace)
    expect(page.locator(".vf-is-long")).to_contain_text("This text is long")
    for name in (".vf-combine", ".vf-limit", ".vf-merging", ".vf-named"):
        expect(page.locator(name)).to_be_hidden()
    for key in "mw":
        page.locator(MAP).press(key)
    assert state_of(page)["combine"] == "one"


@pytest.mark.full
def test_a_thousand_heads_fit_and_are_ordered_and_chosen_at_once(chromium):
    trace = long_trace(64, n_heads=32, n_layers=32)
    for width, height in ((1280, 720), (1024, 640), (390, 844)):
        bare = BarePage(chromium, width=width, height=height)
        page = mount(bare, trace)
        box = page.locator(".vf-thumbs").bounding_box()
        assert box["x"] + box["width"] <= width
        click_head(page, 20, 31)
        assert state_of(page)["head"] == "31"
        page.locator(".vf-order").select_option("similarity")
        assert state_of(page)["order"] == "similarity"
        assert page.locator(".vf-thumbs").bounding_box()["width"] <= width
        bare.close()


def test_a_saved_page_has_no_server_and_says_so(visit, trace, tmp_path):
    file = tmp_path / "page.html"
    start = {"stack": ENCODER, "layer": 1, "head": 2, "view": "heatmap", "hiding": True, "without": "system"}
    file.write_text(saved_page(chat_of(trace), start=start), encoding="utf-8")
    page = visit(file.as_uri(), own="file:")
    page.locator(".vf-root[data-painted]").wait_for()
    expect(page.locator(".vf-tiled-said")).to_contain_text("Bars: at the right")
    for name in (".vf-hiding", ".vf-roles"):
        expect(page.locator(name)).to_be_hidden()  # nobody is there to compute what would be left
    page.locator(MAP).click(position={"x": 300, "y": 200})
    page.keyboard.press("+")
    for name in ("Shaded text", "Arcs", "One layer", "Heatmap"):
        page.get_by_role("button", name=name, exact=True).click()
    expect(page.locator(".vf-tiled-said")).to_contain_text("the app computes")
    click_head(page, 0, 0)
    expect(page.locator(".vf-tiled-said")).to_contain_text("the app computes")
    page.get_by_role("button", name="Shaded text", exact=True).click()
    expect(page.locator(".vf-scope-said")).to_contain_text("the app computes")


@pytest.mark.full
def test_in_the_app_a_reload_and_back_show_the_head_and_the_pair_again(open_app):
    text = " ".join(sentence.replace(" .", ".").replace(" ?", "?").replace(" !", "!") for sentence in SENTENCES * 21)
    page = open_app(
        query="attention?"
        + urllib.parse.urlencode({"lang": "en", "model": MODEL, "text": text, "target": "好。", "stack": "encoder"})
    )
    settle(page)
    click_head(page, 0, 2)
    settle(page)
    page.locator(MAP).click(position={"x": 300, "y": 200})
    page.locator(".vf-root[data-weight]:not([data-weight=''])").wait_for()
    before = state_of(page)
    page.wait_for_url("**query=*")
    for again in (
        page.reload,
        lambda: (page.get_by_role("link", name="Masks").first.click(), wait_until_done(page), page.go_back()),
    ):
        again()
        page.wait_for_selector(".vf-root[data-weight]:not([data-weight=''])")
        wait_until_done(page)
        state = state_of(page)
        assert [state[name] for name in ("head", "query", "key", "weight")] == [
            before[name] for name in ("head", "query", "key", "weight")
        ]
    assert address_of(page)["head"] == "3"
