"""Silencing and amplifying heads: they are clicked, and the effect is shown beside them."""

from typing import Any

import streamlit as st

from visformer.app.edits import comparison, editing, silences, url_edits
from visformer.app.session import address, boxes
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, pick, url_widgets
from visformer.pictures.head import FACTOR, SILENCE, factors
from visformer.trace import Trace
from visformer.trace.stacks import shape_of
from visformer.web.panels import Click

SHOWN: Slot[Click | None] = Slot("head_cell", None, resets=True)
"""The cell whose sum is written out."""


def show(click: Click) -> None:
    """Write out the sum behind a cell; here, since a session keeps what is called on a click, and all that it knows."""
    SHOWN.set(None if click.row is None or click.column is None else click)


def silence(trace: Trace, bar: Any) -> None:
    """Draw the heads of one attention, selected in ``bar``, and what the model does with the clicked ones scaled."""
    _ = boxes.gettext()
    with bar:
        pick.selected_stack(setting := controls.setting_of(SILENCE, trace))
    stack = setting["stack"]
    left, right = st.columns([42, 58], gap="medium")
    with left:
        scale = url_widgets.draw(FACTOR, setting, "head")
        patterns = trace.layers(setting.part, setting.kind)
        layers, (n_layers, n_heads, *_sides) = tuple(patterns), shape_of(patterns)
        editing.take_scales(stack, layers, n_heads)
        scales = editing.scales(stack, n_layers, n_heads)
        address.show_changes(url_edits.HEADS, url_edits.heads_text(scales, layers))
        panel = factors(scales, layers)
        controls.draw([panel], key="head_scales", on_click=lambda c: editing.scale_all(stack, c, scales, scale))
    with right:
        silences.offer()
        st.button(_("Reset"), on_click=editing.reset, disabled=bool((scales == 1).all()), key="head_reset")
        comparison.compare(trace, editing.head_edits(stack, scales, layers=layers))
