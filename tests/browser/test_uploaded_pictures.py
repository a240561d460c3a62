"""A picture for a model of transformers, in a browser: uploaded, in the address by its name, there after a reload."""

import re

import pytest
from PIL import ExifTags, Image

from tests.adapters.huggingface.picture_models import encoder, processor_of
from tests.browser.conftest import serving, visiting

PICTURE = re.compile(r"text=%5Bpicture(\+|%20)[0-9a-f]{16}%5D")


@pytest.fixture
def open_vit(chromium, tmp_path):
    """Open pages of a server whose model is a ViT."""
    folder = tmp_path / "tiny-vit"
    encoder("vit").save_pretrained(folder)
    processor_of("vit").save_pretrained(folder)
    with serving(str(folder), tmp_path) as server, visiting(server, chromium) as visitors:
        yield visitors.open


def test_a_large_photograph_is_scaled_down_before_it_is_sent(open_vit, tmp_path):
    large = Image.effect_noise((2400, 1800), 90).convert("RGB")
    large.paste("red", (0, 0, 1200, 1800))
    turned = Image.Exif()
    turned[ExifTags.Base.Orientation] = 6  # to be turned clockwise: what is red is then above
    large.save(tmp_path / "photo.jpg", quality=99, exif=turned)
    (tmp_path / "broken.jpg").write_bytes(b"no picture" * 200_000)
    assert (tmp_path / "photo.jpg").stat().st_size > 3e6
    page = open_vit(query="attention", width=1280, height=900)
    page.get_by_role("button", name="Change the picture").click()
    file = page.locator("input[type=file]")
    file.set_input_files(tmp_path / "broken.jpg")
    page.get_by_text("'broken.jpg' cannot be read as a picture (it has none of these formats)").wait_for()
    file.set_input_files(tmp_path / "photo.jpg")
    page.wait_for_url(PICTURE)  # the server has taken it, which refuses more than 1 MB
    page.locator(".st-key-picture_box img").wait_for()
    page.wait_for_function(
        """() => {
            const image = document.querySelector(".st-key-picture_box img")
            const canvas = Object.assign(document.createElement("canvas"), { width: 72, height: 72 })
            if (!image.complete) return false
            const context = canvas.getContext("2d", { willReadFrequently: true })
            context.drawImage(image, 0, 0, 72, 72)
            const [above, left] = [[36, 12], [12, 60]].map(([x, y]) => context.getImageData(x, y, 1, 1).data)
            return above[0] > 200 && above[1] < 60 && Math.abs(left[0] - left[1]) < 30
        }"""
    )


def test_an_uploaded_picture_comes_back_with_the_address_and_another_one_is_said_to_be_gone(open_vit, tmp_path):
    Image.effect_noise((300, 400), 90).save(tmp_path / "photo.jpg")
    page = open_vit(query="attention", width=1280, height=900)
    page.get_by_role("button", name="Change the picture").click()
    example = page.locator(".st-key-picture_box img").get_attribute("src")
    page.locator("input[type=file]").set_input_files(tmp_path / "photo.jpg")
    page.wait_for_url(PICTURE)
    page.wait_for_function("old => document.querySelector('.st-key-picture_box img').src.indexOf(old) < 0", arg=example)
    uploaded = page.locator(".st-key-picture_box img").get_attribute("src")
    page.reload()
    page.locator(f".st-key-picture_box img[src='{uploaded}']").wait_for()
    page.go_back()
    page.locator(f".st-key-picture_box img[src='{example}']").wait_for()
    other = open_vit(query="attention?v=2&text=[picture 0123456789abcdef]", width=1280, height=900)
    other.get_by_text("is not on this server any more").wait_for()
    other.locator(f".st-key-picture_box img[src='{example}']").wait_for()
