"""The guided lesson in the app: its entry beside the pages, and above the picture what the open step says.

A step is a link: opening one sets the state as a link does. The visitor may play with everything, and come back to the
step. :func:`next_step`, :func:`previous_step` and :func:`note` are there for whoever presents.
"""

import re
from dataclasses import replace
from typing import Any

import streamlit as st

from visformer import i18n
from visformer.app.edits import url_edits
from visformer.app.presentation import presentation_steps as walk
from visformer.app.session import state, url_state
from visformer.app.widgets import sharing
from visformer.errors import N_, LessonError, VisformerError
from visformer.system import limits

_OWN = "lesson_own"  # the visitor's own lesson: the bytes of its file
_FAULTS = "lesson_faults"  # what is wrong with the file that was opened last
_OPENED = "lesson_opened"  # what the open step looks like before anybody plays; None: not yet seen
_MENU = "lesson_menu"
_MOST = 12  # faults that are told at once


def follow() -> None:
    """Before the page is chosen: a link to a step opens it, unless it says what else to show.

    A lesson that is not there, or no more, is forgotten and told.
    """
    name, step, shown = state.lesson()
    asked = state.followed()
    if not name:
        return
    try:
        count = len(_lesson(name).steps)
    except VisformerError as error:
        state.set_lesson("", 1, is_open=False)
        state.add_remarks([url_state.Remark(f"{url_state.LESSON}={name}", error)])
        return
    if step > count:
        why = LessonError(N_("the steps of this lesson are 1 to {n}."), n=count)
        state.add_remarks([url_state.Remark(f"{url_state.STEP}={step}", why)])
        step = count
        state.set_lesson(name, step, is_open=shown)
    if asked is None:
        return
    alone = url_state.State(lang=asked.lang, model=asked.model, page=asked.page, lesson=asked.lesson, step=asked.step)
    page = asked.page or sharing.asked_page()
    if asked == alone and page in ("", _lesson(name).steps[step - 1].state.page):
        open_step(step)


def start(name: str) -> None:
    """Open a lesson at its first step."""
    state.set_lesson(name, 1)
    open_step(1)


def open_step(number: int) -> None:
    """Show a step, from 1, of the lesson that is open or was left; one behind the last is the last."""
    name, _step, _is_open = state.lesson()
    steps = _lesson(name).steps
    number = max(1, min(number, len(steps)))
    state.set_lesson(name, number)
    state.bring_back(steps[number - 1].state, state.remarks())
    state.go_to(steps[number - 1].state.page)
    st.session_state[_OPENED] = None


def next_step() -> None:
    """A callback: the step behind the open one."""
    open_step(state.lesson()[1] + 1)


def previous_step() -> None:
    """A callback: the step before the open one."""
    open_step(state.lesson()[1] - 1)


def _turn(direction: int) -> bool:
    """One step on or back; the first and the last are the ends."""
    name, step, _is_open = state.lesson()
    if not 1 <= step + direction <= len(_lesson(name).steps):
        return False
    open_step(step + direction)
    return True


def leave() -> None:
    """A callback: close the lesson; the way back to its step stays beside the pages."""
    name, step, _is_open = state.lesson()
    state.set_lesson(name, step, is_open=False)


def is_open() -> bool:
    """Whether a lesson is shown."""
    return state.lesson()[2]


def note() -> str:
    """What the open step tells the presenter alone; "" where there is nothing."""
    name, step, shown = state.lesson()
    return _lesson(name).steps[step - 1].said("note", state.language()) if shown else ""


def panel() -> bool:
    """The open step above the page; whether there is one."""
    name, number, shown = state.lesson()
    if not shown:
        return False
    steps = _lesson(name).steps
    step, said = steps[number - 1], state.language()
    walk.guide(_turn, place=f"{number}/{len(steps)}", note=note())  # the keys of a presentation
    state.look_for(step.said("say", said))
    with st.container(gap=None, key="lesson"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(f"{number} / {len(steps)}")
            st.text(step.said("title", said), width="stretch")  # never markdown: a visitor may have written it
            _dots(number, len(steps))
            _ways(number, len(steps))
        st.text(step.said("say", said))
        _tried(step.said("try", said))
    return True


def _tried(text: str) -> None:
    _ = state.gettext()
    if text:
        with st.container(horizontal=True, vertical_alignment="top", gap="small"):
            st.badge(_("Try"), color="green")
            st.text(text, width="stretch")


def _dots(number: int, count: int) -> None:
    """One for each step, to go to."""
    _ = state.gettext()
    with st.container(horizontal=True, gap=None, width="content"):
        for step in range(1, count + 1):
            st.button(
                "●" if step == number else "○",
                type="tertiary",
                key=f"lesson_dot_{step}",
                help=_("Step {n}").format(n=step),
                on_click=open_step,
                args=(step,),
            )


def _ways(number: int, count: int) -> None:
    """Back, on, to the step as it was, and out."""
    _ = state.gettext()
    st.button(_("Back"), key="lesson_back", disabled=number == 1, on_click=previous_step)
    st.button(_("Next"), key="lesson_next", type="primary", disabled=number == count, on_click=next_step)
    again = _("Back to step {n}").format(n=number)
    st.button(
        again if _played() else "",
        icon=":material/replay:",
        type="tertiary",
        key="lesson_again",
        help=_("This step as it was"),
        on_click=open_step,
        args=(number,),
    )
    st.button(
        "", icon=":material/close:", type="tertiary", key="lesson_leave", help=_("Leave the lesson"), on_click=leave
    )


def _played() -> bool:
    """Whether the page shows something else than the step that was opened."""
    now = state.current()
    if st.session_state.get(_OPENED) is None:
        st.session_state[_OPENED] = now
    opened: url_state.State = st.session_state[_OPENED]
    same = replace(now, lang=opened.lang, model=opened.model, lesson=opened.lesson, step=opened.step)
    by_itself = {url_edits.CELLS, url_edits.HEADS} & set(opened.choices)  # the step shows a changed model
    return same != opened or (state.is_edited() and not by_itself)


def entry() -> None:
    """Beside the pages: start the lesson, or come back to it; other lessons, and files."""
    _ = state.gettext()
    name, step, shown = state.lesson()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if name and not shown:
            st.button(_("Back to step {n}").format(n=step), key="lesson_return", on_click=open_step, args=(step,))
        else:
            first = (name or url_state.SHIPPED,)
            st.button(_("Guided lesson"), icon=":material/school:", key="lesson_start", on_click=start, args=first)
        menu = st.popover(
            "", icon=":material/more_horiz:", type="tertiary", on_change="rerun", key=_MENU, help=_("Lessons")
        )
        if menu.open:
            with menu:
                _menu(name)


def _menu(name: str) -> None:
    """Which lesson, a file of one's own, and what can be taken along."""
    from visformer.app.lessons import lesson_file

    _ = state.gettext()
    for offered in lesson_file.offered():
        try:
            title = lesson_file.named(offered).called(state.language())
        except VisformerError:
            continue  # `visformer lesson check` tells the operator why
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(title, width="stretch")
            st.button(_("Start"), key=f"lesson_start_{offered}", on_click=start, args=(offered,))
    _files(name or url_state.SHIPPED)
    key = f"{_OWN}_{state.version(_OWN)}"
    label = _("Open a lesson of your own ({size} at most)").format(size=limits.size(limits.LESSON_BYTES))
    st.file_uploader(label, ["yaml", "yml"], max_upload_size=1, key=key, on_change=_open, args=(key,))
    faults: list[Any] = st.session_state.get(_FAULTS, [])
    if faults:
        told = [fault.localized(_) for fault in faults[:_MOST]]
        if len(faults) > _MOST:
            told.append(_("and {n} more").format(n=len(faults) - _MOST))
        st.text("\n".join(told))  # never markdown: it quotes the file


def _files(name: str) -> None:
    """The lesson to take along: as it is written, and to be opened anywhere."""
    from visformer.app.lessons import handout

    _ = state.gettext()
    language = state.language()
    try:
        lesson = _lesson(name)
    except VisformerError:
        return  # as above
    called = _file_name(name, lesson.called(i18n.ENGLISH))
    said = _("Save “{title}”: as YAML to see how a lesson is written, as HTML to show it anywhere.")
    st.text(said.format(title=lesson.called(language)))  # never markdown: a visitor may have written it

    def made() -> bytes:
        return handout.page(lesson, language, model_of=_Served).encode()

    with st.container(horizontal=True):
        st.download_button(
            "YAML", lambda: _written(name), f"{called}.yaml", "text/yaml", key="lesson_yaml", on_click="ignore"
        )
        st.download_button(
            "HTML",
            made,
            f"{called}-{language}.html",
            "text/html",
            key="lesson_html",
            on_click="ignore",
            help=_("The whole lesson in one file, without a network"),
        )


def _file_name(name: str, title: str) -> str:
    """Of a lesson's file without its ending: its name here, else its title in letters that every system takes."""
    from visformer.app.lessons import lesson_file

    return name if name in lesson_file.offered() else re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "lesson"


class _Served:
    """A model as all visitors share it: their sentences are run in turn, and kept."""

    def __init__(self, name: str) -> None:
        from visformer.app.serving.workbench import workbench_of

        self._bench = workbench_of(name or None)

    def trace(self, text: str, target: str | None, *, record: tuple[str, ...]) -> Any:
        return self._bench.trace(text, target, record=record)

    def translate(self, text: str, **settings: Any) -> Any:
        return self._bench.decoded(text, **settings)

    @property
    def info(self) -> Any:
        return self._bench.loaded().info

    @property
    def text(self) -> Any:
        return self._bench.loaded().text


def _open(key: str) -> None:
    """Before the page runs again: a lesson that was uploaded."""
    from visformer.app.lessons import lesson_file

    uploaded = st.session_state.get(key)
    if uploaded is None:
        return
    content = uploaded.getvalue()
    lesson, faults = lesson_file.read(content)
    st.session_state[_FAULTS] = faults
    state.put_away()  # what was ignored of the one before
    state.renew(_OWN)
    if lesson is not None:
        st.session_state[_OWN] = content
        st.session_state[_MENU] = False
        start(lesson_file.pack(content) or url_state.OWN)


def _written(name: str) -> bytes:
    from visformer.app.lessons import lesson_file

    return st.session_state[_OWN] if name == url_state.OWN else lesson_file.content(name)


def _lesson(name: str) -> Any:
    from visformer.app.lessons import lesson_file  # not for the first picture

    if name != url_state.OWN:
        return lesson_file.named(name)
    lesson, _faults = lesson_file.read(st.session_state[_OWN])
    return lesson
