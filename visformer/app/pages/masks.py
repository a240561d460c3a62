"""The mask editor: cells are switched by clicks, and the effect is shown beside them."""

from typing import Any

import numpy as np
import streamlit as st

from visformer.app.edits import comparison, editing, url_edits
from visformer.app.session import address, boxes
from visformer.app.widgets import controls, pick, unavailable
from visformer.pictures import masks
from visformer.pictures.masks import SCORES
from visformer.pictures.registry.places import decoder_first
from visformer.pictures.registry.setting import Setting
from visformer.trace.stacks import shape_of


def scores(setting: Setting, bar: Any, without: str = unavailable.NOTHING_BETWEEN) -> None:
    """Draw the scores of a head, the mask, and the masked scores; arguments as for :func:`edit`.

    For a model without masks, draw the pattern alone; ``without``: message id for the reason, with ``{reason}``.
    """
    with bar:
        pick.place(setting, page="masks", first=decoder_first(setting))
    if unavailable.tell(setting.patterns, _first_mask(setting), without):
        controls.pattern(setting.patterns, setting.path, setting["head"], key="masks_pattern")
    else:
        controls.draw(SCORES.draw(setting), key="masks_scores")


def _first_mask(setting: Setting) -> str:
    part = "decoder" if "tgt" in setting.patterns.tokens else "encoder"
    return f"{part}.{next(iter(setting.patterns.layers(part)))}.self_attn.mask"  # type: ignore[arg-type]


def edit(setting: Setting, bar: Any) -> None:
    """Draw the mask and its effect on the model; ``bar``: the container for attention, layer and head."""
    _, trace = boxes.gettext(), setting.patterns
    if _first_mask(setting) not in trace:
        scores(setting, bar, unavailable.NOT_TO_CHANGE)
        return
    with bar:
        layer, head = pick.scope(setting, page="masks_edit", first=decoder_first(setting))
    attention, part, kind = setting["stack"], setting.part, setting.kind
    patterns = trace.layers(part, kind)
    scope, shape = editing.Scope(attention, tuple(patterns), layer, head), shape_of(patterns)
    masks_of_layers = [trace[f"{part}.{at}.{kind}.mask"].value[0] for at in patterns]
    mask = np.stack(masks_of_layers)  # (layer, query, key): they may differ, where some layers look through a window
    editing.take_cells(scope, mask, shape[1])
    flips = editing.flips(attention, shape)
    edits = editing.mask_edits(scope, flips, mask)
    address.show_changes(url_edits.CELLS, url_edits.cells_text(edits))
    left, right = st.columns([42, 58], gap="medium")
    with left:
        chosen = scope.of(np.broadcast_to(mask[:, None], shape))[:, :1]
        panel = masks.editable(trace, f"{part}.{scope.layers[0]}.{kind}", scope.of(flips), chosen)
        controls.draw([panel], key="masks_edit", on_click=lambda click: editing.switch(scope, click, flips))
    with right:
        with st.container(horizontal=True):
            if attention == "decoder.self_attn":
                st.button(_("Remove the causal mask"), on_click=editing.switch_all, args=(scope, ~chosen, flips))
            st.button(_("Reset"), on_click=editing.reset, disabled=not flips.any())
        comparison.compare(trace, edits, scope)
