"""The layout of the screen: the page, its head above it."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from visformer.app.session import address, boxes, remarks, url_state, visit
from visformer.app.session import page as pages
from visformer.app.session import run as runs
from visformer.app.session.run import Run
from visformer.app.session.slots import hold
from visformer.app.streamlit_private import run_context
from visformer.app.streamlit_private.run_context import typed_page
from visformer.app.widgets import controls, downloads
from visformer.app.widgets.component import replace_address
from visformer.errors import N_, LinkError

_SIDE_BAR = 232  # pixels: the picture needs the width more


@dataclass(frozen=True)
class Screen:
    """The current page and its containers, which can be filled in any order."""

    page: pages.Page
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


def open_screen() -> Screen:
    """Open the page that the address or a file names; if there is none of that name, the first page and a remark."""
    page = _navigate()
    st.set_page_config(page_title=f"{page.title} · Visformer", layout="wide", initial_sidebar_state=_SIDE_BAR)
    pages.enter(page.url_path)
    return Screen(page, st.container(key="page_head", gap="xsmall"), st.container(key="page_body"))


def _navigate() -> pages.Page:
    by_name = pages.all_pages()
    name = typed_page()
    # For an unknown name Streamlit would open an English dialog: register a page of that name for one run.
    is_known = name.strip() in by_name
    stray = [] if is_known or "/" in name else [st.Page(lambda: None, title=name, url_path=name, visibility="hidden")]
    # Hidden, since Streamlit's own navigation writes to the browser's disk on every rerun.
    page = st.navigation([*by_name.values(), *stray], position="hidden")
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
    if pages.IS_NEW.pop() or run_context.is_back_or_forward():
        replace_address(pages.current_page(), address.of_run(run))
    else:
        address.update(run)
