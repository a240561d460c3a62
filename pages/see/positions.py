"""Positional encoding: waves, the matrix, where it comes from, and what it does."""

import pandas as pd
import streamlit as st

from visformer.errors import N_
from visformer.figures import position_waves, rotation_circle
from visformer.pictures import positions
from visformer.ui import controls, lesson, resources, state

VIEWS = {
    "waves": N_("Waves"),
    "matrix": N_("Matrix"),
    "angles": N_("Position × frequency"),
    "similarity": N_("Similarity"),
    "rotation": N_("Rotation"),
    "learned": N_("Learned"),
}
CODE = (("formulas.py", "encoding_at"), ("formulas.py", "frequencies"))
LOOK_FOR = {
    "waves": N_("Each pair of dimensions is a sine and a cosine of one wavelength. Which pairs change fast?"),
    "matrix": N_(
        "Each row is what a position adds to its word; the second token has pos = 1. Where do rows differ most?"
    ),
    "angles": N_("One column times one row: every angle is a position times a frequency. Sine and cosine come after."),
    "similarity": N_("The bands run along the diagonal: what counts is how far apart two positions are, not where."),
    "rotation": N_("From one position to another is a turn by a fixed angle, the same wherever it starts."),
    "learned": N_("A learned encoding is a table: beyond its last row it has nothing to say. The sinusoid goes on."),
}
FORMULA = r"""&\sym{position}{PE}_{(pos,2i)} = \sin\left(\sym{k}{pos} / 10000^{2i/d}\right) \\[4pt]
&\sym{position}{PE}_{(pos,2i+1)} = \cos\left(\sym{k}{pos} / 10000^{2i/d}\right)"""

_ = state.gettext()
trace = controls.current_trace()
tokens, own = trace.tokens["src"] if trace else (), resources.width() or 32
view = controls.view(_("View"), VIEWS, key="positions_view")
st.caption(_(LOOK_FOR[view]))
picture, side = st.columns([68, 32], gap="large")
with side:
    n = st.slider(_("Positions"), 2, 1024, 24, key="positions_n")
    d_model = st.slider(
        "d_model", 1, max(512, own), own, key="positions_d", help=_("This model's: {own}").format(own=own)
    )
    base = st.number_input(_("Base"), 1.1, 1e6, 10_000.0, step=100.0, key="positions_base")
    pairs = (d_model + 1) // 2
    if view == "waves":
        some = sorted({i + j for i in (0, d_model // 16 * 2, d_model // 8 * 2) for j in (0, 1) if i + j < d_model})
        dimensions = st.multiselect(_("Dimensions"), range(d_model), some, key=f"positions_dimensions_{d_model}")
    if view == "rotation":
        position = st.slider(_("From position"), 0, n - 1, 3, key="positions_from")
        offset = st.slider(_("Positions further (k)"), -n, n, 5, key="positions_offset")
        pair = st.slider(_("Pair i"), 0, max(1, d_model // 2 - 1), 1, key="positions_pair") if d_model > 3 else 0
    if view == "learned":
        max_len = st.slider("max_len", 1, n, min(n, 16), key="positions_max_len")
    lesson.formula(FORMULA, section="3.5", code=CODE, page="positions")
with picture:
    if view == "waves":
        names = _("pos, from 0"), _("PE(pos, dimension)")
        st.plotly_chart(position_waves(n, d_model, dimensions, base=base, axes=names, theme=lesson.theme()), theme=None)
    elif view == "rotation" and d_model < 2:
        st.info(_("A rotation needs two dimensions: d_model is 1."))
    elif view == "rotation":
        setting = {"pair": pair, "d_model": d_model, "base": base}
        circle, matrices = st.columns([55, 45], vertical_alignment="center")
        circle.plotly_chart(rotation_circle(position, offset, **setting, theme=lesson.theme()), theme=None)
        with matrices:
            controls.draw(positions.rotation(position, offset, **setting), key="positions_rotation")
    elif view == "learned":
        kinds = positions.two_kinds(n, d_model, max_len=max_len)
        rows = [(_(k.name), _(k.how), k.parameters, _(k.reach), k.missing) for k in kinds]
        names = [_("encoding"), _("a row is"), _("parameters"), _("has a row for"), _("positions left without one")]
        st.dataframe(pd.DataFrame(rows, columns=names), hide_index=True)
        shown = [positions.encoding(n, d_model, base), positions.learned(n, d_model, max_len=max_len)]
        controls.draw(shown, key="positions_learned", share=0.7)
    elif view == "angles":
        controls.draw(positions.outer_product(n, d_model, base), key="positions_angles")
    else:
        make = {"matrix": positions.encoding, "similarity": positions.similarity}
        controls.draw([make[view](n, d_model, base, tokens=tokens)], key=f"positions_{view}")
