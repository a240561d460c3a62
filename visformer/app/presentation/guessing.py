"""Guess first: a presenter asks the room a question, phones answer it, and it is revealed beside what the model does.

While a question is on, it takes the place of the page, also the presenter's: the page would tell the answer.
"""

import secrets
from dataclasses import replace

import streamlit as st

from visformer.app.presentation import following
from visformer.app.presentation.guesses import Answer, Guess, Question, Wanted
from visformer.app.session import address, boxes, presentation_steps, selection, visit
from visformer.app.session.page import current_page
from visformer.app.session.slots import Slot
from visformer.app.session.url_state import State
from visformer.errors import N_

BEGIN = N_("Guess first")
"""The label of the button that begins a question."""

_BEFORE: Slot[State | None] = Slot("guess_before", None)  # what the presenter's page showed
WANTED: Slot[Wanted | None] = Slot("guess_wanted", None)
"""What the form begins with, once: a lesson's question, or the head in focus."""

_GUEST = Slot("guest", "")  # the key of this person's answer


def is_offered() -> bool:
    """Whether this session can ask a room."""
    return bool(following.presented()) and following.guess() is None


def asked() -> Guess | None:
    """Return the question in place of the page, if any; a presenter who goes to another page ends it."""
    guess = following.guess()
    if guess is not None and following.presented() and current_page() != guess.page:
        _BEFORE.clear()
        following.ask(None)
        return None
    return guess


def button() -> None:
    """Draw the button that begins a question, beside the room's."""
    if is_offered():
        st.button(boxes.gettext()(BEGIN), type="tertiary", on_click=begin, key="guess_begin")


def begin(wanted: Wanted | None = None) -> None:
    """Prepare a question, as a callback: by default about the head in focus."""
    if is_offered():
        _BEFORE.set(address.current())
        WANTED.set(wanted or Wanted(place=selection.chosen()))
        following.ask(Guess(current_page()))


def ask(guess: Guess, question: Question | None) -> None:
    """Open a question; None: prepare another one."""
    guess.ask(question)
    following.nudge()


def reveal(guess: Guess) -> None:
    """Show the answer to everybody."""
    guess.reveal()
    following.nudge()


def lock(guess: Guess) -> None:
    """Take no more answers."""
    guess.lock()
    following.nudge()


def reset(guess: Guess) -> None:
    """Forget all answers, and take new ones."""
    guess.reset()
    following.nudge()


def reopen(guess: Guess) -> None:
    """Take answers again."""
    guess.reopen()
    following.nudge()


def end(guess: Guess) -> None:
    """End a question, as a callback; of one about a head, the page that comes back shows that head."""
    before, question = _BEFORE.get(), guess.question
    if before is not None and question is not None and question.kind == "head":
        place = {"stack": question.stack, "layer": question.layer, "head": question.head, "query": None, "key": None}
        _BEFORE.set(replace(before, selection=replace(before.selection, **place)))  # type: ignore[arg-type]
    following.ask(None)


def bring_back() -> None:
    """Restore the presenter's page at the start of a run, once its question is over, with the sentence asked about."""
    if _BEFORE.get() is not None and following.guess() is None:
        before = _BEFORE.pop()
        assert before is not None
        visit.bring_back(replace(before, text=boxes.source(), target=boxes.target() or ""), [])


def offer_steps(guess: Guess) -> None:
    """Let the keys of a presentation turn an open question: on to the reveal and the page, and back."""

    def turn(direction: int) -> bool:
        is_open = guess.question is not None and guess.result is None
        if direction > 0 and is_open:
            reveal(guess)
        elif direction < 0 and guess.result is not None:
            reopen(guess)
        else:
            end(guess)
        return True

    presentation_steps.offer(turn)


def guest() -> str:
    """Return the key of this session's answer, which its browser keeps for a reload, in no address."""
    if not _GUEST.get():
        _GUEST.set(secrets.token_hex(8))
    return _GUEST.get()


def take_up(guess: Guess, key: str) -> Answer | None:
    """Make the answer with a key that the browser kept this session's; return it, None if there is none."""
    answer = guess.answer_of(key)
    if answer is not None:
        _GUEST.set(key)
    return answer
