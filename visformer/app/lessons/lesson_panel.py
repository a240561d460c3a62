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
from visformer.app.lessons import hints, lesson_file
from visformer.app.lessons.lesson_file import Lesson, Step
from visformer.app.presentation import guessing
from visformer.app.serving.capacity import drawing
from visformer.app.serving.workbench import require_servable
from visformer.app.session import address, boxes, remarks, slots, url_state, visit
from visformer.app.session import page as pages
from visformer.app.session import presentation_steps as walk
from visformer.app.session.boxes import gettext, language
from visformer.app.session.examples import EXAMPLES
from visformer.app.session.page import LESSON, LESSON_IS_PLAIN, LESSON_OPENED, LESSON_SENTENCE, LessonPlace
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private import history
from visformer.app.streamlit_private.addresses import typed_page
from visformer.app.widgets import downloads
from visformer.app.widgets.component import focus, lesson_bar, links
from visformer.errors import N_, LessonError, VisformerError
from visformer.i18n import paragraph
from visformer.system import limits

_OWN = Slot("lesson_own", b"")  # the file of the visitor's own lesson
_FAULTS: Slot[list[Any]] = Slot("lesson_faults", [])  # of the file that was opened last
_IS_OVER = Slot("lesson_over", False, resets=True)  # whether the closing card is shown above the last step
_ASKS = Slot("lesson_asks", False)  # whether the sentence box takes the focus, for the visitor to type
_MENU = Slot("lesson_menu", False)
_INVITATION = "lesson_start_here"
_MOST = 12  # faults listed at once
_SHORT = 40  # characters of a sentence that the text of a step quotes
_SHIPPED = {
    url_state.SHIPPED: N_("Guided lesson"),
    url_state.SHORT: N_("Attention in three minutes"),
    url_state.FAULTS: N_("Find what is broken"),
}


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
    opened = _lesson(name).steps[step - 1]
    if link.text == opened.sentence:  # no change of the step
        link = replace(link, text="")
    text = link.text if opened.fits_any else ""
    alone = url_state.State(
        lang=link.lang, model=link.model, page=link.page, text=text, lesson=link.lesson, step=link.step
    )
    its_page, entry = opened.state.page, history.page()
    # Going back to an entry never leads to another page, or one could not go back any further.
    fits = (link.page or typed_page()) in ("", url_state.FIRST, its_page) if entry is None else entry == its_page
    if link == alone and fits:
        _show(step, text)


def start(name: str) -> None:
    """Open a lesson at its first step."""
    LESSON.set(LessonPlace(name))
    _show(1, _carried(name, 1))


def open_step(number: int) -> None:
    """Show a step of the current lesson, from 1; one beyond the last: the closing card, above the page as it is.

    It has the visitor's own sentence where it fits any; the step that is open is shown as the lesson has it.
    """
    name, now, is_open = LESSON.get()
    steps = _lesson(name).steps
    if number > now == len(steps):
        _IS_OVER.set(True)
        return
    number = max(1, min(number, len(steps)))
    is_reset = number == now and is_open and not _IS_OVER.get()
    _show(number, "" if is_reset else _carried(name, number))


def _show(number: int, text: str = "") -> None:
    """Show a step, with this sentence in place of its own; none, where it fits any: the visitor wants its own."""
    name = LESSON.get().name
    step = _lesson(name).steps[number - 1]
    if step.fits_any:
        LESSON_SENTENCE.set(text)
    LESSON.set(LessonPlace(name, number))
    visit.bring_back(replace(step.state, text=text or step.state.text), remarks.REMARKS.get())
    LESSON_OPENED.clear()
    LESSON_IS_PLAIN.set(True)


def keep_sentence() -> None:
    """Keep the sentence that is in the box, for the steps of a lesson and for after it, also as a callback."""
    name, number, is_open = LESSON.get()
    with suppress(VisformerError):  # the run that follows tells that there is no such lesson any more
        given = _lesson(name).steps[number - 1].sentence if is_open else EXAMPLES[0]
        LESSON_SENTENCE.set("" if boxes.source().strip() in ("", given) else boxes.source())


def _carried(name: str, number: int) -> str:
    """Return the visitor's own sentence where a step of a lesson shows it, else ""."""
    return LESSON_SENTENCE.get() if _lesson(name).steps[number - 1].fits_any else ""


def leave() -> None:
    """Close the lesson and go back to the visitor's own sentence, as a callback.

    Before the lesson's end, a button in the side bar leads back to its step.
    """
    if _IS_OVER.get():
        LESSON.clear()
    else:
        LESSON.set(LESSON.get()._replace(is_open=False))
    if LESSON_SENTENCE.get() not in ("", boxes.source()):
        _show_here(LESSON_SENTENCE.get())


def panel(run: Run) -> bool:
    """Draw the open step above the page that this run shows, and the bar below it; return whether there is one."""
    name, number, is_open = LESSON.get()
    if _ASKS.pop():
        focus(boxes.SOURCE, boxes.source())
    if not is_open:
        keep_sentence()
        return False
    lesson, is_over = _lesson(name), _IS_OVER.get()
    step, count = lesson.steps[number - 1], len(lesson.steps)
    is_own = boxes.source() != step.sentence
    if is_own and boxes.source().strip():  # typed, or from a link
        LESSON_SENTENCE.set(boxes.source())
    if is_over:
        _ = gettext()
        walk.guide(place=_("End"), title=_("What you know now"), is_over=True)
    else:
        title, task, note = (_said(step, name) for name in ("title", "try", "note"))
        has_more = hints.has_more(step, (name, number))
        walk.guide(place=f"{number}/{count}", title=title, task=task, note=note, has_more=has_more)
    with st.container(gap=None, key="lesson"):
        if is_over:
            run.caption = _closing(name, lesson.learnt_in(language()))
        else:
            run.caption = _step(step, f"{number} / {count}", (name, number))
            if is_own and not step.fits_any:
                run.caption = paragraph(run.caption, _tell_meant(step, number))
            elif not is_own and LESSON_SENTENCE.get() not in ("", step.sentence):
                _tell_kept(lesson.steps, number)
    with st.bottom:
        has_changed = not is_over and (_has_changed(run) or is_own)
        _bar(lesson.steps, {"at": number + is_over, "changed": has_changed, "query": _query(name)})
    return True


def _said(step: Step, name: str) -> str:
    return step.text(name, language())


def _step(step: Step, counted: str, place: tuple[str, int]) -> str:
    """Draw the text of a step, the lesson's name and number of which are ``place``; return what it says last."""
    say, tried = _said(step, "say"), _said(step, "try")
    with _heading(counted, _said(step, "title")):
        hints.ask(step, place)
        if step.guess is not None and guessing.is_offered():
            st.button(gettext()("Ask the room"), key="lesson_guess", on_click=guessing.begin, args=(step.guess,))
    st.text(say)
    if tried:
        with st.container(horizontal=True, vertical_alignment="top", gap="small", key="lesson_try"):
            st.badge(gettext()("Try"), color="green")
            st.text(tried, width="stretch")
    return hints.tell(step, place) or say


def _tell_meant(step: Step, number: int) -> str:
    """Say that a step's text is about another sentence than the visitor's, which is shown, and return that."""
    _ = gettext()
    said = _("This text is about the lesson's sentence, “{text}”.").format(text=_short(step.sentence))
    _sentence_line(said, key="lesson_its", on_click=open_step, args=(number,))
    return said


def _tell_kept(steps: Sequence[Step], number: int) -> None:
    """Say why a step does not show the visitor's own sentence, and where that comes back."""
    _ = gettext()
    back = next((n for n, step in enumerate(steps, 1) if n > number and step.fits_any), None)
    said = _("This step is about its own sentence. Yours, “{text}”, comes back in step {n}.")
    if back is None:
        said = _("This step is about its own sentence, not about yours, “{text}”.")
    own = LESSON_SENTENCE.get()
    _sentence_line(said.format(text=_short(own), n=back), key="lesson_own", on_click=_show_here, args=(own,))


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= _SHORT else sentence[: _SHORT - 1] + "…"


def _sentence_line(said: str, **button: Any) -> None:
    """Draw a line about a sentence, and the button that shows this sentence in the step."""
    _ = gettext()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson_kept"):
        st.text(said, width="content")  # never markdown
        st.button(_("Show it here"), type="tertiary", **button)


def _show_here(sentence: str) -> None:
    boxes.SOURCE_BOX.set(sentence)
    boxes.forget_target()


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
    """Close the lesson and open the first page, whose boxes stand above all else, with the visitor's sentence."""
    leave()
    visit.bring_back(url_state.State(text=LESSON_SENTENCE.get()), [])
    _ASKS.set(True)


def _heading(place: str, title: str) -> Any:
    """Draw the heading; return the line that it stands in."""
    line = st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson_title")
    line.badge(place)
    line.text(title, width="stretch")  # never markdown: a visitor may have written it
    return line


def _query(name: str) -> str:
    """Return the query of the addresses of steps, up to the number; "" where links cannot hold the lesson."""
    state = replace(address.of_step(address.common()), text="", lesson=name, step="1")
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
    shown |= {"titles": [_said(each, "title") for each in steps], "pages": _pages(steps), "words": words}
    shown |= {"fits": [each.fits_any for each in steps], "box": boxes.source(), "sentence": LESSON_SENTENCE.get()}
    lesson_bar(shown | {"longest": limits.LINK_CHARACTERS}, on_open=open_step, on_leave=leave)


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
    first = _first(name)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        _way_in(first, key="lesson_start", icon=":material/school:")
        menu = st.popover(
            "", icon=":material/more_horiz:", type="tertiary", on_change="rerun", key=_MENU.key, help=_("Lessons")
        )
        if menu.open:
            with menu:
                _menu(name)
    if first not in _SHIPPED and not is_open:
        with suppress(VisformerError):  # the button says what is wrong with it
            st.text(_lesson(first).title_in(language()))  # never markdown: a visitor may have written it
    _way_in(url_state.SHORT, key="lesson_start_short", type="tertiary")
    _link_buttons(name, step)


def invitation() -> None:
    """Draw the way into the short lesson on the first page: on a phone, the side bar is closed."""
    if not LESSON.get().is_open:
        label, icon = gettext()(_SHIPPED[url_state.SHORT]), ":material/school:"
        st.button(label, key=_INVITATION, type="tertiary", icon=icon, on_click=start, args=(url_state.SHORT,))


def _way_in(lesson: str, *, key: str, **look: Any) -> None:
    """Draw the button that starts a lesson or, where the visitor left it, leads back to its step."""
    _, (name, step, is_open) = gettext(), LESSON.get()
    called = _(_SHIPPED.get(lesson, _SHIPPED[url_state.SHIPPED]))
    if lesson != name or is_open:
        st.button(called, key=key, on_click=start, args=(lesson,), **look)
        return
    label = _("{lesson}: back to step {n}") if lesson in _SHIPPED else _("Back to step {n}")
    st.button(label.format(lesson=called, n=step), key="lesson_return", on_click=open_step, args=(step,), **look)


def _first(name: str) -> str:
    """Return the lesson that the large button starts: the last one, unless that is the short one."""
    return name if name not in ("", url_state.SHORT) else url_state.SHIPPED


def _link_buttons(name: str, step: int) -> None:
    """Have the buttons that open a step open its address, where it has one."""
    places = {f"lesson_on_{each}": (each, 1) for each in _SHIPPED}
    places |= {
        "lesson_start": (_first(name), 1),
        "lesson_start_short": (url_state.SHORT, 1),
        _INVITATION: (url_state.SHORT, 1),
        "lesson_return": (name, step),
    }
    addresses = {}
    for key, (lesson, number) in places.items():
        with suppress(VisformerError):  # the button says what is wrong with the lesson
            if lesson and (query := _query(lesson)):
                own = _carried(lesson, number)
                text = f"&{urlencode({url_state.TEXT: own})}" if own else ""
                link = f"{_pages(_lesson(lesson).steps)[number - 1]}{query}{number}{text}"
                if len(link) <= limits.LINK_CHARACTERS:
                    addresses[key] = link
    links(addresses)


def _menu(name: str) -> None:
    """Draw the menu: all lessons with their files, and a box for the visitor's own file."""
    _ = gettext()
    offered = lesson_file.offered()
    for each in dict.fromkeys([*offered, *filter(None, [name])]):
        try:
            lesson = _lesson(each)
        except VisformerError:
            continue  # `visformer lesson check` tells the operator why
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.text(lesson.title_in(language()), width="stretch")  # never markdown: a visitor may have written it
            if each in offered:
                st.button(_("Start"), key=f"lesson_start_{each}", on_click=start, args=(each,))
            _files(each, lesson)
    st.caption(_("YAML: to see how a lesson is written. HTML: the whole lesson in one file that works offline."))
    downloads.tell("lesson", st)
    key = f"{_OWN.key}_{slots.version(_OWN.key)}"
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

    content, keep = _content(name), partial(st.download_button, on_click="ignore")
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
