"""The hints of a lesson's step, which open one after another, and its answer."""

from typing import Literal

import streamlit as st

from visformer.app.lessons.lesson_file import Step
from visformer.app.serving.models import MODEL, label
from visformer.app.session import boxes
from visformer.app.session.boxes import gettext, language
from visformer.app.session.markdown import plain
from visformer.app.session.slots import Slot

_OPENED: Slot[tuple[tuple[str, int] | None, int]] = Slot("lesson_hints", (None, 0))
"""The step whose hints are open, and how many; one more: the answer, in their place."""


def ask(step: Step, place: tuple[str, int]) -> None:
    """Draw the buttons that open a step's next hint and its answer; ``place``: the lesson's name and the number."""
    _, count, opened = gettext(), len(step.hints), _opened(place)
    if opened < count:
        _button(_("Hint {n}").format(n=opened + 1), "lesson_hint", place, opened + 1)
    if step.answer_in(language()) and opened <= count:
        _button(_("Answer"), "lesson_answer", place, count + 1)


def tell(step: Step, place: tuple[str, int]) -> str:
    """Draw the hints that are open, or the answer in their place; return the last of them, "" if there is none."""
    hints, opened = step.hints_in(language()), _opened(place)
    if opened > len(hints):
        answer = step.answer_in(language())
        _answer(step, answer)
        return answer
    for number, hint in enumerate(hints[:opened], 1):
        _line(gettext()("Hint {n}").format(n=number), hint, "blue")
    return hints[opened - 1] if opened else ""


def has_more(step: Step, place: tuple[str, int]) -> bool:
    """Whether a hint or the answer is not shown yet."""
    return _opened(place) < len(step.hints) + bool(step.answer_in(language()))


def _opened(place: tuple[str, int]) -> int:
    shown, opened = _OPENED.get()
    return opened if shown == place else 0


def _button(label: str, key: str, place: tuple[str, int], opens: int) -> None:
    st.button(label, key=key, on_click=_OPENED.set, args=((place, opens),))


def _line(name: str, text: str, color: Literal["blue", "orange"]) -> None:
    with st.container(horizontal=True, vertical_alignment="top", gap="small", key=f"lesson_told_{name}"):
        st.badge(name, color=color)
        st.text(text, width="stretch")  # never markdown: a visitor may have written it


def _answer(step: Step, answer: str) -> None:
    _ = gettext()
    _line(_("Answer"), answer, "orange")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson_answered"):
        if step.code is not None:
            numbers = ", ".join(map(str, step.code.numbers))
            st.caption(
                _("{file}, line {numbers}").format(file=plain(step.code.file), numbers=plain(numbers)), width="content"
            )
        if step.beside:
            broken = step.state.model or MODEL
            other = broken if boxes.model() == step.beside else step.beside
            said = _("The same page with {model}").format(model=plain(label(other)))
            st.button(said, key="lesson_beside", on_click=boxes.MODEL_BOX.set, args=(other,))
    if step.code is not None:
        st.code(step.code.text, language="python", wrap_lines=True)
