"""Sharing the page as a link, or as a file where a link would be too long; and remarks on what was ignored in one."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from visformer.app.presentation import presenting
from visformer.app.session import address, remarks, slots, url_state, visit
from visformer.app.session.boxes import gettext
from visformer.app.session.run import Run
from visformer.app.session.slots import Slot
from visformer.app.widgets.component import link_button

_FILE = Slot("state_file", False)  # whether its popover is open
_MOST = 10  # lines of a notice


def notice() -> None:
    """Draw the remarks on what was ignored in a link or file, until the visitor dismisses them."""
    _ = gettext()
    ignored = remarks.REMARKS.get()
    if not ignored:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="top", key="notice"):
        with st.container(gap="xxsmall"):
            st.caption(_("Ignored on opening:"))
            st.text(remarks.listed(ignored, _MOST))  # never Markdown: anybody may have written the link
        away = remarks.REMARKS.clear
        st.button(_("Dismiss"), icon=":material/close:", type="tertiary", on_click=away, key="notice_put_away")


def bar(run: Run, outcome: str, on_type: Callable[[str], None]) -> None:
    """Draw the button that copies a link to the page, the presentation's buttons, and the popover for files.

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
    box = st.popover(_("As a file"), type="tertiary", on_change="rerun", key=_FILE.key)
    if not box.open:
        return
    with box:
        st.caption(_("Everything a link holds, even if it is too long for one."))
        # Made on a click: a browser fetches a finished file with the page, on a slow line when it is gone already.
        st.download_button(_("Save"), shown.file, "visformer-state.json", "application/json", on_click="ignore")
        key = f"{_FILE.key}_{slots.version(_FILE.key)}"
        st.file_uploader(_("Open a saved file"), "json", max_upload_size=1, key=key, on_change=_open, args=(key,))


def _open(key: str) -> None:
    """Restore the state in an uploaded file, before the page runs again."""
    uploaded: Any = Slot(key, None).get()
    if uploaded is None:
        return
    texts, unread = url_state.from_file(uploaded.getvalue(), uploaded.name)
    if texts or not unread:
        state, wrong = url_state.read(texts)
        visit.bring_back(state, [*unread, *wrong])
    else:
        remarks.add(unread)
    slots.renew(_FILE.key)
    _FILE.set(False)
