"""How a tokenizer splits a text: its merges step by step, or its rule in words."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from visformer.app.session import boxes
from visformer.app.widgets import url_widgets
from visformer.errors import N_
from visformer.pictures import tokens
from visformer.pictures.theme import visible
from visformer.trace import Trace

MERGES = "BPE"
_RULES = {
    "WordPiece": N_(
        "This vocabulary has no merges (WordPiece): each word is cut, from the left, into the longest pieces "
        "in the vocabulary."
    ),
    "Unigram": N_(
        "This vocabulary has no merges (Unigram): each piece has a probability, and the most likely way to cut "
        "the text is used."
    ),
    "WordLevel": N_(
        "This vocabulary has no merges: it holds whole words, and replaces every other word with the same "
        "special token."
    ),
}
_NO_RULE = N_("This tokenizer does not show its merges, if it has any. This is how your words were cut.")


def how(text: Any, trace: Trace, side: str) -> None:
    """Draw the merges of a text, or the tokenizer's rule and how it split each word."""
    _ = boxes.gettext()
    if text.scheme != MERGES:
        st.caption(_(_RULES.get(text.scheme, _NO_RULE)))
        if cut := tokens.cuts(trace, side):
            table = pd.DataFrame({_("word"): ["".join(parts) for parts in cut], _("parts"): _joined(cut, " · ")})
            st.container(key="table_cuts").dataframe(table, hide_index=True, height="content")
        return
    said = _("The vocabulary has {n} tokens; merges learned earlier are applied first.")
    st.caption(said.format(n=len(text)))
    option = tokens.piece_of(text, tokens.text_of(trace, side))
    if option is None:
        st.text(_("Every piece of this text is a single character: there is nothing to merge."))
        return
    steps = text.merging(url_widgets.draw(option, url_widgets.nothing(), "tokens"))
    table = pd.DataFrame({_("parts"): _joined(steps, " · "), _("merged"): _joined(tokens.merges(steps), " + ")})
    index = {"_index": st.column_config.NumberColumn(_("merge"))}
    st.container(key="table_merges").dataframe(table, height="content", column_config=index)


def _joined(rows: Iterable[Sequence[str]], between: str) -> list[str]:
    return [between.join(map(visible, row)) for row in rows]
