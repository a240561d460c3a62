"""Visformer's canvas with every head, labels and hover included."""

import streamlit as st

from benchmarks.peers.pages.resources import encoder
from benchmarks.peers.visformer_side import trace_of
from visformer.app.widgets.component import attention_picture, attention_view, attention_weights

st.set_page_config(layout="wide")
model = encoder()
text = st.text_input("Sentence")
if text:
    attention_view(lambda _: None)
    trace = trace_of(*model.attend(text))
    attention_picture(trace)
    attention_weights(trace)
