"""How pictures look: colours, fonts, and how tokens and numbers are written. Imports neither plotly nor streamlit."""

import unicodedata
from collections.abc import Mapping
from typing import Literal

from visformer.errors import N_
from visformer.i18n import Gettext

Theme = Literal["light", "dark"]

SEQUENTIAL = {
    "light": ("#f4f6f9", "#c3d7ee", "#7fabdc", "#3a76bf", "#164a8f", "#0a2a5c"),
    "dark": ("#1a2029", "#1f3a5f", "#2a609f", "#4a90d0", "#93c3ee", "#e3f1fd"),
}
"""One hue from weight 0 to weight 1 whose lightness falls (light) or rises (dark) evenly, so that it is readable in
grey and with any kind of colour blindness."""

DIVERGING = {
    "light": ("#8a3b12", "#d2814a", "#f0c9a8", "#f4f6f9", "#b3cfe8", "#4f8fc9", "#164a8f"),
    "dark": ("#f7b98c", "#c8733a", "#6f3f1f", "#1a2029", "#1f4066", "#3f80c0", "#a6d2f5"),
}
"""Two hues from -limit to limit: blue above 0, as in the sequential scale, and orange below; no kind of colour
blindness confuses the two."""

RAMPS: Mapping[str, Mapping[str, tuple[str, ...]]] = {"weight": SEQUENTIAL, "unsigned": SEQUENTIAL, "signed": DIVERGING}
"""The colours of each of :data:`visformer.panel.Scale`."""

VEIL = (18, 24, 38, 0.88)
"""Red, green, blue and opacity of what covers a picture where nothing is read, in any theme, as matrix.js draws it."""

CURVES = {
    "light": ("#1959bf", "#c2570c", "#0f7a4f", "#7a3fb0", "#a61e4d", "#0b7285", "#7a6a00", "#5f6b7a"),
    "dark": ("#6ea8fe", "#f2955c", "#4fc99a", "#c394f0", "#f783ac", "#4cc3d9", "#d9c24a", "#98a3b3"),
}
"""Colours of curves, in order."""

SYMBOLS = {
    "q": {"light": "#1959bf", "dark": "#6ea8fe"},
    "k": {"light": "#b3470f", "dark": "#f2955c"},
    "v": {"light": "#0f7a4f", "dark": "#4fc99a"},
    "scores": {"light": "#7a3fb0", "dark": "#c394f0"},
    "mask": {"light": "#5f6b7a", "dark": "#98a3b3"},
    "pattern": {"light": "#164a8f", "dark": "#93c3ee"},
    "heads": {"light": "#0b7285", "dark": "#4cc3d9"},
    "out": {"light": "#a61e4d", "dark": "#f783ac"},
    "embed": {"light": "#0f7a4f", "dark": "#4fc99a"},
    "position": {"light": "#b3470f", "dark": "#f2955c"},
    "input": {"light": "#1959bf", "dark": "#6ea8fe"},
}
"""A colour for each symbol of the formulas; the titles of matching panels have the same colour."""

FONTS = "'Source Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Hiragino Sans GB', 'Microsoft YaHei', sans-serif"
"""A Latin font first, then the usual Chinese ones of Linux, macOS and Windows; none is downloaded."""

TEXT = {"light": "#0e151d", "dark": "#e6ebf2"}
FAINT = {"light": "#5f6b7a", "dark": "#98a3b3"}
BACKGROUND = {"light": "#ffffff", "dark": "#11161d"}
SURFACE = {"light": "#f3f5f8", "dark": "#1b222c"}
LINE = {"light": "#d9dee6", "dark": "#2e3845"}
PRIMARY = {"light": "#1959bf", "dark": "#6ea8f0"}
"""With TEXT and BACKGROUND, the colours of the app's theme, for pages outside the app."""

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(token: str) -> str:
    """Make a token visible: characters without a glyph are replaced by their code points, such as ``U+200B``.

    Joiners inside a word or an emoji are kept; bidirectional control characters are always replaced.
    """
    if not token.strip():
        return "".join("␣" if character == " " else _code(character) for character in token)
    shapeless = all(unicodedata.category(character) in _UNSEEN for character in token)
    text = "".join(
        _code(character) if shapeless or character in _TURNING or unicodedata.category(character) == "Cc" else character
        for character in token
    )
    # A leading combining mark would be drawn on its neighbour.
    return "\u25cc" + text if unicodedata.category(text[0])[0] == "M" else text


EMPTY = N_("(empty: the model ends the sentence at once)")


def decoded_text(text: str, gettext: Gettext = str) -> str:
    """Make a decoded text visible, as a model may emit control characters; of an empty one, say that it is empty."""
    return visible(text) if text else gettext(EMPTY)


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


LEAST = 0.001
"""What is smaller is not rounded up to it: a label of 0.001 says that this much is reached."""


def probability(share: float) -> str:
    """Write a probability with three decimals; "0" is exactly 0, and what does not reach 0.001 is "<0.001"."""
    return "0" if share == 0 else f"{share:.3f}" if share >= LEAST else "<0.001"
