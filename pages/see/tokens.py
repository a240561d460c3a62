"""Tokens: how the tokenizer splits a text, and the id of each token."""

import pandas as pd
import streamlit as st

from visformer.app.pages.tokens import how
from visformer.app.session import boxes
from visformer.app.widgets import controls, formula_box, tables, unavailable
from visformer.errors import N_, VisformerError
from visformer.pictures import tokens
from visformer.pictures.style.theme import visible

FORMULA = r"s \to (\sym{input}{t_0}, \sym{input}{t_1}, \dots), \quad 0 \le \sym{input}{t_i} < \sym{k}{|V|}"
CODE = (("model/tokenizer.py", "Tokenizer.encode"), ("model/tokenizer.py", "Tokenizer.merging"))
SIDES = {"src": N_("Source"), "tgt": N_("Target")}

_ = boxes.gettext()
trace = controls.current_trace()
if trace is not None:
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        side = controls.view(_("Side"), unavailable.shown(SIDES, trace), key="tokens_side")
        controls.look_for(
            _(
                "A word in the vocabulary is one token; any other is built from pieces in the vocabulary. "
                "Which of your words are cut?"
            )
        )
    with maths:
        formula_box.formula(FORMULA, section="5.1", code=CODE)
    left, right = st.columns(2, gap="large")
    with left:
        title = _("The tokens and their ids")
        st.header(title, anchor=False)
        rows = [(r.number, visible(r.token), r.id, r.meaning and _(r.meaning)) for r in tokens.rows(trace, side)]
        table = pd.DataFrame(rows, columns=[_("no."), _("token"), _("id"), _("what it is")])
        st.caption(_(tokens.ORDINARY))
        tables.draw(table, title=title, height="content")
    with right:
        try:
            text = controls.bench().loaded(boxes.source()).text
            how(text, trace, side)
        except VisformerError as error:
            st.text(error.localized(_))
