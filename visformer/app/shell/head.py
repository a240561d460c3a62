"""The head of every page: the sentence, its target, the examples, errors, and sharing the page."""

from collections.abc import Callable
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer import i18n
from visformer.app.lessons import lesson_panel, open_lesson
from visformer.app.presentation import following, guessing, presenting
from visformer.app.serving import uploaded_pictures
from visformer.app.serving.models import SECOND_BOX
from visformer.app.session import address, boxes, remarks, slots, url_state
from visformer.app.session.boxes import gettext
from visformer.app.session.page import all_pages, current_page
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot, hold
from visformer.app.shell import timeline
from visformer.app.widgets import chat, controls, downloads, picture_box, scene, unavailable
from visformer.app.widgets.component import link_button
from visformer.errors import N_, VisformerError
from visformer.pictures.examples import OFFERED, TESTED
from visformer.pictures.registry.picture import pages as registered

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace

_IS_HELD = Slot("sentence_kept", False)  # whether the previous page had no sentence box

_TITLE = "<h1 class='vf-page-name'>{}</h1>"
"""Seen on phones, where the side bar is closed, and heard by screen readers."""

_ABOUT_TARGET = {
    "encoder": N_("This model is an encoder: it generates no text. It can read a second sentence after the first."),
    "decoder": N_("Empty: the sentence alone. Type a continuation to see how the model reads it."),
    "encoder-decoder": N_(
        "Empty: the model's own translation. Type a target to see how the model reads that one instead."
    ),
}


_CONFIDENCE = N_(
    "Confidence says how probable the model finds its translation, and how probable it finds the sentence when it "
    "reads it back from the translation. Below a threshold the translation counts as unsure; the model card says how "
    "often it is then wrong."
)


def draw(run: Run) -> None:
    """Draw the head above the page; during a lesson, which needs the room, only the boxes."""
    notices()
    in_lesson = lesson_panel.panel(run)
    if not registered()[current_page()].has_sentence:
        hold_sentence()
        sharing_line(run)
        return
    if run.request is None:  # the page needs no trace, but the head does
        controls.current_trace()
    run.moment = timeline.said()
    if _IS_HELD.pop():
        hold(boxes.SOURCE, boxes.TARGET)  # or the browser would draw new, empty boxes
    (_draw_boxes if in_lesson else _draw_all)(run)
    timeline.draw()


def notices() -> None:
    """Draw the page's name for screen readers, what was ignored in a link, and who follows whom."""
    st.html(_TITLE.format(escape(all_pages()[current_page()].title)))
    # In a container that is always there: otherwise a new line moves all that follows, and for a moment the browser
    # has the old presentation beside the new one.
    with st.container(gap="xsmall", key="notices"):
        _ignored_parts()
        following.line(guessing.button)


def hold_sentence() -> None:
    """Keep the sentence, which Streamlit would drop, for a page that has its box."""
    hold(boxes.SOURCE, boxes.TARGET)
    _IS_HELD.set(True)


def sharing_line(run: Run) -> None:
    """Draw sharing and the language switch in a line of their own."""
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center", key="ways"):
        _share(run, "", on_type=_enter)
        language_switch()


def _draw_boxes(run: Run) -> None:
    """Draw the boxes alone."""
    with st.container(key="lesson_boxes"):
        left, middle, right = st.columns([7, 6, 12], vertical_alignment="center")
    if boxes.own_model():
        hold_sentence()
    else:
        _sentence_boxes(run, left, middle, label_visibility="visible")
    with right.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        _sharing_and_language(run, _outcome(run))
    if run.problem is not None:
        controls.show_error(run.problem)


def _draw_all(run: Run) -> None:
    _ = boxes.gettext()
    if boxes.own_model():
        hold_sentence()  # the page has the picture itself
    else:
        with st.container(key="boxes"):
            how: Any = "top" if _takes_chats() else "center"  # a chat is much higher than the other boxes
            widths = [5, 4, 3] if boxes.pictures() == "none" else [8, 4, 1]  # a picture has examples of its own
            left, middle, right = st.columns(widths, vertical_alignment=how)
        _sentence_boxes(run, left, middle, label_visibility="visible")
    if not boxes.reads_pictures() and boxes.pictures() == "none":
        right.selectbox(
            _("Examples"),
            OFFERED,
            index=None,
            key=boxes.EXAMPLE,
            placeholder=_("Choose a sentence"),
            on_change=boxes.take_example,
        )
    with st.container(horizontal=True, vertical_alignment="center", key="below_boxes"):
        with st.container(gap="xxsmall", key="outcome"):
            if run.trace is not None:
                st.text("\n".join(filter(None, [_outcome(run), *_hints(run.trace)])))
                if run.trace.is_unsure:
                    st.caption(_doubt(run.trace), help=_(_CONFIDENCE))
            elif run.problem is not None:
                controls.show_error(run.problem)
        with st.container(horizontal=True, vertical_alignment="center", width="content", key="ways"):
            _sharing_and_language(run, _outcome(run))
    if run.trace is not None and run.trace.is_unsure:
        st.pills(_("It is sure of these:"), TESTED, key=boxes.TESTED, on_change=boxes.take_example)


def _sentence_boxes(run: Run, left: Any, middle: Any, **style: Any) -> None:
    """Draw the box of the sentence, and beside it that of the target, named for the kind of model."""
    _ = boxes.gettext()
    kind, pictures = unavailable.kind_of(run.trace) if run.trace is not None else _kind(), boxes.pictures()
    changed = partial(_typed, kind)
    # The target box, if empty, shows the model's own translation, or the one that it borrows, as its placeholder.
    own = str(run.trace.meta.get("target") or "") if run.trace and boxes.target() is None else ""
    # The browser draws a box before it has taken its value from the session.
    asked = _("Type a sentence")
    if boxes.reads_pictures():
        scene.draw(left, run.trace)
        _IS_HELD.set(True)
        hold(boxes.SOURCE)
    elif pictures != "none":
        picture_box.draw(left, run.trace, pictures, on_change=changed)
        _IS_HELD.set(True)
        hold(boxes.SOURCE)
    elif _takes_chats():
        chat.draw(left, on_change=changed, **style)
        _IS_HELD.set(True)
    else:
        left.text_input(_("Sentence"), key=boxes.SOURCE, placeholder=asked, on_change=changed, **style)
    if boxes.is_picture_alone():
        hold(boxes.TARGET)
        return
    middle.text_input(
        _(SECOND_BOX[kind]),
        key=boxes.TARGET,
        placeholder=_("optional") if kind == "encoder" else own or _("optional"),
        help=_(_ABOUT_TARGET[kind]),
        **style,
    )


def _typed(kind: str) -> None:
    open_lesson.take_sentence()
    if kind != "encoder":
        boxes.forget_target()


def _enter(sentence: str) -> None:
    """Take a sentence that was typed elsewhere than in the box."""
    picture, _text = uploaded_pictures.named(boxes.typed())
    is_with = picture and boxes.pictures() == "with"
    boxes.SOURCE_BOX.set(uploaded_pictures.text_of(picture, sentence) if is_with else sentence)
    _typed(_kind())


def _kind() -> str:
    """Return the kind of the chosen model; until it is known, "encoder-decoder"."""
    try:
        return controls.bench().kind
    except VisformerError:
        return "encoder-decoder"


def _takes_chats() -> bool:
    try:
        return controls.bench().takes_chats
    except VisformerError:
        return False


def _outcome(run: Run) -> str:
    """Return the translation, or why there is none."""
    _, trace = boxes.gettext(), run.trace
    if trace is None:
        return run.problem.localized(_) if run.problem is not None else ""
    from visformer.pictures.style import decoded_text, visible

    if not trace.tokens.get("src"):
        if trace.special["next"][-1]:
            return _("The model ends the text here. Leave out its last mark or word, and it goes on.")
        return _("The model continues with: {token}").format(token=visible(trace.tokens["next"][-1]))
    if not trace.tokens.get("tgt"):
        return ""  # an encoder generates no text
    sentence = _("Translation: {text}") if trace.meta.get("to") else _("Model output: {text}")
    if "grid" in trace.meta:
        sentence = _("Caption: {text}")
    if trace.meta.get("forced"):
        sentence = _("Target as typed: {text}")
        if boxes.target() is None:  # borrowed
            sentence = _("Untrained, so it is given the translator's words as its target: {text}")
    return sentence.format(
        text=decoded_text(str(trace.meta.get("target", "")), _)
    )  # a model may emit control characters


def _doubt(trace: "Trace") -> str:
    """Return that the model is unsure of its own translation; "" if it is not, or if that is not known."""
    _ = boxes.gettext()
    said = _("The model is unsure of this translation (confidence {confidence:.0%}).")
    return said.format(confidence=trace.confidence) if trace.is_unsure else ""


def _hints(trace: "Trace") -> list[str]:
    """Return remarks on unusual tokens, and on a translation without an end; few sentences have any."""
    _ = boxes.gettext()
    from visformer.pictures.embedding import hints
    from visformer.pictures.style import visible

    said = [_(message).format(tokens=visible(examples)) for message, examples in hints(trace)]
    if trace.meta.get("picture"):
        said.append(
            _("The model knows coloured shapes on white alone: it says which of them it takes the picture for.")
        )
    is_own = trace.meta.get("to") and not trace.meta.get("forced")
    if is_own and not trace.special["next"][-1]:
        cut = _("The translation is cut off here, after {n} tokens: the model had not ended it.")
        if "grid" in trace.meta:
            cut = _("The caption is cut off here, after {n} tokens: the model had not ended it.")
        said.insert(0, cut.format(n=len(trace.tokens["next"])))
    return said


def _sharing_and_language(run: Run, outcome: str) -> None:
    """Draw sharing and the language switch; not in the side bar, which is closed on a phone."""
    doubt = _doubt(run.trace) if run.trace is not None else ""
    _share(run, "    ".join(filter(None, (run.moment, outcome, doubt))), on_type=_enter)
    language_switch()


def language_switch() -> None:
    """Draw the language switch."""
    _, names = boxes.gettext(), i18n.languages()
    st.segmented_control(
        _("Language"),
        list(names),
        format_func=names.__getitem__,
        key=boxes.LANGUAGE,
        required=True,
        on_change=partial(boxes.LANGUAGE_IS_CHOSEN.set, True),
        label_visibility="collapsed",
        width="content",
    )


SAVING = Slot("saving", False)
"""Whether the menu of files is open."""
_LISTED = 10  # lines of a notice


def _ignored_parts() -> None:
    """Draw the remarks on what was ignored in a link or file, until the visitor dismisses them."""
    _ = gettext()
    ignored = remarks.REMARKS.get()
    if not ignored:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="top", key="notice"):
        with st.container(gap="xxsmall"):
            st.caption(_("Ignored on opening:"))
            st.text(remarks.listed(ignored, _LISTED))  # never Markdown: anybody may have written the link
        away = remarks.REMARKS.clear
        st.button(_("Dismiss"), icon=":material/close:", type="tertiary", on_click=away, key="notice_put_away")


def _share(run: Run, outcome: str, on_type: Callable[[str], None]) -> None:
    """Draw the button that copies a link to the page, the presentation's buttons, and the menu of files.

    A presentation shows ``outcome`` above its picture, after the sentence; ``on_type`` takes one that is typed there.
    """
    _ = gettext()
    shown = address.current(run)
    words = {
        "copy": _("Copy link"),
        "copied": _("Link copied"),
        "address": _("Address of this page"),
        "byHand": _("Your browser copies only on secure pages: press Ctrl+C, or hold to copy."),
    }
    if not shown.fits:
        words["refused"] = _("These texts are too long for a link: save them as a file.")
    elif run.unlinked:
        words["unlinked"] = run.unlinked
    link_button(words)
    presenting.bar(run, outcome, on_type)
    box = st.popover(_("Save"), type="tertiary", on_change="rerun", key=SAVING.key)
    if not box.open:
        return
    with box:
        if run.exports:
            downloads.page(run.exports)
            st.divider()
        st.caption(_("Where you are: everything a link holds, even if it is too long for one."))
        # Made on a click: a browser fetches a finished file with the page, on a slow line when it is gone already.
        st.download_button(_("State"), shown.file, "visformer-state.json", "application/json", on_click="ignore")
        key = f"{SAVING.key}_{slots.version(SAVING.key)}"
        st.file_uploader(_("Open a saved file"), "json", max_upload_size=1, key=key, on_change=_open_file, args=(key,))


def _open_file(key: str) -> None:
    """Restore the state in an uploaded file, before the page runs again."""
    uploaded: Any = Slot(key, None).get()
    if uploaded is None:
        return
    texts, unread = url_state.from_file(uploaded.getvalue(), uploaded.name)
    if texts or not unread:
        state, wrong = url_state.read(texts)
        address.restore(state, [*unread, *wrong])
    else:
        remarks.add(unread)
    slots.renew(SAVING.key)
    SAVING.set(False)
