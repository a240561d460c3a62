"""The beginning of a visit, and restoring a state from a link, a file or a presenter."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import streamlit as st

from visformer import i18n
from visformer.app.serving.models import named, offered
from visformer.app.session import address, boxes, selection, slots, url_state
from visformer.app.session import run as runs
from visformer.app.session.address import ROOM
from visformer.app.session.examples import EXAMPLES
from visformer.app.session.page import LESSON, LESSON_LINK, LessonPlace, go_to
from visformer.app.session.remarks import REMARKS, ignore
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import Remark, State
from visformer.app.streamlit_private import run_context
from visformer.errors import N_, LinkError

OPENED = Slot("opened", 0)
"""How often a state was restored: the explorer restarts each time, although its page stays open."""

_PENDING: Slot[dict[str, str | None]] = Slot("asked", {})  # a link's choices that no page took yet; None: the default
_DRAWN: Slot[set[str]] = Slot("drawn", set())  # the names of all choices on the page drawn last


def begin() -> None:
    """Begin a run; the first one of a session, Back and Forward restore the state in the address."""
    runs.begin(Run())
    boxes.cut_texts()
    is_first = not OPENED.get()
    if is_first or run_context.is_back_or_forward():
        texts, twice = url_state.from_address({name: st.query_params.get_all(name) for name in st.query_params})
        room = texts.pop(url_state.FOLLOW, "")
        state, wrong = url_state.read(texts)
        if not state.lang:
            boxes.LANGUAGE_BOX.set(i18n.closest(st.context.locale))
            boxes.LANGUAGE_IS_CHOSEN.set(False)
        if not state.lesson:
            LESSON.set(LESSON.get()._replace(is_open=False))
        _restore(state, [*twice, *wrong])  # its path has chosen the page
        if is_first:
            ROOM.set(room)
            _take_over(run_context.widget_values())


def _take_over(values: Mapping[str, str]) -> None:
    """Apply the visitor's last inputs on a page that another server had drawn."""
    if values.get(boxes.SOURCE, boxes.source()) != boxes.source():
        boxes.SOURCE_BOX.set(values[boxes.SOURCE])
        boxes.forget_target()
    elif boxes.TARGET in values:
        boxes.TARGET_BOX.set(values[boxes.TARGET])
    if values.get(boxes.EXAMPLE) in EXAMPLES:
        boxes.EXAMPLE_BOX.set(values[boxes.EXAMPLE])
        boxes.take_example()
    for lang, name in i18n.languages().items():
        if values.get(boxes.LANGUAGE) == name and lang != boxes.language():
            boxes.LANGUAGE_BOX.set(lang)
            boxes.LANGUAGE_IS_CHOSEN.set(True)
    if (model := named(values.get(boxes.MODEL, ""))) in offered():
        boxes.MODEL_BOX.set(model)


def bring_back(state: State, remarks: Iterable[Remark]) -> None:
    """Restore a state and open its page, before any widget is drawn."""
    go_to(state.page)
    _restore(state, remarks)


def _restore(state: State, remarks: Iterable[Remark]) -> None:
    """Restore all of a state but the page; empty fields reset to their defaults."""
    slots.reset()
    selection.begin_anew(state.selection)
    drawn = _DRAWN.get() - set(selection.NAMES)  # these follow the selection
    _PENDING.set({**dict.fromkeys(drawn), **state.choices})
    OPENED.set(OPENED.get() + 1)
    boxes.SOURCE_BOX.set(state.text or EXAMPLES[0])
    boxes.TARGET_BOX.set(state.target)
    if state.lang:
        boxes.LANGUAGE_BOX.set(state.lang)
        boxes.LANGUAGE_IS_CHOSEN.set(True)
    boxes.MODEL_BOX.set(state.model or offered()[0])  # set even by default: edits of the first run belong to a model
    if state.lesson:
        LESSON.set(LessonPlace(state.lesson, int(state.step or 1)))
        LESSON_LINK.set(state)
    REMARKS.set([*remarks])


def coming() -> State:
    """Return the state that the next page will show: what all pages share, and a link's choices not taken yet."""
    return replace(address.common(), choices={name: text for name, text in _PENDING.get().items() if text is not None})


def take(name: str, keep: Callable[[str], object], go_back: Callable[[], object] = lambda: None) -> None:
    """Pass a link's choice of this name to ``keep``, once; report it if it is invalid.

    Calls ``go_back`` first, also where the link leaves the choice at its default.
    """
    pending = dict(_PENDING.get())
    if name in selection.NAMES or name not in pending:
        return
    text = pending.pop(name)
    _PENDING.set(pending)
    go_back()
    try:
        if text is not None:
            keep(text)
    except LinkError as error:
        ignore({name: str(text)}, {name: error})


def settle(run: Run) -> None:
    """End a page: report a link's choices that nothing on the page has taken."""
    if run.trace is not None and run.request is not None and "*.pattern" in run.request.record:
        selection.start(run.trace)  # reports an invalid selection, also on pages without the explorer
    unknown = {name: text for name, text in _PENDING.pop().items() if text is not None}
    ignore(unknown, dict.fromkeys(unknown, LinkError(N_("this page has no option with this name."))))
    _DRAWN.set(set(run.choices))
