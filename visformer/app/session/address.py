"""The page's address, which holds everything that a link restores."""

from dataclasses import replace

import streamlit as st

from visformer.app.serving.models import offered
from visformer.app.session import boxes, selection, url_state
from visformer.app.session import run as runs
from visformer.app.session.examples import EXAMPLES
from visformer.app.session.page import LESSON, LESSON_IS_PLAIN, LESSON_OPENED, LESSON_SENTENCE, current_page
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import State
from visformer.errors import N_
from visformer.system import limits

_TOO_MANY = N_("Your changes on this page are too many for the link, which opens the page without them.")

ROOM = Slot(url_state.FOLLOW, "")
"""The room of the presenter that this session follows."""


def current(run: Run | None = None) -> State:
    """Return the state that a run shows; None: the current run."""
    choices = {name: value for name, value in (run or runs.current()).choices.items() if value is not None}
    return replace(common(), page=current_page(), choices=choices)


def common() -> State:
    """Return the state that links to every page carry."""
    text = boxes.source() if boxes.source().strip() and boxes.source() != EXAMPLES[0] else ""
    language = boxes.language() if boxes.LANGUAGE_IS_CHOSEN.get() else ""
    model = boxes.model() if boxes.model() != offered()[0] else None
    state = State(
        lang=language, model=model or "", text=text, target=boxes.target() or "", selection=selection.chosen()
    )
    lesson, step, is_open = LESSON.get()
    return replace(state, lesson=lesson, step=str(step)) if is_open and lesson != url_state.OWN else state


def address(state: State | None = None) -> dict[str, str]:
    """Return a state, by default :func:`common`, as query parameters, without texts that are too long for a link."""
    state = state or common()
    fields = (state if state.fits else replace(state, text="", target="")).fields()
    return {url_state.VERSION_NAME: str(url_state.VERSION), **fields} if fields else {}


def of_step(state: State) -> State:
    """Return what a link to a lesson's step needs of a state, as long as the step is unchanged."""
    text = state.text if state.text == LESSON_SENTENCE.get() else ""
    return State(page=state.page, lang=state.lang, text=text, lesson=state.lesson, step=state.step)


def shortened(state: State) -> State:
    """Return what the address holds of a state: of a step as the lesson has it, only the step."""
    opened = LESSON_OPENED.get()
    is_unchanged = opened is None or replace(state, lang=opened.lang) == opened
    is_step = state.lesson and LESSON_IS_PLAIN.get() and not ROOM.get()
    return of_step(state) if is_step and is_unchanged else state


def of_run(run: Run | None = None) -> dict[str, str]:
    """Return the query parameters of what a run shows; None: the current run."""
    query = address(shortened(current(run)))
    if ROOM.get():
        query[url_state.FOLLOW] = ROOM.get()
    return query


def update(run: Run | None = None) -> None:
    """Write the current state into the address, if it differs: each change adds an entry to the browser's history."""
    query = of_run(run)
    if query != st.query_params.to_dict():
        st.query_params.from_dict(query)


def show(name: str, value: str | None) -> None:
    """Put a choice made on the page into its address; None: the default."""
    runs.current().choices[name] = None if name in selection.NAMES else value


def show_changes(name: str, text: str) -> None:
    """Put changes made on the page into its address; "": none. If they are too many, "Copy link" says so."""
    fits = len(text) <= limits.CHOICE_CHARACTERS
    show(name, text if text and fits else None)
    if not fits:
        runs.current().unlinked = boxes.gettext()(_TOO_MANY)
