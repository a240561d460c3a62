"""Visformer: type a sentence, see what every head of a Transformer looks at. Run with ``streamlit run app.py``."""

import streamlit as st

from visformer.ui import controls, state
from visformer.ui.resources import workbench

WITHOUT_SENTENCE = ("lab",)  # pages with numbers of their own
SIDEBAR = 232  # pixels: the picture needs the width more

st.set_page_config(page_title="Visformer", layout="wide", initial_sidebar_state=SIDEBAR)
state.set_defaults()

_ = state.gettext()
sections = {
    _("See"): [
        st.Page("pages/see/attention.py", title=_("Attention"), default=True),
        st.Page("pages/see/tokens.py", title=_("Tokens")),
        st.Page("pages/see/positions.py", title=_("Positions")),
        st.Page("pages/see/embedding.py", title=_("Embedding + position")),
        st.Page("pages/see/masks.py", title=_("Masks")),
    ],
    _("Understand"): [
        st.Page("pages/understand/head.py", title=_("Inside a head")),
        st.Page("pages/understand/block.py", title=_("Through the block")),
        st.Page("pages/understand/decoding.py", title=_("Decoding")),
        st.Page("pages/understand/lab.py", title=_("The lab")),
    ],
}
page = st.navigation(sections, position="hidden")  # Streamlit's own list writes to the browser's disk on every rerun
state.enter(page.url_path)
head, body = st.container(), st.container()
with body:  # drawn first: what the browser fetches for the boxes then does not hold the picture up
    page.run()
with head:
    if page.url_path in WITHOUT_SENTENCE:
        controls.keep_sentence()
    else:
        controls.sentence_head()
with st.sidebar:
    controls.side_bar(sections)

state.keep_address()
workbench().load_soon()  # last, so that the picture is on its way before torch is imported
