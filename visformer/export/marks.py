"""SVG markup of pictures: coloured cells, lines, and text, whose width is estimated without a font."""

import base64
import re
import struct
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.panel import Scale
from visformer.pictures.style import FONTS, RAMPS, VEIL, Theme

DRAWN_CELLS = 20_000
"""Up to this many cells are drawn as vectors, sharp at any size; more become an image with one pixel per cell."""

DRAWN_TOGETHER = 400_000
"""The same of all matrices of a picture, some 15 MB."""

MARGIN = 16
"""Space around a picture, in CSS pixels."""

GRID = 9
"""Cells below this size, in CSS pixels, have no lines between them."""

_STEPS = 256
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # not allowed in XML 1.0 or UTF-8
_NARROW, _WIDE = frozenset("ijl.,:;'|!()[]{}tfrI` "), frozenset("mwMW@%—…")


@dataclass(frozen=True)
class MarkBlock:
    """A part of a picture: markup that fills the box from (0, 0) to (width, height), in CSS pixels.

    ``left`` is where its cells begin, by which stacked matrices are aligned.
    """

    width: float
    height: float
    markup: str
    left: float = 0.0

    def at(self, x: float, y: float) -> str:
        """Return the markup with its top left corner at (x, y)."""
        return f'<g transform="translate({x:g} {y:g})">{self.markup}</g>'


def document(block: MarkBlock, title: str, *, background: str, about: str = "") -> str:
    """Return a complete SVG file; ``title`` and ``about`` (the model and its input) are metadata, not drawn."""
    description = f"<desc>{literal(about)}</desc>" if about else ""
    width, height = round(block.width + 2 * MARGIN), round(block.height + 2 * MARGIN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="{literal(FONTS)}" role="img"><title>{literal(title)}</title>{description}'
        f'<rect width="{width}" height="{height}" fill="{background}"/>{block.at(MARGIN, MARGIN)}</svg>\n'
    )


def text(words: str, x: float, y: float, *, size: float, fill: str, anchor: str = "start", strong: bool = False) -> str:
    """Draw a line of text, vertically centred at y; the text is escaped."""
    weight = ' font-weight="600"' if strong else ""
    return (
        f'<text x="{x:g}" y="{y + 0.35 * size:g}" font-size="{size:g}" fill="{fill}" text-anchor="{anchor}"{weight}>'
        f"{literal(words)}</text>"
    )


def literal(words: str) -> str:
    """Escape text for XML."""
    return escape(_ILLEGAL.sub("\ufffd", words))


def width_of(words: str, size: float) -> float:
    """Estimate the width of a text in CSS pixels: a Chinese character is square, a Latin letter about half as wide."""
    return size * sum(map(_advance, words))


def _advance(character: str) -> float:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in _NARROW:
        return 0.33
    return 0.88 if character in _WIDE else 0.66 if character.isupper() else 0.56


def shorten(words: str, size: float, longest: float) -> str:
    """Truncate a text that is too wide, with an ellipsis."""
    if width_of(words, size) <= longest:
        return words
    while words and width_of(f"{words}…", size) > longest:
        words = words[:-1]
    return f"{words}…"


@cache
def ramp(scale: Scale, theme: Theme) -> tuple[tuple[int, int, int], ...]:
    """Interpolate 256 colours between the evenly spaced stops of a scale, exactly as the canvas does."""
    stops = RAMPS[scale][theme]
    marks = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in stops])
    place = np.arange(_STEPS) / (_STEPS - 1) * (len(marks) - 1)
    left = np.minimum(place.astype(int), len(marks) - 2)
    share = (place - left)[:, None]
    colours = np.floor(marks[left] + (marks[left + 1] - marks[left]) * share + 0.5).astype(int)
    return tuple((red, green, blue) for red, green, blue in colours.tolist())


def steps_of(values: NDArray[Any], scale: Scale, end: float, *, middle: float = 0.0) -> NDArray[np.uint8]:
    """Return each value's index on its ramp; NaN counts as ``middle``, the centre of a signed scale."""
    numbers = np.nan_to_num(np.asarray(values, dtype=np.float64) - (middle if scale == "signed" else 0.0))
    if scale == "weight":
        places = (_STEPS - 1) * np.sqrt(np.clip(numbers, 0.0, 1.0))
    elif scale == "unsigned":
        places = (_STEPS - 1) * np.clip(numbers / end, 0.0, 1.0)
    else:
        places = (_STEPS - 1) / 2 * (1 + np.clip(numbers / end, -1.0, 1.0))
    return np.floor(places + 0.5).astype(np.uint8)


def hexadecimal(colour: tuple[int, int, int]) -> str:
    """Format a colour as ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def ink_on(colour: tuple[int, int, int]) -> str:
    """Return black or white, whichever has the stronger contrast with this colour: at least 4.58 to 1 (WCAG 2.2)."""
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in (c / 255 for c in colour))
    return "#000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#fff"


def cells(
    steps: NDArray[np.uint8],
    colours: tuple[tuple[int, int, int], ...],
    size: tuple[float, float],
    *,
    together: int = 1,
) -> str:
    """Draw a matrix of coloured cells.

    ``steps``, (row, column), index the ramp; ``size``: width, height of a cell; ``together``: matrices as large as this
    one in the picture.
    """
    if steps.size > min(DRAWN_CELLS, DRAWN_TOGETHER // together):
        return image(np.array(colours, dtype=np.uint8)[steps], steps.shape, size)
    width, height = size
    runs: dict[int, list[str]] = {}
    for row, line in enumerate(steps):
        for first, last, step in _runs(line):
            box = (
                f"M{first * width:g} {row * height:g}h{(last - first) * width:g}v{height:g}h{(first - last) * width:g}z"
            )
            runs.setdefault(step, []).append(box)
    paths = "".join(f'<path fill="{hexadecimal(colours[step])}" d="{"".join(d)}"/>' for step, d in sorted(runs.items()))
    return f'<g shape-rendering="crispEdges">{paths}</g>'


def _runs(line: NDArray[np.uint8]) -> Iterator[tuple[int, int, int]]:
    """Yield runs of equal colour as (first, last, step); ``last`` is exclusive."""
    edges = [0, *(np.flatnonzero(np.diff(line)) + 1).tolist(), len(line)]
    for first, last in pairwise(edges):
        yield first, last, int(line[first])


def image(pixels: NDArray[np.uint8], shape: tuple[int, ...], size: tuple[float, float]) -> str:
    """Draw pixels, (row, column, RGB), sharp, over a matrix of this shape with cells of this size."""
    n_rows, n_columns = shape
    data = base64.b64encode(_png(pixels)).decode()
    return (
        f'<image width="{n_columns * size[0]:g}" height="{n_rows * size[1]:g}" preserveAspectRatio="none" '
        f'style="image-rendering: pixelated" image-rendering="optimizeSpeed" href="data:image/png;base64,{data}"/>'
    )


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode a PNG file of pixels, (row, column, RGB)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    n_rows, n_columns = pixels.shape[:2]
    lines = np.zeros((n_rows, 3 * n_columns + 1), dtype=np.uint8)  # each line begins with its filter type, 0: none
    lines[:, 1:] = pixels.reshape(n_rows, -1)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", n_columns, n_rows, 8, 2, 0, 0, 0)),
            chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            chunk(b"IEND", b""),
        )
    )


def veiled(picture: NDArray[np.uint8], steps: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a picture's pixels below a veil: none over a cell whose step is the last one."""
    rows, columns = (np.arange(n) * cells // n for n, cells in zip(picture.shape[:2], steps.shape, strict=True))
    opacity = VEIL[3] * (1 - np.sqrt(steps[np.ix_(rows, columns)] / (_STEPS - 1)))[..., None]
    seen: NDArray[np.uint8] = np.rint((1 - opacity) * picture + opacity * np.array(VEIL[:3])).astype(np.uint8)
    return seen


def grid(shape: tuple[int, ...], size: tuple[float, float], stroke: str) -> str:
    """Draw lines between cells that are large enough."""
    (n_rows, n_columns), (width, height) = shape, size
    if min(size) < GRID:
        return ""
    upright = "".join(f"M{i * width:g} 0v{n_rows * height:g}" for i in range(1, n_columns))
    level = "".join(f"M0 {i * height:g}h{n_columns * width:g}" for i in range(1, n_rows))
    return f'<path d="{upright}{level}" stroke="{stroke}" fill="none"/>'
