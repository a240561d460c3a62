"""What a visitor takes along: one file of what is on the page. Nothing is made before it is asked for."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import streamlit as st

from visformer.app.serving.models import MODEL, label
from visformer.app.session import state
from visformer.system import limits

if TYPE_CHECKING:  # numpy
    from visformer.panel import Panel
    from visformer.trace import Trace

_FORMULAS = ("lab_", "positions_")
"""Keys of pictures that show no model's numbers."""

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
    said = _("SVG: the head in focus; CSV, JSON, safetensors: the weights of all heads; HTML: the explorer.")
    with _popover(key, said) as is_open:
        if not is_open:
            return
        from visformer.export.tables import fits, size_of, to_csv, to_json

        words: Mapping[str, Any] = {"gettext": _, "lang": state.language()}
        start, theme = state.selection(trace).start(), _theme()
        place = {name: start[name] for name in ("stack", "layer", "head")}
        picture = {**place, "theme": theme, "gettext": _}
        part = "cross" if "cross" in start["stack"] else start["stack"].split(".")[0]
        head = f"{part}-L{start['layer'] + 1}-H{start['head'] + 1}"
        _download(
            key, "html", lambda: _page(trace, start=start, **words), _("The explorer in one file, without a network")
        )
        _download(
            key, "svg", lambda: _head(trace, **picture), _("The head in focus; PNG is above the picture"), what=head
        )
        if fits(trace):
            _download(key, "csv", lambda: to_csv(trace), _("The weights of every head, for a spreadsheet"))
            _download(key, "json", lambda: to_json(trace), _("The weights of every head, for programs"))
        _download(key, "safetensors", trace.to_bytes, _("The weights of every head, for Trace.load in Python"))
        if not fits(trace):
            _too_many(size_of(trace))


def panels(shown: "Sequence[Panel | Sequence[Panel]]", *, key: str) -> None:
    """The panels above; drawn once it is opened.

    Args:
        shown: as they were drawn.
        key: of their picture.
    """
    _ = state.gettext()
    with _popover(key, _("SVG: the pictures; CSV, JSON, safetensors: their numbers.")) as is_open:
        if not is_open:
            return
        from visformer.export import panels_csv, panels_json, panels_svg, panels_tensors
        from visformer.panel import Panel

        theme, about = _theme(), _about(key)
        each = [panel for one in shown for panel in ([one] if isinstance(one, Panel) else one)]
        _download(key, "svg", lambda: panels_svg(*shown, theme=theme, gettext=_, about=about), _("These pictures"))
        _download(key, "csv", lambda: panels_csv(*each, gettext=_), _("Their numbers, for a spreadsheet"))
        _download(key, "json", lambda: panels_json(*each, gettext=_, about=about), _("Their numbers, for programs"))
        _download(key, "safetensors", lambda: panels_tensors(*each), _("Their numbers, for NumPy and other libraries"))


def figure(shown: Any, *, key: str) -> None:
    """Curves or bars above; drawn once it is opened.

    Args:
        shown: a figure of :mod:`visformer.figures`.
        key: of their picture.
    """
    _ = state.gettext()
    with _popover(key, _("SVG: the picture; CSV, JSON: its numbers.")) as is_open:
        if not is_open:
            return
        from visformer.export import figure_csv, figure_json, figure_svg

        about = _about(key)
        _download(key, "svg", lambda: figure_svg(shown, about=about), _("This picture; PNG is the camera over it"))
        _download(key, "csv", lambda: figure_csv(shown), _("Its numbers, for a spreadsheet"))
        _download(key, "json", lambda: figure_json(shown, about=about), _("Its numbers, for programs"))


def _too_many(count: int) -> None:
    """Why there is neither CSV nor JSON, and what to do instead."""
    _ = state.gettext()

    said = _(
        "{count:,} weights are too many for CSV and JSON, which hold up to {limit:,}. safetensors holds all of them; "
        "in Python, visformer.export.to_csv(trace, name) writes one layer's as CSV."
    )
    st.caption(said.format(count=count, limit=limits.MAX_NUMBERS))


@contextmanager
def _popover(key: str, said: str) -> Iterator[bool]:
    _ = state.gettext()
    box = st.popover(_("Export"), type="tertiary", on_change="rerun", key=f"{key}_export")
    if box.open:
        box.caption(said)
    with box, st.container(horizontal=True):
        yield bool(box.open)


def _about(key: str) -> str:
    """Which model was given which sentence; of a formula's pictures nothing."""
    if key.startswith(_FORMULAS) and key != "positions_model":
        return ""
    return f"{label(state.model() or MODEL)}: {state.source()}"


def file_name(what: str) -> str:
    """Of a file without its ending: the model, and what is in it; letters that every system takes."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", f"{label(state.model() or MODEL)}-{what}").strip("-.")


def _download(key: str, ending: str, make: Callable[[], str | bytes], about: str, *, what: str = "") -> None:
    """A button; the file is made when it is clicked."""

    def made() -> bytes:
        content = make()
        return content if isinstance(content, bytes) else content.encode()

    name = f"{file_name(what or key)}.{ending}"
    words = ending if ending == "safetensors" else ending.upper()
    st.download_button(words, made, name, _MIME[ending], key=f"{key}_{ending}", help=about, on_click="ignore")


def _page(trace: "Trace", **settings: Any) -> str:
    from visformer.web.page import page

    return page(trace, **settings)


def _head(trace: "Trace", **settings: Any) -> str:
    from visformer.export import attention_svg

    return attention_svg(trace, **settings)


def _theme() -> Any:
    from visformer.app.widgets.formula_box import theme

    return theme()
