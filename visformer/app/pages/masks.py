"""A mask that the visitor changes: cells are clicked, and beside it stands what becomes of it."""

from typing import Any

import numpy as np
import streamlit as st

from visformer.app.edits import comparison, editing, url_edits
from visformer.app.session import address, boxes
from visformer.app.widgets import controls, pick, unavailable
from visformer.pictures import masks
from visformer.pictures.masks import SCORES
from visformer.pictures.places import decoder_first
from visformer.pictures.setting import Setting


def scores(setting: Setting, bar: Any) -> None:
    """The scores of a head, the mask, and what is left of them; arguments as of :func:`edit`."""
    if _lacks(setting, bar, unavailable.NOTHING_BETWEEN):
        return
    with bar:
        pick.place(setting, page="masks", first=decoder_first(setting))
    controls.draw(SCORES.draw(setting), key="masks_scores")


def _lacks(setting: Setting, bar: Any, why: str) -> bool:
    """Whether the model shows no masks; that is said, and its patterns are shown alone."""
    trace = setting.patterns
    part = "decoder" if "tgt" in trace.tokens else "encoder"
    if not unavailable.tell(trace, f"{part}.0.self_attn.mask", why):
        return False
    with bar:
        pick.place(setting, page="masks", first=decoder_first(setting))
    controls.pattern(trace, setting.path, setting["head"], key="masks_pattern")
    return True


def edit(setting: Setting, bar: Any) -> None:
    """The mask, and what the model does under it; ``bar``: the container for attention, layer and head."""
    _ = boxes.gettext()
    if _lacks(setting, bar, unavailable.NOT_TO_CHANGE):
        return
    trace = setting.patterns
    with bar:
        stack, layer, head = pick.scope(setting, page="masks_edit", first=decoder_first(setting))
    scope = editing.Scope(stack.name, layer, head)
    shape = trace.stack(stack.part, stack.kind).shape
    layers = [trace[f"{stack.part}.{at}.{stack.kind}.mask"].value[0] for at in range(shape[0])]
    mask = np.stack(layers)  # (layer, query, key): layers may differ, where some of them look through a window
    editing.take_cells(stack.name, mask, shape[1])
    flips = editing.flips(stack.name, shape)
    edits = editing.mask_edits(stack.name, flips, mask)
    address.show(url_edits.CELLS, url_edits.cells_text(edits))
    left, right = st.columns([42, 58], gap="medium")
    with left:
        chosen = mask[:, None] if layer is None else mask[[layer], None]
        panel = masks.editable(trace, f"{stack.part}.0.{stack.kind}", scope.of(flips), chosen)
        controls.draw([panel], key="masks_edit", on_click=lambda click: editing.switch(scope, click, flips))
    with right:
        with st.container(horizontal=True):
            if stack.name == "decoder.self_attn":
                st.button(_("Remove the causal mask"), on_click=editing.switch_all, args=(scope, ~chosen, flips))
            st.button(_("Reset"), on_click=editing.reset, disabled=not flips.any())
        comparison.compare(trace, edits, scope)
