"""The least page that Streamlit can serve: what a start costs without visformer."""

import streamlit as st

st.text("hello, world")
