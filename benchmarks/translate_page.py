"""A page that only translates, with the same model: what a sentence costs without its pictures.

It takes as many threads as the app does, and keeps the model out of the garbage collector too, so that this is not what
the two differ in.
"""

import gc

import streamlit as st

from visformer.adapters.load import load_to_serve
from visformer.system import settings


@st.cache_resource(show_spinner=False)
def model():
    loaded = load_to_serve(settings.MODEL())
    gc.collect()
    gc.freeze()
    return loaded


sentence = st.text_input("Sentence", "I went to school.")
st.text(f"{sentence}\n{model().translate(sentence).text}")
