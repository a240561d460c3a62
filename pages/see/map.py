"""The whole model: every block with the sentence in it, and its play from the tokens to the translation."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from visformer.app.lessons import lesson_menu
from visformer.app.presentation import following
from visformer.app.session import address, boxes, page, run, selection
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import ZOOM
from visformer.app.widgets import controls, downloads, locator, pick, unavailable
from visformer.app.widgets.component import MAP as KEY
from visformer.app.widgets.component import href, map_picture, replace_address
from visformer.errors import LinkError
from visformer.pictures.block import KINDS
from visformer.pictures.head import Place
from visformer.pictures.map import MAP, RECORD, drawn, heading
from visformer.trace import Trace
from visformer.web.places import INSIDE, Inside, Zoom, cell, inside
from visformer.web.places import RECORD as CELL
from visformer.web.selection import Selection

ZOOMED: Slot[Zoom | None] = Slot("map_zoom", None, resets=True)
HAS_MOVED = Slot("map_has_moved", False)  # whether the address is to be replaced
PARTS = {kind: part for part, kind in KINDS.items()}

_ = boxes.gettext()


@st.fragment
@controls.errors_shown()
def whole_model() -> None:
    """Draw the model. Choosing a head or a place reruns only this."""
    trace = controls.current_trace(RECORD)
    if trace is None:
        return
    chosen, zoom = selection.selection(trace), zoomed(trace)
    head = {"stack": chosen.stack, "layer": chosen.layer, "head": chosen.head}
    model = drawn(controls.setting_of(MAP, trace, RECORD, **head))
    place = place_of(trace, zoom, chosen)
    map_picture(
        model,
        place={**place, "focus": head},
        file=downloads.file_name(""),
        on_select=select,
        on_zoom=move,
    )
    locator.send("selected")
    with st.container(horizontal=True, vertical_alignment="center"):
        pick.link_inside(trace, chosen)
    run.current().exports.append((model, KEY))
    if HAS_MOVED.pop():
        replace_address(page.current_page(), address.of_run(), key="zoom_address")


def zoomed(trace: Trace) -> Zoom | None:
    """Return the place that is zoomed in on, at first that of the address, as far as the Trace has it."""
    if page.IS_NEW.get():
        ZOOMED.clear()
    address.take(ZOOM, lambda text: ZOOMED.set(Zoom.read(text).require_in(trace)), go_back=ZOOMED.clear)
    zoom = ZOOMED.get()
    return keep(zoom and zoom.within(trace))


def keep(zoom: Zoom | None) -> Zoom | None:
    ZOOMED.set(zoom)
    address.show(ZOOM, None if zoom is None else str(zoom))
    return zoom


def select(value: Any) -> None:
    trace = controls.current_trace(RECORD)
    if trace is not None and selection.take(value, trace):
        address.update()
    following.publish()


def move(value: Any) -> None:
    """Zoom to the place that a browser sent: the address of this entry of its history becomes that of the place."""
    trace = controls.current_trace(RECORD)
    if trace is None:
        return
    try:
        keep(Zoom.read(str(value)).require_in(trace) if value else None)
    except LinkError:  # of the sentence before
        return
    HAS_MOVED.set(True)
    following.publish()


def place_of(trace: Trace, zoom: Zoom | None, chosen: Selection) -> Mapping[str, Any]:
    """Return what the place's message holds, see :func:`visformer.web.map.pack_place`."""
    if zoom is None:
        return {"zoom": ""}
    place: dict[str, Any] = {"zoom": str(zoom), "way": way_of(trace, zoom, chosen)}
    if zoom.key is not None:
        place |= sum_of(trace, zoom)
    if zoom.kind == "ffn":
        place["inside"] = inside_of(trace, zoom)
    return place


def inside_of(trace: Trace, zoom: Zoom) -> Inside | None:
    """Return what a feed-forward network computes. Only now are its hidden units recorded."""
    if trace.blocks is None or trace.lacks(f"{zoom.path}.hidden") is not None:
        return None
    names = [name.format(path=zoom.path, stack=zoom.stack, layer=zoom.layer) for name in INSIDE]
    full = controls.bench().trace(boxes.source(), boxes.target(), record=controls.bench().loaded().available(names))
    return inside(full, zoom, getattr(trace.blocks, zoom.stack).norm)


def sum_of(trace: Trace, zoom: Zoom) -> dict[str, Any]:
    """Return a cell's sum and, where there is none, the reason. Only now are queries, keys and scores recorded."""
    assert zoom.head is not None
    assert zoom.query is not None
    assert zoom.key is not None
    names = (f"{zoom.path}.{name}" for name in ("q", "k", "scores"))
    reason = next(filter(None, map(trace.lacks, names)), None)
    record = controls.bench().loaded().available([glob.format(path=zoom.path) for glob in CELL])
    full = controls.bench().trace(boxes.source(), boxes.target(), record=tuple(record))
    lacks = _(unavailable.NOTHING_BETWEEN).format(reason=_(reason)) if reason else ""
    return {"cell": cell(full, Place(zoom.path, zoom.head, zoom.query), zoom.key), "lacks": lacks}


def way_of(trace: Trace, zoom: Zoom, chosen: Selection) -> Mapping[str, str] | None:
    """Return label and address of the page that shows a place; None: no page does."""
    stack = f"{zoom.stack}.{zoom.kind}"
    common = address.common()
    if zoom.kind in (None, "ffn"):
        if trace.lacks(f"{zoom.stack}.{zoom.layer}.ffn.out") is not None:
            return None
        label = _("Through the block: layer {layer}").format(layer=zoom.layer + 1)
        return link_to("block", label, replace(common, choices=block_choices(trace, zoom)))
    if zoom.head is None:
        if f"{zoom.path}.pattern" not in trace:
            return None
        is_here = (chosen.stack, chosen.layer) == (stack, zoom.layer)
        head = chosen.head if is_here else 0
        return link_to(
            "attention", _("Attention: all heads"), replace(common, selection=selected_at(chosen, zoom, head))
        )
    if trace.lacks(f"{zoom.path}.q") is not None:
        return None
    label = _("Inside this head: layer {layer}, head {head}").format(layer=zoom.layer + 1, head=zoom.head + 1)
    return link_to("head", label, replace(common, selection=selected_at(chosen, zoom, zoom.head)))


def selected_at(chosen: Selection, zoom: Zoom, head: int) -> Selection:
    return replace(
        chosen, stack=f"{zoom.stack}.{zoom.kind}", layer=zoom.layer, head=head, query=zoom.query, key=None, heads=""
    )


def link_to(name: str, label: str, state: Any) -> dict[str, str]:
    return {"label": label, "href": href(name, address.to_query(state))}


def block_choices(trace: Trace, zoom: Zoom) -> dict[str, str]:
    """Return the choices of the page of the block; a choice between one thing is none."""
    choices = {"block_view": "added"}
    if {"src", "tgt"} <= trace.tokens.keys():
        choices["block_stack"] = zoom.stack
    if f"{zoom.stack}.1.resid_post" in trace:
        choices["block_layer"] = str(zoom.layer + 1)
    if zoom.kind is not None:
        choices[f"block_part_{zoom.stack}"] = PARTS[zoom.kind]
    return choices


def line_above() -> None:
    """Say what this is, and invite to the short lesson; a lesson has its own words."""
    trace = run.current().trace
    if trace is not None and not page.LESSON.get().is_open:
        st.header(_(heading(trace)), anchor=False)
        lesson_menu.invitation()


above = st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="map_line")
whole_model()
with above:
    line_above()
