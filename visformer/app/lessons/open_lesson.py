"""The lesson that is open: its step, and the visitor's own sentence on the way through it.

A step is a link: opening one sets the state as a link does. The visitor may change everything, and return to the step.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlencode

from visformer.app.lessons import facts, lesson_file
from visformer.app.lessons.lesson_file import Lesson, LessonStep
from visformer.app.serving.capacity import drawing
from visformer.app.serving.workbench import workbench_of
from visformer.app.session import address, boxes, remarks, url_state
from visformer.app.session import page as pages
from visformer.app.session.page import LESSON, LESSON_IS_PLAIN, LESSON_OPENED, LESSON_SENTENCE, LessonPlace
from visformer.app.session.slots import Slot
from visformer.app.streamlit_private import run_context
from visformer.app.streamlit_private.run_context import typed_page
from visformer.errors import N_, LessonError, VisformerError
from visformer.pictures.examples import EXAMPLES
from visformer.system import limits
from visformer.web.selection import Selection

OWN = Slot("lesson_own", b"")  # the file of the visitor's own lesson
IS_OVER = Slot("lesson_over", False, resets=True)  # whether the closing card is shown above the last step
ASKS = Slot("lesson_asks", False)  # whether the sentence box takes the focus, for the visitor to type


def content_of(name: str) -> bytes:
    """Return the file of a lesson.

    Raises:
        LessonError: there is no such lesson.
    """
    return OWN.get() if name == url_state.OWN else lesson_file.content(name)


def lesson_of(name: str) -> Lesson:
    """Return a lesson; one of the visitor's own was checked when it was opened.

    Raises:
        VisformerError: there is no such lesson, or it has faults.
    """
    own = lesson_file.read(OWN.get())[0] if name == url_state.OWN else None
    return own or lesson_file.load(name)


def follow() -> None:
    """Open the step that a link names, before the page is chosen, unless the link sets anything else.

    A lesson that does not exist, or no longer does, is dropped with a remark.
    """
    name, step, _is_open = LESSON.get()
    link = pages.LESSON_LINK.pop()
    if not name:
        return
    try:
        count = len(lesson_of(name).steps)
    except VisformerError as error:
        LESSON.clear()
        remarks.add([url_state.Remark(f"{url_state.LESSON}={name}", error)])
        return
    if step > count:
        why = LessonError(N_("the steps of this lesson are 1 to {n}."), n=count)
        remarks.add([url_state.Remark(f"{url_state.STEP}={step}", why)])
        _show(count)  # on its own page
        return
    if link is None:
        return
    LESSON_OPENED.clear()
    opened = lesson_of(name).steps[step - 1]
    if link.text == opened.sentence:  # no change of the step
        link = replace(link, text="")
    text = link.text if opened.fits_any else ""
    alone = url_state.State(
        lang=link.lang, model=link.model, page=link.page, text=text, lesson=link.lesson, step=link.step
    )
    its_page, entry = opened.state.page, run_context.history_page()
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
    steps = lesson_of(name).steps
    if number > now == len(steps):
        IS_OVER.set(True)
        return
    number = max(1, min(number, len(steps)))
    is_reset = number == now and is_open and not IS_OVER.get()
    _show(number, "" if is_reset else _carried(name, number))


def _show(number: int, text: str = "") -> None:
    """Show a step, with this sentence in place of its own; none, where it fits any: the visitor wants its own."""
    name = LESSON.get().name
    step = lesson_of(name).steps[number - 1]
    if step.fits_any:
        LESSON_SENTENCE.set(text)
    LESSON.set(LessonPlace(name, number))
    state = replace(step.state, text=text or step.state.text, selection=_selection(step, text))
    address.restore(state, remarks.REMARKS.get())
    LESSON_OPENED.clear()
    LESSON_IS_PLAIN.set(True)


def _selection(step: LessonStep, text: str) -> Selection:
    """Return the selection of a step that is shown with this sentence; "": with its own."""
    meant = step.state.selection
    if not text or not step.fields:
        return meant
    with suppress(VisformerError), drawing():  # the page says what is wrong
        trace = workbench_of(step.state.model or None).trace(text, step.state.target or None)
        return facts.aimed(meant, trace, keeps_row=text == step.sentence)
    return replace(meant, query=None, key=None)


def take_sentence() -> None:
    """Show the open step with the sentence that was just typed, as a callback: its row is one of that sentence."""
    keep_sentence()
    name, number, is_open = LESSON.get()
    with suppress(VisformerError):  # as above
        if is_open and not IS_OVER.get() and lesson_of(name).steps[number - 1].fields and boxes.source().strip():
            _show(number, LESSON_SENTENCE.get())


def keep_sentence() -> None:
    """Keep the sentence that is in the box, for the steps of a lesson and for after it, also as a callback."""
    name, number, is_open = LESSON.get()
    with suppress(VisformerError):  # the run that follows tells that there is no such lesson any more
        given = lesson_of(name).steps[number - 1].sentence if is_open else EXAMPLES[0]
        LESSON_SENTENCE.set("" if boxes.source().strip() in ("", given) else boxes.source())


def _carried(name: str, number: int) -> str:
    """Return the visitor's own sentence where a step of a lesson shows it, else ""."""
    return LESSON_SENTENCE.get() if lesson_of(name).steps[number - 1].fits_any else ""


def leave() -> None:
    """Close the lesson and go back to the visitor's own sentence, as a callback.

    Before the lesson's end, a button in the side bar leads back to its step.
    """
    if IS_OVER.get():
        LESSON.clear()
    else:
        LESSON.set(LESSON.get()._replace(is_open=False))
    if LESSON_SENTENCE.get() not in ("", boxes.source()):
        show_here(LESSON_SENTENCE.get())


def show_here(sentence: str) -> None:
    """Put another sentence into the box, as a callback."""
    boxes.SOURCE_BOX.set(sentence)
    boxes.forget_target()


def begin_anew() -> None:
    """Close the lesson and open the first page, whose boxes stand above all else, with the visitor's sentence."""
    leave()
    address.restore(url_state.State(text=LESSON_SENTENCE.get()), [])
    ASKS.set(True)


def query_of(name: str) -> str:
    """Return the query of the addresses of steps, up to the number; "" where links cannot hold the lesson."""
    state = replace(address.of_step(address.common()), text="", lesson=name, step="1")
    return "" if name == url_state.OWN else f"?{urlencode(address.to_query(state))}".removesuffix("1")


def pages_of(steps: Sequence[LessonStep]) -> list[str]:
    """Return the pages of steps, relative to any page."""
    return [step.state.page or "./" for step in steps]


def link_to(name: str, number: int) -> str:
    """Return the address of a step, with the visitor's sentence; "" where a link cannot hold all of it."""
    query, own = query_of(name), _carried(name, number)
    text = f"&{urlencode({url_state.TEXT: own})}" if own else ""
    link = f"{pages_of(lesson_of(name).steps)[number - 1]}{query}{number}{text}"
    return link if query and len(link) <= limits.LINK_CHARACTERS else ""
