"""Masks: in a batch, in the scores, at each step of decoding, and as the visitor edits them."""

from functools import partial

import numpy as np
import streamlit as st

from visformer.app.edits import comparison, editing
from visformer.app.session import address, boxes
from visformer.app.widgets import controls, formula_box, pick, unavailable, url_widgets
from visformer.errors import N_, VisformerError
from visformer.pictures.block import Stack
from visformer.pictures.masks import BATCH, NOTATION, PAGE, SCORES, STEP, STEPS, editable
from visformer.pictures.registry.options import decoder_first
from visformer.trace.stacks import shape_of

LOOK_FOR_ENCODER = {
    "scores": N_("With one sentence alone an encoder masks nothing: every token may read every other, later ones too."),
    "steps": N_(
        "An encoder has no causal mask: it generates no text, so all tokens are given at once and none is hidden."
    ),
    "edit": N_("Click cells to block them, or a label for its row or column. What does the model read instead?"),
}
LOOK_FOR_PICTURE = {
    "batch": N_(
        "The masks of a second picture, a purple cross, in a batch with yours: pictures are equally large, and its "
        "caption is filled up with <pad>."
    ),
}
FORMULA = r"""&\sym{pattern}{A} = \mathrm{softmax}\left(\sym{scores}{S} + \log \sym{mask}{M}\right) \\[4pt]
&\sym{mask}{M} \in \{0, 1\}"""
FORMULAS = {
    "hidden": r"""&\sym{pattern}{A} = \mathrm{softmax}\left(\sym{scores}{S} + \log\,(1 - \sym{mask}{M})\right) \\[4pt]
&\sym{mask}{M} \in \{0, 1\}"""
}
CODE = (("model/masks.py", "causal_mask"), ("model/masks.py", "padding_mask"), ("model/attention.py", "attention"))
RECORD = ("*.pattern", "*.mask", "*.scores", "logits")

_ = boxes.gettext()
trace = controls.current_trace(RECORD)

if trace is not None:
    is_encoder = unavailable.kind_of(trace) == "encoder"
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="masks_view"))
        bar = st.container()
    setting = controls.setting_of(view, trace, RECORD)
    if view is BATCH:  # before the formula, which depends on it
        url_widgets.draw(NOTATION, setting, "masks", place=bar, horizontal=True, label_visibility="collapsed")
    with maths:
        shown = FORMULAS["hidden"] if setting.get(NOTATION.name) else FORMULA
        formula_box.formula(shown, section="3.1, 3.2.3", code=CODE, page="masks")
    about = LOOK_FOR_PICTURE if "grid" in trace.meta else LOOK_FOR_ENCODER if is_encoder else {}
    controls.look_for(_(about.get(view.view, view.look_for)))
    part: Stack = "decoder" if "tgt" in trace.tokens else "encoder"
    first_mask = f"{part}.{next(iter(trace.layers(f'{part}.self_attn')))}.self_attn.mask"
    try:
        if view is BATCH:
            controls.draw(BATCH.draw(setting), key="masks_batch")
        elif view is STEPS:
            defaults = STEPS.page_defaults
            setting["tokens"] = defaults["tokens"](setting)
            if is_encoder:
                setting["step"] = setting["tokens"] - 1
            else:
                url_widgets.draw(STEP, setting, "masks", place=bar, default=defaults["step"](setting))
            with words:  # a square beside the formula: below both, half of the page would be empty
                controls.draw(STEPS.draw(setting), key="masks_steps")
        elif view is SCORES or first_mask not in trace:
            with bar:
                pick.place(setting, page="masks", first=decoder_first(setting))
            without = unavailable.NOTHING_BETWEEN if view is SCORES else unavailable.NOT_TO_CHANGE
            if unavailable.tell(trace, first_mask, without):
                controls.pattern(trace, setting.path, setting["head"], key="masks_pattern")
            else:
                controls.draw(SCORES.draw(setting), key="masks_scores")
        else:
            with bar:
                layer, head = pick.scope(setting, page="masks_edit", first=decoder_first(setting))
            attention, kind = setting["stack"], setting.kind
            patterns = trace.layers(attention)
            scope, shape = editing.Scope(attention, tuple(patterns), layer, head), shape_of(patterns)
            masks_of_layers = [trace[f"{setting.part}.{at}.{kind}.mask"].value[0] for at in patterns]
            mask = np.stack(masks_of_layers)  # (layer, query, key): differ, where some layers look through a window
            editing.take_cells(scope, mask, shape[1])
            flips = editing.flips(attention, shape)
            edits = editing.mask_edits(scope, flips, mask)
            address.show_changes(editing.CELLS, editing.cells_text(edits))
            left, right = st.columns([42, 58], gap="medium")
            with left:
                chosen = scope.of(np.broadcast_to(mask[:, None], shape))[:, :1]
                panel = editable(trace, f"{setting.part}.{scope.layers[0]}.{kind}", scope.of(flips), chosen)
                controls.draw([panel], key="masks_edit", on_click=partial(editing.switch, scope, before=flips))
            with right:
                with st.container(horizontal=True):
                    if attention == "decoder.self_attn":
                        args = (scope, ~chosen, flips)
                        st.button(_("Remove the causal mask"), on_click=editing.switch_all, args=args)
                    st.button(_("Reset"), on_click=editing.reset, disabled=not flips.any())
                comparison.compare(trace, edits, scope)
    except VisformerError as error:
        st.text(error.localized(_))
