"""Positional encoding: waves, the matrix, where it comes from, and what it does."""

import streamlit as st

from visformer.app.pages.positions import encodings
from visformer.app.session import state
from visformer.app.widgets import controls, formula_box, unavailable, url_widgets
from visformer.errors import N_
from visformer.figures import position_waves
from visformer.pictures import positions

VIEWS = {
    "waves": N_("Waves"),
    "matrix": N_("Matrix"),
    "angles": N_("Position × frequency"),
    "similarity": N_("Similarity"),
    "rotation": N_("Rotation"),
    "learned": N_("Learned"),
    "model": N_("This model's"),
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
    "model": N_("What the model adds at each place, and how alike every two places are. Are there bands here too?"),
}
FORMULA = r"""&\sym{position}{PE}_{(pos,2i)} = \sin\left(\sym{k}{pos} / 10000^{2i/d}\right) \\[4pt]
&\sym{position}{PE}_{(pos,2i+1)} = \cos\left(\sym{k}{pos} / 10000^{2i/d}\right)"""

_ = state.gettext()
trace = controls.current_trace()
at = "src" if trace is None or "src" in trace.tokens else "tgt"
tokens, own = trace.tokens[at] if trace else (), controls.width() or 32
if trace is None or trace.lacks(f"{at}.position") is not None:
    del VIEWS["model"]
view = controls.view(_("View"), VIEWS, key="positions_view")
controls.look_for(_(LOOK_FOR[view]))
if view == "model":
    encodings.of_model(trace, at)
else:
    if trace is not None:
        unavailable.positions(trace, N_("This model: {reason}. Here you see the paper's encoding."))
    picture, side = st.columns([68, 32], gap="large")
    with side:
        n = url_widgets.slider(_("Number of positions"), 2, 1024, 24, key="positions_n")
        about = _("This model's: {own}").format(own=own)
        d_model = url_widgets.slider("d_model", 1, max(512, own), own, key="positions_d", suffix=own, help=about)
        base = url_widgets.number(st.number_input, _("Base"), 1.1, 1e6, 10_000.0, step=100.0, key="positions_base")
        if view == "waves":
            some = sorted({i + j for i in (0, d_model // 16 * 2, d_model // 8 * 2) for j in (0, 1) if i + j < d_model})
            names = {"key": "positions_dimensions", "suffix": d_model}
            dimensions = url_widgets.several(_("Dimensions"), range(d_model), some, **names)
        if view == "rotation":
            last = max(1, d_model // 2 - 1)
            position = url_widgets.slider(_("From position"), 0, n - 1, min(3, n - 1), key="positions_from", suffix=n)
            offset = url_widgets.slider(_("Positions further (k)"), -n, n, min(5, n), key="positions_offset", suffix=n)
            pair = url_widgets.slider(_("Pair i"), 0, last, 1, key="positions_pair", suffix=last) if d_model > 3 else 0
        if view == "learned":
            max_len = url_widgets.slider("max_len", 1, n, min(n, 16), key="positions_max_len", suffix=n)
        formula_box.formula(FORMULA, section="3.5", code=CODE, page="positions")
    with picture:
        if view == "waves":
            names = _("pos, from 0"), _("PE(pos, dimension)")
            words = {"axes": names, "title": _("positional encoding, d_model {d_model}")}
            figure = position_waves(n, d_model, dimensions, base=base, **words, theme=formula_box.theme())
            controls.draw_figure(figure, key="positions_waves")
        elif view == "rotation":
            encodings.rotation(position, offset, pair=pair, d_model=d_model, base=base)
        elif view == "learned":
            encodings.two_kinds(n, d_model, base=base, max_len=max_len)
        elif view == "angles":
            controls.draw(positions.outer_product(n, d_model, base), key="positions_angles")
        else:
            make = {"matrix": positions.encoding, "similarity": positions.similarity}
            controls.draw([make[view](n, d_model, base, tokens=tokens)], key=f"positions_{view}")
