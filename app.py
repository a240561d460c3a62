"""Visformer: type a sentence, see what every head of a Transformer looks at. Run with ``visformer run``."""

import streamlit as st

from visformer.app.pages.attention import explorer
from visformer.app.presentation import following
from visformer.app.serving.workbench import workbench
from visformer.app.session import address, boxes
from visformer.app.shell import entrance, head, screen, side_bar, surroundings
from visformer.app.widgets import controls

entrance.begin()

_ = boxes.gettext()
sections = boxes.cached(  # making them anew takes three milliseconds of each run
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
explorer.ahead(controls.expected())  # a new picture leaves before anything else is on the screen
opened = screen.open_screen(sections)

run = opened.draw_page()  # before its head: what the browser fetches for the boxes then does not hold the picture up
head.draw(run, opened)
side_bar.draw(run, sections)
surroundings.draw()
address.keep(run)
following.publish(run)
workbench().load_soon()  # torch is imported seconds later, when the picture has been painted
