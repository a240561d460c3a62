"""A translation that the visitor has turned off its own way: another token was taken, and decoding goes on from it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.pictures.decoding import FIRST_TEXT_ID
from visformer.ui import state

if TYPE_CHECKING:  # visformer.decoding imports torch
    from visformer.decoding import Candidate, Decoding

_PREFIX = "decoding_prefix"


def prefix() -> str:
    """What the translation of this sentence has to begin with; another sentence starts afresh."""
    place, text = st.session_state.get(_PREFIX, (None, ""))
    return str(text) if place == state.source() else ""


def choose_another(model: Any, found: "Decoding", step: int, candidates: "Sequence[Candidate]") -> None:
    """Offer the other candidates of a step; one that is taken is put behind what stands before it.

    Args:
        model: decodes the ids.
        found: the decoding that is shown.
        step: whose candidates they are, from 0.
        candidates: best first.
    """
    _ = state.gettext()
    others = [c for c in candidates if c.id != found.steps[step].chosen.id and c.id >= FIRST_TEXT_ID]
    taken = st.selectbox(
        _("Take another, and go on from it"),
        range(len(others)),
        index=None,
        format_func=lambda i: f"{others[i].token}  {others[i].probability:.3f}",
        placeholder=_("Choose a token"),
        key=f"decoding_other_{prefix()}_{step}",
    )
    if taken is not None:
        before = found.ids[: given(found) + step]
        st.session_state[_PREFIX] = (state.source(), model.tokenizer.decode([*before, others[taken].id]))
        st.rerun()
    if prefix() and st.button(_("Back to its own beginning"), key="decoding_back"):
        del st.session_state[_PREFIX]
        st.rerun()


def given(found: "Decoding") -> int:
    """How many tokens of the translation stood there before decoding began."""
    return len(found.ids) + found.finished - len(found.steps)
