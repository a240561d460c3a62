"""What people keep: one file of a Trace, or of a picture, in the format that its name asks for. No torch, no streamlit.

``save`` writes a file. What it writes can also be had as text or bytes: ``page`` (HTML), ``attention_svg`` and
``panels_svg``, ``to_png``, ``to_csv``, ``to_json``; safetensors is :meth:`visformer.trace.Trace.save`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from visformer.canvas.page import page
from visformer.canvas.selection import Selection
from visformer.canvas.words import STACKS, Stack
from visformer.errors import N_, TraceError, VisformerError
from visformer.export.png import to_png
from visformer.export.svg import heads_svg, panels_svg
from visformer.export.tables import panels_csv, to_csv, to_json
from visformer.figures.theme import Theme
from visformer.panel import Panel, traced
from visformer.trace import Trace

__all__ = ["attention_svg", "heads_svg", "page", "panels_csv", "panels_svg", "save", "to_csv", "to_json", "to_png"]

PICTURES, NUMBERS = (".html", ".svg", ".png"), (".csv", ".json", ".safetensors")


def save(
    what: Trace | Panel | Sequence[Panel | Sequence[Panel]],
    path: str | Path,
    *,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    theme: Theme = "light",
    scale: float = 3.0,
    gettext: Callable[[str], str] = str,
    lang: str = "en",
) -> None:
    """Write a file: .html (the explorer), .svg, .png (a picture), .csv, .json, .safetensors (the numbers).

    Args:
        what: a Trace; or a panel or several, for a picture.
        path: where to; its ending says what is written.
        stack: "encoder.self_attn", "decoder.self_attn" or "decoder.cross_attn"; None: the first that there is.
        layer: from 0; with ``head`` the picture is of this head, without either of all heads.
        head: from 0.
        theme: "light" or "dark", of a picture; a page follows its viewer.
        scale: of a PNG: pixels for each CSS pixel; 3 is about 300 to the inch.
        gettext: translates the words on the picture.
        lang: the language that gettext speaks.

    Raises:
        VisformerError: an ending that is none of these, or something that the Trace does not hold.
        OSError: the file cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (*PICTURES, *NUMBERS) or not (isinstance(what, Trace) or suffix in (".svg", ".png")):
        endings = (*PICTURES, *NUMBERS) if isinstance(what, Trace) else (".svg", ".png")
        raise VisformerError(
            N_("{path} does not end in any of {endings}: the ending says what is written."),
            path=path.name,
            endings=", ".join(endings),
        )
    if theme not in get_args(Theme):
        raise VisformerError(N_("theme is {theme!r}; it can be 'light' or 'dark'."), theme=theme)
    if not isinstance(what, Trace):
        shown = [what] if isinstance(what, Panel) else what
        picture = panels_svg(*shown, theme=theme, gettext=gettext)
        path.write_bytes(to_png(picture, scale=scale) if suffix == ".png" else picture.encode())
    elif suffix == ".safetensors":
        what.save(path)
    elif suffix in NUMBERS:
        path.write_text(to_csv(what) if suffix == ".csv" else to_json(what), encoding="utf-8", newline="")
    elif suffix == ".html":
        start = _selection(what, stack, layer, head).start() if (stack, layer, head) != (None, None, None) else None
        path.write_text(page(what, gettext=gettext, lang=lang, start=start), encoding="utf-8")
    else:
        picture = attention_svg(what, stack=stack, layer=layer, head=head, theme=theme, gettext=gettext)
        path.write_bytes(to_png(picture, scale=scale) if suffix == ".png" else picture.encode())


def attention_svg(
    trace: Trace,
    *,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    theme: Theme = "light",
    gettext: Callable[[str], str] = str,
) -> str:
    """One head, or where neither layer nor head is said all heads of a stack; arguments as of :func:`save`."""
    found = _stack(trace, stack)
    label = gettext(found.label)
    if layer is None and head is None:
        title = gettext(found.about)
        return heads_svg(trace.stack(found.part, found.kind), title=title, theme=theme, gettext=gettext)
    chosen = _selection(trace, stack, layer, head)
    place = gettext(N_("Layer {layer} · Head {head}")).format(layer=chosen.layer + 1, head=chosen.head + 1)
    name = f"{found.part}.{chosen.layer}.{found.kind}.pattern"
    panel = traced(trace, name, chosen.head, title=f"{label} · {place}", scale="weight")
    return panels_svg(panel, theme=theme, gettext=gettext)


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


def _selection(trace: Trace, stack: str | None, layer: int | None, head: int | None) -> Selection:
    found = _stack(trace, stack)
    n_layers, n_heads = trace.stack(found.part, found.kind).shape[:2]
    for name, place, count in (("layer", layer, n_layers), ("head", head, n_heads)):
        if place is not None and not 0 <= place < count:
            raise TraceError(
                N_("{stack} has no {name} {place}: there are {count}, counted from 0."),
                stack=found.name,
                name=name,
                place=place,
                count=count,
            )
    return Selection(found.name, layer or 0, head or 0)
