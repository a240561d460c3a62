"""Visformer: type a sentence, see what every head of a Transformer looks at. Run with ``streamlit run app.py``."""

import streamlit as st

from visformer.ui import controls, state

SIDEBAR = 232  # pixels: the picture needs the width more

st.set_page_config(page_title="Visformer", layout="wide", initial_sidebar_state=SIDEBAR)
state.set_defaults()

_ = state.gettext()
page = st.navigation({_("See"): [st.Page("pages/see/attention.py", title=_("Attention"), default=True)]})
page.run()

with st.sidebar:  # after the page, whose picture comes first
    st.header("Visformer", anchor=False)
    controls.language_switch()
    controls.reading_guide()
