"""Where things stand: the page in the middle, its head above it."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from visformer.app.session import address, boxes, remarks, url_state, visit
from visformer.app.session import page as pages
from visformer.app.session import run as runs
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot, hold
from visformer.app.streamlit_private.addresses import typed_page
from visformer.app.widgets import controls
from visformer.errors import N_, LinkError
from visformer.pictures.picture import SECTIONS
from visformer.pictures.picture import pages as registered

Page = Any  # what st.Page makes, for which Streamlit documents no type
Sections = dict[str, list[Page]]
_SECTIONS: Slot[tuple[str, Sections]] = Slot("sections", ("", {}))  # in which language, and they
_SIDE_BAR = 232  # pixels: the picture needs the width more


@dataclass(frozen=True)
class Screen:
    """The page that is open and the containers that it fills, in whichever order."""

    page: Page
    head: Any
    body: Any

    def draw_page(self) -> Run:
        """The page itself; returns what it shows, for whatever stands around it."""
        run = runs.current()
        with self.body, controls.told():
            self.page.run()
        visit.settle(run)
        return run


def sections() -> Sections:
    """Every registered page, under the title of its section."""
    _, (language, made) = boxes.gettext(), _SECTIONS.get()
    if language != boxes.language():  # making them anew takes three milliseconds of each run
        made = {_(title): [] for title in SECTIONS.values()}
        for one in registered().values():
            page = st.Page(one.path, title=_(one.title), url_path=one.name, default=not one.name)
            made[_(SECTIONS[one.section])].append(page)
        _SECTIONS.set((boxes.language(), made))
    return made


def open_screen(sections: Sections) -> Screen:
    """The page that the address or a file asks for; where there is none of that name the first one, which is told."""
    page = _navigate(sections)
    st.set_page_config(page_title=f"{page.title} · Visformer", layout="wide", initial_sidebar_state=_SIDE_BAR)
    pages.enter(page.url_path)
    return Screen(page, st.container(key="page_head", gap="xsmall"), st.container(key="page_body"))


def _navigate(sections: Sections) -> Page:
    by_name = {page.url_path: page for each in sections.values() for page in each}
    name = typed_page()
    # Streamlit would put an English dialog over the page; so every name is a page, for one run.
    is_known = name.strip() in by_name
    stray = [] if is_known else [st.Page(lambda: None, title=name, url_path=name, visibility="hidden")]
    # Hidden, since Streamlit's own list writes to the browser's disk on every rerun.
    page = st.navigation({**sections, "": stray}, position="hidden")
    wanted = pages.wanted_page(page.url_path)
    if wanted not in by_name:
        if wanted != pages.FIRST:
            said = f"/{wanted}" if stray else f"{url_state.PAGE}={wanted}"
            remarks.add([url_state.Remark(said, LinkError(N_("there is no page with this name.")))])
        wanted = ""
    if wanted != page.url_path:
        hold(boxes.SOURCE, boxes.TARGET, boxes.MODEL, boxes.LANGUAGE)  # this run ends here
        st.switch_page(by_name[wanted], query_params=address.address())
    return page
