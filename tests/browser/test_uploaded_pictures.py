"""A picture for a model of transformers, in a browser: uploaded, in the address by its name, there after a reload."""

import re

import pytest
from PIL import Image

from tests.adapters.huggingface.picture_models import encoder, processor_of
from tests.browser.conftest import serving, visiting


@pytest.fixture
def open_vit(chromium, tmp_path):
    """Open pages of a server whose model is a ViT."""
    folder = tmp_path / "tiny-vit"
    encoder("vit").save_pretrained(folder)
    processor_of("vit").save_pretrained(folder)
    with serving(str(folder), tmp_path) as server, visiting(server, chromium) as visitors:
        yield visitors.open


def test_an_uploaded_picture_comes_back_with_the_address_and_another_one_is_said_to_be_gone(open_vit, tmp_path):
    Image.effect_noise((300, 400), 90).save(tmp_path / "photo.jpg")
    page = open_vit(query="attention", width=1280, height=900)
    page.get_by_role("button", name="Change the picture").click()
    example = page.locator(".st-key-picture_box img").get_attribute("src")
    page.locator("input[type=file]").set_input_files(tmp_path / "photo.jpg")
    page.wait_for_url(re.compile(r"text=%5Bpicture(\+|%20)[0-9a-f]{16}%5D"))
    page.wait_for_function("old => document.querySelector('.st-key-picture_box img').src.indexOf(old) < 0", arg=example)
    uploaded = page.locator(".st-key-picture_box img").get_attribute("src")
    page.reload()
    page.locator(f".st-key-picture_box img[src='{uploaded}']").wait_for()
    page.go_back()
    page.locator(f".st-key-picture_box img[src='{example}']").wait_for()
    other = open_vit(query="attention?v=2&text=[picture 0123456789abcdef]", width=1280, height=900)
    other.get_by_text("is not on this server any more").wait_for()
    other.locator(f".st-key-picture_box img[src='{example}']").wait_for()
