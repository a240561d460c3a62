"""What a visit begins with, and how a link, a file or a presenter brings a state back."""

from collections.abc import Callable, Iterable, Mapping

import streamlit as st

from visformer import i18n
from visformer.app.serving.models import named, offered
from visformer.app.session import boxes, selection, slots, url_state
from visformer.app.session import run as runs
from visformer.app.session.address import ROOM
from visformer.app.session.examples import EXAMPLES
from visformer.app.session.page import LESSON, LESSON_LINK, LessonPlace, go_to
from visformer.app.session.remarks import REMARKS, ignore
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import Remark, State
from visformer.app.streamlit_private import reconnect
from visformer.errors import N_, LinkError

OPENED = Slot("opened", 0)
"""How often a state was brought back: the explorer begins anew with each, although its page stays open."""

_ASKED: Slot[dict[str, str | None]] = Slot("asked", {})  # by a link, until a page has them; None: the default
_DRAWN: Slot[set[str]] = Slot("drawn", set())  # the names of all choices on the page that was drawn last


def begin() -> None:
    """At the start of a run; a session starts with what the address asks for, else a sentence of ours."""
    runs.begin(Run())
    if not OPENED.get():
        boxes.LANGUAGE_BOX.set(i18n.closest(st.context.locale))
        texts, twice = url_state.from_address({name: st.query_params.get_all(name) for name in st.query_params})
        ROOM.set(texts.pop(url_state.FOLLOW, ""))
        wanted, wrong = url_state.read(texts)
        bring_back(wanted, [*twice, *wrong])
        _take_over(reconnect.brought())


def _take_over(brought: Mapping[str, str]) -> None:
    """What the visitor did last on a page that another server had drawn."""
    if brought.get(boxes.SOURCE, boxes.source()) != boxes.source():
        boxes.SOURCE_BOX.set(brought[boxes.SOURCE])
        boxes.forget_target()
    elif boxes.TARGET in brought:
        boxes.TARGET_BOX.set(brought[boxes.TARGET])
    if brought.get(boxes.EXAMPLE) in EXAMPLES:
        boxes.EXAMPLE_BOX.set(brought[boxes.EXAMPLE])
        boxes.take_example()
    for lang, name in i18n.languages().items():
        if brought.get(boxes.LANGUAGE) == name and lang != boxes.language():
            boxes.LANGUAGE_BOX.set(lang)
            boxes.LANGUAGE_IS_CHOSEN.set(True)
    if (model := named(brought.get(boxes.MODEL, ""))) in offered():
        boxes.MODEL_BOX.set(model)


def bring_back(wanted: State, remarks: Iterable[Remark]) -> None:
    """Make the session what a link or a file says, before the widgets are there; what is left out is as at first.

    The page of a session's first state is the one that the address names.
    """
    slots.reset()
    selection.begin_anew(wanted.selection)
    drawn = _DRAWN.get() - set(selection.NAMES)  # which follow the selection
    _ASKED.set({**dict.fromkeys(drawn), **wanted.choices})
    if OPENED.get():
        go_to(wanted.page)
    OPENED.set(OPENED.get() + 1)
    boxes.SOURCE_BOX.set(wanted.text or EXAMPLES[0])
    boxes.TARGET_BOX.set(wanted.target)
    if wanted.lang:
        boxes.LANGUAGE_BOX.set(wanted.lang)
        boxes.LANGUAGE_IS_CHOSEN.set(True)
    boxes.MODEL_BOX.set(wanted.model or offered()[0])  # now, since edits of the first run belong to a model
    if wanted.lesson:
        LESSON.set(LessonPlace(wanted.lesson, int(wanted.step or 1)))
        LESSON_LINK.set(wanted)
    REMARKS.set([*remarks])


def take(name: str, keep: Callable[[str], object], go_back: Callable[[], object] = lambda: None) -> None:
    """Keep what a link asks for under this name, once; what makes no sense is told.

    ``go_back`` is called before, and where the link leaves out what the page has.
    """
    asked = dict(_ASKED.get())
    if name in selection.NAMES or name not in asked:
        return
    text = asked.pop(name)
    _ASKED.set(asked)
    go_back()
    try:
        if text is not None:
            keep(text)
    except LinkError as error:
        ignore({name: str(text)}, {name: error})


def settle(run: Run) -> None:
    """At the end of a page: what a link asks for and nothing has taken is told."""
    if run.trace is not None and run.request is not None and "*.pattern" in run.request.record:
        selection.start(run.trace)  # pages without the explorer show none of it, but tell a mistake in it
    asked = {name: text for name, text in _ASKED.pop().items() if text is not None}
    ignore(asked, dict.fromkeys(asked, LinkError(N_("this page has no option with this name."))))
    _DRAWN.set(set(run.choices))
