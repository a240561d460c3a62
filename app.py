"""Visformer: type a sentence, see what every head of a Transformer looks at. Run with ``visformer run``."""

import streamlit as st

from visformer.app.lessons import lesson_panel
from visformer.app.pages.attention import explorer
from visformer.app.presentation import following, presenting
from visformer.app.serving import capacity, logs
from visformer.app.serving.workbench import workbench
from visformer.app.session import state
from visformer.app.widgets import controls, sharing

WITHOUT_SENTENCE = ("lab",)  # pages with numbers of their own
SIDEBAR = 232  # pixels: the picture needs the width more

logs.keep_typed_text_out()
state.set_defaults()
if problem := capacity.no_room():
    st.set_page_config(page_title="Visformer")
    controls.tell(problem)
    st.stop()
following.catch_up()
presenting.begin()

_ = state.gettext()
sections = state.kept(  # making them anew takes three milliseconds of each run
    "pages",
    lambda: {
        _("See"): [
            st.Page("pages/see/attention.py", title=_("Attention"), default=True, url_path=""),
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
    },
)
lesson_panel.follow()
explorer.ahead(controls.expected())
page = sharing.navigation(sections)
st.set_page_config(page_title=f"{page.title} · Visformer", layout="wide", initial_sidebar_state=SIDEBAR)
state.enter(page.url_path)
head, body = st.container(key="page_head", gap="xsmall"), st.container(key="page_body")
with body:  # drawn first: what the browser fetches for the boxes then does not hold the picture up
    controls.told(page.run)()
state.settle()
with head:
    sharing.notice()
    following.line()
    in_lesson = lesson_panel.panel()
    if page.url_path in WITHOUT_SENTENCE:
        controls.keep_sentence()
    else:
        controls.sentence_head(brief=in_lesson)
with st.sidebar:
    controls.side_bar(sections)

controls.surroundings()

state.keep_address()
following.publish()
workbench().load_soon()  # last, so that the picture is on its way before torch is imported
