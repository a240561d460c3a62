"""What a visitor sees of a download, below the list of models: how large it is, how far, and whether to try again."""

import secrets
from urllib.parse import urlsplit

import streamlit as st

from visformer.app.serving.model_downloads import Download, Phase, download_of, is_to_be_downloaded
from visformer.app.session.boxes import gettext
from visformer.app.session.slots import Slot
from visformer.system.limits import size

_VISITOR = Slot("visitor", "")
_EVERY = 0.5  # seconds between two looks at a download that runs


def offer(name: str) -> None:
    """Nothing where the model is here."""
    if is_to_be_downloaded(name):
        download = download_of(name)
        st.fragment(_panel, run_every=_EVERY if download.is_busy else None)(download, was_busy=download.is_busy)


def _panel(download: Download, *, was_busy: bool) -> None:
    phase = download.phase
    if phase is Phase.HERE or download.is_busy != was_busy:
        if phase is Phase.HERE:
            download_of.clear(download.name)
        st.rerun()  # the whole page: it has a model now, or looks at this no more than it has to
    from huggingface_hub import constants

    _, visitor, hub = gettext(), _visitor(), urlsplit(constants.ENDPOINT).netloc
    match phase:
        case Phase.OFFERED:
            st.caption(_("{size} from {hub}, to be kept here for everyone.").format(size=size(download.total), hub=hub))
            st.button(_("Download"), on_click=download.start, args=(visitor,), type="primary", width="stretch")
        case Phase.RUNNING:
            said = _("{done} of {total}").format(done=size(download.done), total=size(download.total))
            st.progress(min(1.0, download.done / max(1, download.total)), text=said)
            if download.is_wanted_by(visitor):
                st.button(_("Cancel"), on_click=download.cancel, args=(visitor,), width="stretch")
            else:
                st.caption(_("Another visitor is downloading it."))
        case Phase.FAILED:  # the page itself says why: here is no room for it
            st.button(_("Try again"), on_click=download.ask_again, width="stretch")
        case _:
            st.caption(_("Asking {hub} for its size …").format(hub=hub))


def _visitor() -> str:
    """This session: only who started a download, or joined in, can cancel it."""
    _VISITOR.set(_VISITOR.get() or secrets.token_hex(8))
    return _VISITOR.get()
