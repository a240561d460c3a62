"""Positional encoding: its waves and matrix, their origin and effect, and the alternatives."""

from typing import Any

import pandas as pd
import streamlit as st

from visformer.app.session import boxes
from visformer.app.session.markdown import plain
from visformer.app.widgets import controls, formula_box, tables, unavailable, url_widgets
from visformer.errors import N_
from visformer.model.positions import POSITIONS
from visformer.pictures.positions import (
    CIRCLE,
    KINDS,
    LEARNED,
    OWN,
    PAGE,
    ROTARY,
    ROTARY_SCORE,
    ROTATION,
    kinds,
)
from visformer.pictures.registry.picture import Picture
from visformer.pictures.registry.setting import Setting

CODE = (("formulas.py", "encoding_at"), ("formulas.py", "frequencies"))
FORMULA = r"""&\sym{position}{PE}_{(pos,2i)} = \sin\left(\sym{k}{pos} / 10000^{2i/d}\right) \\[4pt]
&\sym{position}{PE}_{(pos,2i+1)} = \cos\left(\sym{k}{pos} / 10000^{2i/d}\right)"""
FORMULAS = {
    "learned": r"""&\sym{input}{x}_{pos} + \sym{embed}{P}_{pos} \\[4pt]
&\sym{embed}{P} \in \mathbb{R}^{\mathrm{max\_len} \times d}""",
    "rotary": r"""&(R_m \sym{q}{q})^\top (R_n \sym{k}{k}) = \sym{q}{q}^\top R_{n-m} \sym{k}{k} \\[4pt]
&\theta_i(m) = m \cdot 10000^{-2i/d_k}""",
    "alibi": r"""&\sym{scores}{S}_{ij} = \sym{q}{q}_i \sym{k}{k}_j^\top / \sqrt{d_k} - m_h |i - j| \\[4pt]
&m_h = 2^{-8h/H}""",
    "kinds": r"""&\sym{input}{x}_{pos} + \sym{position}{P}_{pos} \\[4pt]
&(R_m \sym{q}{q})^\top (R_n \sym{k}{k}) \\[4pt]
&\sym{q}{q}_i \sym{k}{k}_j^\top / \sqrt{d_k} - m_h |i - j|""",
}
OTHERS: dict[str, Any] = {
    "learned": {"section": "3.5", "code": (("model/embedding.py", "Embedding"),)},
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


def draw_table(setting: Setting, *names: str) -> pd.DataFrame:
    """Draw a table of encodings, in words, and return it."""
    n = setting["positions"]
    every = kinds(n, setting["d_model"], max_len=setting["max_len"])
    rows = []
    for kind in (every[name] for name in names):
        beyond = _(kind.position.beyond)
        if kind.missing:
            said = _("{beyond} ({missing} of {n} positions)")
            beyond = said.format(beyond=beyond, missing=plain(kind.missing), n=n)
        rows.append((_(kind.position.label), _(kind.position.enters), int(kind.parameters), beyond))
    columns = [_("encoding"), _("what it does"), _("parameters"), _("beyond max_len")]
    table = pd.DataFrame(rows, columns=columns)
    st.table(table.set_index(columns[0]))  # not st.dataframe: its cells do not wrap
    return table


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
        if picture is ROTATION and setting["d_model"] < 2:
            st.info(_("A rotation needs two dimensions: d_model is 1."))
        elif picture is ROTATION:
            circle, matrices = st.columns([55, 45], vertical_alignment="center")
            with circle:
                controls.draw(CIRCLE.draw(setting), key="positions_circle")
            with matrices:
                controls.draw(ROTATION.draw(setting), key="positions_rotation")
        elif picture is ROTARY:
            angles, score = st.columns(2)
            with angles:
                controls.draw(ROTARY.draw(setting), key="positions_rotary")
            with score:
                controls.draw(ROTARY_SCORE.draw(setting), key="positions_rotary_score")
        elif picture is LEARNED:
            draw_table(setting, "sinusoidal", "learned")
            controls.draw(LEARNED.draw(setting), key="positions_learned", share=0.7)
        elif picture is KINDS:
            table = draw_table(setting, *POSITIONS)
            tables.present(_(KINDS.title), table.itertuples(index=False), columns=[*table])
            st.caption(_("The course notes name only the first two: rotary dates from 2021, ALiBi from 2022."))
        else:
            assert isinstance(picture, Picture)  # as all other views of this page are
            controls.draw(picture.draw(setting), key=f"positions_{picture.view}")
