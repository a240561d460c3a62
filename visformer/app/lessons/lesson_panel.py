"""The guided lesson in the app: its entries in the side bar, the text of the open step, and the bar that turns steps.

A step is a link: opening one sets the state as a link does. The visitor may change everything, and return to the step.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from visformer import i18n
from visformer.app.edits import editing, url_edits
from visformer.app.lessons import lesson_file
from visformer.app.lessons.lesson_file import Step
from visformer.app.serving.capacity import drawing
from visformer.app.serving.workbench import require_servable
from visformer.app.session import address, remarks, slots, url_state, visit
from visformer.app.session import page as pages
from visformer.app.session import presentation_steps as walk
from visformer.app.session.boxes import gettext, language
from visformer.app.session.page import LESSON, LESSON_IS_PLAIN, LESSON_OPENED, LessonPlace
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private import history
from visformer.app.streamlit_private.addresses import typed_page
from visformer.app.widgets import downloads
from visformer.app.widgets.component import lesson_bar, links
from visformer.errors import N_, LessonError, VisformerError
from visformer.system import limits

_OWN = Slot("lesson_own", b"")  # the file of the visitor's own lesson
_FAULTS: Slot[list[Any]] = Slot("lesson_faults", [])  # of the file that was opened last
_IS_OVER = Slot("lesson_over", False, resets=True)  # whether the closing card is shown above the last step
_MENU = Slot("lesson_menu", False)
_MOST = 12  # faults listed at once
_SHIPPED = {url_state.SHIPPED: N_("Guided lesson"), url_state.SHORT: N_("Attention in three minutes")}


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
    LESSON_OPENED.clear()
    alone = url_state.State(lang=link.lang, model=link.model, page=link.page, lesson=link.lesson, step=link.step)
    its_page, entry = _lesson(name).steps[step - 1].state.page, history.page()
    # Going back to an entry never leads to another page, or one could not go back any further.
    fits = (link.page or typed_page()) in ("", pages.FIRST, its_page) if entry is None else entry == its_page
    if link == alone and fits:
        open_step(step)


def start(name: str) -> None:
    """Open a lesson at its first step."""
    LESSON.set(LessonPlace(name))
    open_step(1)


def open_step(number: int) -> None:
    """Show a step of the current lesson, from 1; one beyond the last: the closing card, above the page as it is."""
    name, now, _is_open = LESSON.get()
    steps = _lesson(name).steps
    if number > now == len(steps):
        _IS_OVER.set(True)
        return
    number = max(1, min(number, len(steps)))
    LESSON.set(LessonPlace(name, number))
    visit.bring_back(steps[number - 1].state, remarks.REMARKS.get())
    LESSON_OPENED.clear()
    LESSON_IS_PLAIN.set(True)


def leave() -> None:
    """Close the lesson, as a callback; before its end, a button in the side bar leads back to its step."""
    if _IS_OVER.get():
        LESSON.clear()
    else:
        LESSON.set(LESSON.get()._replace(is_open=False))


def panel(run: Run) -> bool:
    """Draw the open step above the page that this run shows, and the bar below it; return whether there is one."""
    name, number, is_open = LESSON.get()
    if not is_open:
        return False
    lesson, is_over = _lesson(name), _IS_OVER.get()
    step, count = lesson.steps[number - 1], len(lesson.steps)
    if is_over:
        _ = gettext()
        walk.guide(place=_("End"), title=_("What you know now"), is_over=True)
    else:
        title, task, note = (_said(step, name) for name in ("title", "try", "note"))
        walk.guide(place=f"{number}/{count}", title=title, task=task, note=note)
    with st.container(gap=None, key="lesson"):
        if is_over:
            run.caption = _closing(name, lesson.learnt_in(language()))
        else:
            run.caption = _step(step, f"{number} / {count}")
    with st.bottom:
        shown = {"at": number + is_over, "changed": not is_over and _has_changed(run), "query": _query(name)}
        _bar(lesson.steps, shown)
    return True


def _said(step: Step, name: str) -> str:
    return step.text(name, language())


def _step(step: Step, place: str) -> str:
    """Draw the text of a step; return what it says."""
    say, tried = _said(step, "say"), _said(step, "try")
    _heading(place, _said(step, "title"))
    st.text(say)
    if tried:
        with st.container(horizontal=True, vertical_alignment="top", gap="small", key="lesson_try"):
            st.badge(gettext()("Try"), color="green")
            st.text(tried, width="stretch")
    return say


def _closing(name: str, learnt: str) -> str:
    """Draw the card behind the last step: what was learnt, and ways to go on; return what it says."""
    _ = gettext()
    said = learnt or _("This was the last step.")
    _heading(_("End"), _("What you know now"))
    st.text(said)
    with st.container(horizontal=True, key="lesson_ways"):
        for other, label in _SHIPPED.items():
            if other != name:
                st.button(_(label), icon=":material/school:", key=f"lesson_on_{other}", on_click=start, args=(other,))
        st.button(_("Your own sentence"), key="lesson_own_sentence", on_click=_begin_anew)
        st.button(_("Explore freely"), key="lesson_explore", on_click=leave)
    return said


def _begin_anew() -> None:
    """Close the lesson and open the first page, whose boxes stand above everything else."""
    leave()
    visit.bring_back(url_state.State(), [])


def _heading(place: str, title: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson_title"):
        st.badge(place)
        st.text(title, width="stretch")  # never markdown: a visitor may have written it


def _query(name: str) -> str:
    """Return the query of the addresses of steps, up to the number; "" where links cannot hold the lesson."""
    state = replace(address.of_step(address.common()), lesson=name, step="1")
    return "" if name == url_state.OWN else f"?{urlencode(address.address(state))}".removesuffix("1")


def _pages(steps: Sequence[Step]) -> list[str]:
    """Return the pages of steps, relative to any page."""
    return [step.state.page or "./" for step in steps]


def _bar(steps: Sequence[Step], shown: dict[str, Any]) -> None:
    """Draw the bar: back, the steps by their titles, on, reset this step, and leave."""
    _ = gettext()
    words = {
        "lesson": _("Guided lesson"),
        "back": _("Back"),
        "next": _("Next"),
        "end": _("End"),
        "again": _("Back to step {n}"),
        "leave": _("Leave the lesson"),
    }
    titles = [_said(each, "title") for each in steps]
    lesson_bar(shown | {"titles": titles, "pages": _pages(steps), "words": words}, on_open=open_step, on_leave=leave)


def _has_changed(run: Run) -> bool:
    """Return whether the page no longer shows the step as it was opened."""
    now = address.current(run)
    opened = LESSON_OPENED.get() or now
    LESSON_OPENED.set(opened)
    same = replace(now, lang=opened.lang, model=opened.model, lesson=opened.lesson, step=opened.step)
    has_edits = {url_edits.CELLS, url_edits.HEADS} & set(opened.choices)  # as a part of the step
    return same != opened or (editing.is_edited() and not has_edits)


def entry() -> None:
    """Draw the entries in the side bar: buttons that start a lesson or resume the one that was left, and a menu."""
    _ = gettext()
    name, step, is_open = LESSON.get()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if name and not is_open:
            st.button(_("Back to step {n}").format(n=step), key="lesson_return", on_click=open_step, args=(step,))
        else:
            st.button(
                _(_SHIPPED[url_state.SHIPPED]),
                icon=":material/school:",
                key="lesson_start",
                on_click=start,
                args=(_first(name),),
            )
        menu = st.popover(
            "", icon=":material/more_horiz:", type="tertiary", on_change="rerun", key=_MENU.key, help=_("Lessons")
        )
        if menu.open:
            with menu:
                _menu(name)
    short = url_state.SHORT
    st.button(_(_SHIPPED[short]), key="lesson_start_short", type="tertiary", on_click=start, args=(short,))
    _link_buttons(name, step)


def _first(name: str) -> str:
    """Return the lesson that the large button starts: the last one, unless that is the short one."""
    return name if name not in ("", url_state.SHORT) else url_state.SHIPPED


def _link_buttons(name: str, step: int) -> None:
    """Have the buttons that open a step open its address, where it has one."""
    places = {f"lesson_on_{each}": (each, 1) for each in _SHIPPED}
    places |= {
        "lesson_start": (_first(name), 1),
        "lesson_start_short": (url_state.SHORT, 1),
        "lesson_return": (name, step),
    }
    addresses = {}
    for key, (lesson, number) in places.items():
        with suppress(VisformerError):  # the button says what is wrong with the lesson
            if lesson and (query := _query(lesson)):
                addresses[key] = f"{_pages(_lesson(lesson).steps)[number - 1]}{query}{number}"
    links(addresses)


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
