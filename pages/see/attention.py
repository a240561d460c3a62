"""Attention: every head of every layer at once, and one of them large."""

import streamlit as st

from visformer.ui import controls, state
from visformer.ui.explorer import explorer

_ = state.gettext()
trace = controls.current_trace()
if trace is not None:
    st.caption(
        _(
            "Each row is a word that reads, each column a word that is read: the stronger the colour, the more. "
            "Try: which head of the cross-attention finds the name?"
        )
    )
    explorer(trace)
