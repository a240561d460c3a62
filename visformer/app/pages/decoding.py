"""The decoding page: the steps of a translation, in which the visitor may choose another token to continue from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.session import address, boxes, presentation_steps, visit
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls, pick, url_widgets
from visformer.errors import N_, LinkError
from visformer.pictures.decoding import DRAWS, GROWING, SEED, STEP, TEMPERATURE, TOP_K, TOP_P, growing, shape
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style.numbers import probability
from visformer.pictures.style.theme import decoded_text
from visformer.web.panels import Click

if TYPE_CHECKING:  # visformer.model.decoding imports torch
    from visformer.model.decoding import Candidate, Decoding, Step

_TAKEN = "decoding_taken"  # in an address: the ids of the forced prefix


@dataclass(frozen=True)
class _Forced:
    """The prefix of a translation that the visitor has forced.

    Args:
        source: the sentence and the model; with others, nothing is forced.
        steps: the steps of the prefix, the last one with the token that the visitor chose.
        before: by step, the model's own choice where the visitor replaced it.
    """

    source: "tuple[str, str | None]"
    steps: "tuple[Step, ...]"
    before: "dict[int, Candidate]"


_FORCED: Slot[_Forced | None] = Slot("decoding_turned", None, resets=True)
_STEP: Slot[int | None] = Slot("decoding_step", 0, resets=True)


def _input() -> tuple[str, str | None]:
    return boxes.source(), boxes.model()


def _forced() -> _Forced:
    stored = _FORCED.get()
    return stored if stored is not None and stored.source == _input() else _Forced(_input(), (), {})


def prefix() -> tuple[int, ...]:
    """Return the ids of the forced prefix of this sentence's translation."""
    return tuple(step.chosen.id for step in _forced().steps)


def resume(model: Any, decode: "Callable[[tuple[int, ...]], Decoding]") -> "Decoding":
    """Decode behind the forced prefix, from the visitor or a link, and put the prefix into the address."""
    visit.take(_TAKEN, lambda value: _FORCED.set(_replayed(_read(value, model.text), decode)))
    address.show_changes(_TAKEN, ".".join(map(str, prefix())))
    return decode(prefix())


def _read(value: str, text: Any) -> list[int]:
    """Parse the ids of an address; special tokens cannot be forced."""
    ids = [int(part) for part in value.split(".") if part.isdecimal() and len(part) < 8]
    if ".".join(map(str, ids)) != value or max(ids) >= len(text) or any(text.is_special(ids)):
        raise LinkError(N_("expected token ids separated by dots."))
    return ids


def _replayed(ids: Sequence[int], decode: "Callable[[tuple[int, ...]], Decoding]") -> _Forced:
    """Decode again, forcing these ids where the model chooses others."""
    steps: list[Step] = []
    before: dict[int, Candidate] = {}
    upcoming: list[Step] = []
    for at, token_id in enumerate(ids):
        upcoming = upcoming or [*decode(tuple(ids[:at])).steps]
        own = upcoming.pop(0) if upcoming else None  # decoding may have reached its limit
        candidates = {candidate.id: candidate for candidate in (*own.candidates, own.chosen)} if own else {}
        if own is None or token_id not in candidates:
            raise LinkError(N_("token {place} of these cannot be chosen at its step."), place=at + 1)
        if own.chosen.id != token_id:
            before[at], upcoming = own.chosen, []
        steps.append(replace(own, chosen=candidates[token_id]))
    return _Forced(_input(), tuple(steps), before)


def steps(decoding: "Decoding") -> "tuple[Step, ...]":
    """Return all steps of the translation: those of the forced prefix, and those decoded behind it."""
    return (*_forced().steps, *decoding.steps)


def look_at(click: Click) -> None:
    """Select the step whose cell was clicked."""
    _STEP.set(click.column)


def step(count: int) -> int:
    """Return the selected step, from 0: the one clicked last, or where the visitor last chose a token."""
    option = pick.counted(STEP, count)
    visit.take(_STEP.key, lambda value: _STEP.set(option.read(value, url_widgets.nothing())))
    at = 0 if presentation_steps.came() > 0 else min(_STEP.get() or 0, count - 1)
    _STEP.set(at)
    address.show(_STEP.key, str(at + 1) if at else None)
    presentation_steps.offer(partial(_go, at, count), place=f"{at + 1}/{count}")
    return at


def _go(at: int, count: int, direction: int) -> bool:
    """Select the next step (1) or the previous one (-1); return False if there is none."""
    if not 0 <= at + direction < count:
        return False
    _STEP.set(at + direction)
    return True


def choose_another(model: Any, decoding: "Decoding", at: int, candidates: "Sequence[Candidate]") -> None:
    """Offer the other candidates of a step, best first; a chosen one is forced behind the steps before it."""
    _ = boxes.gettext()
    all_steps, forced = steps(decoding), _forced()
    current_id, text = all_steps[at].chosen.id, model.text
    others = [c for c in candidates if c.id != current_id and c.id < len(text) and not text.is_special([c.id])[0]]
    if any(candidate.token.startswith("␣") for candidate in candidates):
        st.caption(_("␣ stands for a space: with one before it, the same word or mark is another token."))
    chosen = st.selectbox(
        _("Choose another token and continue"),
        range(len(others)),
        index=None,
        format_func=lambda i: f"{others[i].token}  {probability(others[i].probability)}",
        placeholder=_("Choose a token"),
        key=f"decoding_other_{'-'.join(map(str, prefix()))}_{at}",
    )
    if chosen is not None:
        before = {step: own for step, own in forced.before.items() if step < at}
        before[at] = forced.before.get(at, all_steps[at].chosen)
        forced_steps = (*all_steps[:at], replace(all_steps[at], chosen=others[chosen]))
        _FORCED.set(_Forced(_input(), forced_steps, before))
        _STEP.set(at)
        st.rerun()


def tell(decoding: "Decoding", at: int, place: Any, *, other: bool) -> None:
    """Show the decoded text, a token forced in place of the model's own, and a button to undo all of them.

    ``place`` is the container; ``other``: whether the text differs from the translation above.
    """
    _ = boxes.gettext()
    before = _forced().before.get(at)
    taken = steps(decoding)[at].chosen
    with place.container(horizontal=True, vertical_alignment="center", gap="large"):
        if other:
            st.text(
                _("Decoded with these settings: {text}").format(text=decoded_text(decoding.text, _)), width="content"
            )
        if before is not None:
            said = _("Step {step}: you chose {token} ({probability}) instead of {before} ({other}).")
            chances = {"probability": probability(taken.probability), "other": probability(before.probability)}
            st.text(said.format(step=at + 1, token=taken.token, before=before.token, **chances))
        if prefix() and st.button(_("Back to the model's own choices"), key="decoding_back"):
            _FORCED.clear()
            st.rerun()


def attended(setting: Setting, decoding: "Decoding", at: int, depth: Any, picture: Any) -> None:
    """Draw what the tokens so far attended to; ``depth``, ``picture``: containers for the layer and the picture."""
    if not decoding.text.strip():
        return
    forced = controls.bench().trace(boxes.source(), decoding.ids)
    before = len(forced.tokens["tgt"]) - len(decoding.ids) - 1  # rows of special tokens, or of a decoder's prompt
    layer = url_widgets.draw(GROWING.option("layer"), setting, "decoding", place=depth)
    with picture:
        controls.draw([growing(forced, layer, before + at)], key="decoding_attention", share=0.5)


def settings(setting: Setting) -> dict[str, Any]:
    """Draw temperature, top-k and top-p; return them with a seed if decoding samples, else nothing."""
    columns = st.columns([3, 3, 3, 4], vertical_alignment="bottom")
    for option, box in zip((TEMPERATURE, TOP_K, TOP_P), columns[:3], strict=True):
        url_widgets.draw(option, setting, "decoding", place=box)
    if not url_widgets.draw(DRAWS, setting, "decoding", place=columns[3]):
        return {}
    url_widgets.draw(SEED, setting, "decoding", place=columns[3])
    return {**shape(setting), "seed": setting["seed"]}


def tell_winner(path: Sequence[int]) -> None:
    """Say whether the winning beam was ever behind; ``path``: its rank at each step, from 0."""
    _ = boxes.gettext()
    if any(path):
        lowest = max(range(len(path)), key=path.__getitem__)
        said = _("The winner ranked only number {place} at step {step}: what looked worse then won in the end.")
        st.text(said.format(place=path[lowest] + 1, step=lowest + 1))
    else:
        st.text(_("Here the top line leads from start to finish: always taking the most likely token finds it too."))
