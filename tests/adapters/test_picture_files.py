"""Pictures in files and in links: what Pillow decodes, what is refused before it is decoded, and texts for links."""

import io
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

import visformer as vf
from visformer.adapters.picture_files import FORMATS, decoded, language_of, picture_of, text_of, told_in
from visformer.errors import VisformerError
from visformer.system import limits

SIZE = (32, 32)
NOISE = np.random.default_rng(0).integers(256, size=(40, 60, 3), dtype=np.uint8)


def content(image: Image.Image, kind: str = "PNG", **how: object) -> bytes:
    """Return an image as a file."""
    image.save(file := io.BytesIO(), kind, **how)
    return file.getvalue()


def smooth() -> Image.Image:
    """Return a picture such as a camera takes: without sharp edges."""
    y, x = np.mgrid[:80, :120]
    return Image.fromarray(np.stack([x * 2, y * 3, 255 - x - y], axis=2).clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_decoded_as_pillow_does(kind):
    file = content(smooth(), kind)
    np.testing.assert_array_equal(decoded(io.BytesIO(file), name="a"), Image.open(io.BytesIO(file)).convert("RGB"))


def test_a_photograph_is_upright_and_what_is_transparent_is_on_white():
    turned = Image.Exif()
    turned[0x0112] = 6  # the camera was held upright
    file = content(smooth(), "PNG", exif=turned)
    np.testing.assert_array_equal(decoded(io.BytesIO(file), name="a"), np.rot90(np.asarray(smooth()), -1))
    half = Image.new("RGBA", (2, 2), (200, 0, 0, 0))
    half.putpixel((0, 0), (200, 0, 0, 255))
    found = decoded(io.BytesIO(content(half)), name="a")
    assert found[0, 0].tolist() == [200, 0, 0] and (found[1] == 255).all()


def test_a_file_that_says_it_has_too_many_pixels_is_not_decoded():
    small = content(smooth())
    chunk = b"IHDR" + struct.pack(">II", 6_000, limits.PICTURE_PIXELS // 6_000 + 1) + small[24:29]
    file = small[:12] + chunk + struct.pack(">I", zlib.crc32(chunk)) + small[33:]
    with pytest.raises(VisformerError, match=r"'large\.png' has 6000 x 5001 pixels, and at most 30,000,000 "):
        decoded(io.BytesIO(file), name="large.png")


@pytest.mark.parametrize("image", [smooth(), Image.fromarray(NOISE)], ids=["photograph", "noise"])
def test_a_text_for_a_link_is_no_longer_than_a_sentence_and_gives_the_picture_back(image):
    text = text_of(content(image), "a.png", "zh", SIZE)
    assert len(text) <= limits.MAX_CHARACTERS and language_of(text) == "zh"
    wanted = np.asarray(ImageOps.fit(image, SIZE)).astype(float)
    found = picture_of(text, SIZE)
    assert found.shape == (*SIZE, 3)
    assert np.abs(found - wanted).mean() < (4 if image.size == (120, 80) else 60)
    assert language_of(told_in(text, "en")) == "en"
    np.testing.assert_array_equal(picture_of(told_in(text, "en"), SIZE), found)


@given(st.data())
def test_a_text_that_was_cut_or_changed_gives_a_picture_of_the_size_or_is_refused(data):
    text = text_of(content(smooth()), "a.png", "en", SIZE)
    begin = len("picture.en.")
    cut = data.draw(st.integers(begin + 1, len(text)))
    place = data.draw(st.integers(begin, cut - 1))
    changed = text[:place] + data.draw(st.sampled_from("AZaz09-_")) + text[place + 1 : cut]
    with suppress(VisformerError):
        assert picture_of(changed, SIZE).shape == (*SIZE, 3)


def test_no_sentence_is_taken_for_a_picture():
    for text in ("a picture of a cat", "picture.en", "picture.en.", "a red circle in the middle", "picture.en.a b"):
        assert language_of(text) is None


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_captioner_reads_such_a_text_as_the_picture(language):
    model, text = vf.load("mini-caption"), text_of(content(smooth()), "a.png", language, SIZE)
    trace, plain = model.trace(text), model.trace(image=picture_of(text, SIZE), to=language)
    np.testing.assert_array_equal(trace.image, plain.image)
    assert (trace.meta["to"], trace.tokens) == (language, plain.tokens)
    assert (trace.source, trace.meta["source"], plain.source) == (text, "", "")
    with pytest.raises(VisformerError, match="changed or cut off"):
        model.trace(text[:-40])
