"""How a translation is searched, and turned off its own way: another token is taken, and decoding goes on from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.session import address, boxes, presentation_steps, visit
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, pick, url_widgets
from visformer.errors import N_, LinkError
from visformer.pictures.charts.decoding import short
from visformer.pictures.decoding import DRAWS, GROWING, SEED, STEP, TEMPERATURE, TOP_K, TOP_P, growing, shape
from visformer.pictures.setting import Setting
from visformer.system import limits
from visformer.web.panels import Click

if TYPE_CHECKING:  # visformer.model.decoding imports torch
    from visformer.model.decoding import Candidate, Decoding, Step

_TAKEN = "decoding_taken"  # in an address: the ids that the translation begins with


@dataclass(frozen=True)
class _Turned:
    """Where a translation was turned.

    Args:
        source: the sentence and the model; another one starts afresh.
        steps: the steps up to there, the last one with the token that was taken.
        before: at each turn, what would have been taken.
    """

    source: "tuple[str, str | None]"
    steps: "tuple[Step, ...]"
    before: "dict[int, Candidate]"


_TURNED: Slot[_Turned | None] = Slot("decoding_turned", None, resets=True)
_STEP: Slot[int | None] = Slot("decoding_step", 0, resets=True)


def _here() -> tuple[str, str | None]:
    return boxes.source(), boxes.model()


def _turned() -> _Turned:
    kept = _TURNED.get()
    return kept if kept is not None and kept.source == _here() else _Turned(_here(), (), {})


def prefix() -> tuple[int, ...]:
    """The ids that the translation of this sentence has to begin with."""
    return tuple(one.chosen.id for one in _turned().steps)


def begun(model: Any, decoded: "Callable[[tuple[int, ...]], Decoding]") -> "Decoding":
    """The decoding behind the tokens that were taken, or that a link asks for; they stand in the address."""
    visit.take(_TAKEN, lambda asked: _TURNED.set(_retaken(_read(asked, model.text), decoded)))
    taken = ".".join(map(str, prefix()))
    address.show(_TAKEN, taken if 0 < len(taken) <= limits.CHOICE_CHARACTERS else None)
    return decoded(prefix())


def _read(asked: str, text: Any) -> list[int]:
    """The ids of an address; only those of words can have been taken."""
    ids = [int(part) for part in asked.split(".") if part.isdecimal() and len(part) < 8]
    if ".".join(map(str, ids)) != asked or max(ids) >= len(text) or any(text.is_special(ids)):
        raise LinkError(N_("expected token ids separated by dots."))
    return ids


def _retaken(ids: Sequence[int], decoded: "Callable[[tuple[int, ...]], Decoding]") -> _Turned:
    """Decode once more, and take these ids where the model takes others."""
    kept: list[Step] = []
    before: dict[int, Candidate] = {}
    ahead: list[Step] = []
    for at, wanted in enumerate(ids):
        ahead = ahead or [*decoded(tuple(ids[:at])).steps]
        own = ahead.pop(0) if ahead else None  # it may have been cut off
        offered = {one.id: one for one in (*own.candidates, own.chosen)} if own else {}
        if own is None or wanted not in offered:
            raise LinkError(N_("token {place} of these cannot be chosen at its step."), place=at + 1)
        if own.chosen.id != wanted:
            before[at], ahead = own.chosen, []
        kept.append(replace(own, chosen=offered[wanted]))
    return _Turned(_here(), tuple(kept), before)


def steps(found: "Decoding") -> "tuple[Step, ...]":
    """All steps of the translation: those before the turn, and those that were decoded from there."""
    return (*_turned().steps, *found.steps)


def look_at(click: Click) -> None:
    """Look at the step whose cell was clicked."""
    _STEP.set(click.column)


def step(count: int) -> int:
    """The step that is looked at, from 0, of so many: the one clicked last, or where the last turn was made."""
    option = pick.counted(STEP, count)
    visit.take(_STEP.key, lambda asked: _STEP.set(option.read(asked, url_widgets.nothing())))
    at = 0 if presentation_steps.came() > 0 else min(_STEP.get() or 0, count - 1)
    _STEP.set(at)
    address.show(_STEP.key, str(at + 1) if at else None)
    presentation_steps.offer(partial(_turn, at, count), place=f"{at + 1}/{count}")
    return at


def _turn(at: int, count: int, direction: int) -> bool:
    """Look at the step behind this one of so many (1), or the one before it (-1); False: there is none."""
    if not 0 <= at + direction < count:
        return False
    _STEP.set(at + direction)
    return True


def choose_another(model: Any, found: "Decoding", at: int, candidates: "Sequence[Candidate]") -> None:
    """Offer the other candidates of a step, best first; one that is taken is put behind what stands before it."""
    _ = boxes.gettext()
    all_steps, turned = steps(found), _turned()
    taken_now, text = all_steps[at].chosen.id, model.text
    others = [c for c in candidates if c.id != taken_now and c.id < len(text) and not text.is_special([c.id])[0]]
    taken = st.selectbox(
        _("Choose another token and continue"),
        range(len(others)),
        index=None,
        format_func=lambda i: f"{others[i].token}  {short(others[i].probability)}",
        placeholder=_("Choose a token"),
        key=f"decoding_other_{'-'.join(map(str, prefix()))}_{at}",
    )
    if taken is not None:
        passed = {turn: before for turn, before in turned.before.items() if turn < at}
        passed[at] = turned.before.get(at, all_steps[at].chosen)
        kept = (*all_steps[:at], replace(all_steps[at], chosen=others[taken]))
        _TURNED.set(_Turned(_here(), kept, passed))
        _STEP.set(at)
        st.rerun()


def tell(found: "Decoding", at: int, told: Any, *, other: bool) -> None:
    """What was decoded, what was taken at a step in another's place, and the way back.

    ``told`` is the container for it; ``other``: it is another translation than the one above.
    """
    _ = boxes.gettext()
    before = _turned().before.get(at)
    taken = steps(found)[at].chosen
    with told.container(horizontal=True, vertical_alignment="center", gap="large"):
        if other:
            st.text(_("Decoded with these settings: {text}").format(text=found.text), width="content")
        if before is not None:
            said = _("Step {step}: you chose {token} ({probability}) instead of {before} ({other}).")
            chances = {"probability": short(taken.probability), "other": short(before.probability)}
            st.text(said.format(step=at + 1, token=taken.token, before=before.token, **chances))
        if prefix() and st.button(_("Back to the model's own choices"), key="decoding_back"):
            _TURNED.clear()
            st.rerun()


def attended(setting: Setting, found: "Decoding", at: int, depth: Any, picture: Any) -> None:
    """What the tokens so far attended to; ``depth``, ``picture``: containers for the choice of a layer, and for it."""
    if not found.text.strip():
        return
    forced = controls.bench().trace(boxes.source(), found.ids)
    before = len(forced.tokens["tgt"]) - len(found.ids) - 1  # rows: marks, or the text that goes on
    layer = url_widgets.draw(GROWING.option("layer"), setting, "decoding", place=depth)
    with picture:
        controls.draw([growing(forced, layer, before + at)], key="decoding_attention", share=0.5)


def settings(setting: Setting) -> dict[str, Any]:
    """Draw temperature, top-k and top-p; all of them and a seed where decoding draws, nothing where it does not."""
    columns = st.columns(4, vertical_alignment="bottom")
    for option, box in zip((TEMPERATURE, TOP_K, TOP_P), columns[:3], strict=True):
        url_widgets.draw(option, setting, "decoding", place=box)
    if not url_widgets.draw(DRAWS, setting, "decoding", place=columns[3]):
        return {}
    url_widgets.draw(SEED, setting, "decoding", place=columns[3])
    return {**shape(setting), "seed": setting["seed"]}


def tell_winner(path: Sequence[int]) -> None:
    """Whether the winner looked worse on its way; ``path``: its place at each step, from 0."""
    _ = boxes.gettext()
    if any(path):
        lowest = max(range(len(path)), key=path.__getitem__)
        said = _("The winner ranked only number {place} at step {step}: what looked worse then won in the end.")
        st.text(said.format(place=path[lowest] + 1, step=lowest + 1))
    else:
        st.text(_("Here the top line leads from start to finish: always taking the most likely token finds it too."))
