"""Views of the page on positions that are made of more than one picture."""

import pandas as pd
import streamlit as st

from visformer.app.session import state
from visformer.app.widgets import controls, formula_box
from visformer.figures import rotation_circle
from visformer.pictures import positions
from visformer.trace import Trace


def rotation(position: int, offset: int, *, pair: int, d_model: int, base: float) -> None:
    """A turn from one position to another, as a circle and as matrices."""
    _ = state.gettext()
    if d_model < 2:
        st.info(_("A rotation needs two dimensions: d_model is 1."))
        return
    setting = {"d_model": d_model, "base": base}
    circle, matrices = st.columns([55, 45], vertical_alignment="center")
    figure = rotation_circle(position, offset, pair=pair, **setting, theme=formula_box.theme())  # type: ignore[arg-type]
    with circle:
        controls.draw_figure(figure, key="positions_circle")
    with matrices:
        shown = positions.rotation(position, offset, pair=pair, **setting)  # type: ignore[arg-type]
        controls.draw(shown, key="positions_rotation")


def two_kinds(n: int, d_model: int, *, base: float, max_len: int) -> None:
    """The sinusoids and a learned table, in words and side by side."""
    _ = state.gettext()
    kinds = positions.two_kinds(n, d_model, max_len=max_len)
    rows = [(_(k.name), _(k.how), k.parameters, _(k.reach), k.missing) for k in kinds]
    names = [_("encoding"), _("a row is"), _("parameters"), _("has a row for"), _("positions left without one")]
    st.dataframe(pd.DataFrame(rows, columns=names), hide_index=True)
    shown = [positions.encoding(n, d_model, base), positions.learned(n, d_model, max_len=max_len)]
    controls.draw(shown, key="positions_learned", share=0.7)


def of_model(trace: Trace, side: str) -> None:
    """What the chosen model adds for each place of the sentence."""
    full = controls.current_trace((f"{side}.position",))
    if full is not None:
        controls.draw(positions.of_model(full, side), key="positions_model")
