"""The layout of the screen: the page, its head above it."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from visformer.app.session import address, boxes, remarks, url_state, visit
from visformer.app.session import page as pages
from visformer.app.session import run as runs
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot, hold
from visformer.app.streamlit_private import history
from visformer.app.streamlit_private.addresses import typed_page
from visformer.app.widgets import controls, downloads
from visformer.app.widgets.component import replace_address
from visformer.errors import N_, LinkError
from visformer.pictures.registry.picture import SECTIONS
from visformer.pictures.registry.picture import pages as registered

Page = Any  # what st.Page returns, for which Streamlit documents no type
Sections = dict[str, list[Page]]
_SECTIONS: Slot[tuple[str, Sections]] = Slot("sections", ("", {}))  # and the language of their titles
_SIDE_BAR = 232  # pixels: the picture needs the width more


@dataclass(frozen=True)
class Screen:
    """The current page and its containers, which can be filled in any order."""

    page: Page
    head: Any
    body: Any

    def draw_page(self) -> Run:
        """Draw the page itself; return the run, which tells what the page shows."""
        run = runs.current()
        with self.body, controls.errors_shown():
            self.page.run()
            downloads.page(run.exports)
        visit.settle(run)
        return run


def sections() -> Sections:
    """Return all registered pages, by the title of their section."""
    _, (language, sections) = boxes.gettext(), _SECTIONS.get()
    if language != boxes.language():  # making them takes 3 ms, too long for each run
        sections = {_(title): [] for title in SECTIONS.values()}
        for each in registered().values():
            page = st.Page(each.path, title=_(each.title), url_path=each.name, default=not each.name)
            sections[_(SECTIONS[each.section])].append(page)
        _SECTIONS.set((boxes.language(), sections))
    return sections


def open_screen(sections: Sections) -> Screen:
    """Open the page that the address or a file names; if there is none of that name, the first page and a remark."""
    page = _navigate(sections)
    st.set_page_config(page_title=f"{page.title} · Visformer", layout="wide", initial_sidebar_state=_SIDE_BAR)
    pages.enter(page.url_path)
    return Screen(page, st.container(key="page_head", gap="xsmall"), st.container(key="page_body"))


def _navigate(sections: Sections) -> Page:
    by_name = {page.url_path: page for each in sections.values() for page in each}
    name = typed_page()
    # For an unknown name Streamlit would open an English dialog: register a page of that name for one run.
    is_known = name.strip() in by_name
    stray = [] if is_known or "/" in name else [st.Page(lambda: None, title=name, url_path=name, visibility="hidden")]
    # Hidden, since Streamlit's own navigation writes to the browser's disk on every rerun.
    page = st.navigation({**sections, "": stray}, position="hidden")
    wanted = pages.wanted_page(page.url_path)
    if wanted not in by_name:
        if wanted != url_state.FIRST:
            written = f"/{wanted}" if stray else f"{url_state.PAGE}={wanted}"
            remarks.add([url_state.Remark(written, LinkError(N_("there is no page with this name.")))])
        wanted = ""
    if wanted != page.url_path:
        hold(boxes.SOURCE, boxes.TARGET, boxes.MODEL, boxes.LANGUAGE)  # which the next run finds again
        st.switch_page(by_name[wanted], query_params=address.address(address.shortened(visit.coming())))
    return page


def update_address(run: Run) -> None:
    """Write what a run shows into the address; a page that was just opened, or come back to, keeps its one entry.

    The links to a page may be older than the selection in the explorer, which is a fragment. After Back or Forward an
    entry may still have arrived that was on its way.
    """
    if pages.IS_NEW.pop() or history.is_back_or_forward():
        replace_address(pages.current_page(), address.of_run(run))
    else:
        address.update(run)
