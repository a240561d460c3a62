"""The guided lesson in the app: its entry beside the pages, and above the picture what the open step says.

A step is a link: opening one sets the state as a link does. The visitor may play with everything, and come back to the
step.
"""

import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import streamlit as st

from visformer import i18n
from visformer.app.edits import editing, url_edits
from visformer.app.lessons import lesson_file
from visformer.app.serving.workbench import workbench_of
from visformer.app.session import address, remarks, slots, url_state, visit
from visformer.app.session import page as pages
from visformer.app.session import presentation_steps as walk
from visformer.app.session.boxes import gettext, language
from visformer.app.session.page import LESSON, LessonPlace
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private.addresses import typed_page
from visformer.errors import N_, LessonError, VisformerError
from visformer.system import limits

_OWN = Slot("lesson_own", b"")  # the visitor's own lesson: its file
_FAULTS: Slot[list[Any]] = Slot("lesson_faults", [])  # what is wrong with the file that was opened last
_OPENED: Slot[url_state.State | None] = Slot("lesson_opened", None)  # the open step before anybody plays
_MENU = Slot("lesson_menu", False)
_MOST = 12  # faults that are told at once


def follow() -> None:
    """Before the page is chosen: a link to a step opens it, unless it says what else to show.

    A lesson that is not there, or no more, is forgotten and told.
    """
    name, step, shown = LESSON.get()
    asked = pages.LESSON_LINK.pop()
    if not name:
        return
    try:
        count = len(_lesson(name).steps)
    except VisformerError as error:
        LESSON.clear()
        remarks.add([url_state.Remark(f"{url_state.LESSON}={name}", error)])
        return
    if step > count:
        why = LessonError(N_("the steps of this lesson are 1 to {n}."), n=count)
        remarks.add([url_state.Remark(f"{url_state.STEP}={step}", why)])
        step = count
        LESSON.set(LessonPlace(name, step, shown))
    if asked is None:
        return
    alone = url_state.State(lang=asked.lang, model=asked.model, page=asked.page, lesson=asked.lesson, step=asked.step)
    page = asked.page or typed_page()
    if asked == alone and page in ("", pages.FIRST, _lesson(name).steps[step - 1].state.page):
        open_step(step)


def start(name: str) -> None:
    """Open a lesson at its first step."""
    LESSON.set(LessonPlace(name))
    open_step(1)


def open_step(number: int) -> None:
    """Show a step, from 1, of the lesson that is open or was left; one behind the last is the last."""
    name = LESSON.get().name
    steps = _lesson(name).steps
    number = max(1, min(number, len(steps)))
    LESSON.set(LessonPlace(name, number))
    visit.bring_back(steps[number - 1].state, remarks.REMARKS.get())
    _OPENED.clear()


def _turn(direction: int) -> bool:
    """One step on or back; the first and the last are the ends."""
    name, step, _is_open = LESSON.get()
    if not 1 <= step + direction <= len(_lesson(name).steps):
        return False
    open_step(step + direction)
    return True


def leave() -> None:
    """A callback: close the lesson; the way back to its step stays beside the pages."""
    LESSON.set(LESSON.get()._replace(is_open=False))


def panel(run: Run) -> bool:
    """The open step above the page that this run shows; whether there is one."""
    name, number, shown = LESSON.get()
    if not shown:
        return False
    steps = _lesson(name).steps
    title, say, tried, note = (steps[number - 1].said(name, language()) for name in ("title", "say", "try", "note"))
    walk.guide(_turn, place=f"{number}/{len(steps)}", note=note)  # the keys of a presentation
    run.caption = say
    with st.container(gap=None, key="lesson"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(f"{number} / {len(steps)}")
            st.text(title, width="stretch")  # never markdown: a visitor may have written it
            _dots(number, len(steps))
            _ways(number, len(steps), run)
        st.text(say)
        if tried:
            with st.container(horizontal=True, vertical_alignment="top", gap="small"):
                st.badge(gettext()("Try"), color="green")
                st.text(tried, width="stretch")
    return True


def _to(step: int, label: str, name: str, **look: Any) -> None:
    """A button that opens a step."""
    st.button(label, key=f"lesson_{name}", on_click=open_step, args=(step,), **look)


def _dots(number: int, count: int) -> None:
    """One for each step, to go to."""
    _ = gettext()
    with st.container(horizontal=True, gap=None, width="content"):
        for step in range(1, count + 1):
            dot = "●" if step == number else "○"
            _to(step, dot, f"dot_{step}", type="tertiary", help=_("Step {n}").format(n=step))


def _ways(number: int, count: int, run: Run) -> None:
    """Back, on, to the step as it was, and out."""
    _ = gettext()
    _to(number - 1, _("Back"), "back", disabled=number == 1)
    _to(number + 1, _("Next"), "next", type="primary", disabled=number == count)
    again = _("Back to step {n}").format(n=number) if _played(run) else ""
    _to(number, again, "again", icon=":material/replay:", type="tertiary", help=_("Restore this step"))
    st.button(
        "", icon=":material/close:", type="tertiary", key="lesson_leave", help=_("Leave the lesson"), on_click=leave
    )


def _played(run: Run) -> bool:
    """Whether the page shows something else than the step that was opened."""
    now = address.current(run)
    opened = _OPENED.get() or now
    _OPENED.set(opened)
    same = replace(now, lang=opened.lang, model=opened.model, lesson=opened.lesson, step=opened.step)
    by_itself = {url_edits.CELLS, url_edits.HEADS} & set(opened.choices)  # the step shows a changed model
    return same != opened or (editing.is_edited() and not by_itself)


def entry() -> None:
    """Beside the pages: start the lesson, or come back to it; other lessons, and files."""
    _ = gettext()
    name, step, shown = LESSON.get()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if name and not shown:
            _to(step, _("Back to step {n}").format(n=step), "return")
        else:
            first = (name or url_state.SHIPPED,)
            st.button(_("Guided lesson"), icon=":material/school:", key="lesson_start", on_click=start, args=first)
        menu = st.popover(
            "", icon=":material/more_horiz:", type="tertiary", on_change="rerun", key=_MENU.key, help=_("Lessons")
        )
        if menu.open:
            with menu:
                _menu(name)


def _menu(name: str) -> None:
    """Which lesson, a file of one's own, and what can be taken along."""
    _ = gettext()
    for offered in lesson_file.offered():
        try:
            title = lesson_file.named(offered).called(language())
        except VisformerError:
            continue  # `visformer lesson check` tells the operator why
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(title, width="stretch")
            st.button(_("Start"), key=f"lesson_start_{offered}", on_click=start, args=(offered,))
    _files(name or url_state.SHIPPED)
    key = f"{_OWN.key}_{slots.version(_OWN.key)}"
    label = _("Open a lesson of your own ({size} at most)").format(size=limits.size(limits.LESSON_BYTES))
    st.file_uploader(label, ["yaml", "yml"], max_upload_size=1, key=key, on_change=_open, args=(key,))
    faults = _FAULTS.get()
    if faults:
        told = [fault.localized(_) for fault in faults[:_MOST]]
        if len(faults) > _MOST:
            told.append(_("and {n} more").format(n=len(faults) - _MOST))
        st.text("\n".join(told))  # never markdown: it quotes the file


def _files(name: str) -> None:
    """The lesson to take along: as it is written, and to be opened anywhere."""
    _, lang = gettext(), language()
    try:
        shown = _lesson(name)
    except VisformerError:
        return  # as above
    # Its name here, else its title in letters that every system takes.
    title = re.sub(r"[^a-z0-9]+", "-", shown.called(i18n.ENGLISH).lower()).strip("-") or "lesson"
    called = name if name in lesson_file.offered() else title
    said = _("Save “{title}”: as YAML to see how a lesson is written, as HTML to show it anywhere.")
    st.text(said.format(title=shown.called(lang)))  # never markdown: a visitor may have written it

    def made() -> bytes:
        from visformer.app.lessons import handout  # packs pictures: not before the first is painted

        return handout.page(shown, lang, model_of=_served).encode()

    keep = partial(st.download_button, on_click="ignore")
    about = _("The whole lesson in one file that works offline")
    with st.container(horizontal=True):
        keep("YAML", lambda: _written(name), f"{called}.yaml", "text/yaml", key="lesson_yaml")
        keep("HTML", made, f"{called}-{lang}.html", "text/html", key="lesson_html", help=about)


def _served(name: str) -> Any:
    """A model as all visitors share it: their sentences are run in turn, and kept."""
    bench = workbench_of(name or None)
    model = bench.loaded()
    return SimpleNamespace(trace=bench.trace, translate=bench.decoded, info=model.info, text=model.text)


def _open(key: str) -> None:
    """Before the page runs again: a lesson that was uploaded."""
    uploaded: Any = Slot(key, None).get()
    if uploaded is None:
        return
    content = uploaded.getvalue()
    own, faults = lesson_file.read(content)
    _FAULTS.set([*faults])
    remarks.REMARKS.clear()  # what was ignored of the one before
    slots.renew(_OWN.key)
    if own is not None:
        _OWN.set(content)
        _MENU.set(False)
        start(lesson_file.pack(content) or url_state.OWN)


def _written(name: str) -> bytes:
    return _OWN.get() if name == url_state.OWN else lesson_file.content(name)


def _lesson(name: str) -> Any:
    return lesson_file.read(_OWN.get())[0] if name == url_state.OWN else lesson_file.named(name)
