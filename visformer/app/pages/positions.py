"""Views of the page on positions that are made of more than one picture."""

import pandas as pd
import streamlit as st

from visformer.app.session import boxes
from visformer.app.widgets import controls
from visformer.pictures.positions import CIRCLE, KINDS, ROTARY, ROTARY_SCORE, ROTATION, kinds
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


def rotary(setting: Setting) -> None:
    """The angle of each pair, and what the rotation does to a score."""
    angles, score = st.columns(2)
    with angles:
        controls.draw(ROTARY.draw(setting), key="positions_rotary")
    with score:
        controls.draw(ROTARY_SCORE.draw(setting), key="positions_rotary_score")


def side_by_side(setting: Setting) -> None:
    """All kinds, in words and as curves."""
    _ = boxes.gettext()
    n, names = setting["positions"], (_("encoding"), _("what it does"), _("parameters"), _("beyond max_len"))
    rows = [
        (
            _(position.label),
            _(position.enters),
            parameters,
            _(position.beyond) + (f" ({missing} / {n})" if missing else ""),
        )
        for position, parameters, missing in kinds(n, setting["d_model"], max_len=setting["max_len"])
    ]
    controls.draw(KINDS.draw(setting), key="positions_kinds")
    st.dataframe(pd.DataFrame(rows, columns=names), hide_index=True)
    st.caption(
        _(
            "Curves: for encodings added to the embedding, the cosine of two positions; for rotary, the score "
            "of two equal vectors; for ALiBi, the factor applied to a weight, in its first and last head. The "
            "course notes name only the first two: rotary dates from 2021, ALiBi from 2022."
        )
    )


DRAWN = {ROTATION.view: rotation, ROTARY.view: rotary, KINDS.view: side_by_side}
"""Views of more than their picture."""
