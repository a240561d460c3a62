"""Invisible characters, and the colours of the theme."""

import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from visformer.pictures.style import BACKGROUND, LINE, PRIMARY, SEQUENTIAL, SURFACE, TEXT, visible


def test_invisible_characters_are_shown_as_symbols_or_code_points():
    for token, shown in (
        ("went", "went"),
        ("东北", "东北"),
        (" ", "␣"),
        ("\t", "U+0009"),
        ("\u200b", "U+200B"),
        ("\u202e", "U+202E"),
        ("a\u202eb", "aU+202Eb"),
        ("\u0301", "\u25cc\u0301"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("<script>", "<script>"),
        ("שלום", "שלום"),
    ):
        assert visible(token) == shown


@pytest.mark.parametrize(("theme", "sign"), [("light", -1), ("dark", 1)])
def test_the_ramp_gets_steadily_darker_or_lighter(theme, sign):
    """So it can be read in greyscale, and with any kind of colour blindness."""
    rgb = [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in SEQUENTIAL[theme]]
    lightness = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in rgb]
    steps = [sign * (after - before) for before, after in pairwise(lightness)]
    assert min(steps) > 15


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_standalone_pages_have_the_colours_of_the_app(theme):
    config = tomllib.loads((Path(__file__).parents[3] / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    names = {
        "textColor": TEXT,
        "backgroundColor": BACKGROUND,
        "secondaryBackgroundColor": SURFACE,
        "primaryColor": PRIMARY,
        "borderColor": LINE,
    }
    assert {name: colours[theme] for name, colours in names.items()} == {
        name: config["theme"][theme][name] for name in names
    }
