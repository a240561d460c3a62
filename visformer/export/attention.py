"""The attention of a Trace as a picture: one head as a matrix, arcs or shaded tokens, or all heads of a stack."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.heads import first_head
from visformer.errors import N_, TraceError, VisformerError, translated
from visformer.export.marks import MarkBlock, document, hexadecimal, ink_on, ramp, shorten, steps_of, text, width_of
from visformer.export.svg import heads_svg, panels_svg, scale_legend, speakers_legend, words_of
from visformer.i18n import Gettext
from visformer.panel import Panel, map_scale, stack_title, traced
from visformer.pictures.sides import Sides
from visformer.pictures.style import BACKGROUND, CURVES, FAINT, TEXT, Theme
from visformer.trace import Trace
from visformer.trace.stacks import STACKS, Stack, ranges, stack_named
from visformer.web.payload import SINK, sink_of, with_sink
from visformer.web.selection import Exported, Selection

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
            if labels.speakers and (said := labels.speakers[i]) is not None:
                colour, at = CURVES[theme][said.colour], x + (-5 if anchor == "end" else 2)
                marks.append(
                    f'<rect x="{at:g}" y="{_HEAD + (i - 0.5) * _ROW:g}" width="3" height="{_ROW:g}" fill="{colour}"/>'
                )
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
    if (spoken := speakers_legend(panel, theme, gettext)) is not None:
        marks.append(spoken.at(0, height))
        height += spoken.height
    if panel.scale != "weight":
        legend = scale_legend(panel.scale, theme, limit=panel.end)
        marks.append(legend.at(0, height))
        height += legend.height
    return document(
        MarkBlock(right + _LABEL, height, "".join(marks)), panel.title, background=BACKGROUND[theme], about=about
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
        MarkBlock(_WIDE, y + 38 + legend.height, "".join(marks)), panel.title, background=BACKGROUND[theme], about=about
    )


def attention_svg(
    trace: Trace,
    *,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    view: Exported = "heatmap",
    query: int = 0,
    theme: Theme = "light",
    gettext: Callable[[str], str] = str,
) -> str:
    """Draw one head, or, as a heatmap without layer and head, all heads of a stack.

    Args:
        trace: holds patterns.
        stack: "encoder.self_attn", "decoder.self_attn" or "decoder.cross_attn"; None: with
            ``layer`` or ``head`` the first in the Trace, otherwise the one that the pages begin with.
        layer: from 0.
        head: from 0.
        view: "heatmap", "arcs" or "tokens".
        query: the token whose weights "tokens" shows, from 0.
        theme: "light" or "dark".
        gettext: translates the words on the picture.

    Returns:
        A standalone SVG document.

    Raises:
        VisformerError: the view is unknown, or the Trace lacks something.
    """
    if view not in get_args(Exported):
        raise VisformerError(N_("view is {view!r}; it can be {views}."), view=view, views=", ".join(get_args(Exported)))
    chosen = _stack(trace, _begun(trace, stack, layer, head)[0])
    scale = map_scale(trace)
    how: dict[str, Any] = {"theme": theme, "gettext": gettext, "about": trace.about}
    if layer is None and head is None and view == "heatmap":
        title = stack_title(trace, chosen, gettext)
        return heads_svg(
            _all_heads(trace, chosen), title=title, scale=scale["scale"], limit=scale.get("limit", 1.0), **how
        )
    panel = _head(trace, gettext, stack=stack, layer=layer, head=head)
    if view == "arcs":
        return arcs_svg(panel, **how)
    if view == "tokens":
        _check(chosen, "query", query, range(len(panel.rows)))
        return tokens_svg(panel, query, **how)
    return panels_svg(_as_in_the_explorer(panel), **how)


def pair_svg(
    sides: Sides,
    *,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    theme: Theme = "light",
    gettext: Callable[[str], str] = str,
) -> str:
    """Draw one head of two passes side by side.

    Args:
        sides: two passes that are compared.
        stack: as for :func:`attention_svg`.
        layer: from 0.
        head: from 0; without all three it is the head that the pages begin with.
        theme: "light" or "dark".
        gettext: translates the words on the picture.

    Returns:
        A standalone SVG document.

    Raises:
        TraceError: one of them has no such head.
    """
    place = selected(sides.first, stack=stack, layer=layer, head=head)
    panels = []
    for trace, title in ((sides.first, sides.titles[0]), (sides.second, sides.titles[1])):
        panel = _head(trace, gettext, stack=place.stack, layer=place.layer, head=place.head)
        panels.append(replace(_as_in_the_explorer(panel), title=f"{title} · {panel.title}"))
    about = " | ".join(filter(None, (sides.first.about, sides.second.about)))
    return panels_svg(*panels, theme=theme, gettext=gettext, about=about)


def _head(trace: Trace, gettext: Callable[[str], str], **given: Any) -> Panel:
    """The weights of a head, with its sink as the last column, and where it is."""
    place = selected(trace, **given)
    chosen = _stack(trace, place.stack)
    where = gettext(N_("Layer {layer} · Head {head}")).format(layer=place.layer + 1, head=place.head + 1)
    name = chosen.layers(trace)[place.layer].name
    panel = traced(trace, name, place.head, title=f"{gettext(chosen.label)} · {where}", **map_scale(trace))
    if (sink := sink_of(trace, trace[name])) is not None:
        panel = _with_column(panel, sink.value[place.head], gettext(SINK))
    return panel


def _as_in_the_explorer(panel: Panel) -> Panel:
    """Leave an unread cell empty."""
    return (
        replace(panel, values=np.where(panel.values == 0, np.nan, panel.values)) if panel.scale == "weight" else panel
    )


def _with_column(panel: Panel, values: NDArray[Any], label: str) -> Panel:
    """Append a column that belongs to no token."""
    own, said = panel.columns, panel.columns.speakers
    columns = replace(
        own, texts=(*own.texts, label), special=(*own.special, True), speakers=(*said, None) if said else ()
    )
    return replace(panel, values=np.column_stack([panel.values, values]), columns=columns)


def _all_heads(trace: Trace, stack: Stack) -> Mapping[int, NDArray[Any]]:
    """Return the patterns of a stack by layer; if there are sinks, with their weights as the last column."""
    layers = stack.layers(trace)
    sinks = {layer: sink_of(trace, pattern) for layer, pattern in layers.items()}
    if all(sink is None for sink in sinks.values()):
        return {layer: pattern.value for layer, pattern in layers.items()}
    return {layer: with_sink(layers[layer], sink) for layer, sink in sinks.items()}


def _stack(trace: Trace, name: str | None) -> Stack:
    there = [stack for stack in STACKS if stack.in_trace(trace)]
    if not there:
        raise TraceError(N_("This trace holds no attention patterns; record them with record=('*.pattern',)."))
    return there[0] if name is None else stack_named(name, there)


def selected(
    trace: Trace,
    *,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    query: int | None = None,
    key: int | None = None,
) -> Selection:
    """Return the selection of a head, and of a cell in it.

    Without stack, layer and head it is the head that pages begin with; otherwise what is not given is the first.

    Raises:
        TraceError: the Trace has no such place.
    """
    stack, layer, head = _begun(trace, stack, layer, head)
    chosen = _stack(trace, stack)
    layers = chosen.layers(trace)
    n_heads, n_queries, n_keys = layers.get(layer or 0, next(iter(layers.values()))).shape
    places: dict[str, tuple[int | None, Collection[int]]] = {
        "layer": (layer, layers),
        "head": (head, range(n_heads)),
        "query": (query, range(n_queries)),
        "key": (key, range(n_keys)),
    }
    for name, (place, among) in places.items():
        if place is not None:
            _check(chosen, name, place, among)
    return Selection(chosen.name, next(iter(layers)) if layer is None else layer, head or 0, query=query, key=key)


def _begun(
    trace: Trace, stack: str | None, layer: int | None, head: int | None
) -> tuple[str | None, int | None, int | None]:
    """Return the place, or, if nothing of it is given, the head that the pages begin with."""
    if (stack, layer, head) == (None, None, None) and any(each.in_trace(trace) for each in STACKS):
        return first_head(trace)
    return stack, layer, head


def _check(stack: Stack, name: str, place: int, among: Collection[int]) -> None:
    if place not in among:
        raise TraceError(
            N_("{stack} has no {name} {place}: there are {among}, counted from 0."),
            stack=stack.name,
            name=name,
            place=place,
            among=ranges(among),
            indices=tuple(among),
        )
