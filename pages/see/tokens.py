"""Tokens: how letters become the pieces that the model knows, and the number that each of them is."""

import pandas as pd
import streamlit as st

from visformer.errors import N_, VisformerError
from visformer.figures.theme import visible
from visformer.pictures import tokens
from visformer.ui import controls, lesson, state
from visformer.ui.resources import workbench

FORMULA = r"\text{text} \to (\sym{input}{t_0}, \sym{input}{t_1}, \dots), \quad 0 \le \sym{input}{t_i} < \sym{k}{|V|}"
CODE = (("tokenizer.py", "Tokenizer.encode"), ("tokenizer.py", "Tokenizer.merging"))
SIDES = {"src": N_("Source"), "tgt": N_("Target")}

_ = state.gettext()
trace = controls.current_trace()


def shown(rows, between):
    return [between.join(map(visible, row)) for row in rows]


def merging(tokenizer, text):
    pieces = [piece for piece in dict.fromkeys(tokenizer.pieces(text)) if len(piece.strip()) > 1]
    if not pieces:
        st.text(_("Every piece of this text is a single character: there is nothing to merge."))
        return
    longest = pieces.index(max(pieces, key=len))
    piece = st.selectbox(_("Piece of the text"), pieces, index=longest, format_func=str.strip, key=f"merging_{text}")
    steps = tokenizer.merging(piece)
    pairs = tokens.merges(steps)
    table = pd.DataFrame({_("parts"): shown(steps, " · "), _("merged"): shown(pairs, " + ")})
    st.dataframe(table, height="content", column_config={"_index": st.column_config.NumberColumn(_("merge"))})


if trace is not None:
    words, maths = st.columns([58, 42], gap="medium", vertical_alignment="center")
    with words:
        side = controls.view(_("Side"), SIDES, key="tokens_side")
        st.caption(
            _(
                "A word that the vocabulary holds is one token; another is put together from parts that it holds, "
                "at worst from single bytes. Which of your words is cut?"
            )
        )
    with maths:
        lesson.formula(FORMULA, section="5.1", code=CODE)
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**" + _("The tokens and their numbers") + "**")
        found = [(row.position, visible(row.token), row.id, _(row.meaning)) for row in tokens.rows(trace, side)]
        table = pd.DataFrame(found, columns=[_("position"), _("token"), _("number"), _("what it is")])
        st.dataframe(table, hide_index=True, height="content")
    with right:
        st.markdown("**" + _("How letters are merged") + "**")
        try:
            tokenizer = workbench().loaded(state.source()).tokenizer
            st.caption(
                _("The vocabulary has {n} tokens; a merge that was learned earlier goes first.").format(
                    n=len(tokenizer)
                )
            )
            merging(tokenizer, str(trace.meta["source" if side == "src" else "target"]))
        except VisformerError as error:
            st.text(error.localized(_))
