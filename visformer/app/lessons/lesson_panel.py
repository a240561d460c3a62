"""The guided lesson in the app: the text of the open step, its hints and its answer, and the bar that turns steps."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import streamlit as st

from visformer.app.edits import editing
from visformer.app.lessons import lesson_menu, open_lesson
from visformer.app.lessons.facts import filled, needs
from visformer.app.lessons.lesson_file import Lesson, LessonStep
from visformer.app.presentation import guessing
from visformer.app.serving.models import MODEL, label
from visformer.app.session import address, boxes
from visformer.app.session import presentation_steps as walk
from visformer.app.session.boxes import gettext, language
from visformer.app.session.markdown import plain
from visformer.app.session.page import LESSON, LESSON_OPENED, LESSON_SENTENCE
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.widgets import controls
from visformer.app.widgets.component import focus, lesson_bar
from visformer.errors import N_, VisformerError
from visformer.i18n import paragraph
from visformer.system import limits

_LEARNT = N_("What you know now")
_SHORT = 40  # characters of a sentence that the text of a step quotes
_UNFOLDED = "lesson_unfolded"  # whether the page's controls and its formula are shown: page.css folds them


def panel(run: Run) -> bool:
    """Draw the open step above the page that this run shows, and the bar below it; return whether there is one."""
    name, number, is_open = LESSON.get()
    if open_lesson.ASKS.pop():
        focus(boxes.SOURCE, boxes.source())
    if not is_open:
        open_lesson.keep_sentence()
        return False
    lesson, is_over = open_lesson.lesson_of(name), open_lesson.IS_OVER.get()
    step, count = lesson.steps[number - 1], len(lesson.steps)
    is_own = boxes.source() != step.sentence
    if is_own and boxes.source().strip():  # typed, or from a link
        LESSON_SENTENCE.set(boxes.source())
    if is_over:
        _ = gettext()
        walk.guide(place=_("End"), title=_(_LEARNT), is_over=True)
    else:
        facts = _facts(step)
        title, task, note = (filled(_text(step, name), facts) for name in ("title", "try", "note"))
        has_more = _has_more_hints(step, (name, number))
        after = lesson.steps[number] if number < count else None
        following = _text(after, "title") if after is not None else gettext()(_LEARNT)
        next_note = filled(_text(after, "note"), _facts(after)) if after is not None else ""
        place = f"{number}/{count}"
        walk.guide(
            place=place, title=title, task=task, note=note, has_more=has_more, following=following, next_note=next_note
        )
    with st.container(gap=None, key="lesson"):
        if is_over:
            run.caption = _closing(name, lesson.learnt_in(language()))
        else:
            run.caption = _step(step, f"{number} / {count}", (name, number), facts)
            if is_own and not step.fits_any:
                run.caption = paragraph(run.caption, _describe_meant(step, number))
            elif not is_own and LESSON_SENTENCE.get() not in ("", step.sentence):
                _describe_own(lesson.steps, number)
    with st.bottom:
        has_changed = not is_over and (_has_changed(run) or is_own)
        _bar(lesson, {"at": number + is_over, "changed": has_changed, "query": open_lesson.query_of(name)})
    return True


def _text(step: LessonStep, name: str) -> str:
    return step.text(name, language())


def _facts(step: LessonStep) -> dict[str, str]:
    """Return the facts that the step's texts name, of the sentence that is shown."""
    if not step.fields:
        return {}
    with suppress(VisformerError):  # the page says what is wrong
        return step.facts(controls.recorded(needs(step.fields)), boxes.source())
    return step.facts(None, boxes.source())


def _step(step: LessonStep, counted: str, place: tuple[str, int], facts: Mapping[str, str]) -> str:
    """Draw the text of a step, the lesson's name and number of which are ``place``; return what it says last."""
    _ = gettext()
    say, tried = (filled(_text(step, name), facts) for name in ("say", "try"))
    with _heading(counted, _text(step, "title")):
        if step.guess is not None and guessing.is_offered():
            st.button(_("Ask the room"), key="lesson_guess", on_click=guessing.begin, args=(step.guess,))
    st.text(say)
    if tried:
        _labelled_line(_("Try"), tried, "green", key="lesson_try")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson_more"):
        _offer_hints(step, place)
        st.toggle(_("Controls and formula"), key=_UNFOLDED)
    return _show_hints(step, place, facts) or say


def _describe_meant(step: LessonStep, number: int) -> str:
    """Say that a step's text is about another sentence than the visitor's, which is shown, and return that."""
    _ = gettext()
    said = _("This text is about the lesson's sentence, “{text}”.").format(text=_short(step.sentence))
    _sentence_line(said, key="lesson_its", on_click=open_lesson.open_step, args=(number,))
    return said


def _describe_own(steps: Sequence[LessonStep], number: int) -> None:
    """Say why a step does not show the visitor's own sentence, and where that comes back."""
    _ = gettext()
    back = next((n for n, step in enumerate(steps, 1) if n > number and step.fits_any), None)
    said = _("This step is about its own sentence. Yours, “{text}”, comes back in step {n}.")
    if back is None:
        said = _("This step is about its own sentence, not about yours, “{text}”.")
    own = LESSON_SENTENCE.get()
    _sentence_line(said.format(text=_short(own), n=back), key="lesson_own", on_click=open_lesson.show_here, args=(own,))


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= _SHORT else sentence[: _SHORT - 1] + "…"


def _sentence_line(said: str, **button: Any) -> None:
    """Draw a line about a sentence, and the button that shows this sentence in the step."""
    _ = gettext()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson_kept"):
        st.text(said, width="content")  # never markdown
        st.button(_("Show it here"), type="tertiary", **button)


def _closing(name: str, learnt: str) -> str:
    """Draw the card behind the last step: what was learnt, and ways to go on; return what it says."""
    _ = gettext()
    said = learnt or _("This was the last step.")
    _heading(_("End"), _(_LEARNT))
    st.text(said)
    with st.container(horizontal=True, key="lesson_ways"):
        for other, title in lesson_menu.shipped().items():
            if other != name:
                st.button(
                    plain(title),
                    icon=":material/school:",
                    key=f"lesson_on_{other}",
                    on_click=open_lesson.start,
                    args=(other,),
                )
        st.button(_("Your own sentence"), key="lesson_own_sentence", on_click=open_lesson.begin_anew)
        st.button(_("Explore freely"), key="lesson_explore", on_click=open_lesson.leave)
    return said


def _heading(place: str, title: str) -> Any:
    """Draw the heading; return the line that it stands in."""
    line = st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson_title")
    line.badge(place)
    line.text(title, width="stretch")  # never markdown: a visitor may have written it
    return line


def _bar(lesson: Lesson, shown: dict[str, Any]) -> None:
    """Draw the bar: back, the steps by their titles, on, reset this step, and leave."""
    _, steps = gettext(), lesson.steps
    words = {
        "lesson": lesson.title_in(language()),
        "back": _("Back"),
        "next": _("Next"),
        "end": _("End"),
        "again": _("Back to step {n}"),
        "leave": _("Leave the lesson"),
    }
    shown |= {"titles": [_text(each, "title") for each in steps], "pages": open_lesson.pages_of(steps), "words": words}
    shown |= {"fits": [each.fits_any for each in steps], "box": boxes.source(), "sentence": LESSON_SENTENCE.get()}
    lesson_bar(shown | {"longest": limits.LINK_CHARACTERS}, on_open=open_lesson.open_step, on_leave=open_lesson.leave)


def _has_changed(run: Run) -> bool:
    """Return whether the page no longer shows the step as it was opened."""
    now = address.current(run)
    opened = LESSON_OPENED.get() or now
    LESSON_OPENED.set(opened)
    same = replace(now, lang=opened.lang, model=opened.model, lesson=opened.lesson, step=opened.step)
    has_edits = {editing.CELLS, editing.HEADS} & set(opened.choices)  # as a part of the step
    return same != opened or (editing.is_edited() and not has_edits)


_OPENED: Slot[tuple[tuple[str, int] | None, int]] = Slot("lesson_hints", (None, 0))
"""The step whose hints are open, and how many; one more: the answer, in their place."""


def _offer_hints(step: LessonStep, place: tuple[str, int]) -> None:
    """Draw the buttons that open a step's next hint and its answer; ``place``: the lesson's name and the number."""
    _, count, opened = gettext(), len(step.hints), _opened_hints(place)
    if opened < count:
        _hint_button(_("Hint {n}").format(n=opened + 1), "lesson_hint", place, opened + 1)
    if step.answer_in(language()) and opened <= count:
        _hint_button(_("Answer"), "lesson_answer", place, count + 1)


def _show_hints(step: LessonStep, place: tuple[str, int], facts: Mapping[str, str]) -> str:
    """Draw the hints that are open, or the answer in their place; return the last of them, "" if there is none."""
    hints, opened = [filled(hint, facts) for hint in step.hints_in(language())], _opened_hints(place)
    if opened > len(hints):
        answer = filled(step.answer_in(language()), facts)
        _answer(step, answer)
        return answer
    for number, hint in enumerate(hints[:opened], 1):
        _labelled_line(gettext()("Hint {n}").format(n=number), hint, "blue", key=f"lesson_told_{number}")
    return hints[opened - 1] if opened else ""


def _has_more_hints(step: LessonStep, place: tuple[str, int]) -> bool:
    """Whether a hint or the answer is not shown yet."""
    return _opened_hints(place) < len(step.hints) + bool(step.answer_in(language()))


def _opened_hints(place: tuple[str, int]) -> int:
    shown, opened = _OPENED.get()
    return opened if shown == place else 0


def _hint_button(label: str, key: str, place: tuple[str, int], opens: int) -> None:
    st.button(label, key=key, on_click=_OPENED.set, args=((place, opens),))


def _labelled_line(name: str, text: str, color: Literal["blue", "green", "orange"], *, key: str) -> None:
    with st.container(horizontal=True, vertical_alignment="top", gap="small", key=key):
        st.badge(name, color=color)
        st.text(text, width="stretch")  # never markdown: a visitor may have written it


def _answer(step: LessonStep, answer: str) -> None:
    _ = gettext()
    _labelled_line(_("Answer"), answer, "orange", key="lesson_told")
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
