"""Masks: in a batch, in the scores, at each step of decoding, and as the visitor edits them."""

import streamlit as st

from visformer.app.pages import masks
from visformer.app.session import boxes
from visformer.app.widgets import controls, formula_box, unavailable, url_widgets
from visformer.errors import N_, VisformerError
from visformer.pictures.masks import BATCH, NOTATION, PAGE, STEP, STEPS

LOOK_FOR_ENCODER = {
    "scores": N_("With one sentence alone an encoder masks nothing: every token may read every other, later ones too."),
    "steps": N_(
        "An encoder has no causal mask: it generates no text, so all tokens are given at once and none is hidden."
    ),
    "edit": N_("Click cells to block them, or a label for its row or column. What does the model read instead?"),
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


def batch():
    controls.draw(BATCH.draw(setting), key="masks_batch")


def steps():
    shown = STEPS.page_defaults
    setting["tokens"] = shown["tokens"](setting)
    if kind == "encoder":
        setting["step"] = setting["tokens"] - 1
    else:
        url_widgets.draw(STEP, setting, "masks", place=bar, default=shown["step"](setting))
    with words:  # a square beside the formula: below both, half of the page would be empty
        controls.draw(STEPS.draw(setting), key="masks_steps")


if trace is not None:
    kind = unavailable.kind_of(trace)
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="masks_view"))
        bar = st.container()
    setting = controls.setting_of(view, trace, RECORD)
    if view.view == "batch":  # before the formula, which depends on it
        url_widgets.draw(NOTATION, setting, "masks", place=bar, horizontal=True, label_visibility="collapsed")
    with maths:
        shown = FORMULAS["hidden"] if setting.get(NOTATION.name) else FORMULA
        formula_box.formula(shown, section="3.1, 3.2.3", code=CODE, page="masks")
    about = LOOK_FOR_ENCODER if kind == "encoder" else {}
    controls.look_for(_(about.get(view.view, view.look_for)))
    try:
        {
            "batch": batch,
            "scores": lambda: masks.scores(setting, bar),
            "steps": steps,
            "edit": lambda: masks.edit(setting, bar),
        }[view.view]()
    except VisformerError as error:
        st.text(error.localized(_))
