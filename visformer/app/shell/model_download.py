"""The panel of a model's download, below the list of models: its size, its progress, a button to try again."""

import secrets
from urllib.parse import urlsplit

import streamlit as st

from visformer.app.serving.model_downloads import Download, Phase, download_of, is_to_be_downloaded
from visformer.app.session.boxes import gettext
from visformer.app.session.markdown import plain
from visformer.app.session.slots import Slot
from visformer.system.limits import size

_VISITOR = Slot("visitor", "")
_INTERVAL = 0.5  # seconds between updates of a running download


def offer(name: str) -> None:
    """Draw the panel, unless the model is on this server already."""
    if is_to_be_downloaded(name):
        download = download_of(name)
        st.fragment(_panel, run_every=_INTERVAL if download.is_busy else None)(download, was_busy=download.is_busy)


def _panel(download: Download, *, was_busy: bool) -> None:
    phase = download.phase
    if phase is Phase.HERE or download.is_busy != was_busy:
        if phase is Phase.HERE:
            download_of.clear(download.name)
        st.rerun()  # the whole page: for the model, or for a fragment that updates as often as it has to
    from huggingface_hub import constants

    _, visitor, hub = gettext(), _visitor(), plain(urlsplit(constants.ENDPOINT).netloc)
    match phase:
        case Phase.OFFERED:
            st.caption(_("{size} from {hub}, to be kept here for everyone.").format(size=size(download.total), hub=hub))
            st.button(_("Download"), on_click=download.start, args=(visitor,), type="primary", width="stretch")
        case Phase.RUNNING:
            progress = _("{done} of {total}").format(done=size(download.done), total=size(download.total))
            st.progress(min(1.0, download.done / max(1, download.total)), text=progress)
            if download.is_wanted_by(visitor):
                st.button(_("Cancel"), on_click=download.cancel, args=(visitor,), width="stretch")
            else:
                st.caption(_("Another visitor is downloading it."))
        case Phase.FAILED:  # the page shows the error: there is no room for it here
            st.button(_("Try again"), on_click=download.ask_again, width="stretch")
        case _:
            st.caption(_("Asking {hub} for its size …").format(hub=hub))


def _visitor() -> str:
    """Return an id of this session: only sessions that started or joined a download can cancel it."""
    _VISITOR.set(_VISITOR.get() or secrets.token_hex(8))
    return _VISITOR.get()
