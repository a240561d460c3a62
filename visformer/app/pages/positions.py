"""Views of the page on positions that are made of more than one picture."""

import pandas as pd
import streamlit as st

from visformer.app.session import boxes
from visformer.app.widgets import controls, pictures
from visformer.pictures.positions import CIRCLE, LEARNED, OWN, ROTATION
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
        pictures.draw(CIRCLE, setting, key="positions_circle")
    with matrices:
        pictures.draw(ROTATION, setting, key="positions_rotation")


def two_kinds(setting: Setting) -> None:
    """The sinusoids and a learned table, in words and side by side."""
    _ = boxes.gettext()
    kinds = compared(setting["positions"], setting["d_model"], max_len=setting["max_len"])
    rows = [(_(k.name), _(k.how), k.parameters, _(k.reach), k.missing) for k in kinds]
    names = [_("encoding"), _("a row is"), _("parameters"), _("has a row for"), _("positions left without one")]
    st.dataframe(pd.DataFrame(rows, columns=names), hide_index=True)
    pictures.draw(LEARNED, setting, key="positions_learned", share=0.7)


def of_model(setting: Setting) -> None:
    """What the chosen model adds for each place of the sentence."""
    if controls.current_trace(setting.needs) is not None:
        pictures.draw(OWN, setting, key="positions_model")
