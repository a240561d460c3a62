"""Views of the page on positions that are made of more than one picture."""

import pandas as pd
import streamlit as st

from visformer.app.session import boxes
from visformer.app.widgets import controls
from visformer.pictures.positions import CIRCLE, LEARNED, ROTATION
from visformer.pictures.positions import two_kinds as compared
from visformer.pictures.setting import Setting


def rotation(setting: Setting) -> None:
    """A turn from one position to another, as a circle and as matrices."""
    _ = boxes.gettext()
    if setting["d_model"] < 2:
        st.info(_("A rotation needs two dimensions: d_model is 1."))
        return
    circle, matrices = st.columns([55, 45], vertical_alignment="center")
    with circle:
        controls.draw(CIRCLE.draw(setting), key="positions_circle")
    with matrices:
        controls.draw(ROTATION.draw(setting), key="positions_rotation")


def two_kinds(setting: Setting) -> None:
    """The sinusoids and a learned table, in words and side by side."""
    _ = boxes.gettext()
    kinds = compared(setting["positions"], setting["d_model"], max_len=setting["max_len"])
    rows = [(_(k.name), _(k.how), k.parameters, _(k.reach), k.missing) for k in kinds]
    names = [_("encoding"), _("a row is"), _("parameters"), _("has a row for"), _("positions left without one")]
    st.dataframe(pd.DataFrame(rows, columns=names), hide_index=True)
    controls.draw(LEARNED.draw(setting), key="positions_learned", share=0.7)
