"""What the three pages share: the model, loaded before the box for the sentence is there."""

import gc

import streamlit as st

from benchmarks.peers.minilm import Encoder


@st.cache_resource(show_spinner=False)
def encoder() -> Encoder:
    """Kept out of the garbage collector as visformer's app does, so that this is not what the pages differ in."""
    loaded = Encoder()
    gc.collect()
    gc.freeze()
    return loaded
