"""Positional encoding: waves, the matrix, where it comes from, and what it does."""

import streamlit as st

from visformer.app.pages import positions
from visformer.app.session import boxes
from visformer.app.widgets import controls, formula_box, unavailable, url_widgets
from visformer.errors import N_
from visformer.pictures.positions import LEARNED, OWN, PAGE, ROTATION

CODE = (("formulas.py", "encoding_at"), ("formulas.py", "frequencies"))
FORMULA = r"""&\sym{position}{PE}_{(pos,2i)} = \sin\left(\sym{k}{pos} / 10000^{2i/d}\right) \\[4pt]
&\sym{position}{PE}_{(pos,2i+1)} = \cos\left(\sym{k}{pos} / 10000^{2i/d}\right)"""

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
    if trace is not None:
        unavailable.positions(trace, N_("This model: {reason}. Here you see the paper's encoding."))
    left, side = st.columns([68, 32], gap="large")
    with side:
        url_widgets.draw_all(picture, setting, "positions")
        formula_box.formula(FORMULA, section="3.5", code=CODE, page="positions")
    with left:
        if picture is ROTATION:
            positions.rotation(setting)
        elif picture is LEARNED:
            positions.two_kinds(setting)
        else:
            controls.draw(picture.draw(setting), key=f"positions_{picture.view}")
