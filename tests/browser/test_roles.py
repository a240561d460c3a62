"""The explorer of a chat, and of layers that differ: a switch for each role, keys before the tokens, unequal heads."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import expect

import visformer as vf
from tests.browser.bare import BarePage, text_of
from tests.browser.support import colours_at, displayed_weights, state_of
from tests.browser.test_play import MOUNT
from visformer.panel import numbered, traced
from visformer.pictures.style import CURVES
from visformer.web.panels import pack_panels

TOKENS = ("<s>", "<user>", "Why", "?", "<bot>", "So", ".", "</s>")
ROLES = (None, None, "user", "user", None, "assistant", "assistant", None)
SAID = {"user": [2, 3], "assistant": [5, 6], "template": [0, 1, 4, 7]}


def weights(n_heads, before=0, seed=0):
    """Return causal patterns (head, query, key) with keys before the tokens."""
    scores = torch.randn(n_heads, 8, before + 8, generator=torch.Generator().manual_seed(seed))
    ahead = torch.triu(torch.full((8, 8), -torch.inf), 1)
    return torch.softmax(2 * scores + torch.cat([torch.zeros(8, before), ahead], dim=1), dim=-1)


@pytest.fixture
def chat():
    return vf.Trace.from_attention(target=TOKENS, decoder=[weights(2)], roles={"tgt": ROLES})


def test_each_role_has_a_switch_in_its_colour_that_hides_its_rows_and_columns(bare, chat):
    page, pattern = bare.mount(chat), chat["decoder.0.self_attn.pattern"].value[0]
    switches = page.locator(".vf-role")
    expect(switches).to_have_text(["user", "assistant", "template"])
    canvas = page.locator(".vf-large")
    left, top, height = (float(canvas.get_attribute(f"data-{name}")) for name in ("left", "top", "cell-height"))
    beside = colours_at(page, ".vf-large", [{"x": left - 3.5, "y": top + (row + 0.5) * height} for row in (2, 5, 0)])
    expected = [[int(CURVES["light"][i][at : at + 2], 16) for at in (1, 3, 5)] for i in (1, 2, 7)]
    assert np.abs(np.array(beside) - expected).max() <= 2
    hidden = []
    for role in ("template", "user"):
        page.get_by_role("button", name=role).click()
        hidden += SAID[role]
        kept = [i for i in range(8) if i not in hidden]
        block = pattern[np.ix_(kept, kept)]
        np.testing.assert_allclose(displayed_weights(page, *block.shape), block, rtol=1e-3, atol=1e-6)
        mass = 1 - block.sum(axis=1).mean()
        assert float(state_of(page)["hidden"]) == pytest.approx(mass, abs=1e-3)
        expect(page.locator(".vf-hidden-mass")).to_have_text(f"weight hidden, mean over rows: {mass:.2f}")
        expect(page.get_by_role("button", name=role)).to_have_attribute("aria-pressed", "false")
    assert bare.selection()["without"] == "template.user"
    page.get_by_role("button", name="template").click()
    assert bare.selection()["without"] == "user"


def test_a_link_hides_a_role_and_a_text_without_roles_has_no_switch(bare, chat):
    page = bare.mount(chat, start={"view": "tokens", "without": "template.user"})
    expect(page.locator(".vf-chip[data-side=row]")).to_have_text(["So", "."])
    bare.mount(vf.Trace.from_attention(target=TOKENS, decoder=[weights(2)]))
    expect(page.locator(".vf-roles")).to_be_hidden()


def test_a_layer_has_the_colours_of_the_roles_along_its_heads_and_hides_what_is_switched_off(bare, chat):
    page = bare.mount(chat, start={"view": "layer"})

    def roles_along(kept):
        at = {name: float(value) for name, value in page.locator(".vf-layer").evaluate("e => ({...e.dataset})").items()}
        each = at["size"] / len(kept)
        rows = [{"x": at["left"] - 4.5, "y": at["top"] + (i + 0.5) * each} for i in range(len(kept))]
        columns = [
            {"x": at["left"] + head * at["step"] + (i + 0.5) * each, "y": at["top"] - 4.5}
            for head in (0, 1)
            for i in range(len(kept))
        ]
        wanted = [CURVES["light"][{None: 7, "user": 1, "assistant": 2}[ROLES[i]]] for i in kept] * 3
        expected = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in wanted]
        return np.abs(np.array(colours_at(page, ".vf-layer", rows + columns)) - expected).max()

    assert roles_along(range(8)) <= 2
    page.get_by_role("button", name="template").click()
    assert roles_along([2, 3, 5, 6]) <= 2


def test_a_png_has_the_colours_of_the_roles_and_says_whose_they_are(bare, chat):
    page = bare.mount(chat, start={"view": "tokens", "without": "assistant"})
    with page.expect_download() as file:
        page.get_by_role("button", name="PNG").click()
    pixels = np.asarray(Image.open(file.value.path()).convert("RGB")).astype(int)
    picture, names = pixels[:-76], pixels[-76:]  # the line of names, with the margin below it, at twice the size
    for name, colour in (("user", 1), ("assistant", 2), ("template", 7)):
        rgb = [int(CURVES["light"][colour][at : at + 2], 16) for at in (1, 3, 5)]
        found = [(np.abs(part.reshape(-1, 3) - rgb).max(axis=1) <= 2).any() for part in (picture, names)]
        assert found == [name != "assistant"] * 2, name


def test_panels_have_the_colours_of_the_roles_and_say_whose_they_are(chromium, chat):
    bare = BarePage(chromium)
    panel = traced(chat, "decoder.0.self_attn.pattern", 0, title="A", scale="weight")
    bare.page.evaluate(MOUNT, text_of(pack_panels([panel])))
    expect(bare.page.locator(".vf-said")).to_have_text(["user", "assistant", "template"])
    canvas = bare.page.locator(".vf-matrix")
    left, top, width = (float(canvas.get_attribute(f"data-{name}")) for name in ("left", "top", "cell-width"))
    above = colours_at(bare.page, ".vf-matrix", [{"x": left + (i + 0.5) * width, "y": top - 3.5} for i in (2, 5, 0)])
    swatches = bare.page.locator(".vf-swatch").evaluate_all(
        "all => all.map((e) => getComputedStyle(e).backgroundColor)"
    )
    expected = [[int(CURVES["light"][i][at : at + 2], 16) for at in (1, 3, 5)] for i in (1, 2, 7)]
    assert np.abs(np.array(above) - expected).max() <= 2
    assert swatches == [f"rgb({red}, {green}, {blue})" for red, green, blue in expected]
    bare.page.evaluate(MOUNT, text_of(pack_panels([replace(panel, rows=numbered(8), columns=numbered(8))])))
    expect(bare.page.locator(".vf-roles")).to_be_hidden()
    bare.close()


def test_keys_before_the_tokens_are_columns_that_no_row_and_no_word_has(bare):
    trace = vf.Trace.from_attention(target=TOKENS, decoder=[weights(2, before=2)])
    page, pattern = bare.mount(trace), trace["decoder.0.self_attn.pattern"].value[0]
    np.testing.assert_allclose(displayed_weights(page, 8, 10), pattern, rtol=1e-3, atol=1e-6)
    canvas = page.locator(".vf-large")
    canvas.press("Escape")
    for _ in range(5):
        canvas.press("Shift+ArrowRight")
    assert state_of(page)["key"] == "4"
    expect(page.locator(".vf-token.vf-read")).to_have_text("Why")
    expect(page.locator(".vf-sentence")).to_contain_text("Why")


def test_a_layer_shows_the_heads_that_it_has(bare):
    trace = vf.Trace.from_attention(target=TOKENS, decoder=[weights(3), weights(1, seed=1), weights(2, seed=2)])
    page = bare.mount(trace, start={"view": "heatmap", "stack": "decoder.self_attn", "layer": 1, "head": 2})
    assert (state_of(page)["layer"], state_of(page)["head"]) == ("1", "0")
    thumbs = page.locator(".vf-thumbs")
    left, top, step = (float(thumbs.get_attribute(f"data-{name}")) for name in ("left", "top", "step"))
    middle = lambda layer, head: {"x": left + (head + 0.5) * step, "y": top + (layer + 0.5) * step}  # noqa: E731
    thumbs.click(position=middle(1, 1))
    assert (state_of(page)["layer"], state_of(page)["head"]) == ("1", "0"), "there is no such head"
    thumbs.click(position=middle(2, 1))
    assert (state_of(page)["layer"], state_of(page)["head"]) == ("2", "1")
    values = displayed_weights(page, 8, 8)
    np.testing.assert_allclose(values, trace["decoder.2.self_attn.pattern"].value[1], rtol=1e-3, atol=1e-6)
    page.locator("select.vf-combine").select_option("mean")
    values = displayed_weights(page, 8, 8)
    np.testing.assert_allclose(values, trace["decoder.2.self_attn.pattern"].value.mean(0), rtol=1e-3, atol=1e-6)
