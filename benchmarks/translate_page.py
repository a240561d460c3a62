"""A page that only translates, with the same model: the cost of a sentence without its pictures.

It uses as many threads as the app does, and keeps the model out of garbage collection too, so that the two do not
differ in this.
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
