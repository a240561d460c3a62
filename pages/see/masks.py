"""Masks: what they are in a batch, what they do to scores, and what happens when a visitor changes one."""

import numpy as np
import streamlit as st

from visformer.errors import N_, VisformerError
from visformer.pictures import masks
from visformer.ui import comparison, controls, editing, lesson, pick, state
from visformer.ui.resources import PATTERNS, workbench

VIEWS = {"batch": N_("In a batch"), "scores": N_("On the scores"), "steps": N_("Step by step"), "edit": N_("Change it")}
LOOK_FOR = {
    "batch": N_(
        "Padding fills the shorter sentence up; the mask keeps everyone from reading it. Which rows lose most?"
    ),
    "scores": N_("A masked score counts as −∞, so softmax gives it exactly 0. What becomes of its share?"),
    "steps": N_("One more character at each step: each may read those before it and itself, none that comes after."),
    "edit": N_(
        "Click cells to block or open them. Then open the decoder's future: how sure does it become, and of what?"
    ),
}
FORMULA = r"""&\sym{pattern}{A} = \mathrm{softmax}\left(\sym{scores}{S} + \log \sym{mask}{M}\right) \\[4pt]
&\sym{mask}{M} \in \{0, 1\}"""
CODE = (("model/masks.py", "causal_mask"), ("model/masks.py", "padding_mask"), ("model/attention.py", "attention"))
SHORT = "Thanks."  # fills the batch up, with padding

_ = state.gettext()
bench = workbench()
trace = controls.current_trace(("*.pattern", "*.mask", "*.scores", "logits"))


def batch(_trace):
    hidden = st.radio(_("Notation"), [False, True], format_func=lambda h: _("1 = hidden") if h else _("1 = may attend"))
    other = bench.trace(SHORT, None, record=PATTERNS)
    both = [[t.tokens[side] for t in (_trace, other)] for side in ("src", "tgt")]
    controls.draw(masks.batch(*both, hidden_is_one=hidden), key="masks_batch")


def scores(_trace):
    stack = pick.stack(key="masks_stack")
    left, right = st.columns(2)
    with left:
        layer = pick.layer(_trace, stack, key="masks_layer")
    with right:
        head = pick.head(_trace, stack, key="masks_head")
    controls.draw(masks.before_and_after(_trace, f"{stack.part}.{layer}.{stack.kind}", head), key="masks_scores")


def steps(_trace):
    characters = [c for c in str(_trace.meta["target"]) if not c.isspace()][:40]
    step = st.slider(_("Characters written"), 1, max(2, len(characters)), min(3, len(characters)), key="masks_step")
    controls.draw([masks.revealed(characters, min(step, len(characters)))], key="masks_steps")


def edit(_trace):
    stack = pick.stack(key="masks_edit_stack")
    where, path = f"{stack.part}.*.{stack.kind}", f"{stack.part}.0.{stack.kind}"
    mask = _trace[f"{path}.mask"].value[0]
    cells = editing.cells(where)
    edited = np.array([[(q, k) in cells for k in range(mask.shape[1])] for q in range(mask.shape[0])])
    panel = masks.editable(_trace, path, edited, mask ^ edited)
    controls.draw([panel], key="masks_edit", on_click=lambda click: editing.switch(where, click, mask.shape))
    if stack.name == "decoder.self_attn":
        st.button(_("Remove the causal mask"), on_click=editing.switch_all, args=(where, ~mask))
    st.button(_("Reset"), on_click=editing.reset, disabled=not cells)
    if cells:
        comparison.compare(_trace, editing.mask_edits(where, mask), path, 0)


if trace is not None:
    view = controls.view(_("View"), VIEWS, key="masks_view")
    st.caption(_(LOOK_FOR[view]))
    picture, side = st.columns([68, 32], gap="large")
    with side:
        lesson.formula(FORMULA, section="3.1, 3.2.3", code=CODE, page="masks")
    with picture:
        try:
            {"batch": batch, "scores": scores, "steps": steps, "edit": edit}[view](trace)
        except VisformerError as error:
            st.text(error.localized(_))
