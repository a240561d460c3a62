"""The selection in the explorer, which "Inside a head" shares."""

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from visformer.app.session import boxes, url_state
from visformer.app.session.remarks import ignore
from visformer.app.session.slots import Slot, forget, widget_key
from visformer.pictures.registry.options import per_layers
from visformer.web.selection import Selection

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

_STACK, _LAYER, _HEAD, _QUERY = NAMES = ("head_stack", "head_layer", "head_head", "head_query")  # of widgets
START = Slot("start", Selection())
"""The selection with which the explorer starts on the current page."""

_SELECTION: Slot[Selection | None] = Slot("selection", None, resets=True)
_IS_CHECKED = Slot("compared", False, resets=True)  # whether a link's selection was checked against a Trace


def begin_anew(wanted: Selection) -> None:
    """Start the explorer with this selection; reset the query's widget, the only one that does not follow it."""
    START.set(wanted)
    forget(_QUERY)


def chosen() -> Selection:
    """Return the selection, for a link."""
    return _SELECTION.get() or START.get()


def start(trace: "Trace | None") -> Selection:
    """Return the explorer's initial selection, constant while its page is open so that no picture is sent twice.

    Parts that a link requests and the Trace does not have are reported, and fall back to their defaults.
    """
    first = START.get()
    if trace is not None and not _IS_CHECKED.get():
        _IS_CHECKED.set(True)
        fitting, wrong = first.fitting(trace)
        if first == url_state.start(boxes.model()):
            fitting = fitting.seen_first(trace)
        ignore(first.link(), wrong)
        START.set(first := fitting)
    return first


def selection(trace: "Trace", *, absent: Collection[str] = ()) -> Selection:
    """Return the selection in the explorer, as far as the Trace has it: at first the one in the address.

    ``absent``: the widgets, of :data:`NAMES`, that this run does not draw. Streamlit goes back to their first values.
    """
    selected = _SELECTION.get()
    if selected is None:
        return _choose(start(trace), trace)
    fitting = selected.within(trace)
    if fitting.stack != selected.stack:  # of another model: its address would not open as it is
        _SELECTION.set(fitting)
    for name, (slot, value) in _widgets(fitting, trace).items():
        if name in absent:
            slot.clear() if value is None else slot.set(value)
    return fitting


def take(value: Any, trace: "Trace") -> bool:
    """Select what a browser sent; False: it is invalid."""
    sent = Selection.from_browser(value)
    if sent is not None:
        _choose(sent, trace)
    return sent is not None


def _choose(value: Selection, trace: "Trace") -> Selection:
    fitting = value.within(trace)
    _SELECTION.set(fitting)
    for slot, wanted in _widgets(fitting, trace).values():
        if wanted is not None:
            slot.set(wanted)
    return fitting


def _widgets(fitting: Selection, trace: "Trace") -> dict[str, tuple[Slot[Any], object]]:
    """Return the widgets that select a place, each with its value; None: the default."""
    layers = trace.layers(fitting.stack)
    n_heads, n_queries, _ = layers[fitting.layer].shape
    query = fitting.query if fitting.query is not None and fitting.query < n_queries else None
    return {
        _STACK: (_widget(_STACK), fitting.stack),
        _LAYER: (_widget(_LAYER, per_layers(layers)), fitting.layer + 1),
        _HEAD: (_widget(_HEAD, n_heads), fitting.head + 1),
        _QUERY: (_widget(_QUERY, n_queries), query),
    }


def _widget(name: str, suffix: object = "") -> Slot[Any]:
    return Slot(widget_key(name, suffix), None)


def keep_place(**place: Any) -> None:
    """Remember a place selected on another page, for the address and for the explorer to start with."""
    if any(getattr(chosen(), name) != value for name, value in place.items()):
        _SELECTION.set(replace(chosen(), **{"key": None, "cells": "", **place}))
