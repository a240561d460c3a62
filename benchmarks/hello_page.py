"""The smallest Streamlit page: the cost of a start without visformer."""

import streamlit as st

st.text("hello, world")
