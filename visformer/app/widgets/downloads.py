"""What a visitor takes along: one file of what is on the page. Nothing is made before it is asked for."""

import re
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import streamlit as st

from visformer.app.serving.models import MODEL, label
from visformer.app.session import boxes, selection
from visformer.app.widgets.component import CANVAS
from visformer.app.widgets.formula_box import theme
from visformer.errors import N_
from visformer.export.formats import FORMATS, Content, Kind, Options
from visformer.system import limits

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

_FORMULAS = ("lab_", "positions_")
"""Keys of pictures that show no model's numbers."""

_HELD: dict[Kind, str] = {
    "trace": N_("{picture}: the selected head; {numbers}: the weights of all heads; {page}: the explorer."),
    "panels": N_("{picture}: the pictures; {numbers}: their numbers."),
    "figure": N_("{picture}: the picture; {numbers}: its numbers."),
}
"""What the formats hold of a kind of thing; names those of each content in braces."""


def attention(trace: "Trace") -> None:
    """The explorer, its head in focus, and the weights of all heads."""
    start = selection.selection(trace).start()
    part = "cross" if "cross" in start["stack"] else start["stack"].split(".")[0]
    picture = f"{part}-L{start['layer'] + 1}-H{start['head'] + 1}"
    place = {name: start[name] for name in ("stack", "layer", "head")}
    offer("trace", trace, key=CANVAS, picture=picture, place=place, start=start)


def offer(kind: Kind, what: Any, *, key: str, picture: str = "", **options: Any) -> None:
    """A button for each format, drawn once it is opened.

    Args:
        kind: of what.
        what: to be kept, as it was drawn.
        key: of the picture on the page.
        picture: what a drawn picture shows, for its file's name; by default the key.
        options: of the files, besides those that all have.
    """
    _ = boxes.gettext()
    box = st.popover(_("Export"), type="tertiary", on_change="rerun", key=f"{key}_export")
    if not box.open:
        return
    from visformer.export.tables import size_of

    how = Options(theme=theme(), gettext=_, lang=boxes.language(), about=_about(key), **options)
    offered = [one for one in FORMATS if one.offers.get(kind)]
    names = {content: [one.name for one in offered if one.content == content] for content in get_args(Content)}
    box.caption(_(_HELD[kind]).format(**{content: _(", ").join(held) for content, held in names.items()}))
    count = size_of(what) if kind == "trace" else 0
    with box, st.container(horizontal=True):
        for one in offered:
            if count > limits.MAX_NUMBERS and one.limited:
                continue
            name = file_name(picture if picture and one.content == "picture" else key) + one.ending
            make = partial(one.file, kind, what, how)  # when the button is clicked
            button, told = f"{key}_{one.name.lower()}", _(one.offers[kind])
            st.download_button(one.name, make, name, one.mime, key=button, help=told, on_click="ignore")
        if count > limits.MAX_NUMBERS:
            said = _(
                "{count:,} weights are too many for {formats}, which hold up to {limit:,}. safetensors holds all of "
                "them; in Python, visformer.export.to_csv(trace, name) writes one layer's as CSV."
            )
            limited = _(" and ").join(one.name for one in offered if one.limited)
            st.caption(said.format(count=count, formats=limited, limit=limits.MAX_NUMBERS))


def _about(key: str) -> str:
    """Which model was given which sentence; of a formula's pictures nothing."""
    if key.startswith(_FORMULAS) and key != "positions_model":
        return ""
    return f"{label(boxes.model() or MODEL)}: {boxes.source()}"


def file_name(what: str) -> str:
    """Of a file without its ending: the model, and what is in it; letters that every system takes."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"{label(boxes.model() or MODEL)}-{what}").strip("-.")
