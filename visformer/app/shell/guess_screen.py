"""The screen of a question to the room, in place of the page: for its presenter, or for a phone."""

import streamlit as st

from visformer.app.presentation import following, guess_views
from visformer.app.presentation.guesses import Guess
from visformer.app.session import boxes, run, slots
from visformer.app.shell import head, side_bar, surroundings
from visformer.app.shell.screen import Screen
from visformer.app.widgets import controls, downloads


def draw(guess: Guess, screen: Screen) -> None:
    """Draw the question; what the page's widgets hold is restored with the page."""
    head.hold_sentence()
    slots.hold(boxes.MODEL, boxes.LANGUAGE)
    is_presenter = bool(following.presented())
    with screen.body, controls.errors_shown():
        (guess_views.presenter if is_presenter else guess_views.phone)(guess)
        if is_presenter:
            downloads.page(run.current().exports)
    with screen.head:
        head.notices(screen)
        if is_presenter:
            head.ways(run.current())
        else:
            with st.container(key="ways"):
                head.language_switch()
    if is_presenter:
        side_bar.draw()
    surroundings.draw()
