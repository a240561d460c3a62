"""The guided lesson in the app: its entry in the side bar, and the text of the open step above the picture.

A step is a link: opening one sets the state as a link does. The visitor may change everything, and return to the step.
"""

import re
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from visformer import i18n
from visformer.app.edits import editing, url_edits
from visformer.app.lessons import lesson_file
from visformer.app.serving.capacity import drawing
from visformer.app.serving.workbench import require_servable
from visformer.app.session import address, remarks, slots, url_state, visit
from visformer.app.session import page as pages
from visformer.app.session import presentation_steps as walk
from visformer.app.session.boxes import gettext, language
from visformer.app.session.page import LESSON, LessonPlace
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private.addresses import typed_page
from visformer.app.widgets import downloads
from visformer.errors import N_, LessonError, VisformerError
from visformer.system import limits

_OWN = Slot("lesson_own", b"")  # the file of the visitor's own lesson
_FAULTS: Slot[list[Any]] = Slot("lesson_faults", [])  # of the file that was opened last
_OPENED: Slot[url_state.State | None] = Slot("lesson_opened", None)  # the state of the open step before any change
_MENU = Slot("lesson_menu", False)
_MOST = 12  # faults listed at once


def follow() -> None:
    """Open the step that a link names, before the page is chosen, unless the link sets anything else.

    A lesson that does not exist, or no longer does, is dropped with a remark.
    """
    name, step, is_open = LESSON.get()
    link = pages.LESSON_LINK.pop()
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
        LESSON.set(LessonPlace(name, step, is_open))
    if link is None:
        return
    _OPENED.clear()
    alone = url_state.State(lang=link.lang, model=link.model, page=link.page, lesson=link.lesson, step=link.step)
    page = link.page or typed_page()
    if link == alone and page in ("", pages.FIRST, _lesson(name).steps[step - 1].state.page):
        open_step(step)


def start(name: str) -> None:
    """Open a lesson at its first step."""
    LESSON.set(LessonPlace(name))
    open_step(1)


def open_step(number: int) -> None:
    """Show a step, counted from 1, of the current lesson; a number out of range is clamped."""
    name = LESSON.get().name
    steps = _lesson(name).steps
    number = max(1, min(number, len(steps)))
    LESSON.set(LessonPlace(name, number))
    visit.bring_back(steps[number - 1].state, remarks.REMARKS.get())
    _OPENED.clear()


def _turn(direction: int) -> bool:
    """Go one step on (1) or back (-1); return False at either end."""
    name, step, _is_open = LESSON.get()
    if not 1 <= step + direction <= len(_lesson(name).steps):
        return False
    open_step(step + direction)
    return True


def leave() -> None:
    """Close the lesson, as a callback; a button in the side bar leads back to its step."""
    LESSON.set(LESSON.get()._replace(is_open=False))


def panel(run: Run) -> bool:
    """Draw the open step above the page that this run shows; return whether there is one."""
    name, number, is_open = LESSON.get()
    if not is_open:
        return False
    steps = _lesson(name).steps
    title, say, tried, note = (steps[number - 1].text(name, language()) for name in ("title", "say", "try", "note"))
    walk.guide(_turn, place=f"{number}/{len(steps)}", note=note)  # the keys of a presentation
    run.caption = say
    with st.container(gap=None, key="lesson"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(f"{number} / {len(steps)}")
            st.text(title, width="stretch")  # never markdown: a visitor may have written it
            _dots(number, len(steps))
            _navigation(number, len(steps), run)
        st.text(say)
        if tried:
            with st.container(horizontal=True, vertical_alignment="top", gap="small"):
                st.badge(gettext()("Try"), color="green")
                st.text(tried, width="stretch")
    return True


def _step_button(step: int, label: str, name: str, **look: Any) -> None:
    """Draw a button that opens a step."""
    st.button(label, key=f"lesson_{name}", on_click=open_step, args=(step,), **look)


def _dots(number: int, count: int) -> None:
    """Draw a dot for each step, which opens it."""
    _ = gettext()
    with st.container(horizontal=True, gap=None, width="content"):
        for step in range(1, count + 1):
            dot = "●" if step == number else "○"
            _step_button(step, dot, f"dot_{step}", type="tertiary", help=_("Step {n}").format(n=step))


def _navigation(number: int, count: int, run: Run) -> None:
    """Draw the buttons back, next, reset this step, and leave."""
    _ = gettext()
    _step_button(number - 1, _("Back"), "back", disabled=number == 1)
    _step_button(number + 1, _("Next"), "next", type="primary", disabled=number == count)
    again = _("Back to step {n}").format(n=number) if _has_changed(run) else ""
    _step_button(number, again, "again", icon=":material/replay:", type="tertiary", help=_("Restore this step"))
    st.button(
        "", icon=":material/close:", type="tertiary", key="lesson_leave", help=_("Leave the lesson"), on_click=leave
    )


def _has_changed(run: Run) -> bool:
    """Return whether the page no longer shows the step as it was opened."""
    now = address.current(run)
    opened = _OPENED.get() or now
    _OPENED.set(opened)
    same = replace(now, lang=opened.lang, model=opened.model, lesson=opened.lesson, step=opened.step)
    has_edits = {url_edits.CELLS, url_edits.HEADS} & set(opened.choices)  # as a part of the step
    return same != opened or (editing.is_edited() and not has_edits)


def entry() -> None:
    """Draw the entry in the side bar: a button that starts or resumes the lesson, and a menu."""
    _ = gettext()
    name, step, is_open = LESSON.get()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if name and not is_open:
            _step_button(step, _("Back to step {n}").format(n=step), "return")
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
    """Draw the menu: all lessons, downloads, and a box for the visitor's own file."""
    _ = gettext()
    for offered in lesson_file.offered():
        try:
            title = lesson_file.load(offered).title_in(language())
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
        st.text(remarks.listed(faults, _MOST))  # never markdown: it quotes the file


def _files(name: str) -> None:
    """Draw the download buttons of a lesson: the YAML file, and the hand-out."""
    _, lang = gettext(), language()
    try:
        lesson = _lesson(name)
    except VisformerError:
        return  # as above
    # Its name on this server, else its title in characters that every system accepts.
    title = re.sub(r"[^a-z0-9]+", "-", lesson.title_in(i18n.ENGLISH).lower()).strip("-") or "lesson"
    called = name if name in lesson_file.offered() else title
    said = _("Save “{title}”: as YAML to see how a lesson is written, as HTML to show it anywhere.")
    st.text(said.format(title=lesson.title_in(lang)))  # never markdown: a visitor may have written it

    from visformer.app.lessons import handout  # imports too much for the first picture

    content, keep = _content(name), partial(st.download_button, on_click="ignore")
    about = _("The whole lesson in one file that works offline")
    making = partial(handout.file, content, lang)
    html = downloads.made(making, key=(lang, content), place="lesson", models=handout.models_of(lesson))
    with st.container(horizontal=True):
        keep("YAML", lambda: content, f"{called}.yaml", "text/yaml", key="lesson_yaml")
        try:
            for model in {step.state.model for step in lesson.steps}:
                require_servable(model)
        except VisformerError as problem:
            st.text(problem.localized(_))
        else:
            keep("HTML", html, f"{called}-{lang}.html", "text/html", key="lesson_html", help=about)
    downloads.tell("lesson", st)


@drawing()  # reading it takes as long as drawing a page
def _open(key: str) -> None:
    """Open an uploaded lesson, before the page reruns."""
    uploaded: Any = Slot(key, None).get()
    if uploaded is None:
        return
    content = uploaded.getvalue()
    own, faults = lesson_file.read(content)
    _FAULTS.set([*faults])
    remarks.REMARKS.clear()  # of the previous lesson
    slots.renew(_OWN.key)
    if own is not None:
        _OWN.set(content)
        _MENU.set(False)
        start(lesson_file.pack(content) or url_state.OWN)


def _content(name: str) -> bytes:
    return _OWN.get() if name == url_state.OWN else lesson_file.content(name)


def _lesson(name: str) -> Any:
    return lesson_file.read(_OWN.get())[0] if name == url_state.OWN else lesson_file.load(name)
