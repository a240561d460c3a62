"""The explorer on its page: what is chosen in it reaches the address, and the page that looks inside a head."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer import i18n
from visformer.app.presentation import following
from visformer.app.serving.admission import PATIENCE
from visformer.app.session import address, boxes, page, run, selection, visit
from visformer.app.widgets import controls, downloads
from visformer.app.widgets.component import attention_picture, attention_view, attention_weights
from visformer.errors import VisformerError
from visformer.system.memory import enough_memory

if TYPE_CHECKING:  # numpy
    from concurrent.futures import Future

    from visformer.trace import Trace

_PAGE = ""  # its address


def ahead(expected: "Future[Trace] | None") -> None:
    """Send the picture of a new sentence, and the page behind it: a browser that draws the page slows the model down.

    Where the Trace takes long, the page does not wait; None: nothing new is to come.
    """
    if expected is not None and page.current_page() == _PAGE:
        with suppress(TimeoutError, VisformerError), enough_memory():
            if expected.exception(PATIENCE) is None:  # else the page will say what is wrong
                _picture(expected.result(), ahead=True)
                run.current().ahead = expected.result()
                return
    # What comes behind it keeps its place.
    attention_picture(None, ahead=True)


def _picture(trace: "Trace | None", *, ahead: bool = False) -> None:
    start = {**selection.start(trace).start(), "opened": visit.OPENED.get()}
    attention_picture(trace, start=start, file=downloads.file_name(""), ahead=ahead)


@st.fragment
@controls.told()
def explorer() -> None:
    """Every head of the sentence's Trace, and a way into the one in focus. Choosing runs this fragment alone again."""
    _ = boxes.gettext()
    above, picture = st.container(), st.container(gap=None)  # what feeds the picture takes no room

    def kept(value: Any) -> None:
        trace = controls.current_trace()
        if trace is not None:
            if selection.take(value, trace):
                address.update()
            following.publish()

    with picture:
        attention_view(kept)
        # Nothing is sent between the Trace and its picture: Streamlit waits 5 ms after each sending.
        with above:  # where one is told to wait
            trace = controls.current_trace()
        if trace is None or trace is not run.current().ahead:
            _picture(trace)
        if trace is None:
            return
        attention_weights(trace)
    said = _(
        "Each row is a word that reads, each column a word that is read: the stronger a cell's colour, the more "
        "its row reads that column."
    )
    asked = _("Try: which head reads the previous token, and which always reads the same token?")
    if "decoder.0.cross_attn.pattern" in trace:
        asked = _("Try: which head of the cross-attention finds the name?")
    controls.look_for(i18n.paragraph(said, asked), above)
    chosen = selection.selection(trace)
    with st.container(horizontal=True, vertical_alignment="center"):
        if trace.lacks(f"{chosen.stack.replace('.', '.0.')}.q") is None:
            st.page_link(
                "pages/understand/head.py",
                label=_("Inside this head: layer {layer}, head {head}").format(
                    layer=chosen.layer + 1, head=chosen.head + 1
                ),
                query_params=address.address(),
            )
        downloads.attention(trace)
