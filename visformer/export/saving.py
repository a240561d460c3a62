"""Writing files; the ending selects the format."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from visformer.errors import N_, VisformerError
from visformer.export.drawables import Options, drawable_of
from visformer.export.formats import FORMATS
from visformer.i18n import languages, translations
from visformer.panel import Panel
from visformer.pictures.attention import History
from visformer.pictures.map import WholeModel
from visformer.pictures.style import Theme
from visformer.system.files import write_whole
from visformer.trace import Trace
from visformer.web.selection import Exported

if TYPE_CHECKING:  # plotly
    from plotly.graph_objects import Figure

    from visformer.export.notebook import Explorer


def save(
    what: "Trace | Panel | Sequence[Panel | Sequence[Panel]] | Figure | WholeModel | History | Explorer",
    path: str | Path,
    *,
    stack: str | None = None,
    layer: int | None = None,
    head: int | None = None,
    view: Exported = "heatmap",
    query: int = 0,
    theme: Theme = "light",
    scale: float = 3.0,
    gettext: Callable[[str], str] | None = None,
    lang: str = "en",
    about: str = "",
) -> None:
    """Write a file in one of the formats of docs/export.md; its ending, such as .html, .svg or .csv, selects which.

    Args:
        what: a Trace; a panel or several; a figure of curves or bars of :mod:`visformer.figures`; or what a browser
            draws, such as the result of ``vf.figures.map``, ``vf.figures.history`` or ``vf.compare``.
        path: the file. Not every format fits: .html takes a Trace or what a browser draws, .safetensors no figure.
        stack: "encoder.self_attn", "decoder.self_attn" or "decoder.cross_attn"; None: with
            ``layer`` or ``head`` the first in the Trace, otherwise the one that the pages begin with.
        layer: from 0; with ``head`` the picture shows this head, without both all heads.
        head: from 0.
        view: how a picture shows a head: "heatmap", "arcs", or "tokens", shaded by how much ``query`` reads them.
        query: from 0.
        theme: "light" or "dark", for a picture; a page follows its viewer, a figure has its own.
        scale: of a PNG: pixels per CSS pixel; 3 is about 300 to the inch.
        gettext: translates the words on the picture; None: visformer's own translations.
        lang: the language of the words: "en", "zh" or another that visformer has, or that of ``gettext``.
        about: of panels and figures, the model and the input that the numbers come from (a Trace knows); not drawn.

    Raises:
        VisformerError: the ending is none of these, or the Trace lacks something.
        OSError: the file cannot be written.
    """
    path = Path(path)
    if theme not in get_args(Theme):
        raise VisformerError(N_("theme is {theme!r}; it can be 'light' or 'dark'."), theme=theme)
    if gettext is None and lang not in languages():
        known = ", ".join(languages())
        raise VisformerError(N_("lang is {lang!r}; it can be {languages}."), lang=lang, languages=known)
    drawable = drawable_of(getattr(what, "drawn", what))  # of the output of a notebook cell
    formats = {item.ending: item for item in FORMATS if drawable.name in item.offers}
    if path.suffix.lower() not in formats:
        raise VisformerError(
            N_("{path} does not end in any of {endings}: the ending sets the format."),
            path=path.name,
            endings=", ".join(formats),
        )
    place = {"stack": stack, "layer": layer, "head": head}
    style: dict[str, Any] = {"view": view, "query": query, "theme": theme, "scale": scale}
    options = Options(place=place, **style, gettext=gettext or translations(lang).gettext, lang=lang, about=about)
    write_whole(path, formats[path.suffix.lower()].file(drawable, options))
