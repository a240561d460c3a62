"""Export buttons below pictures. A file is made only when its button is clicked."""

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
"""Prefixes of the keys of pictures that show a formula, not a model's numbers."""

_CONTENTS: dict[Kind, str] = {
    "trace": N_("{picture}: the head in focus; {numbers}: the weights of all heads; {page}: the explorer."),
    "panels": N_("{picture}: the pictures; {numbers}: their numbers."),
    "figure": N_("{picture}: the picture; {numbers}: its numbers."),
}
"""What a file of each kind contains; the braces stand for the names of the formats."""


def attention(trace: "Trace") -> None:
    """Offer the explorer, its head in focus, and the weights of all heads."""
    start = selection.selection(trace).start()
    part = "cross" if "cross" in start["stack"] else start["stack"].split(".")[0]
    picture = f"{part}-L{start['layer'] + 1}-H{start['head'] + 1}"
    place = {name: start[name] for name in ("stack", "layer", "head")}
    offer("trace", trace, key=CANVAS, picture=picture, place=place, start=start)


def offer(kind: Kind, what: Any, *, key: str, picture: str = "", **options: Any) -> None:
    """Draw a popover with a button for each format; the buttons are drawn once it is open.

    Args:
        kind: the kind of ``what``.
        what: the object to export, as it was drawn.
        key: the picture's key on the page.
        picture: what a drawn picture shows, for its file name; by default the key.
        options: further fields of :class:`visformer.export.formats.Options`.
    """
    _ = boxes.gettext()
    box = st.popover(_("Export"), type="tertiary", on_change="rerun", key=f"{key}_export")
    if not box.open:
        return
    from visformer.export.tables import size_of

    how = Options(theme=theme(), gettext=_, lang=boxes.language(), about=_about(key), **options)
    formats = [item for item in FORMATS if item.offers.get(kind)]
    names = {content: [item.name for item in formats if item.content == content] for content in get_args(Content)}
    box.caption(_(_CONTENTS[kind]).format(**{content: _(", ").join(each) for content, each in names.items()}))
    count = size_of(what) if kind == "trace" else 0
    with box, st.container(horizontal=True):
        for item in formats:
            if count > limits.MAX_NUMBERS and item.limited:
                continue
            name = file_name(picture if picture and item.content == "picture" else key) + item.ending
            make = partial(item.file, kind, what, how)  # called when the button is clicked
            button, tooltip = f"{key}_{item.name.lower()}", _(item.offers[kind])
            st.download_button(item.name, make, name, item.mime, key=button, help=tooltip, on_click="ignore")
        if count > limits.MAX_NUMBERS:
            said = _(
                "{count:,} weights are too many for {formats}, which hold up to {limit:,}. safetensors holds all of "
                "them; in Python, visformer.export.to_csv(trace, name) writes one layer's as CSV."
            )
            limited = _(" and ").join(item.name for item in formats if item.limited)
            st.caption(said.format(count=count, formats=limited, limit=limits.MAX_NUMBERS))


def _about(key: str) -> str:
    """Name the model and the sentence; "" for the picture of a formula."""
    if key.startswith(_FORMULAS) and key != "positions_model":
        return ""
    return f"{label(boxes.model() or MODEL)}: {boxes.source()}"


def file_name(what: str) -> str:
    """Build a file name without ending, of the model and ``what``, in characters that every system accepts."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"{label(boxes.model() or MODEL)}-{what}").strip("-.")
