"""What people keep: one file of a Trace, or of a picture, in the format that its name asks for. No torch, no streamlit.

``save`` writes a file. What it writes can also be had as text or bytes: ``page`` (HTML), ``attention_svg``,
``panels_svg`` and ``figure_svg``, ``to_png``, ``to_csv`` and ``to_json``, likewise ``panels_csv`` and so on;
safetensors of a Trace is :meth:`visformer.trace.Trace.to_bytes`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_, TraceError, VisformerError
from visformer.export.curves import figure_svg, is_figure
from visformer.export.png import to_png
from visformer.export.svg import heads_svg, panels_svg
from visformer.export.tables import figure_csv, figure_json, panels_csv, panels_json, panels_tensors, to_csv, to_json
from visformer.export.views import arcs_svg, tokens_svg
from visformer.i18n import languages, translations
from visformer.panel import Panel, traced
from visformer.pictures.theme import Theme
from visformer.system.files import write_whole
from visformer.trace import Trace, TracedTensor
from visformer.trace.stacks import STACKS, Stack
from visformer.web.page import page
from visformer.web.payload import SINK, sink_of, with_sink
from visformer.web.selection import Selection

__all__ = [
    "arcs_svg",
    "attention_svg",
    "figure_csv",
    "figure_json",
    "figure_svg",
    "heads_svg",
    "page",
    "panels_csv",
    "panels_json",
    "panels_svg",
    "panels_tensors",
    "save",
    "to_csv",
    "to_json",
    "to_png",
    "tokens_svg",
]

View = Literal["heatmap", "arcs", "tokens"]
ENDINGS = (".html", ".svg", ".png", ".csv", ".json", ".safetensors")


def save(
    what: Trace | Panel | Sequence[Panel | Sequence[Panel]] | Any,
    path: str | Path,
    *,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    view: View = "heatmap",
    query: int = 0,
    theme: Theme = "light",
    scale: float = 3.0,
    gettext: Callable[[str], str] | None = None,
    lang: str = "en",
    about: str = "",
) -> None:
    """Write a file: .html (the explorer), .svg, .png (a picture), .csv, .json, .safetensors (the numbers).

    Args:
        what: a Trace; a panel or several; or a figure of curves or bars of :mod:`visformer.figures`.
        path: where to; its ending says what is written. Of panels all but .html, of a figure neither that nor
            .safetensors.
        stack: "encoder.self_attn", "decoder.self_attn" or "decoder.cross_attn"; None: the first that there is.
        layer: from 0; with ``head`` the picture is of this head, without either of all heads.
        head: from 0.
        view: of a head in a picture: "heatmap", "arcs", or "tokens", shaded by how much ``query`` reads them.
        query: from 0.
        theme: "light" or "dark", of a picture; a page follows its viewer, a figure has its own.
        scale: of a PNG: pixels for each CSS pixel; 3 is about 300 to the inch.
        gettext: translates the words on the picture; None: as visformer does.
        lang: the language of the words: "en", "zh" or another that visformer speaks, or what gettext speaks.
        about: of panels and figures, which model made the numbers, and of what: a Trace knows it. Not drawn.

    Raises:
        VisformerError: an ending that is none of these, or something that the Trace does not hold.
        OSError: the file cannot be written.
    """
    path = Path(path)
    if theme not in get_args(Theme):
        raise VisformerError(N_("theme is {theme!r}; it can be 'light' or 'dark'."), theme=theme)
    if gettext is None and lang not in languages():
        known = ", ".join(languages())
        raise VisformerError(N_("lang is {lang!r}; it can be {languages}."), lang=lang, languages=known)
    said = gettext or translations(lang).gettext
    makers: dict[str, Callable[[], str | bytes]]
    if isinstance(what, Trace):
        place: dict[str, Any] = {"stack": stack, "layer": layer, "head": head}
        makers = {
            ".html": lambda: page(what, gettext=said, lang=lang, start=_start(what, **place)),
            ".svg": lambda: attention_svg(what, **place, view=view, query=query, theme=theme, gettext=said),
            ".csv": lambda: to_csv(what),
            ".json": lambda: to_json(what),
            ".safetensors": what.to_bytes,
        }
    else:
        makers = _makers(what, theme, said, about)
    makers[".png"] = lambda: to_png(str(makers[".svg"]()), scale=scale)
    make = makers.get(path.suffix.lower())
    if make is None:
        raise VisformerError(
            N_("{path} does not end in any of {endings}: the ending says what is written."),
            path=path.name,
            endings=", ".join(ending for ending in ENDINGS if ending in makers),
        )
    write_whole(path, make())


def _start(trace: Trace, **place: Any) -> dict[str, Any] | None:
    """What a page shows first; None: what it takes itself."""
    return None if set(place.values()) == {None} else _selection(trace, **place).start()


def _makers(what: Any, theme: Theme, gettext: Callable[[str], str], about: str) -> dict[str, Callable[[], str | bytes]]:
    """Of panels or a figure: ending to what makes the file."""
    if is_figure(what):
        return {
            ".svg": lambda: figure_svg(what, about=about),
            ".csv": lambda: figure_csv(what),
            ".json": lambda: figure_json(what, about=about),
        }
    shown = [what] if isinstance(what, Panel) else what
    each = [panel for one in shown for panel in ([one] if isinstance(one, Panel) else one)]
    return {
        ".svg": lambda: panels_svg(*shown, theme=theme, gettext=gettext, about=about),
        ".csv": lambda: panels_csv(*each, gettext=gettext),
        ".json": lambda: panels_json(*each, gettext=gettext, about=about),
        ".safetensors": lambda: panels_tensors(*each),
    }


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
    chosen = _selection(trace, stack=stack, layer=layer, head=head)
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


def _selection(trace: Trace, *, stack: str | None, layer: int | None, head: int | None) -> Selection:
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
