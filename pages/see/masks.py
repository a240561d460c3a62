"""Masks: what they are in a batch, what they do to scores, and what happens when a visitor changes one."""

import streamlit as st

from visformer.errors import N_, VisformerError
from visformer.pictures import masks
from visformer.ui import comparison, controls, editing, lesson, pick, state
from visformer.ui.resources import PATTERNS, workbench

VIEWS = {"batch": N_("In a batch"), "scores": N_("On the scores"), "steps": N_("Step by step"), "edit": N_("Change it")}
LOOK_FOR = {
    "batch": N_("Two sentences, yours and “Thanks.”: padding fills the shorter and is masked. Which rows lose most?"),
    "scores": N_("A masked score counts as −∞, so softmax gives it exactly 0. What becomes of its share?"),
    "steps": N_("One more token at each step: each may read those before it and itself, none that comes after."),
    "edit": N_(
        "Click cells to block or open them. Then open the decoder's future: how sure does it become, and of what?"
    ),
}
FORMULA = r"""&\sym{pattern}{A} = \mathrm{softmax}\left(\sym{scores}{S} + \log \sym{mask}{M}\right) \\[4pt]
&\sym{mask}{M} \in \{0, 1\}"""
CODE = (("model/masks.py", "causal_mask"), ("model/masks.py", "padding_mask"), ("model/attention.py", "attention"))
MASKED = "decoder.self_attn"  # in a sentence alone, the one attention that has something to hide
SHORT = "Thanks."  # fills the batch up, with padding

_ = state.gettext()
bench = workbench()
trace = controls.current_trace(("*.pattern", "*.mask", "*.scores", "logits"))


def batch(_trace):
    names = {False: _("1 = may attend"), True: _("1 = hidden")}
    hidden = bar.radio(_("Notation"), list(names), format_func=names.get, horizontal=True, label_visibility="collapsed")
    other = bench.trace(SHORT, None, record=PATTERNS)
    both = [[t.tokens[side] for t in (_trace, other)] for side in ("src", "tgt")]
    controls.draw(masks.batch(*both, hidden_is_one=hidden), key="masks_batch")


def scores(_trace):
    with bar:
        stack, layer, head = pick.place(_trace, key="masks", first=MASKED)
    controls.draw(masks.before_and_after(_trace, f"{stack.part}.{layer}.{stack.kind}", head), key="masks_scores")


def steps(_trace):
    tokens = _trace.tokens["tgt"][:40]
    step = bar.slider(_("Tokens written"), 1, max(2, len(tokens)), min(3, len(tokens)), key="masks_step")
    controls.draw([masks.revealed(tokens, min(step, len(tokens)))], key="masks_steps")


def edit(_trace):
    with bar:
        stack, layer, head = pick.scope(_trace, key="masks_edit", first=MASKED)
    mask = _trace[f"{stack.part}.0.{stack.kind}.mask"].value[0]
    scope = editing.Scope(stack.name, layer, head)
    flips = editing.flips(stack.name, (*_trace.stack(stack.part, stack.kind).shape[:2], *mask.shape))
    left, right = st.columns([42, 58], gap="medium")
    with left:
        panel = masks.editable(_trace, f"{stack.part}.0.{stack.kind}", scope.of(flips), mask)
        controls.draw([panel], key="masks_edit", on_click=lambda click: editing.switch(scope, click, flips))
    with right:
        with st.container(horizontal=True):
            if stack.name == MASKED:
                st.button(_("Remove the causal mask"), on_click=editing.switch_all, args=(scope, ~mask, flips))
            st.button(_("Reset"), on_click=editing.reset, disabled=not flips.any())
        edits = editing.mask_edits(stack.name, flips, mask)
        comparison.compare(_trace, edits, scope)


if trace is not None:
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        view = controls.view(_("View"), VIEWS, key="masks_view")
        bar = st.container()
    with maths:
        lesson.formula(FORMULA, section="3.1, 3.2.3", code=CODE, page="masks")
    st.caption(_(LOOK_FOR[view]))
    try:
        {"batch": batch, "scores": scores, "steps": steps, "edit": edit}[view](trace)
    except VisformerError as error:
        st.text(error.localized(_))
