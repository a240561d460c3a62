"""A translation that the visitor has turned off its own way: another token was taken, and decoding goes on from it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.canvas.panels import Click
from visformer.figures.decoding import short
from visformer.pictures.decoding import FIRST_TEXT_ID
from visformer.ui import state

if TYPE_CHECKING:  # visformer.decoding imports torch
    from visformer.decoding import Candidate, Decoding, Step

_TURNED = "decoding_turned"
_STEP = "decoding_step"


@dataclass(frozen=True)
class _Turned:
    """Where a translation was turned.

    Args:
        source: the sentence; another one starts afresh.
        prefix: what its translation has to begin with.
        steps: the steps up to there, the last one with the token that was taken.
        before: at each turn, what would have been taken.
    """

    source: str
    prefix: str
    steps: "tuple[Step, ...]"
    before: "dict[int, Candidate]"


def _turned() -> _Turned:
    kept: _Turned | None = st.session_state.get(_TURNED)
    return kept if kept is not None and kept.source == state.source() else _Turned(state.source(), "", (), {})


def prefix() -> str:
    """What the translation of this sentence has to begin with."""
    return _turned().prefix


def steps(found: "Decoding") -> "tuple[Step, ...]":
    """All steps of the translation: those before the turn, and those that were decoded from there."""
    return (*_turned().steps, *found.steps)


def row(found: "Decoding", at: int) -> int:
    """The decoder's row that a step's token comes out of."""
    earlier = len(_turned().steps)
    given = len(found.ids) + found.finished - len(found.steps)  # tokens of the prefix, which may be cut otherwise
    return min(at, given) if at < earlier else given + at - earlier


def look_at(click: Click) -> None:
    """Look at the step whose cell was clicked."""
    st.session_state[_STEP] = click.column


def step(count: int) -> int:
    """The step that is looked at, from 0, of so many: the one clicked last, or where the last turn was made."""
    return min(st.session_state.get(_STEP) or 0, count - 1)


def choose_another(model: Any, found: "Decoding", at: int, candidates: "Sequence[Candidate]") -> None:
    """Offer the other candidates of a step; one that is taken is put behind what stands before it.

    Args:
        model: decodes the ids.
        found: the decoding that is shown.
        at: the step whose candidates they are, from 0.
        candidates: best first.
    """
    _ = state.gettext()
    all_steps, turned = steps(found), _turned()
    others = [c for c in candidates if c.id != all_steps[at].chosen.id and c.id >= FIRST_TEXT_ID]
    taken = st.selectbox(
        _("Take another, and go on from it"),
        range(len(others)),
        index=None,
        format_func=lambda i: f"{others[i].token}  {short(others[i].probability)}",
        placeholder=_("Choose a token"),
        key=f"decoding_other_{prefix()}_{at}",
    )
    if taken is not None:
        earlier = [one.chosen.id for one in all_steps[:at]]
        text = model.tokenizer.decode([*earlier, others[taken].id])
        passed = {turn: before for turn, before in turned.before.items() if turn < at}
        passed[at] = turned.before.get(at, all_steps[at].chosen)
        kept = (*all_steps[:at], replace(all_steps[at], chosen=others[taken]))
        st.session_state[_TURNED], st.session_state[_STEP] = _Turned(state.source(), text, kept, passed), at
        st.rerun()


def tell(found: "Decoding", at: int) -> None:
    """What was taken at a step in another's place, and the way back."""
    _ = state.gettext()
    before = _turned().before.get(at)
    taken = steps(found)[at].chosen
    if before is not None:
        st.text(
            _("Step {step}: you took {token} ({probability}) in place of {before} ({other}).").format(
                step=at + 1,
                token=taken.token,
                probability=short(taken.probability),
                before=before.token,
                other=short(before.probability),
            )
        )
    if prefix() and st.button(_("Back to its own beginning"), key="decoding_back"):
        del st.session_state[_TURNED]
        st.rerun()
