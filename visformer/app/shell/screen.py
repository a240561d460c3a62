"""The screen of a run: the visitor is admitted, the page laid out with its head, and the address written at the end."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from visformer.app.lessons import open_lesson
from visformer.app.presentation import following, guessing
from visformer.app.presentation.guesses import Guess
from visformer.app.serving import capacity
from visformer.app.serving.admission import ADMISSION
from visformer.app.session import address, boxes, remarks, url_state
from visformer.app.session import page as pages
from visformer.app.session import run as runs
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot, hold
from visformer.app.shell import head, side_bar
from visformer.app.streamlit_private import logs, run_context
from visformer.app.streamlit_private.other_sessions import address_of
from visformer.app.widgets import chat, component, controls, waiting
from visformer.errors import N_, LinkError

_SIDE_BAR = 232  # pixels: the picture needs the width more
_IS_INSIDE = Slot("inside", False)  # admitted visitors stay admitted


def begin_run() -> None:
    """Begin a run, before anything is drawn. Where the server is full, the run ends here."""
    logs.keep_typed_text_out()
    ADMISSION.notice, ADMISSION.address_of = waiting.queue_notice, address_of
    component.run_missed_acts()
    address.begin()
    if not _IS_INSIDE.get() and (problem := capacity.no_room()):
        st.set_page_config(page_title="Visformer")
        controls.show_error(problem)
        st.stop()
    _IS_INSIDE.set(True)
    following.catch_up()
    guessing.restore_page()
    open_lesson.follow()


@dataclass(frozen=True)
class Screen:
    """The current page and its containers, which can be filled in any order."""

    page: pages.StreamlitPage
    head: Any
    body: Any

    def draw_page(self) -> Run:
        """Draw the page itself; return the run, which tells what the page shows."""
        run = runs.current()
        with self.body, controls.errors_shown():
            chat.answer()
            self.page.run()
        address.settle(run)
        return run

    def draw_head(self, run: Run) -> None:
        """Draw the head above the page that this run shows."""
        with self.head:
            head.draw(run)

    def draw_question(self, guess: Guess) -> None:
        """Draw a question to the room in place of the page; what the page's widgets hold is restored with it."""
        head.hold_sentence()
        hold(boxes.MODEL, boxes.LANGUAGE)
        is_presenter = bool(following.presented())
        with self.body, controls.errors_shown():
            (guessing.draw_for_presenter if is_presenter else guessing.draw_for_phone)(guess)
        with self.head:
            head.notices()
            if is_presenter:
                head.sharing_line(runs.current())
            else:
                with st.container(key="ways"):
                    head.language_switch()
        if is_presenter:
            side_bar.draw()


def open_screen() -> Screen:
    """Open the page that the address or a file names; if there is none of that name, the first page and a remark."""
    page = _navigate()
    st.set_page_config(page_title=f"{page.title} · Visformer", layout="wide", initial_sidebar_state=_SIDE_BAR)
    pages.enter(page.url_path)
    return Screen(page, st.container(key="page_head", gap="xsmall"), st.container(key="page_body"))


def _navigate() -> pages.StreamlitPage:
    by_name = pages.all_pages()
    name = run_context.typed_page()
    # For an unknown name Streamlit would open an English dialog: register a page of that name for one run.
    is_known = name.strip() in by_name
    stray = [] if is_known or "/" in name else [st.Page(lambda: None, title=name, url_path=name, visibility="hidden")]
    # Hidden, since Streamlit's own navigation writes to the browser's disk on every rerun.
    page = st.navigation([*by_name.values(), *stray], position="hidden")
    wanted = pages.requested_page(page.url_path)
    if wanted not in by_name:
        if wanted != url_state.FIRST:
            written = f"/{wanted}" if stray else f"{url_state.PAGE}={wanted}"
            remarks.add([url_state.Remark(written, LinkError(N_("there is no page with this name.")))])
        wanted = ""
    if wanted != page.url_path:
        hold(boxes.SOURCE, boxes.TARGET, boxes.MODEL, boxes.LANGUAGE)  # which the next run finds again
        # Another query would become an entry of its own in the browser's history, before the page's; the page's
        # first run gives its entry its query, see update_address.
        st.switch_page(by_name[wanted], query_params=st.query_params.to_dict())
    return page


def update_address(run: Run) -> None:
    """Write what a run shows into the address; a page that was just opened, or come back to, keeps its one entry.

    The links to a page may be older than the selection in the explorer, which is a fragment. After Back or Forward an
    entry may still have arrived that was on its way.
    """
    if pages.IS_NEW.pop() or run_context.is_back_or_forward():
        component.replace_address(pages.current_page(), address.of_run(run))
    else:
        address.update(run)


def send_words() -> None:
    """Send the browser what it says by itself, when all else is drawn: Streamlit's own words, and of a lost server."""
    _ = boxes.gettext()
    boxes.drawn()
    component.streamlit_words()
    component.connection_notice(
        _(
            "The connection to the server is lost. You can still explore what you see, and your sentence is "
            "kept; the page reconnects by itself as soon as the server answers."
        )
    )
