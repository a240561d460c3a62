"""A page that only runs the forward pass: the cost of Enter without any picture."""

import streamlit as st

from benchmarks.peers.pages.resources import encoder

st.set_page_config(layout="wide")
model = encoder()
text = st.text_input("Sentence")
if text:
    state = model.forward(text)
    st.text(f"{len(state)} tokens, norm {state.norm():.6f}, of: {text}")
