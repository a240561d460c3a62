"""How a tokenizer splits a text: its merges step by step, or its rule in words."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from visformer.app.session import boxes
from visformer.app.widgets import tables, url_widgets
from visformer.errors import N_
from visformer.pictures import tokens
from visformer.pictures.style.theme import visible
from visformer.trace import Trace

_MERGES = "BPE"
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
    """Draw the merges of a text, or the tokenizer's rule and how it split each word, below their title."""
    _ = boxes.gettext()
    merges = text.scheme == _MERGES
    title = _("How letters are merged") if merges else _("How words are cut")
    st.header(title, anchor=False)
    if not merges:
        st.caption(_(_RULES.get(text.scheme, _NO_RULE)))
        if cut := tokens.cuts(trace, side):
            table = pd.DataFrame({_("word"): ["".join(parts) for parts in cut], _("parts"): _joined(cut, " · ")})
            tables.draw(table, title=title, height="content")
        return
    said = _("The vocabulary has {n} tokens; merges learned earlier are applied first.")
    st.caption(said.format(n=len(text)))
    option = tokens.piece_of(text, tokens.text_of(trace, side))
    if option is None:
        st.text(_("Every piece of this text is a single character: there is nothing to merge."))
        return
    steps = text.merging(url_widgets.draw(option, url_widgets.nothing(), "tokens"))
    merged = {_("parts"): _joined(steps, " · "), _("merged"): _joined(tokens.merges(steps), " + ")}
    tables.draw(pd.DataFrame({_("merge"): range(len(steps)), **merged}), title=title, height="content")


def _joined(rows: Iterable[Sequence[str]], between: str) -> list[str]:
    return [between.join(map(visible, row)) for row in rows]
