"""Presentation mode: the captions over the picture, the next step, and a QR code of the address for the room."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode, urlsplit

import streamlit as st

from visformer.adapters.checkpoints import TRANSLATOR
from visformer.app.presentation import following, guessing
from visformer.app.session import address, boxes, presentation_steps, url_state
from visformer.app.session.boxes import gettext
from visformer.app.session.page import current_page
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import EXPLORER
from visformer.app.widgets.component import presentation
from visformer.errors import N_
from visformer.pictures.registry.picture import pages
from visformer.system import settings

_HAS_CODE = Slot("present_code", False)  # whether the code is shown
_TAKEN = Slot("present_taken", 0)  # steps asked for and taken: the browser asks for one at a time
_IS_FULL = Slot("present_full", False)  # whether the limit of open rooms was reached
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_WORDS = {
    "start": N_("Present"),
    "start_about": N_(
        "Only the picture, large. p starts, p or Esc ends; arrow keys move on and back, n: note, q: QR code, ?: keys."
    ),
    "code": N_("QR code"),
    "code_about": N_("Show the address as a QR code for phones in the room, which can also follow what you show"),
    "back": "←",
    "back_about": N_("Back (←, PageUp)"),
    "on": "→",
    "on_about": N_("Next (→, PageDown)"),
    "type": N_("Sentence"),
    "type_about": N_("Type another sentence (t)"),
    "type_label": N_("Another sentence: Enter shows it, Esc keeps the one before"),
    "noted": N_("Note"),
    "noted_about": N_("Show or hide your note (n)"),
    "show-code": N_("QR code"),
    "show-code_about": N_("Show the address as a QR code for phones in the room (q)"),
    "guess": guessing.BEGIN,
    "guess_about": N_("Ask the room a question before you show the answer (g)"),
    "desk": N_("Notes window"),
    "desk_about": N_("Open your own window with notes, the next step and the room, for a second screen (d)"),
    "leave": N_("End"),
    "leave_about": N_("Back to the whole page (p or Esc)"),
    "leaving": N_("p or Esc ends the presentation, ? lists the keys"),
    "try": N_("Try"),
    "help": N_("Keys"),
    "note": N_("Your note for this step, kept in this browser. Enter or Esc leads back."),
    "follow": N_("Let the room follow"),
    "follow_about": N_("Phones that scan the new code show what you show, as you move on"),
    "close": N_("Hide the code"),
    "close_about": N_("Back to the picture; the code stays valid"),
    "stop": following.END_ROOM,
    "stop_about": N_("Phones no longer follow, and the code becomes invalid"),
    "rows": N_("Part {n} of {all}: rows {first}–{last}"),
}
_TURNS = (("→ ↓ PageDown", N_("next step, then the next page")), ("← ↑ PageUp", N_("one step back")))
_LESSON_TURNS = (("→ ↓ PageDown", N_("next step of the lesson")), ("← ↑ PageUp", N_("one step back")))
_TIMELINE = ((", .", N_("an earlier or later moment of the model's training")),)
_MORE = (("h", N_("the lesson's next hint, in the end the answer")),)
_KEYS = (
    ("t", N_("type another sentence")),
    ("n", N_("your note for this step")),
    ("q", N_("the address as a QR code")),
    ("d", N_("your own window: notes, the next step, who follows")),
    ("p", N_("end the presentation")),
    ("Esc", N_("the same; in a picture that was clicked, first unlock")),
    ("?", N_("show or hide this list")),
)
_GUESSES = (("g", N_("let the room guess first")),)
_PICTURE_KEYS = (
    ("Space", N_("where there is a play: play and pause")),
    ("← → ↑ ↓", N_("in a picture that was clicked: another head or cell")),
)
_LESSON_PICTURE_KEYS = (
    ("Space", N_("where there is a play: play and pause")),
    ("Shift + ← → ↑ ↓", N_("in a picture that was clicked: another cell")),
)


def bar(run: Run, outcome: str, on_type: Callable[[str], None]) -> None:
    """Draw the button, with the data of a presentation.

    Args:
        run: what the page shows.
        outcome: the translation, or why there is none.
        on_type: called with a sentence that the presenter typed.
    """
    _ = gettext()
    page, sentence, steps = current_page(), boxes.legible().strip(), run.steps
    keys = (_LESSON_TURNS if steps.is_guided else _TURNS) + (_MORE if steps.has_more else ()) + _KEYS
    keys += (_TIMELINE if run.moment else ()) + (_GUESSES if guessing.is_offered() else ())
    picture_keys = _LESSON_PICTURE_KEYS if steps.is_guided else _PICTURE_KEYS
    shown = {
        "words": {name: _(text) for name, text in _WORDS.items()},
        "sentence": "    ".join(filter(None, (sentence, outcome))) if outcome else "",
        "caption": run.caption,
        "title": steps.title,
        "task": steps.task,
        "over": steps.is_over,
        "keys": [(key, _(about)) for key, about in keys],
        "picture_keys": [(key, _(about)) for key, about in picture_keys],
        "tables": [asdict(table) for table in run.tables],
        "place": f"{page} {steps.place}",
        "at": steps.place,
        "guided": steps.is_guided,
        "taken": _TAKEN.get(),
        "note": steps.note,
        "typed": boxes.legible() if pages()[page].has_sentence and following.guess() is None else None,
        "moments": bool(run.moment),
        "room": following.room(),
        "guesses": guessing.is_offered(),
    }
    if _HAS_CODE.get():
        shown["code"] = code()
    presentation_steps.arrive()
    presentation(shown, on_step=step, on_ask=ask, on_type=on_type, on_room=guessing.return_to_room)


def step(direction: int) -> None:
    """Go to the page's next step, or to the first of the next page; backwards, to the last of the page before."""
    _TAKEN.set(_TAKEN.get() + 1)
    if presentation_steps.take(direction):
        return
    names = [*pages()]
    at = names.index(current_page()) + direction
    if 0 <= at < len(names):
        presentation_steps.walk_to(names[at], direction)


def ask(what: str) -> None:
    """Show or close the code, let the room follow, or let it guess; ``what`` as the browser sent it."""
    if what == "guess":
        guessing.begin()
        return
    if what == "desk":
        _IS_FULL.set(not following.invite())
        return
    _HAS_CODE.set(bool(what))
    _IS_FULL.set(what == "follow" and not following.invite())
    if what == "stop":
        following.dismiss()


def code() -> dict[str, Any]:
    """Make a QR code of the address: "size" squares along a side, "rows" of 0 and 1; "address"; "hint"; "followed"."""
    import segno  # only once a code is requested

    _ = gettext()
    room = following.presented()
    root = _root()
    url = _url(root, room)
    result: dict[str, Any] = {
        "address": url,
        "followed": bool(room),
        "hint": _hint(root if url.startswith(root) else url),
    }
    if room or address.current().fits:
        try:
            rows = segno.make_qr(url, error="l", boost_error=True).matrix
        except segno.DataOverflowError:
            rows = ()
        result |= {"size": len(rows), "rows": "".join(str(square) for row in rows for square in row)}
    if not result.get("size"):
        result["hint"] = _(
            "This address is too long for a QR code: choose “Let the room follow”, which uses a short one."
        )
    return result


def _root() -> str:
    """Return the address at which the visitor's browser reaches the app, without the page."""
    url = (st.context.url or "").rstrip("/")
    page = url.rpartition("/")[2]
    return url.removesuffix(f"/{page}") if page in pages() else url


def _url(root: str, room: str) -> str:
    """Return the address of the page in its current state, or of the room."""
    if room:
        return f"{root}/?{urlencode({url_state.FOLLOW: room})}"
    shown = address.current()
    query = urlencode(address.to_query(shown))
    if _is_on_site(shown):
        page = {url_state.PAGE: shown.page} if shown.page else {}
        return f"{settings.SITE()}#{urlencode(page | address.to_query(shown))}"
    return f"{root}/{shown.page}" + (f"?{query}" if query else "")


def _is_on_site(shown: url_state.State) -> bool:
    """Whether the operator's page without a server shows this state."""
    is_there = shown.page in ("", EXPLORER) and shown.choices.keys() <= {url_state.ZOOM} and not shown.lesson
    return bool(settings.SITE()) and is_there and (shown.model or settings.MODEL()) == TRANSLATOR


def _hint(root: str) -> str:
    """Return why phones may not reach the address; "" if there is no reason."""
    _ = gettext()
    if _IS_FULL.get():
        return _("Too many presentations are being followed right now: try again later.")
    url = urlsplit(root)
    if url.hostname in _LOCAL_HOSTS:
        said = _(
            "Only this computer can open this address. Open the app under this computer's name or IP address "
            "in the room's network, such as {address}, and show the code from there."
        )
        port = f":{url.port}" if url.port else ""
        return said.format(address=url._replace(netloc=f"192.168.1.20{port}").geturl())
    return ""
