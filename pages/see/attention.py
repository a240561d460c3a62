"""Attention: every head of every layer at once, and one of them large."""

import streamlit as st

from visformer.ui import controls, state
from visformer.ui.explorer import explorer

_ = state.gettext()
look_for = st.container()
trace = controls.current_trace()
if trace is not None:
    explorer(trace)
    look_for.caption(  # after the picture, which is what everybody waits for
        _(
            "Each row is a word that reads, each column a word that is read: the stronger the colour, the more. "
            "Try: which head of the cross-attention finds the name?"
        )
    )
