"""What a visitor takes along: one file of what is on the page. Nothing is made before it is asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.ui import state

if TYPE_CHECKING:  # numpy
    from visformer.panel import Panel
    from visformer.trace import Trace

_MIME = {
    "html": "text/html",
    "svg": "image/svg+xml",
    "csv": "text/csv",
    "json": "application/json",
    "safetensors": "application/octet-stream",
}


def attention(trace: "Trace") -> None:
    """The explorer, its head in focus, and the weights of all heads; drawn once it is opened.

    Args:
        trace: what the page shows.
    """
    _, key = state.gettext(), state.CANVAS
    with _popover(key) as is_open:
        if not is_open:
            return
        from visformer.export.tables import fits, to_csv, to_json

        words: Mapping[str, Any] = {"gettext": _, "lang": state.language()}
        start, theme = state.selection(trace).start(), _theme()
        place = {name: start[name] for name in ("stack", "layer", "head")}
        picture = {**place, "theme": theme, "gettext": _}
        _download(
            key, "html", lambda: _page(trace, start=start, **words), _("The explorer in one file, without a network")
        )
        _download(key, "svg", lambda: _head(trace, **picture), _("The head in focus; PNG is above the picture"))
        if fits(trace):
            _download(key, "csv", lambda: to_csv(trace), _("The weights of every head, for a spreadsheet"))
            _download(key, "json", lambda: to_json(trace), _("The weights of every head, for programs"))
        _download(key, "safetensors", trace.to_bytes, _("The weights of every head, for Trace.load in Python"))


def panels(shown: "Sequence[Panel | Sequence[Panel]]", *, key: str) -> None:
    """The panels above; drawn once it is opened.

    Args:
        shown: as they were drawn.
        key: of their picture.
    """
    _ = state.gettext()
    with _popover(key) as is_open:
        if not is_open:
            return
        from visformer.export import panels_csv, panels_svg
        from visformer.panel import Panel

        theme = _theme()
        each = [panel for one in shown for panel in ([one] if isinstance(one, Panel) else one)]
        _download(key, "svg", lambda: panels_svg(*shown, theme=theme, gettext=_), _("These pictures"))
        _download(key, "csv", lambda: panels_csv(*each, gettext=_), _("Their numbers, for a spreadsheet"))


@contextmanager
def _popover(key: str) -> Iterator[bool]:
    _ = state.gettext()
    box = st.popover(_("Export"), type="tertiary", on_change="rerun", key=f"{key}_export")
    with box, st.container(horizontal=True):
        yield bool(box.open)


def _download(key: str, ending: str, make: Callable[[], str | bytes], about: str) -> None:
    """A button; the file is made when it is clicked."""

    def made() -> bytes:
        content = make()
        return content if isinstance(content, bytes) else content.encode()

    name = f"visformer.{ending}"
    label = ending if ending == "safetensors" else ending.upper()
    st.download_button(label, made, name, _MIME[ending], key=f"{key}_{ending}", help=about, on_click="ignore")


def _page(trace: "Trace", **settings: Any) -> str:
    from visformer.canvas.page import page

    return page(trace, **settings)


def _head(trace: "Trace", **settings: Any) -> str:
    from visformer.export import attention_svg

    return attention_svg(trace, **settings)


def _theme() -> Any:
    from visformer.ui.lesson import theme

    return theme()
