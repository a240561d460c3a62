"""Heads: ranked by what the model loses without each, pruned one after another, and those of known kinds."""

import streamlit as st

from visformer.app.pages import heads
from visformer.app.session import boxes
from visformer.app.widgets import controls, formula_box, unavailable
from visformer.errors import N_
from visformer.pictures.heads import KNOWN, PAGE

NO_EFFECT = N_("This model is an encoder: it predicts no next token, so its heads have no effect on one.")
FORMULA = r"""&\sym{out}{\Delta_h} = L(\sym{heads}{O_h} \to 0 \ \text{or} \ \mathbb{E}\, \sym{heads}{O_h}) - L \\[4pt]
&\sym{out}{I_h} = \mathbb{E}\, |\partial L / \partial \sym{heads}{g_h}|"""
FORMULAS = {"known": r"\sym{out}{\mathrm{induction}_h} = \mathbb{E}_t\, \sym{pattern}{\alpha^h}_{t,\, t - p + 1}"}
SOURCES = {"known": N_("Olsson et al. 2022")}
CODE = (
    ("analysis/effects/head_effects.py", "head_effects"),
    ("analysis/effects/head_effects.py", "pruning"),
    ("analysis/known_heads.py", "known_heads"),
)

_ = boxes.gettext()
trace = controls.current_trace()

if trace is not None:
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="heads_view"))
        controls.look_for(_(view.look_for))
    with maths:
        source = SOURCES.get(view.view, N_("Michel et al. 2019, § 3, 4.1"))
        formula_box.formula(FORMULAS.get(view.view, FORMULA), source=source, code=CODE)
    part = "encoder" if "src" in trace.tokens else "decoder"
    needed = f"{part}.{next(iter(trace.layers(part)))}.self_attn.heads"
    if view is KNOWN:
        heads.known()
    elif unavailable.kind_of(trace) == "encoder":
        unavailable.say(NO_EFFECT)
        unavailable.elsewhere()
    elif (reason := trace.lacks(needed)) is not None:
        unavailable.say(unavailable.NOT_TO_CHANGE, reason)
        unavailable.elsewhere()
    else:
        {"ranked": heads.ranked, "pruned": heads.pruned}[view.view]()
