"""Views of the page on positions that combine several pictures or tables."""

import pandas as pd
import streamlit as st

from visformer.app.session import boxes
from visformer.app.session.markdown import plain
from visformer.app.widgets import controls
from visformer.model.positions import POSITIONS
from visformer.pictures.positions import CIRCLE, KINDS, LEARNED, ROTARY, ROTARY_SCORE, ROTATION, Kind, kinds
from visformer.pictures.registry.setting import Setting


def rotation(setting: Setting) -> None:
    """Draw the rotation from one position to another, as a circle and as matrices."""
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
    """Draw the angle of each pair, and what the rotation does to a score."""
    angles, score = st.columns(2)
    with angles:
        controls.draw(ROTARY.draw(setting), key="positions_rotary")
    with score:
        controls.draw(ROTARY_SCORE.draw(setting), key="positions_rotary_score")


def learned(setting: Setting) -> None:
    """Draw the sinusoids and a learned table, in words and side by side."""
    _table(setting, "sinusoidal", "learned")
    controls.draw(LEARNED.draw(setting), key="positions_learned", share=0.7)


def side_by_side(setting: Setting) -> None:
    """Draw all encodings as curves and in a table."""
    _ = boxes.gettext()
    controls.draw(KINDS.draw(setting), key="positions_kinds")
    _table(setting, *POSITIONS)
    st.caption(
        _(
            "Curves: for encodings added to the embedding, the cosine of two positions; for rotary, the score "
            "of two equal vectors; for ALiBi, the factor applied to a weight, in its first and last head. The "
            "course notes name only the first two: rotary dates from 2021, ALiBi from 2022."
        )
    )


def _table(setting: Setting, *names: str) -> None:
    _, n = boxes.gettext(), setting["positions"]
    every = kinds(n, setting["d_model"], max_len=setting["max_len"])
    rows = [
        (
            _(every[name].position.label),
            _(every[name].position.enters),
            int(every[name].parameters),
            _beyond(every[name], n),
        )
        for name in names
    ]
    columns = [_("encoding"), _("what it does"), _("parameters"), _("beyond max_len")]
    st.table(pd.DataFrame(rows, columns=columns).set_index(columns[0]))  # not st.dataframe: its cells do not wrap


def _beyond(kind: Kind, n: int) -> str:
    _ = boxes.gettext()
    beyond = _(kind.position.beyond)
    return (
        _("{beyond} ({missing} of {n} positions)").format(beyond=beyond, missing=plain(kind.missing), n=n)
        if kind.missing
        else beyond
    )


DRAWN = {ROTATION.view: rotation, LEARNED.view: learned, ROTARY.view: rotary, KINDS.view: side_by_side}
"""Views that are more than one picture, to the functions that draw them."""
