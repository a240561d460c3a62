"""The page's address, which holds all that a link restores; and restoring that, from a link, a file or a presenter."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import streamlit as st

from visformer import i18n
from visformer.app.serving.models import named, offered
from visformer.app.session import boxes, selection, slots, url_state
from visformer.app.session import run as runs
from visformer.app.session.page import (
    LESSON,
    LESSON_IS_PLAIN,
    LESSON_LINK,
    LESSON_OPENED,
    LESSON_SENTENCE,
    LessonPlace,
    current_page,
    go_to,
)
from visformer.app.session.remarks import REMARKS, ignore
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import Remark, State
from visformer.app.streamlit_private import run_context
from visformer.errors import N_, LinkError
from visformer.pictures.examples import EXAMPLES, OFFERED
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
    text = boxes.typed() if boxes.typed().strip() and boxes.typed() != EXAMPLES[0] else ""
    language = boxes.language() if boxes.LANGUAGE_IS_CHOSEN.get() else ""
    model = boxes.MODEL_BOX.get()
    if model == offered()[0]:
        model = None
    state = State(
        lang=language, model=model or "", text=text, target=boxes.typed_target(), selection=selection.chosen()
    )
    lesson, step, is_open = LESSON.get()
    return replace(state, lesson=lesson, step=str(step)) if is_open and lesson != url_state.OWN else state


def to_query(state: State | None = None) -> dict[str, str]:
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
    query = to_query(shortened(current(run)))
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
        _restore_on_page(state, [*twice, *wrong])  # its path has chosen the page
        if is_first:
            ROOM.set(room)
            _take_over(run_context.widget_values())


def _take_over(values: Mapping[str, str]) -> None:
    """Apply the visitor's last inputs on a page that another server had drawn."""
    if values.get(boxes.SOURCE, boxes.typed()) != boxes.typed():
        boxes.SOURCE_BOX.set(values[boxes.SOURCE])
        boxes.forget_target()
    elif boxes.TARGET in values:
        boxes.TARGET_BOX.set(values[boxes.TARGET])
    if values.get(boxes.EXAMPLE) in OFFERED:
        boxes.EXAMPLE_BOX.set(values[boxes.EXAMPLE])
        boxes.take_example()
    for lang, name in i18n.languages().items():
        if values.get(boxes.LANGUAGE) == name and lang != boxes.language():
            boxes.LANGUAGE_BOX.set(lang)
            boxes.LANGUAGE_IS_CHOSEN.set(True)
    if (model := named(values.get(boxes.MODEL, ""))) in offered():
        boxes.MODEL_BOX.set(model)


def restore(state: State, remarks: Iterable[Remark]) -> None:
    """Restore a state and open its page, before any widget is drawn."""
    go_to(state.page)
    _restore_on_page(state, remarks)


def _restore_on_page(state: State, remarks: Iterable[Remark]) -> None:
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


def upcoming() -> State:
    """Return the state that the next page will show: what all pages share, and a link's choices not taken yet."""
    return replace(common(), choices={name: text for name, text in _PENDING.get().items() if text is not None})


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
    shown = run.request.record if run.trace is not None and run.request is not None else ()
    if "*.pattern" in shown and not boxes.own_model():
        selection.start(run.trace)  # reports an invalid selection, also on pages without the explorer
    unknown = {name: text for name, text in _PENDING.pop().items() if text is not None}
    ignore(unknown, dict.fromkeys(unknown, LinkError(N_("this page has no option with this name."))))
    _DRAWN.set(set(run.choices))
