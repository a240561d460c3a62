"""Contrast of the app's own colours, as WCAG 2.2 computes it: text at least 4.5 to 1, marks at least 3 to 1."""

import re
import tomllib
from pathlib import Path

import pytest

from visformer.export.marks import ink_on, ramp
from visformer.pictures.style import BACKGROUND, CURVES, FAINT, PRIMARY, SURFACE, SYMBOLS, TEXT

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
STATIC = ROOT / "visformer" / "web" / "static"
TEXT_RATIO, MARK_RATIO = 4.5, 3  # success criteria 1.4.3 and 1.4.11
STREAMLITS_CAPTIONS = 0.6  # the opacity of its captions, which no option changes
STREAMLITS_SEGMENTS = (0.1, 0.2)  # the share of the primary colour behind a selected segment; under the pointer


def rgb(colour):
    full = colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:])
    return tuple(int(full[i : i + 2], 16) for i in (1, 3, 5))


def luminance(colour):
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def mixed(colour, share, ground):
    return tuple(share * c + (1 - share) * g for c, g in zip(colour, ground, strict=True))


def grounds(theme):
    """Return the backgrounds of text: the page and its boxes, the side bar and its boxes."""
    names = ("backgroundColor", "secondaryBackgroundColor")
    return [rgb(part[name]) for part in (CONFIG[theme], CONFIG[theme]["sidebar"]) for name in names]


def shares_of_text():
    """Return the shares of the text's colour that our style sheets give fainter text."""
    sheets = [path.read_text(encoding="utf-8") for path in STATIC.rglob("*.css")]
    found = [re.findall(r"(?<![\w-])color: color-mix\(in srgb, [^%]+? (\d+)%", sheet) for sheet in sheets]
    return sorted({int(share) / 100 for each in found for share in each})


def test_the_formula_gives_the_ratios_that_wcag_names():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast(rgb("#767676"), (255, 255, 255)) == pytest.approx(4.54, abs=0.005)  # the lightest grey that passes


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_marks_curves_and_frames_stand_out(theme):
    page, text, primary, faint = (rgb(colours[theme]) for colours in (BACKGROUND, TEXT, PRIMARY, FAINT))
    sheet = (STATIC / "streamlit_private" / "legible.css").read_text(encoding="utf-8")
    inks = re.search(r"stBaseButton-primary.*?light-dark\((#\w+), (#\w+)\)", sheet, re.DOTALL)
    shares = shares_of_text()
    assert len(shares) >= 3
    texts = {
        "text on the page and in the side bar": [(text, ground) for ground in grounds(theme)],
        "captions": [(mixed(text, STREAMLITS_CAPTIONS, ground), ground) for ground in grounds(theme)],
        "fainter text of our views": [(faint, page), *((mixed(text, share, page), page) for share in shares)],
        "grey text of Streamlit's": [(rgb(CONFIG[theme]["grayTextColor"]), page)],
        "formulas and titles in the colours of symbols": [(rgb(colour[theme]), page) for colour in SYMBOLS.values()],
        "the selected segment": [(primary, mixed(primary, share, page)) for share in STREAMLITS_SEGMENTS],
        "buttons of the primary colour": [(rgb(inks[1 if theme == "light" else 2]), primary)],
        "numbers in cells": [(rgb(ink_on(c)), c) for scale in ("weight", "signed") for c in ramp(scale, theme)],
    }
    marks = [*map(rgb, CURVES[theme]), primary, faint]
    for least, colours in (
        (TEXT_RATIO, texts),
        (MARK_RATIO, {"marks": [(mark, ground) for mark in marks for ground in (page, rgb(SURFACE[theme]))]}),
    ):
        ratios = {name: min(contrast(*pair) for pair in pairs) for name, pairs in colours.items()}
        assert not {name: ratio for name, ratio in ratios.items() if ratio < least}
