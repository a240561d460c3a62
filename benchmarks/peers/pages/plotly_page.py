"""One Plotly figure per head, labels and hover included."""

import plotly.express as px
import streamlit as st

from benchmarks.peers.pages.resources import encoder

st.set_page_config(layout="wide")
model = encoder()
text = st.text_input("Sentence")
if text:
    tokens, patterns = model.attend(text)
    labels = [f"{token} {i + 1}" for i, token in enumerate(tokens)]  # Plotly would merge equal ones
    for layer, heads in enumerate(patterns):
        for column, (head, pattern) in zip(st.columns(len(heads)), enumerate(heads), strict=True):
            figure = px.imshow(pattern, x=labels, y=labels)
            figure.update_layout(height=170, margin={"l": 0, "r": 0, "t": 0, "b": 0}, coloraxis_showscale=False)
            column.plotly_chart(figure, key=f"{layer}-{head}")
