"""Attention: every head of every layer at once, and one of them large."""

import streamlit as st

from visformer.canvas.component import attention
from visformer.ui import controls, state
from visformer.ui.resources import workbench

_ = state.gettext()
head, picture = st.container(), st.container()

with picture:  # drawn first: what the browser fetches for the boxes then does not hold the picture up
    trace, problem = controls.current_trace()
    if trace is not None:
        st.caption(
            _(
                "Each row is a word that reads, each column a word that is read: the stronger the colour, the more. "
                "Try: which head of the cross-attention finds the name?"
            )
        )
        attention(trace, key=state.CANVAS, gettext=_, lang=state.language())

with head:
    controls.sentence_head(trace, problem)

workbench().load_soon()  # last, so that the picture is on its way before torch is imported
