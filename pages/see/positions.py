"""Positional encoding: its waves and matrix, their origin and effect, and the alternatives."""

import streamlit as st

from visformer.app.pages import positions
from visformer.app.session import boxes
from visformer.app.widgets import controls, formula_box, unavailable, url_widgets
from visformer.errors import N_
from visformer.pictures.positions import KINDS, OWN, PAGE

CODE = (("formulas.py", "encoding_at"), ("formulas.py", "frequencies"))
FORMULA = r"""&\sym{position}{PE}_{(pos,2i)} = \sin\left(\sym{k}{pos} / 10000^{2i/d}\right) \\[4pt]
&\sym{position}{PE}_{(pos,2i+1)} = \cos\left(\sym{k}{pos} / 10000^{2i/d}\right)"""
FORMULAS = {
    "rotary": r"""&(R_m \sym{q}{q})^\top (R_n \sym{k}{k}) = \sym{q}{q}^\top R_{n-m} \sym{k}{k} \\[4pt]
&\theta_i(m) = m \cdot 10000^{-2i/d_k}""",
    "alibi": r"""&\sym{scores}{S}_{ij} = \sym{q}{q}_i \sym{k}{k}_j^\top / \sqrt{d_k} - m_h |i - j| \\[4pt]
&m_h = 2^{-8h/H}""",
    "kinds": r"""&\sym{input}{x}_{pos} + \sym{position}{P}_{pos} \\[4pt]
&(R_m \sym{q}{q})^\top (R_n \sym{k}{k}) \\[4pt]
&\sym{q}{q}_i \sym{k}{k}_j^\top / \sqrt{d_k} - m_h |i - j|""",
}
OTHERS = {
    "rotary": {
        "source": N_("Su et al. 2021, § 3.2"),
        "code": (("formulas.py", "rotate"), ("formulas.py", "frequencies")),
    },
    "alibi": {
        "source": N_("Press et al. 2022, § 3"),
        "code": (("formulas.py", "alibi_bias"), ("formulas.py", "alibi_slopes")),
    },
    "kinds": {
        "source": N_("Paper, § 3.5; Su et al. 2021; Press et al. 2022"),
        "code": (("formulas.py", "encoding_at"), ("formulas.py", "rotate"), ("formulas.py", "alibi_bias")),
    },
}

_ = boxes.gettext()
trace = controls.current_trace()
titles = PAGE.titles
if trace is None or trace.lacks(f"{'src' if 'src' in trace.tokens else 'tgt'}.position") is not None:
    del titles[OWN.view]
picture = PAGE.view(controls.view(_("View"), titles, key="positions_view"))
controls.look_for(_(picture.look_for))
setting = controls.setting_of(picture, trace)
if picture is OWN:
    if controls.current_trace(setting.needs) is not None:
        controls.draw(OWN.draw(setting), key="positions_model")
else:
    if trace is not None and picture.view not in (*FORMULAS, KINDS.view):
        unavailable.positions(trace, N_("This model: {reason}. Here you see the paper's encoding."))
    left, side = st.columns([68, 32], gap="large")
    with side:
        url_widgets.draw_all(picture, setting, "positions")
        source = OTHERS.get(picture.view, {"section": "3.5", "code": CODE})
        formula_box.formula(FORMULAS.get(picture.view, FORMULA), **source, page="positions")
    with left:
        if picture.view in positions.DRAWN:
            positions.DRAWN[picture.view](setting)
        else:
            controls.draw(picture.draw(setting), key=f"positions_{picture.view}")
