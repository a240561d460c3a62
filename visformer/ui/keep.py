"""What a visitor takes along: one file of what is on the page. Nothing is made before it is asked for."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from visformer.ui import state
from visformer.ui.lesson import theme

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace


def export(trace: "Trace") -> None:
    """A quiet way to every format; what is in it is drawn once it is opened.

    Args:
        trace: what the page shows.
    """
    _ = state.gettext()
    with st.popover(_("Export"), type="tertiary", on_change="rerun", key=state.EXPORT) as box:
        if not box.open:
            return
        from visformer.export.tables import fits, to_csv, to_json

        st.caption(_("The explorer as one file that opens without a network"))
        _download("HTML", "attention.html", "text/html", _page(trace))
        st.caption(_("The head in focus; PNG is beside the picture"))
        _download("SVG", "attention.svg", "image/svg+xml", _picture(trace))
        st.caption(_("The weights of every head"))
        with st.container(horizontal=True):
            if fits(trace):
                _download("CSV", "attention.csv", "text/csv", lambda: to_csv(trace).encode())
                _download("JSON", "attention.json", "application/json", lambda: to_json(trace).encode())
            _download("safetensors", "attention.safetensors", "application/octet-stream", trace.to_bytes)


def _download(label: str, name: str, mime: str, make: Callable[[], bytes]) -> None:
    st.download_button(label, make, name, mime, key=f"export_{name}", on_click="ignore")


def _page(trace: "Trace") -> Callable[[], bytes]:
    translate, lang, start = state.gettext(), state.language(), state.selection().start()

    def make() -> bytes:
        from visformer.canvas.page import page

        return page(trace, gettext=translate, lang=lang, start=start).encode()

    return make


def _picture(trace: "Trace") -> Callable[[], bytes]:
    translate, chosen, colours = state.gettext(), state.selection(), theme()

    def make() -> bytes:
        from visformer.export import attention_svg

        place = {"stack": chosen.stack, "layer": chosen.layer, "head": chosen.head}
        return attention_svg(trace, **place, theme=colours, gettext=translate).encode()  # type: ignore[arg-type]

    return make
