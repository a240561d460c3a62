"""Embedding + position: what each token brings, what its place adds, and the sum that enters the first layer."""

import pandas as pd
import streamlit as st

from visformer.errors import N_
from visformer.pictures import embedding
from visformer.ui import controls, lesson, pick, state

FORMULA = r"\sym{input}{x} = %s\sym{embed}{E}_{token} + \sym{position}{PE}_{pos}"
FACTOR = r"\sqrt{d_{model}} \cdot "
CODE = (("model/embedding.py", "Embedding.forward"),)
SIDES = {"src": N_("Source"), "tgt": N_("Target")}

_ = state.gettext()
trace = controls.current_trace(embedding.RECORD)
if trace is not None:
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        with st.container(horizontal=True, vertical_alignment="center"):
            side = controls.view(_("Side"), SIDES, key="embedding_side")
            scaled = st.toggle(_("With the factor √d_model"), value=True, key="embedding_scaled")
        st.caption(
            _(
                "The same columns under each other, in one colour scale. Without the factor, which of the two is "
                "louder? Labels count tokens from 1, pos from 0: the second token, 2, has pos = 1."
            )
        )
    with maths:
        lesson.formula(FORMULA % (FACTOR if scaled else ""), section="3.4, 3.5", code=CODE)
    controls.draw([embedding.sums(trace, side, scaled=scaled)], key="embedding_sums")

    st.subheader(_("Two tokens"), anchor=False)
    twice = embedding.repeated(trace, side) or (0, 1)
    left, right, numbers = st.columns([2, 2, 6], gap="large")
    with left:
        first = pick.token(trace, side, _("One token"), key="embedding_first", default=twice[0])
    with right:
        second = pick.token(trace, side, _("Another"), key="embedding_second", default=twice[1])
    compared = embedding.compare(trace, side, first, second)
    columns = [_("distance"), _("cosine")]
    numbers.dataframe(pd.DataFrame(compared, index=columns).T, column_config={c: {"format": "%.4f"} for c in columns})
    if trace.tokens[side][first] == trace.tokens[side][second] and first != second:
        st.text(_("One word in two places: the embeddings are equal, the inputs are not."))

    st.subheader(_("Every token in numbers"), anchor=False)
    table = embedding.table(trace, side)
    st.dataframe(table, hide_index=True)
    st.download_button(
        _("Download as CSV"), table.to_csv(index=False).encode("utf-8-sig"), "embedding.csv", "text/csv", key="csv"
    )
