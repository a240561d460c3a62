"""A link to what is shown, or a file of it where a link would be too long; and what of either was ignored."""

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from visformer.app.presentation import presenting
from visformer.app.session import state, url_state
from visformer.app.widgets.component import link_button
from visformer.errors import N_, LinkError

_FILE = "state_file"
_MOST = 10  # lines of a notice


FIRST = "attention"
"""What the first page would be called if its address were not "/", as the others are; who types it gets that page."""


def navigation(sections: Mapping[str, Sequence[StreamlitPage]]) -> StreamlitPage:
    """The page that the address or a file asks for; where there is none of that name the first one, which is told."""
    pages = {page.url_path: page for each in sections.values() for page in each}
    presenting.know([*pages])
    name = _typed_page()
    # Streamlit would put an English dialog over the page; so every name is a page, for one run.
    stray = [st.Page(lambda: None, title=name, url_path=name, visibility="hidden")] if name.strip() not in pages else []
    # Hidden, since Streamlit's own list writes to the browser's disk on every rerun.
    page = st.navigation({**sections, "": stray}, position="hidden")
    wanted = state.wanted_page(page.url_path)
    if wanted == FIRST:
        wanted = ""
    elif wanted not in pages:
        said = f"/{wanted}" if stray else f"{url_state.PAGE}={wanted}"
        state.add_remarks([url_state.Remark(said, LinkError(N_("there is no page of this name.")))])
        wanted = ""
    if wanted != page.url_path:
        state.hold(state.SOURCE, state.TARGET, state.MODEL, state.LANGUAGE)  # this run ends here
        st.switch_page(pages[wanted], query_params=state.address())
    return page


def asked_page() -> str:
    """The page that the address asks for, whether or not there is one."""
    name = _typed_page()
    return "" if name == FIRST else name


def _typed_page() -> str:
    context = get_script_run_ctx()
    return (context.pages_manager.intended_page_name if context else None) or ""


def notice() -> None:
    """What a link or a file asked for and did not get, until the visitor puts it away."""
    _ = state.gettext()
    remarks = state.remarks()
    if not remarks:
        return
    lines = [remark.localized(_) for remark in remarks[:_MOST]]
    if len(remarks) > _MOST:
        lines.append(_("and {n} more").format(n=len(remarks) - _MOST))
    with st.container(border=True, horizontal=True, vertical_alignment="top", key="notice"):
        with st.container(gap="xxsmall"):
            st.caption(_("Ignored when this was opened:"))
            st.text("\n".join(lines))  # never markdown: it was typed by somebody
        st.button(
            _("Put away"), icon=":material/close:", type="tertiary", on_click=state.put_away, key="notice_put_away"
        )


def bar(said: str = "") -> None:
    """A button that copies the link to what is shown, a presentation of it, and the same as a file.

    Args:
        said: stands over the picture of a presentation, behind the sentence.
    """
    _ = state.gettext()
    words = {
        "copy": _("Copy link"),
        "copied": _("Link copied"),
        "address": _("Address of this page"),
        "byHand": _("Your browser copies only on secure pages: press Ctrl+C, or hold to copy."),
    }
    if not state.current().fits:
        words["refused"] = _("These texts are too long for a link: save them as a file.")
    link_button(words, key="copy_link")
    presenting.bar(said)
    box = st.popover(_("As a file"), type="tertiary", on_change="rerun", key=_FILE)
    if not box.open:
        return
    with box:
        st.caption(_("Everything that a link holds, also where it would be too long for one."))
        st.download_button(
            _("Save"), state.current().file(), "visformer-state.json", "application/json", on_click="ignore"
        )
        key = f"{_FILE}_{state.version(_FILE)}"
        st.file_uploader(_("Open a saved one"), "json", max_upload_size=1, key=key, on_change=_open, args=(key,))


def _open(key: str) -> None:
    """Before the page runs again: what an uploaded file holds."""
    uploaded = st.session_state.get(key)
    if uploaded is None:
        return
    given, unread = url_state.from_file(uploaded.getvalue(), uploaded.name)
    if given or not unread:
        asked, wrong = url_state.read(given)
        state.bring_back(asked, [*unread, *wrong])
        state.go_to(asked.page)
    else:
        state.add_remarks(unread)
    state.renew(_FILE)
    st.session_state[_FILE] = False
