"""Picture and words in a browser: the veil over the picture, and what a block changes."""

import numpy as np
import pytest
from PIL import Image

import visformer as vf
from tests.browser.support import click_cell, colours_at, hover_cell, layout_of, wait_for_panels
from visformer import scenes
from visformer.pictures import picture

SCENE = scenes.EXAMPLES[0]


@pytest.fixture(scope="module")
def trace():
    return vf.load("mini-caption").trace(scenes.caption(SCENE, "en"), record=("*.pattern", "src.*"))


def veiled(page, trace, weights):
    """Return the colours beside the middle of each patch, as they are seen and as these weights veil the picture."""
    canvas = "canvas[data-panel=picture]"
    layout = layout_of(page, canvas)
    points, own = [], []
    for row, column in np.ndindex(8, 8):
        x = layout["left"] + (column + 0.37) * layout["cellWidth"]
        points.append({"x": x, "y": layout["top"] + (row + 0.37) * layout["cellHeight"]})
        own.append(trace.image[4 * row + 1, 4 * column + 1])
    seen = np.array(colours_at(page, canvas, points), dtype=float)[:, :3]
    limit = np.median(picture.word_weights(trace).max(axis=1))
    alpha = 0.88 * (1 - np.sqrt(np.round(255 * np.minimum(weights / limit, 1)) / 255))[:, None]
    return seen, (1 - alpha) * np.array(own, dtype=float) + alpha * np.array([18, 24, 38])


def test_the_veil_shows_the_weights_of_the_word_under_the_pointer(open_app, trace):
    page = open_app(query="picture", width=1280, height=900)
    wait_for_panels(page)
    every = picture.word_weights(trace)
    for word in (1, 9, 17):  # red, blue, triangle
        if word != 1:
            hover_cell(page, "words", word, 0)
        seen, expected = veiled(page, trace, every[word])
        assert np.abs(seen - expected).max() < 4
    click_cell(page, "words", 9, 0)
    page.wait_for_url("**picture_word=10**")
    page.get_by_text("“blue” gives 0.78 of its weight to the object in the middle").wait_for()
    page.go_back()
    page.get_by_text("“red” gives 0.94 of its weight to the object at the top left").wait_for()


def test_a_block_changes_the_words_that_read_the_object(open_app):
    page = open_app(query="picture?picture_view=block", width=1280, height=900)
    page.get_by_text("While blocked: a red circle at the top left, a red circle in the middle").wait_for()
    page.get_by_text("words and patches", exact=True).click()
    page.get_by_text("While blocked: a red circle at the top left and a green triangle").wait_for()
    page.reload()
    page.get_by_text("While blocked: a red circle at the top left and a green triangle").wait_for()


def test_a_picture_of_ones_own_is_read_and_comes_back_with_the_address(open_app, tmp_path):
    y, x = np.mgrid[:300, :400]
    Image.fromarray(np.stack([x // 2, y // 2, 255 - y // 2], axis=2).astype(np.uint8)).save(tmp_path / "photo.jpg")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    page = open_app(query="picture", width=1280, height=900)
    wait_for_panels(page)
    page.get_by_role("button", name="Change the picture").click()
    file = page.locator("input[type=file]")
    file.set_input_files(tmp_path / "broken.png")
    page.get_by_text("'broken.png' cannot be read as a picture (it has none of these formats)").wait_for()
    file.set_input_files(tmp_path / "photo.jpg")
    page.wait_for_url("**text=picture.en.**")
    page.get_by_text("The model knows coloured shapes on white alone").wait_for()
    page.reload()
    page.get_by_text("The model knows coloured shapes on white alone").wait_for()
    page.go_back()
    page.get_by_text("“red” gives 0.94 of its weight to the object at the top left").wait_for()
