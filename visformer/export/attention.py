"""The attention of a Trace as a picture: one head, or all heads of a stack."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, TraceError, VisformerError
from visformer.export.svg import heads_svg, panels_svg
from visformer.export.views import arcs_svg, tokens_svg
from visformer.panel import Panel, map_scale, stack_title, traced
from visformer.pictures.style.theme import Theme
from visformer.trace import Trace
from visformer.trace.stacks import STACKS, Stack, ranges, shape_of
from visformer.web.payload import SINK, sink_of, with_sink
from visformer.web.selection import Exported, Selection


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
        stack: "encoder.self_attn", "decoder.self_attn" or "decoder.cross_attn"; None: the first in the Trace.
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
    chosen = _stack(trace, stack)
    label = gettext(chosen.label)
    scale = map_scale(trace)
    how: dict[str, Any] = {"theme": theme, "gettext": gettext, "about": trace.about}
    if layer is None and head is None and view == "heatmap":
        title = stack_title(trace, chosen, gettext)
        return heads_svg(
            _all_heads(trace, chosen), title=title, scale=scale["scale"], limit=scale.get("limit", 1.0), **how
        )
    place = selected(trace, stack=stack, layer=layer, head=head)
    where = gettext(N_("Layer {layer} · Head {head}")).format(layer=place.layer + 1, head=place.head + 1)
    name = trace.layers(chosen.part, chosen.kind)[place.layer].name
    panel = traced(trace, name, place.head, title=f"{label} · {where}", **scale)
    if (sink := sink_of(trace, trace[name])) is not None:
        panel = _with_column(panel, sink.value[place.head], gettext(SINK))
    if view == "arcs":
        return arcs_svg(panel, **how)
    if view == "tokens":
        _check(chosen, "query", query, range(len(panel.rows)))
        return tokens_svg(panel, query, **how)
    if panel.scale == "weight":  # an unread cell is left empty, as in the explorer
        panel = replace(panel, values=np.where(panel.values == 0, np.nan, panel.values))
    return panels_svg(panel, **how)


def _with_column(panel: Panel, values: NDArray[Any], label: str) -> Panel:
    """Append a column that belongs to no token."""
    columns = replace(panel.columns, texts=(*panel.columns.texts, label), special=(*panel.columns.special, True))
    return replace(panel, values=np.column_stack([panel.values, values]), columns=columns)


def _all_heads(trace: Trace, stack: Stack) -> Mapping[int, NDArray[Any]]:
    """Return the patterns of a stack by layer; if there are sinks, with their weights as the last column."""
    layers = stack.layers(trace)
    shape_of(layers)
    sinks = {layer: sink_of(trace, pattern) for layer, pattern in layers.items()}
    if all(sink is None for sink in sinks.values()):
        return {layer: pattern.value for layer, pattern in layers.items()}
    return {layer: with_sink(layers[layer], sink) for layer, sink in sinks.items()}


def _stack(trace: Trace, name: str | None) -> Stack:
    there = [stack for stack in STACKS if stack.in_trace(trace)]
    if not there:
        raise TraceError(N_("This trace holds no attention patterns; record them with record=('*.pattern',)."))
    found = next((stack for stack in there if name in (None, stack.name)), None)
    if found is None:
        raise TraceError(
            N_("This trace holds no attention named {name}; there is {there}."),
            name=name or "*",
            there=", ".join(stack.name for stack in there),
        )
    return found


def selected(
    trace: Trace,
    *,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    query: int | None = None,
    key: int | None = None,
) -> Selection:
    """Return the selection of a head, and of a cell in it; by default the first of the first stack.

    Raises:
        TraceError: the Trace has no such place.
    """
    chosen = _stack(trace, stack)
    layers = chosen.layers(trace)
    _, n_heads, n_queries, n_keys = shape_of(layers)
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
