"""Panels and all heads of a stack as SVG, with the labels, colours and numbers of the pages; SVG as PNG and PDF."""

import html
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, BudgetError, VisformerError, translated
from visformer.export.marks import (
    MarkBlock,
    cells,
    document,
    grid,
    image,
    ink_on,
    literal,
    ramp,
    shorten,
    steps_of,
    text,
    veiled,
    width_of,
)
from visformer.i18n import Gettext
from visformer.panel import FINE, LARGE, LEAST, Labels, Panel, Scale, ticks
from visformer.pictures.style import BACKGROUND, CURVES, FAINT, PRIMARY, SYMBOLS, TEXT, Theme, visible
from visformer.system import limits
from visformer.trace import TracedTensor

LONGEST_LABEL = 150
WIDEST = 1280
"""Panels are placed side by side up to this width, in CSS pixels."""

GAP = 22
_LABEL, _PLACE, _TITLE, _NUMBER = 13, 10, 12, 11
"""Font sizes."""

_FEW, _SOME = 16, 72
_PICTURE = 300
"""Least side of a picture, in CSS pixels."""

_EDGE = "rgba(128,128,128,0.4)"
"""Of the patches of a picture, on white as on the veil."""

_LEGEND = 110
_APART = 24.0
"""Narrower columns have steeper labels: at 45 degrees they would touch."""


def panels_svg(*shown: Panel | Sequence[Panel], theme: Theme = "light", gettext: Gettext = str, about: str = "") -> str:
    """Draw panels side by side, wrapped into lines; those of a nested list one below the other.

    Args:
        shown: at least one.
        theme: "light" or "dark".
        gettext: translates titles, notes and axes that are message ids.
        about: the model and the input that the numbers come from; not drawn.

    Returns:
        A standalone SVG document.

    Raises:
        VisformerError: there is no panel.
    """
    if not shown or not all(isinstance(column, Panel) or column for column in shown):
        raise VisformerError(N_("There is no panel to draw: give at least one, and no empty list."))
    columns = [[panel] if isinstance(panel, Panel) else panel for panel in shown]
    blocks = [_below([_panel(panel, theme, gettext) for panel in column]) for column in columns]
    title = ", ".join(translated(panel.title, gettext) for column in columns for panel in column)
    picture = _below([_beside(line) for line in _lines(blocks)])
    return document(picture, title, background=BACKGROUND[theme], about=about)


def heads_svg(
    layers: Mapping[int, NDArray[Any] | TracedTensor],
    *,
    title: str = "",
    scale: Scale = "weight",
    limit: float = 1.0,
    theme: Theme = "light",
    gettext: Gettext = str,
    about: str = "",
) -> str:
    """Draw every head of a stack: a row for each layer, a column for each head.

    Args:
        layers: :meth:`visformer.trace.Trace.layers`, (head, query, key) each; they may differ in heads.
        title: above it; translated where it is a message id.
        scale: as of :class:`visformer.panel.Panel`.
        limit: the end of a scale of other values than weights.
        theme: "light" or "dark".
        gettext: see ``title``.
        about: the model and the input that the numbers come from; not drawn.

    Returns:
        A standalone SVG document.

    Raises:
        VisformerError: there is no layer.
        BudgetError: there are more weights than limits.PICTURE_WEIGHTS.
    """
    if not layers:
        raise VisformerError(N_("There is no layer to draw: give at least one."))
    n_heads, (n_queries, n_keys) = max(map(len, layers.values())), next(iter(layers.values())).shape[1:]
    if (count := sum(map(len, layers.values())) * n_queries * n_keys) > limits.PICTURE_WEIGHTS:
        raise BudgetError(
            N_(
                "A picture of all {heads:,} heads would hold {count:,} weights, over the limit of {limit:,}: choose a "
                "layer and a head, or a shorter text."
            ),
            heads=sum(map(len, layers.values())),
            count=count,
            limit=limits.PICTURE_WEIGHTS,
        )
    size, step, left, top = 84.0, 90.0, 26.0, 46.0
    colours = ramp(scale, theme)
    title = translated(title, gettext)
    parts = [text(title, 0, 8, size=14, fill=TEXT[theme], strong=True)]
    parts += [
        text(str(i + 1), left + i * step + size / 2, 34, size=12, fill=FAINT[theme], anchor="middle")
        for i in range(n_heads)
    ]
    for row, (layer, patterns) in enumerate(layers.items()):
        middle = top + row * step + size / 2
        parts.append(text(str(layer + 1), 8, middle, size=12, fill=FAINT[theme], anchor="middle"))
        for head in range(len(patterns)):
            steps = steps_of(patterns[head], scale, limit)
            drawn = cells(steps, colours, (size / n_keys, size / n_queries), together=sum(map(len, layers.values())))
            block = MarkBlock(size, size, drawn)
            parts.append(block.at(left + head * step, top + row * step))
    legend = scale_legend(scale, theme, limit=limit)
    parts.append(legend.at(left, top + len(layers) * step + 8))
    width = max(left + n_heads * step, width_of(title, 14) * 1.1, left + legend.width)
    picture = MarkBlock(width, top + len(layers) * step + 8 + legend.height, "".join(parts))
    return document(picture, title, background=BACKGROUND[theme], about=about)


# Arranging


def _lines(blocks: list[MarkBlock]) -> Iterator[list[MarkBlock]]:
    line: list[MarkBlock] = []
    for block in blocks:
        if line and sum(placed.width + GAP for placed in line) + block.width > WIDEST:
            yield line
            line = []
        line.append(block)
    yield line


def _beside(blocks: list[MarkBlock]) -> MarkBlock:
    x, parts = 0.0, []
    for block in blocks:
        parts.append(block.at(x, 0))
        x += block.width + GAP
    return MarkBlock(x - GAP, max(block.height for block in blocks), "".join(parts))


def _below(blocks: list[MarkBlock]) -> MarkBlock:
    """Stack blocks with their cells aligned, as labels that are written once belong to all of them."""
    left = max(block.left for block in blocks)
    y, parts = 0.0, []
    for block in blocks:
        parts.append(block.at(left - block.left, y))
        y += block.height + GAP
    return MarkBlock(max(left - block.left + block.width for block in blocks), y - GAP, "".join(parts))


# One panel


def _panel(panel: Panel, theme: Theme, gettext: Gettext) -> MarkBlock:
    """Draw title, matrix and note, with the operator before it."""
    colour = SYMBOLS.get(panel.symbol or panel.name, TEXT)[theme]
    title, note = translated(panel.title, gettext), translated(panel.note, gettext)
    matrix = _matrix(panel, theme, gettext)
    parts = [text(title, 0, 8, size=14, fill=colour, strong=True), matrix.at(0, 24)]
    height = 24 + matrix.height + 8
    legend = MarkBlock(0, 0, "")
    if panel.picture is None:
        legend = scale_legend(panel.scale, theme, limit=panel.end, middle=panel.middle)
    parts.append(legend.at(0, height))
    height += legend.height
    if (spoken := speakers_legend(panel, theme, gettext)) is not None:
        parts.append(spoken.at(0, height + 6))
        height += spoken.height + 6
    if note:
        parts.append(text(note, 0, height + 12, size=_TITLE, fill=FAINT[theme]))
        height += 20
    words = max(width_of(title, 14) * 1.1, width_of(note, _TITLE))
    block = MarkBlock(max(matrix.width, words, legend.width), height, "".join(parts), matrix.left)
    if not panel.before:
        return block
    operator = text(panel.before, 8, 24 + matrix.height / 2, size=20, fill=FAINT[theme], anchor="middle")
    return MarkBlock(block.width + 28, block.height, operator + block.at(28, 0), block.left + 28)


def _matrix(panel: Panel, theme: Theme, gettext: Gettext) -> MarkBlock:
    size = _cell_size(panel)
    (width, height), (n_rows, n_columns) = size, panel.values.shape
    rows, columns = _texts(panel.rows), _texts(panel.columns)
    titles = [translated(side.title, gettext) for side in (panel.rows, panel.columns)]
    beside = max(map(_label_width, rows), default=0.0) if panel.rows.written else 0.0
    left = max(beside, width_of(titles[0], _TITLE) if panel.rows.written else 0.0) + 10
    above = max(map(_label_width, columns), default=0.0) if panel.columns.written else 0.0
    turn = 0 if panel.columns.numeric or above + 8 <= width else 45 if width >= _APART else 60
    rise, run = math.sin(math.radians(turn)), math.cos(math.radians(turn))
    top = 18.0 if panel.rows.written and titles[0] else 2.0
    if panel.columns.written:
        top = (rise * above + 10 if turn else 15) + 24
    right = max(8, run * _label_width(columns[-1]) - width / 2) if turn and columns else 8
    steps = steps_of(panel.values, panel.scale, panel.end, middle=panel.middle)
    colours, shape = ramp(panel.scale, theme), panel.values.shape
    if panel.picture is not None:
        inside = image(veiled(panel.picture, steps), shape, size) + grid(shape, size, _EDGE)
        inside += f'<rect width="{n_columns * width:g}" height="{n_rows * height:g}" fill="none" stroke="{_EDGE}"/>'
    else:
        inside = cells(steps, colours, size) + grid(shape, size, BACKGROUND[theme])
        if width >= 30 and height >= 16:
            inside += _numbers(panel, steps, colours, size)
    inside += _outlines(panel, size, theme)
    parts = [MarkBlock(0, 0, inside + _speakers(panel, size, theme)).at(left, top)]
    if panel.columns.written:
        parts.append(text(titles[1], left, 7, size=_TITLE, fill=FAINT[theme]))
        every = _stride(width, panel.columns.numeric, 30 if panel.columns.numeric else 18)
        parts += [
            _column_label(columns[i], left + (i + 0.5) * width, top - 10, turn, theme)
            for i in range(0, n_columns, every)
        ]
    if panel.rows.written:
        parts.append(text(titles[0], left - 8, top - 10, size=_TITLE, fill=FAINT[theme], anchor="end"))
        every = _stride(height, panel.rows.numeric, 15)
        parts += [_row_label(rows[i], left - 8, top + (i + 0.5) * height, theme) for i in range(0, n_rows, every)]
    return MarkBlock(left + n_columns * width + right, top + n_rows * height, "".join(parts), left)


def _speakers(panel: Panel, size: tuple[float, float], theme: Theme) -> str:
    """Draw a line along the rows and the columns of a chat, in the colour of who says each."""
    width, height = size
    marks = [
        (said, f'x="-5" y="{i * height:g}" width="3" height="{height:g}"')
        for i, said in enumerate(panel.rows.speakers if panel.rows.written else ())
    ]
    marks += [
        (said, f'x="{i * width:g}" y="-5" width="{width:g}" height="3"')
        for i, said in enumerate(panel.columns.speakers if panel.columns.written else ())
    ]
    return "".join(f'<rect {place} fill="{CURVES[theme][said.colour]}"/>' for said, place in marks if said)


def speakers_legend(panel: Panel, theme: Theme, gettext: Gettext) -> MarkBlock | None:
    """Say whose colour is which, in a line; None: it is no chat."""
    known = {said for said in (*panel.rows.speakers, *panel.columns.speakers) if said is not None}
    x, parts = 0.0, []
    for said in sorted(known, key=lambda said: said.colour):
        label = translated(said.label, gettext)
        parts.append(f'<rect x="{x:g}" y="5" width="9" height="9" rx="2" fill="{CURVES[theme][said.colour]}"/>')
        parts.append(text(label, x + 14, 10, size=_TITLE, fill=FAINT[theme]))
        x += 14 + width_of(label, _TITLE) + 16
    return MarkBlock(x, 20, "".join(parts)) if parts else None


def _cell_size(panel: Panel) -> tuple[float, float]:
    """Return width and height: room for a number if there are few cells, for a label if there are more."""
    n_rows, n_columns = panel.values.shape
    width, height = _side(n_columns, 58.0 if panel.digits > 2 else 42.0), _side(n_rows, 30.0)
    if panel.picture is not None:
        width = height = max(min(width, height), _PICTURE / max(n_rows, n_columns))
    elif panel.scale == "weight" and n_rows > 1:  # attention: nearly square
        width, height = min(width, 1.5 * height), min(height, 1.5 * width)
    return width, height


def _side(count: int, few: float) -> float:
    return few if count <= _FEW else 18.0 if count <= _SOME else max(2.0, 960 / count)


_Label = tuple[str, str, bool]
"""Text, position, and whether the token is special."""


def _texts(labels: Labels) -> list[_Label]:
    special = labels.special or [False] * len(labels)
    return [
        (shorten(words, _LABEL, LONGEST_LABEL), number, bool(is_special))
        for words, number, is_special in zip(words_of(labels), labels.numbers, special, strict=True)
    ]


def words_of(labels: Labels) -> list[str]:
    """Return the label at each position: the token and, behind an arrow, the one that it predicts."""
    after = labels.after or [""] * len(labels)
    pairs = zip(labels.texts, after, strict=True)
    return [f"{visible(token)} → {visible(follows)}" if follows else visible(token) for token, follows in pairs]


def _label_width(label: _Label) -> float:
    words, place, _ = label
    return width_of(words, _LABEL) + (5 + width_of(place, _PLACE) if place else 0)


def _row_label(label: _Label, x: float, y: float, theme: Theme) -> str:
    words, place, special = label
    room = 5 + width_of(place, _PLACE) if place else 0
    token = text(words, x - room, y, size=_LABEL, fill=(FAINT if special else TEXT)[theme], anchor="end")
    return token + (text(place, x, y + 1, size=_PLACE, fill=FAINT[theme], anchor="end") if place else "")


def _column_label(label: _Label, x: float, y: float, turn: int, theme: Theme) -> str:
    words, place, special = label
    fill = (FAINT if special else TEXT)[theme]
    number = f'<tspan dx="5" font-size="{_PLACE}" fill="{FAINT[theme]}">{_ends(words)}{place}</tspan>' if place else ""
    anchor, turned = ("start", f' transform="rotate({-turn} {x:g} {y:g})"') if turn else ("middle", "")
    return (
        f'<text x="{x:g}" y="{y + 3:g}" font-size="{_LABEL}" fill="{fill}" text-anchor="{anchor}"{turned}>'
        f"{literal(words)}{number}</text>"
    )


def _ends(words: str) -> str:
    """Return a left-to-right mark for right-to-left text, so that the number stays behind it."""
    return "\u200e" if any(unicodedata.bidirectional(character) in ("R", "AL") for character in words) else ""


def _stride(cell: float, numeric: bool, room: float) -> int:
    """Return the distance between written labels; for numbers, a power of two."""
    least = max(1, int(np.ceil(room / cell)))
    return next((step for step in (1, 2, 4, 8, 16, 32, 64, 128, 256) if step >= least), 512) if numeric else least


def _numbers(
    panel: Panel, steps: np.ndarray, colours: tuple[tuple[int, int, int], ...], size: tuple[float, float]
) -> str:
    parts, values = [], np.asarray(panel.values, dtype=np.float64)
    has_gaps = bool(np.isnan(values).any())
    for (row, column), value in np.ndenumerate(values):
        words = spelled(float(value), panel.decimals, panel.scale, has_gaps=has_gaps)
        x, y = (column + 0.5) * size[0], (row + 0.5) * size[1]
        parts.append(text(words, x, y, size=_NUMBER, fill=ink_on(colours[steps[row, column]]), anchor="middle"))
    return "".join(parts)


def spelled(value: float, decimals: int, scale: Scale = "signed", *, has_gaps: bool = False) -> str:
    """Format a number for a cell.

    As on the pages, what would read .00 is not taken for 0: it is left out; where an empty cell is a missing number
    (``has_gaps``), it is ≈0, unless it is a rounding error. Exactly 0, as under a mask, is written as 0.
    """
    if np.isnan(value):
        return ""
    is_tiny = abs(value) < 0.5 * 10**-decimals
    if is_tiny and scale == "weight":
        return "" if value else "0"
    if abs(value) >= LARGE:
        return f"{value:.2e}"
    if decimals > FINE and value != 0:
        return f"{value:.1e}"
    if is_tiny and has_gaps:
        return "0" if abs(value) < LEAST else "≈0"
    if is_tiny:
        return "" if value else "0"
    words = f"{value:.{decimals}f}"
    return words.replace("0.", ".", 1) if words.lstrip("-").startswith("0.") else words


def _outlines(panel: Panel, size: tuple[float, float], theme: Theme) -> str:
    """Draw a frame around the outlined cells."""
    if panel.outlined is None:
        return ""
    width, height = size
    return "".join(
        f'<rect x="{column * width + 1.5:g}" y="{row * height + 1.5:g}" width="{width - 3:g}" height="{height - 3:g}" '
        f'fill="none" stroke="{PRIMARY[theme]}" stroke-width="2"/>'
        for row, column in np.argwhere(panel.outlined).tolist()
    )


# Scales


def scale_legend(scale: Scale, theme: Theme, *, limit: float, middle: float = 0.0) -> MarkBlock:
    """Draw a colour bar with its ends."""
    width = 200 if scale == "weight" else _LEGEND
    return _legend(ramp(scale, theme), width, ticks(scale, limit, middle), theme)


def _legend(
    colours: tuple[tuple[int, int, int], ...], width: float, marks: list[tuple[str, float]], theme: Theme
) -> MarkBlock:
    steps = np.linspace(0, len(colours) - 1, 64).round().astype(np.uint8)[None]
    bar = MarkBlock(0, 0, cells(steps, colours, (width / 64, 7))).at(14, 0)
    ticks = "".join(
        f'<path d="M{14 + place * width:g} 7v3" stroke="{FAINT[theme]}"/>'
        + text(words, 14 + place * width, 16, size=10, fill=FAINT[theme], anchor="middle")
        for words, place in marks
    )
    return MarkBlock(width + 28, 22, bar + ticks)


def to_png(svg: str, *, scale: float = 3.0) -> bytes:
    """Draw an SVG with resvg and the fonts of this system.

    Args:
        svg: as from :func:`visformer.export.svg.panels_svg`.
        scale: pixels per CSS pixel: 3 is about 300 to the inch.

    Returns:
        A PNG file.

    Raises:
        VisformerError: the scale is not above 0, or the picture would be too large.
    """
    from resvg_py import svg_to_bytes

    longest = max(_size_of(svg))
    if not 0 < scale * longest <= limits.PNG_SIDE:
        raise VisformerError(
            N_(
                "A picture of {longest} pixels at scale {scale:g} cannot be made: a side may have up to {limit} pixels."
            ),
            longest=longest,
            scale=scale,
            limit=limits.PNG_SIDE,
        )
    return bytes(svg_to_bytes(svg_string=svg, zoom=scale))


def to_pdf(svg: str) -> bytes:
    """Set an SVG as a page of its own size, with curves and text as such, by typst and the fonts of this system.

    Args:
        svg: as from :func:`visformer.export.svg.panels_svg`.

    Returns:
        A PDF file of one page; a CSS pixel is 1/96 of an inch. Fonts are embedded as far as they are used.

    Raises:
        VisformerError: the package typst is not installed, or the page would be larger than a PDF's can be.
    """
    try:
        import typst
    except ImportError:
        raise VisformerError(
            N_("A PDF needs the package typst: pip install typst, or install visformer with the extra pdf.")
        ) from None
    width, height = _size_of(svg)
    if not 0 < max(width, height) <= _PAGE:
        raise VisformerError(
            N_("A page of {width} x {height} pixels cannot be a PDF: a side may have up to {limit}. Save it as SVG."),
            width=width,
            height=height,
            limit=_PAGE,
        )
    page: bytes = typst.compile(
        _TYPST.format(width=width * 0.75, height=height * 0.75).encode(),
        sys_inputs={"svg": svg, "title": _title_of(svg)},
    )
    return page


_PAGE = 19_200
"""Pixels on a side of the largest page, 14,400 points (ISO 32000-1, annex C.2)."""

_TYPST = """#set document(title: sys.inputs.title, date: none)
#set page(width: {width}pt, height: {height}pt, margin: 0pt)
#image(bytes(sys.inputs.svg), width: 100%)
"""


def _size_of(svg: str) -> tuple[int, int]:
    """Width and height of a document of ours, in CSS pixels."""
    found = re.match(r'<svg [^>]*?width="([0-9]+)" height="([0-9]+)"', svg)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _title_of(svg: str) -> str:
    """The title of a document of ours."""
    found = re.search("<title>(.*?)</title>", svg, re.DOTALL)
    return html.unescape(found[1]) if found else ""
