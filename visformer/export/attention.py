"""The attention of a Trace as a picture: one head, or all heads of a stack."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, TraceError, VisformerError
from visformer.export.svg import heads_svg, panels_svg
from visformer.export.views import arcs_svg, tokens_svg
from visformer.panel import Panel, traced
from visformer.pictures.theme import Theme
from visformer.trace import Trace, TracedTensor
from visformer.trace.stacks import STACKS, Stack
from visformer.web.payload import SINK, sink_of, with_sink
from visformer.web.selection import Selection

View = Literal["heatmap", "arcs", "tokens"]


def attention_svg(
    trace: Trace,
    *,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    view: View = "heatmap",
    query: int = 0,
    theme: Theme = "light",
    gettext: Callable[[str], str] = str,
) -> str:
    """One head; or of a heatmap without layer and head, all heads of a stack.

    Args:
        trace: holds patterns.
        stack: "encoder.self_attn", "decoder.self_attn" or "decoder.cross_attn"; None: the first that there is.
        layer: from 0.
        head: from 0.
        view: "heatmap", "arcs" or "tokens".
        query: whose reading "tokens" shows, from 0.
        theme: "light" or "dark".
        gettext: translates the words on the picture.

    Returns:
        The picture, an SVG of its own: text that a file can hold.

    Raises:
        VisformerError: another view, or something that the Trace does not hold.
    """
    if view not in get_args(View):
        raise VisformerError(N_("view is {view!r}; it can be {views}."), view=view, views=", ".join(get_args(View)))
    found = _stack(trace, stack)
    label = gettext(found.label)
    how: dict[str, Any] = {"theme": theme, "gettext": gettext, "about": trace.about}
    if layer is None and head is None and view == "heatmap":
        title = gettext(found.about)
        return heads_svg(_all_heads(trace, found), title=title, **how)
    chosen = selected(trace, stack=stack, layer=layer, head=head)
    place = gettext(N_("Layer {layer} · Head {head}")).format(layer=chosen.layer + 1, head=chosen.head + 1)
    name = f"{found.part}.{chosen.layer}.{found.kind}.pattern"
    panel = traced(trace, name, chosen.head, title=f"{label} · {place}", scale="weight")
    if (sink := sink_of(trace, trace[name])) is not None:
        panel = _with_column(panel, sink.value[chosen.head], gettext(SINK))
    if view == "arcs":
        return arcs_svg(panel, **how)
    if view == "tokens":
        _check(found, "query", query, len(panel.rows))
        return tokens_svg(panel, query, **how)
    unread = np.where(panel.values == 0, np.nan, panel.values)  # no number stands there in the explorer either
    return panels_svg(replace(panel, values=unread), **how)


def _with_column(panel: Panel, values: NDArray[Any], label: str) -> Panel:
    """The panel, and behind it a column that is no token's."""
    columns = replace(panel.columns, texts=(*panel.columns.texts, label), special=(*panel.columns.special, True))
    return replace(panel, values=np.column_stack([panel.values, values]), columns=columns)


def _all_heads(trace: Trace, stack: Stack) -> TracedTensor:
    """A stack's patterns, where there are sinks with theirs as a last column."""
    layers = trace.layers(stack.part, stack.kind)
    sinks = [sink_of(trace, layer) for layer in layers]
    whole = trace.stack(stack.part, stack.kind)
    if all(sink is None for sink in sinks):
        return whole
    return replace(whole, value=np.stack(list(map(with_sink, layers, sinks))))


def _stack(trace: Trace, name: str | None) -> Stack:
    there = [stack for stack in STACKS if stack.in_trace(trace)]
    found = next((stack for stack in there if name in (None, stack.name)), None)
    if found is None:
        raise TraceError(
            N_("This trace holds no attention named {name}; there is {there}."),
            name=name or "*",
            there=", ".join(stack.name for stack in there) or "-",
        )
    return found


def selected(trace: Trace, *, stack: str | None = None, layer: int | None = None, head: int | None = None) -> Selection:
    """A head by its place; by default the first one of the first stack.

    Raises:
        TraceError: a place that the Trace does not have.
    """
    found = _stack(trace, stack)
    n_layers, n_heads = trace.stack(found.part, found.kind).shape[:2]
    for name, place, count in (("layer", layer, n_layers), ("head", head, n_heads)):
        if place is not None:
            _check(found, name, place, count)
    return Selection(found.name, layer or 0, head or 0)


def _check(stack: Stack, name: str, place: int, count: int) -> None:
    if not 0 <= place < count:
        raise TraceError(
            N_("{stack} has no {name} {place}: there are {count}, counted from 0."),
            stack=stack.name,
            name=name,
            place=place,
            count=count,
        )
