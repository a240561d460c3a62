"""What a visit begins with, and how a link, a file or a presenter brings a state back."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import streamlit as st

from visformer import i18n
from visformer.app.serving.models import named, offered
from visformer.app.session import boxes, lesson_place, reconnect, selection, slots, url_state
from visformer.app.session import run as runs
from visformer.app.session.address import ROOM
from visformer.app.session.examples import EXAMPLES
from visformer.app.session.remarks import ignore, set_remarks
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import Remark, State
from visformer.errors import N_, LinkError

T = TypeVar("T")
_OPENED = Slot("opened", 0)
_ASKED: Slot[dict[str, str]] = Slot("asked", {})  # choices that a link asks for, until a page has them
_DRAWN: Slot[set[str]] = Slot("drawn", set())  # the names of all choices on the page that was drawn last
_RESET: Slot[set[str]] = Slot("reset", set())  # choices that are to be as at first


def begin() -> Run:
    """At the start of a run; a session starts with what the address asks for, else a sentence of ours."""
    is_new = not opened()
    run = runs.begin(Run(is_new=is_new))
    if is_new:
        boxes.LANGUAGE_BOX.set(i18n.closest(st.context.locale))
        texts, twice = url_state.from_address({name: st.query_params.get_all(name) for name in st.query_params})
        ROOM.set(texts.pop(url_state.FOLLOW, ""))
        wanted, wrong = url_state.read(texts)
        bring_back(wanted, [*twice, *wrong])
        _take_over(reconnect.brought())
    return run


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
            boxes.keep_language()
    if (model := named(brought.get(boxes.MODEL, ""))) in offered():
        boxes.MODEL_BOX.set(model)


def bring_back(wanted: State, remarks: Iterable[Remark]) -> None:
    """Make the session what a link or a file says, before the widgets are there; what is left out is as at first."""
    slots.reset()
    selection.forget_query()
    selection.begin_with(wanted.selection)
    _ASKED.set(dict(wanted.choices))
    _OPENED.set(opened() + 1)
    _RESET.set(_DRAWN.get() - set(selection.NAMES))  # which follow the selection
    boxes.SOURCE_BOX.set(wanted.text or EXAMPLES[0])
    boxes.TARGET_BOX.set(wanted.target)
    if wanted.lang:
        boxes.LANGUAGE_BOX.set(wanted.lang)
        boxes.keep_language()
    boxes.MODEL_BOX.set(wanted.model or offered()[0])  # now, since edits of the first run belong to a model
    if wanted.lesson:
        lesson_place.set_lesson(wanted.lesson, int(wanted.step or 1))
        lesson_place.LINK.set(wanted)
    set_remarks(remarks)


def opened() -> int:
    """How often a state was brought back: the explorer begins anew with each, although its page stays open."""
    return _OPENED.get()


def _asked_for(name: str) -> str | None:
    if name in selection.NAMES or name not in _ASKED.get():
        return None
    asked = dict(_ASKED.get())
    value = asked.pop(name)
    _ASKED.set(asked)
    return value


def take(name: str, read: Callable[[str], T], otherwise: T | None = None) -> T | None:
    """What a link asks for under this name, once, as ``read`` has it; None: it asks for nothing.

    What makes no sense to ``read``, which raises a LinkError, is told, and is ``otherwise``.
    """
    asked = _asked_for(name)
    try:
        return None if asked is None else read(asked)
    except LinkError as error:
        ignore({name: str(asked)}, {name: error})
    return otherwise


def goes_back(name: str) -> bool:
    """Whether this choice is to be as at first, although the page has another; true once."""
    reset = _RESET.get()
    _RESET.set(reset - {name})
    return name in reset


def settle(run: Run) -> None:
    """At the end of a page: what a link asks for and nothing has taken is told."""
    if run.trace is not None and run.request is not None and "*.pattern" in run.request.record:
        selection.start(run.trace)  # pages without the explorer show none of it, but tell a mistake in it
    asked = _ASKED.pop()
    ignore(asked, dict.fromkeys(asked, LinkError(N_("nothing on this page has this name."))))
    _RESET.clear()
    _DRAWN.set(set(run.choices))
    run.is_new = False
