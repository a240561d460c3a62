"""Effects: what weights, values and layers do to the prediction."""

from functools import partial

import streamlit as st

from visformer.app.pages import effects
from visformer.app.session import boxes
from visformer.app.session.markdown import plain
from visformer.app.widgets import controls, formula_box, unavailable
from visformer.errors import N_, VisformerError
from visformer.pictures.effects import METHODS, PAGE

FORMULA = r"\Delta = \log p\,(y \mid \sym{pattern}{\alpha_{qk}} = 0) - \log p\,(y)"
FORMULAS = {
    "shuffled": r"\mathrm{TV} = \tfrac12 \textstyle\sum_w | p\,(w \mid \sym{pattern}{\alpha_{\pi}}) - p\,(w) |",
    "patching": r"\frac{\sym{out}{\mathrm{patched}} - \mathrm{corrupt}}{\mathrm{clean} - \mathrm{corrupt}}",
    "lens": r"\mathrm{LN}(\sym{embed}{x_l})\, W_U",
}
CODE = (
    ("analysis/effects/weight_effects.py", "weight_effects"),
    ("analysis/effects/shuffling.py", "shuffle_effect"),
    ("analysis/effects/patching.py", "patching"),
    ("analysis/effects/lens.py", "logit_lens"),
    ("analysis/effects/direct.py", "direct_attribution"),
)
CODE_OF = {"weights": CODE[:1], "shuffled": CODE[1:2], "patching": CODE[2:3], "lens": CODE[3:5]}
SOURCES = {
    "weights": N_("Serrano & Smith 2019"),
    "shuffled": N_("Jain & Wallace 2019, § 4.2"),
    "patching": N_("Meng et al. 2022, § 2"),
    "lens": N_("nostalgebraist 2020; Elhage et al. 2021"),
}
DRAW = {
    "weights": effects.weights,
    "shuffled": effects.shuffled,
    "patching": effects.patching,
    "lens": effects.lens,
}
NO_LOGITS = N_("This model predicts no next token, so there is no prediction on which a weight could have an effect.")

LIMITS = N_(
    "Measured on this model and this text alone: what a change does, not why. Parts that can stand in for each other "
    "all seem to do nothing."
)

_ = boxes.gettext()
trace = controls.current_trace()

if trace is not None:
    switch, maths = st.columns([43, 57], gap="small", vertical_alignment="center")
    with switch:
        view = PAGE.view(controls.view(_("View"), PAGE.titles, key="effects_view"))
    bar = st.container()
    if view is METHODS:  # with the formula of the method that is chosen
        draw = partial(effects.methods, maths=maths)
    else:
        draw, tex = DRAW[view.view], FORMULAS.get(view.view, FORMULA)
        with maths:
            formula_box.formula(tex, source=SOURCES[view.view], code=CODE_OF[view.view], page="effects")
    if effects.predicts(trace) or view is METHODS:
        controls.look_for(_(view.look_for))
        try:
            draw(trace, bar)
        except VisformerError as error:  # such as a model whose weights cannot be changed
            st.info(plain(error.localized(_)))
        st.caption(_(LIMITS))
    else:
        unavailable.say(NO_LOGITS)
        unavailable.elsewhere()
