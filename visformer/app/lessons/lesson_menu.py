"""Ways into a lesson: the entries in the side bar and on the first page, and the menu with the visitor's own file."""

import re
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from visformer import i18n
from visformer.app.lessons import lesson_file
from visformer.app.lessons.lesson_file import Lesson
from visformer.app.lessons.open_lesson import OWN, content_of, lesson_of, link_to, open_step, start
from visformer.app.serving.capacity import drawing
from visformer.app.serving.workbench import require_servable
from visformer.app.session import remarks, slots, url_state
from visformer.app.session.boxes import gettext, language
from visformer.app.session.markdown import plain
from visformer.app.session.page import LESSON
from visformer.app.session.slots import Slot
from visformer.app.widgets import downloads
from visformer.app.widgets.component import links
from visformer.errors import VisformerError
from visformer.system import limits

_FAULTS: Slot[list[Any]] = Slot("lesson_faults", [])  # of the file that was opened last
_MENU = Slot("lesson_menu", False)
_INVITATION = "lesson_start_here"
_MOST = 12  # faults listed at once


def shipped() -> dict[str, str]:
    """Return the titles of our own lessons by name, in the order in which they are offered."""
    titles = {}
    for name in (url_state.SHORT, url_state.SHIPPED, url_state.OBJECTS, url_state.FAULTS):
        with suppress(VisformerError):  # the operator's model is another than those that the lesson is about
            titles[name] = lesson_of(name).title_in(language())
    return titles


def entry() -> None:
    """Draw the entries in the side bar: our lessons by their titles, one that was left, and a menu."""
    _ = gettext()
    name, step, is_open = LESSON.get()
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="lessons"):
        st.caption(_("Lessons"), width="stretch")
        menu = st.popover(
            "", icon=":material/more_horiz:", type="tertiary", on_change="rerun", key=_MENU.key, help=_("Lessons")
        )
        if menu.open:
            with menu:
                _menu(name)
    ours = shipped()
    with st.container(gap="xsmall", key="lesson_starts"):
        for each, title in ours.items():
            _way_in(each, plain(title), key=f"lesson_start_{each}")
        if name and name not in ours and not is_open:
            with suppress(VisformerError):  # the step says what is wrong with it
                _way_in(name, plain(lesson_of(name).title_in(language())), key="lesson_start_other")
    _link_buttons(name, step)


def invitation() -> None:
    """Draw the way into the short lesson on the first page: on a phone, the side bar is closed."""
    if not LESSON.get().is_open:
        label, icon = plain(shipped()[url_state.SHORT]), ":material/school:"
        st.button(label, key=_INVITATION, type="tertiary", icon=icon, on_click=start, args=(url_state.SHORT,))


def _way_in(lesson: str, title: str, *, key: str) -> None:
    """Draw the button that starts a lesson or, where the visitor left it, leads back to its step."""
    _, (name, step, is_open) = gettext(), LESSON.get()
    if lesson != name or is_open:
        st.button(title, key=key, type="tertiary", on_click=start, args=(lesson,))
        return
    label = _("{lesson}: back to step {n}").format(lesson=title, n=step)
    st.button(label, key="lesson_return", type="tertiary", on_click=open_step, args=(step,))


def _link_buttons(name: str, step: int) -> None:
    """Have the buttons that open a step open its address, where it has one."""
    places = {f"lesson_{way}_{each}": (each, 1) for each in shipped() for way in ("on", "start")}
    places |= {
        _INVITATION: (url_state.SHORT, 1),
        "lesson_return": (name, step),
    }
    addresses = {}
    for key, (lesson, number) in places.items():
        with suppress(VisformerError):  # the button says what is wrong with the lesson
            if lesson and (link := link_to(lesson, number)):
                addresses[key] = link
    links(addresses)


def _menu(name: str) -> None:
    """Draw the menu: all lessons with their files, and a box for the visitor's own file."""
    _ = gettext()
    offered = lesson_file.offered()
    for each in dict.fromkeys([*offered, *filter(None, [name])]):
        try:
            lesson = lesson_of(each)
        except VisformerError:
            continue  # `visformer lesson check` tells the operator why
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.text(lesson.title_in(language()), width="stretch")  # never markdown: a visitor may have written it
            if each in offered:
                st.button(_("Start"), key=f"lesson_menu_{each}", on_click=start, args=(each,))
            _files(each, lesson)
    st.caption(
        _(
            "YAML: to see how a lesson is written. HTML: the whole lesson in one file that works offline. Worksheet: "
            "its questions on a page to print, with the answers on a second one."
        )
    )
    downloads.tell("lesson", st)
    key = f"{OWN.key}_{slots.version(OWN.key)}"
    label = _("Open a lesson of your own ({size} at most)").format(size=limits.size(limits.LESSON_BYTES))
    st.file_uploader(label, ["yaml", "yml"], max_upload_size=1, key=key, on_change=_open, args=(key,))
    faults = _FAULTS.get()
    if faults:
        st.text(remarks.listed(faults, _MOST))  # never markdown: it quotes the file


def _files(name: str, lesson: Lesson) -> None:
    """Draw the download buttons of a lesson: the YAML file, and the hand-out."""
    _, lang = gettext(), language()
    # Its name on this server, else its title in characters that every system accepts.
    title = re.sub(r"[^a-z0-9]+", "-", lesson.title_in(i18n.ENGLISH).lower()).strip("-") or "lesson"
    called = name if name in lesson_file.offered() else title

    from visformer.app.lessons import handout  # imports too much for the first picture

    content, keep = content_of(name), partial(st.download_button, on_click="ignore")
    making = partial(handout.file, content, lang)
    html = downloads.made(making, key=(lang, content), place="lesson", models=handout.models_of(lesson))
    keep("YAML", lambda: content, f"{called}.yaml", "text/yaml", key=f"lesson_yaml_{called}")
    try:
        for model in {step.state.model for step in lesson.steps}:
            require_servable(model)
    except VisformerError as problem:
        st.text(problem.localized(_))
    else:
        keep("HTML", html, f"{called}-{lang}.html", "text/html", key=f"lesson_html_{called}")
        asked = partial(handout.worksheet_file, content, lang)
        sheet = downloads.made(
            asked, key=("worksheet", lang, content), place="lesson", models=handout.models_of(lesson)
        )
        keep(_("Worksheet"), sheet, f"{called}-worksheet-{lang}.html", "text/html", key=f"lesson_sheet_{called}")


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
    slots.renew(OWN.key)
    if own is not None:
        OWN.set(content)
        _MENU.set(False)
        start(lesson_file.pack(content) or url_state.OWN)
