"""One head in the explorer's other views: arcs between two columns of tokens, and shaded tokens."""

from visformer.errors import N_, VisformerError, translated
from visformer.export.marks import Block, document, hexadecimal, ink_on, ramp, shorten, steps_of, text, width_of
from visformer.export.svg import scale_legend, words_of
from visformer.i18n import Gettext
from visformer.panel import Panel
from visformer.pictures.style.theme import BACKGROUND, CURVES, FAINT, TEXT, Theme

FAINTEST = 0.004
"""Weights below this have no line, as it would be invisible."""

_ROW, _LABEL, _SIZE, _BETWEEN, _HEAD = 24.0, 180.0, 13.0, 260.0, 58.0
_WIDE = 760.0


def arcs_svg(panel: Panel, *, theme: Theme = "light", gettext: Gettext = str, about: str = "") -> str:
    """Draw lines from each token to those it attends to, the stronger the higher the weight; dashed below 0.

    Args:
        panel: a head's weights, or its map.
        theme: "light" or "dark".
        gettext: translates the axes' titles.
        about: the model and the input that the numbers come from; not drawn.

    Returns:
        A standalone SVG document.
    """
    right = _LABEL + _BETWEEN
    marks = [text(panel.title, 0, 8, size=14, fill=TEXT[theme], strong=True)]
    for labels, x, anchor in ((panel.rows, _LABEL, "end"), (panel.columns, right, "start")):
        marks.append(text(translated(labels.title, gettext), x, 36, size=12, fill=FAINT[theme], anchor=anchor))
        for i, words in enumerate(words_of(labels)):
            ink = FAINT[theme] if labels.special and labels.special[i] else TEXT[theme]
            short = shorten(words, _SIZE, _LABEL - 10)
            beside = -8 if anchor == "end" else 8
            marks.append(text(short, x + beside, _HEAD + i * _ROW, size=_SIZE, fill=ink, anchor=anchor))
    for row, shares in enumerate((panel.values / panel.end).tolist()):
        for column, share in enumerate(shares):
            if abs(share) < FAINTEST:
                continue
            strength = min(abs(share), 1.0) ** 0.7  # as on the page
            width = 0.6 + 2.4 * strength
            colour, dashes = (CURVES[theme][1], ' stroke-dasharray="5 4"') if share < 0 else (CURVES[theme][0], "")
            marks.append(
                f'<path d="M{_LABEL:g} {_HEAD + row * _ROW:g}L{right:g} {_HEAD + column * _ROW:g}" fill="none" '
                f'stroke="{colour}" stroke-opacity="{strength:.3f}" stroke-width="{width:.2f}"{dashes}/>'
            )
    height = _HEAD + max(len(panel.rows), len(panel.columns)) * _ROW
    if panel.scale != "weight":
        legend = scale_legend(panel.scale, theme, limit=panel.end)
        marks.append(legend.at(0, height))
        height += legend.height
    return document(
        Block(right + _LABEL, height, "".join(marks)), panel.title, background=BACKGROUND[theme], about=about
    )


def tokens_svg(panel: Panel, query: int, *, theme: Theme = "light", gettext: Gettext = str, about: str = "") -> str:
    """Draw what one token attends to: the others, shaded by their weight.

    Args:
        panel: a head's weights, or its map.
        query: the token that attends, from 0.
        theme: "light" or "dark".
        gettext: translates the axes' titles.
        about: the model and the input that the numbers come from; not drawn.

    Returns:
        A standalone SVG document.

    Raises:
        VisformerError: there is no such token.
    """
    if not 0 <= query < len(panel.rows):
        raise VisformerError(
            N_("{name}={index} is not in 0 to {last}."), name="query", index=query, last=len(panel.rows) - 1
        )
    colours = ramp(panel.scale, theme)
    steps = steps_of(panel.values[query], panel.scale, panel.end)
    marks = [text(panel.title, 0, 8, size=14, fill=TEXT[theme], strong=True)]
    marks.append(text(translated(panel.rows.title, gettext), 0, 40, size=12, fill=FAINT[theme]))
    asking = words_of(panel.rows)[query]
    marks.append(text(asking, 0, 64, size=_SIZE + 2, fill=TEXT[theme], strong=True))
    marks.append(text(translated(panel.columns.title, gettext), 0, 100, size=12, fill=FAINT[theme]))
    x, y = 0.0, 114.0
    for words, step in zip(words_of(panel.columns), steps.tolist(), strict=True):
        width = width_of(words, _SIZE) + 12
        if x and x + width > _WIDE:
            x, y = 0.0, y + 28
        colour = colours[step]
        marks.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="24" rx="4" fill="{hexadecimal(colour)}"/>')
        marks.append(text(words, x + width / 2, y + 12, size=_SIZE, fill=ink_on(colour), anchor="middle"))
        x += width + 4
    legend = scale_legend(panel.scale, theme, limit=panel.end)
    marks.append(legend.at(-14, y + 38))
    return document(
        Block(_WIDE, y + 38 + legend.height, "".join(marks)), panel.title, background=BACKGROUND[theme], about=about
    )
