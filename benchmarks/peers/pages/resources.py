"""The model, shared by the three pages and loaded before the text box is drawn."""

import gc

import streamlit as st

from benchmarks.peers.minilm import Encoder


@st.cache_resource(show_spinner=False)
def encoder() -> Encoder:
    """Load the model and keep it out of garbage collection, as visformer's app does, for a fair comparison."""
    loaded = Encoder()
    gc.collect()
    gc.freeze()
    return loaded
