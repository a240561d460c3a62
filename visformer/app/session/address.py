"""What the address holds: everything that a link needs to bring back."""

from dataclasses import replace

import streamlit as st

from visformer.app.serving.models import offered
from visformer.app.session import boxes, selection, url_state
from visformer.app.session import run as runs
from visformer.app.session.examples import EXAMPLES
from visformer.app.session.page import LESSON, current_page
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import State

ROOM = Slot(url_state.FOLLOW, "")
"""The room of the presenter whom this session follows."""


def current(run: Run | None = None) -> State:
    """What a run shows; None: the run at hand."""
    choices = {name: value for name, value in (run or runs.current()).choices.items() if value is not None}
    return replace(common(), page=current_page(), choices=choices)


def common() -> State:
    """What goes along to every page."""
    text = boxes.source() if boxes.source().strip() and boxes.source() != EXAMPLES[0] else ""
    language = boxes.language() if boxes.LANGUAGE_IS_CHOSEN.get() else ""
    model = boxes.model() if boxes.model() != offered()[0] else None
    plain = State(
        lang=language, model=model or "", text=text, target=boxes.target() or "", selection=selection.chosen()
    )
    lesson, step, is_open = LESSON.get()
    return replace(plain, lesson=lesson, step=str(step)) if is_open and lesson != url_state.OWN else plain


def address(state: State | None = None) -> dict[str, str]:
    """A state for a link, by default what goes along to every page; texts that make it too long are left out."""
    wanted = state or common()
    fields = (wanted if wanted.fits else replace(wanted, text="", target="")).fields()
    return {url_state.VERSION_NAME: str(url_state.VERSION), **fields} if fields else {}


def keep(run: Run | None = None) -> None:
    """In the address of every page. A link to another page should have it already: each change is a step back, too."""
    wanted = address(current(run))
    if ROOM.get():
        wanted[url_state.FOLLOW] = ROOM.get()
    if wanted != st.query_params.to_dict():
        st.query_params.from_dict(wanted)


def show(name: str, value: str | None) -> None:
    """Put a choice of the page into its address; None: it is at its default."""
    runs.current().choices[name] = None if name in selection.NAMES else value
