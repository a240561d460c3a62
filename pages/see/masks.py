"""Masks: what they are in a batch, what they do to scores, and what happens when a visitor changes one."""

import streamlit as st

from visformer.app.pages.masks import masking
from visformer.app.serving.workbench import PATTERNS
from visformer.app.session import state
from visformer.app.widgets import controls, formula_box, unavailable, url_widgets
from visformer.errors import N_, VisformerError
from visformer.pictures import masks

VIEWS = {"batch": N_("In a batch"), "scores": N_("On the scores"), "steps": N_("Step by step"), "edit": N_("Change it")}
LOOK_FOR = {
    "batch": N_("Two sentences, yours and “Thanks.”: padding fills the shorter and is masked. Which rows lose most?"),
    "scores": N_("A masked score counts as −∞, so softmax gives it exactly 0. What becomes of its share?"),
    "steps": N_("One more token at each step: each may read those before it and itself, none that comes after."),
    "edit": N_(
        "Click cells to block or open them. Then open the decoder's future: how sure does it become, and of what?"
    ),
}
LOOK_FOR_ENCODER = {
    "scores": N_("An encoder's sentence alone masks nothing: every token may read every other, those to come too."),
    "steps": N_(
        "An encoder has no causal mask: it does not write, so all tokens are there at once, and none is hidden."
    ),
    "edit": N_("Click cells to block them, or a label for its row or column. What does the model read in their place?"),
}
FORMULA = r"""&\sym{pattern}{A} = \mathrm{softmax}\left(\sym{scores}{S} + \log \sym{mask}{M}\right) \\[4pt]
&\sym{mask}{M} \in \{0, 1\}"""
CODE = (("model/masks.py", "causal_mask"), ("model/masks.py", "padding_mask"), ("model/attention.py", "attention"))
MASKED = "decoder.self_attn"  # in a sentence alone, the one attention that has something to hide

_ = state.gettext()
trace = controls.current_trace(("*.pattern", "*.mask", "*.scores", "logits"))


def batch():
    look = {"format_func": [_("1 = may attend"), _("1 = hidden")].__getitem__, "label_visibility": "collapsed"}
    hidden = url_widgets.option(bar.radio, _("Notation"), (0, 1), 0, key="masks_hidden", horizontal=True, **look)
    other = controls.bench().trace(masks.SHORT, None, record=PATTERNS)
    controls.draw(masks.batch([trace, other], hidden_is_one=bool(hidden)), key="masks_batch")


def steps():
    tokens = trace.tokens["src" if kind == "encoder" else "tgt"][:40]
    step = n = len(tokens)
    if kind != "encoder":
        step = url_widgets.number(
            bar.slider, _("Tokens read so far"), 1, max(2, n), min(3, n), key="masks_step", suffix=n
        )
    controls.draw([masks.revealed(tokens, min(step, n), causal=kind != "encoder")], key="masks_steps")


if trace is not None:
    kind = unavailable.kind_of(trace)
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        view = controls.view(_("View"), VIEWS, key="masks_view")
        bar = st.container()
    with maths:
        formula_box.formula(FORMULA, section="3.1, 3.2.3", code=CODE, page="masks")
    controls.look_for(_({**LOOK_FOR, **(LOOK_FOR_ENCODER if kind == "encoder" else {})}[view]))
    try:
        if view in ("scores", "edit"):
            {"scores": masking.scores, "edit": masking.edit}[view](trace, bar, first=MASKED)
        else:
            {"batch": batch, "steps": steps}[view]()
    except VisformerError as error:
        st.text(error.localized(_))
