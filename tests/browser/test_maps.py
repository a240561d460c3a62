"""Maps of any range in the explorer: exact numbers, the colours of their scale, nothing of weights only."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import visformer as vf
from tests.browser.support import colours_at, colours_of, opaque_pixels, point_of_cell, points_of_cells, state_of
from visformer.pictures.style import RAMPS

TOKENS = ("[CLS]", "un", "seen", "word", "[SEP]")
WORDS = {"src": (0, 1, 1, 2, 3)}
RNG = np.random.default_rng(0)
MAPS = {
    "signed": (RNG.normal(size=(2, 3, 5, 5)) * 7).astype(np.float32),
    "unsigned": RNG.integers(0, 5000, size=(2, 3, 5, 5)).astype(np.float32),
}


def trace_of(kind):
    return vf.Trace.from_maps(TOKENS, MAPS[kind], quantity="effect", words=WORDS)


def expected_colour(kind, scheme, value):
    """Return the colour of a value on the linear scale of its map."""
    largest = np.abs(MAPS[kind]).max()
    share = (1 + value / largest) / 2 if kind == "signed" else value / largest
    stops = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in RAMPS[kind][scheme]])
    at = np.linspace(0, 1, len(stops))
    return np.stack([np.interp(share, at, stops[:, c]) for c in range(3)], axis=-1)


@pytest.fixture(params=MAPS)
def kind(request):
    return request.param


@pytest.fixture
def page(bare, kind):
    bare.page.mouse.move(1, 1)
    yield bare.mount(trace_of(kind))
    assert not bare.problems


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_cell_has_the_colour_of_its_number(bare, kind, scheme):
    bare.page.emulate_media(color_scheme=scheme)
    try:
        page = bare.mount(trace_of(kind))
        values = MAPS[kind][0, 0]
        points = points_of_cells(page, [*np.ndindex(5, 5)], inside=0.12)
        colours = np.array(colours_at(page, ".vf-large", points))
        assert np.abs(colours - expected_colour(kind, scheme, values.ravel())).max() <= 2
    finally:
        bare.page.emulate_media(color_scheme="light")


def test_the_readout_has_the_exact_number_of_the_cell(page, kind):
    for query, key in ((0, 0), (3, 1), (4, 2)):
        page.locator(".vf-large").hover(position=point_of_cell(page, query, key))
        value = MAPS[kind][0, 0, query, key]
        assert np.float32(state_of(page)["weight"]) == value
        shown = page.locator(".vf-weight").inner_text()
        assert shown == (f"{value:.4f}" if kind == "signed" else f"{value:.0f}")
        spot = page.locator(".vf-sentence").inner_text()
        assert (
            spot.replace("\u2068", "").replace("\u2069", "")
            == f"{TOKENS[query]} ({query + 1}) · {TOKENS[key]} ({key + 1})"
        )


def test_a_token_lists_the_numbers_furthest_from_0(page, kind):
    page.get_by_role("button", name="Arcs", exact=True).click()
    lines = page.locator(".vf-lines")
    data = lines.evaluate("e => ({...e.dataset})")
    lines.hover(position={"x": 20, "y": float(data["top"]) + 1.5 * float(data["line"])})
    row = MAPS[kind][0, 0, 1]
    most = row[np.argsort(-np.abs(row), kind="stable")[:3]]
    text = page.locator(".vf-sentence").inner_text()
    assert text.startswith("Furthest from 0 in the row of")
    values = [f"{value:.4f}" if kind == "signed" else f"{value:.0f}" for value in most]
    assert [part.split()[-1] for part in text.splitlines()[0].split(" · ")] == values


def test_arcs_below_0_have_another_colour(page, kind):
    page.get_by_role("button", name="Arcs", exact=True).click()
    assert opaque_pixels(page, ".vf-lines") > 1000
    colours = colours_of(page, ".vf-lines")
    reddish = {c for c in colours if int(c[1:3], 16) > int(c[5:7], 16) + 40}
    assert bool(reddish) == (kind == "signed")


def test_controls_and_scores_of_weights_are_absent(page):
    for name in (".vf-limit", ".vf-renormalising"):
        assert not page.locator(name).is_visible(), name
    page.locator(".vf-hiding").check()
    assert not page.locator(".vf-renormalising").is_visible()
    page.locator(".vf-large").hover(position=point_of_cell(page, 0, 1))
    assert page.locator(".vf-badge").count() == 0
    assert page.locator(".vf-order option:not([hidden])").all_inner_texts() == ["by layer and head", "by similarity"]
    text = page.locator(".vf-root").inner_text()
    assert "hidden" not in text
    assert "sums to 1" not in text
    assert "effect: colours from" in text


def test_merged_words_show_the_mean_of_their_cells(page, kind):
    page.locator(".vf-merging").check()
    page.locator(".vf-large").hover(position=point_of_cell(page, 1, 1))  # un + seen
    mean = MAPS[kind][0, 0, 1:3, 1:3].astype(float).mean()
    assert float(state_of(page)["weight"]) == pytest.approx(mean, rel=1e-6)
    shown = np.abs(MAPS[kind]).max()
    assert abs(mean) <= shown, "the scale holds"


def test_thumbnails_are_sorted_by_the_cosine_of_the_maps(page, kind):
    page.locator(".vf-order").select_option("similarity")
    maps = MAPS[kind].reshape(6, 25).astype(float)
    cosine = maps @ maps[0] / np.linalg.norm(maps, axis=1) / np.linalg.norm(maps[0])
    nearest = int(np.argsort(-cosine)[1])
    page.locator(".vf-thumbs").focus()
    page.locator(".vf-thumbs").press("ArrowRight")
    state = state_of(page)
    assert (int(state["layer"]), int(state["head"])) == divmod(nearest, 3)


OTHERS = [("dark", 1280), ("light", 390), ("light", 1280)]


@pytest.mark.parametrize(
    ("scheme", "width"), [("dark", 390), *(pytest.param(*other, marks=pytest.mark.full) for other in OTHERS)]
)
def test_the_png_has_the_legend_below_the_picture(visit, tmp_path, scheme, width, kind):
    """Both ends of the ramp are in its last lines."""
    vf.export.save(trace_of(kind), tmp_path / "x.html")
    page = visit((tmp_path / "x.html").as_uri(), scheme=scheme, width=width)
    page.locator(".vf-root[data-painted]").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    with page.expect_download() as file:
        page.get_by_role("button", name="PNG").click()
    pixels = np.asarray(Image.open(io.BytesIO(Path(file.value.path()).read_bytes())).convert("RGB")).astype(int)
    foot = pixels[-84:].reshape(-1, 3)
    for stop in (RAMPS[kind][scheme][0], RAMPS[kind][scheme][-1]):
        colour = [int(stop[i : i + 2], 16) for i in (1, 3, 5)]
        assert (np.abs(foot - colour).max(axis=1) <= 2).any(), stop
