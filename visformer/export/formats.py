"""The file formats, each an entry of FORMATS, which ``save``, the page, the command line and the docs read, by use.

Nothing slow is imported before a file is written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from visformer import export
from visformer.errors import N_
from visformer.i18n import translations
from visformer.pictures.style.theme import Theme

if TYPE_CHECKING:  # numpy
    from visformer.panel import Panel
    from visformer.web.selection import Exported

Kind = Literal["trace", "pair", "panels", "figure", "model", "history"]
"""What is exported: a Trace; two that are compared; panels, of which a nested list is stacked; a figure of curves, bars
or a tree; what the whole model is drawn from; or a sentence at every moment of a training."""

Content = Literal["page", "picture", "numbers"]
"""What a file holds. Only a picture has a theme."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of :func:`visformer.export.save`; a format reads those that it needs."""

    place: Mapping[str, Any] = field(default_factory=dict)  # stack, layer and head
    start: Mapping[str, Any] | None = None  # the initial selection of a page; None: the head at this place
    view: "Exported" = "heatmap"
    query: int = 0
    theme: Theme = "light"
    scale: float = 3.0
    gettext: Callable[[str], str] = str
    lang: str = "en"
    about: str = ""


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str  # on the button; in lower case the ending
    mime: str
    content: Content
    about: str  # what a file contains, for docs/export.md
    write: Callable[[Kind, Any, Options], str | bytes]
    offers: Mapping[Kind, str]  # the supported kinds, with the tooltip of the button; "": without one
    limited: bool = False  # to a Trace of at most limits.MAX_NUMBERS numbers
    scaled: bool = False  # whether Options.scale applies

    @property
    def ending(self) -> str:
        """The ending of its files, such as ``.svg``."""
        return f".{self.name.lower()}"

    def file(self, kind: Kind, what: Any, how: Options) -> bytes:
        """Return the content of the file."""
        content = self.write(kind, what, how)
        return content if isinstance(content, bytes) else content.encode()


def _page(kind: Kind, what: Any, how: Options) -> str:
    if kind == "model":
        from visformer.web.chunks import Focus

        return export.model_page(what.trace, focus=Focus(*what.head), lang=how.lang, gettext=how.gettext)
    if kind == "pair":
        return export.pair_page(what, gettext=how.gettext, lang=how.lang, start=how.start)
    if kind == "history":
        return export.history_page(what, gettext=how.gettext, lang=how.lang, start=how.start)
    from visformer.export.attention import selected

    start = how.start
    if start is None and any(place is not None for place in how.place.values()):
        start = selected(what, **how.place).start()
    return export.page(what, gettext=how.gettext, lang=how.lang, start=start)


def _picture(kind: Kind, what: Any, how: Options) -> str:
    if kind == "trace":
        view: Mapping[str, Any] = {"view": how.view, "query": how.query, "theme": how.theme}
        return export.attention_svg(what, **how.place, **view, gettext=how.gettext)
    if kind == "panels":
        return export.panels_svg(*what, theme=how.theme, gettext=how.gettext, about=how.about)
    return export.figure_svg(what, about=how.about)


def _pixels(kind: Kind, what: Any, how: Options) -> bytes:
    return export.to_png(_picture(kind, what, how), scale=how.scale)


def _csv(kind: Kind, what: Any, how: Options) -> str:
    if kind == "panels":
        return export.panels_csv(*_each(what), gettext=how.gettext)
    return export.to_csv(what) if kind == "trace" else export.figure_csv(what)


def _json(kind: Kind, what: Any, how: Options) -> str:
    if kind == "panels":
        return export.panels_json(*_each(what), gettext=how.gettext, about=how.about)
    return export.to_json(what) if kind == "trace" else export.figure_json(what, about=how.about)


def _tensors(kind: Kind, what: Any, _how: Options) -> bytes:
    written: bytes = what.to_bytes() if kind == "trace" else export.panels_tensors(*_each(what))
    return written


def _each(shown: Any) -> "list[Panel]":
    from visformer.panel import one_by_one

    return one_by_one(shown)


FORMATS = (
    Format(
        "PNG",
        "image/png",
        "picture",
        N_("the same as SVG in pixels, about 300 per inch"),
        _pixels,
        {
            "trace": "",  # the explorer has a button for what is on screen
            "panels": N_("The pictures, for slides"),
            "figure": N_("The picture, for slides"),
        },
        scaled=True,
    ),
    Format(
        "SVG",
        "image/svg+xml",
        "picture",
        N_(
            "one head as a matrix, arcs or shaded tokens, all heads of a stack, any panels, curves, bars and "
            "trees; sharp at every size"
        ),
        _picture,
        {
            "trace": N_("The selected head, sharp at every size"),
            "panels": N_("The pictures, sharp at every size"),
            "figure": N_("The picture, sharp at every size"),
        },
    ),
    Format(
        "HTML",
        "text/html",
        "page",
        N_(
            "the explorer with all heads, two that are linked, one at every moment of a training, or the whole model, "
            "in one file: opens from disk, loads nothing, light or dark as the viewer prefers"
        ),
        _page,
        {
            "trace": N_("The explorer in one file that works offline"),
            "pair": N_("Both explorers, linked, in one file that works offline"),
            "model": N_("The whole model, which plays, in one file that works offline"),
            "history": N_(
                "The explorer at every moment of the training, with a slider, in one file that works offline"
            ),
        },
    ),
    Format(
        "CSV",
        "text/csv",
        "numbers",
        N_("one line per weight: tensor, head, query, key, both tokens; positions and heads count from 0"),
        _csv,
        {
            "trace": N_("The weights of every head, for a spreadsheet"),
            "panels": N_("Their numbers, for a spreadsheet"),
            "figure": N_("Its numbers, for a spreadsheet"),
        },
        limited=True,
    ),
    Format(
        "JSON",
        "application/json",
        "numbers",
        N_("tokens and every recorded number, with the names of their axes"),
        _json,
        {
            "trace": N_("The weights of every head, for programs"),
            "panels": N_("Their numbers, for programs"),
            "figure": N_("Its numbers, for programs"),
        },
        limited=True,
    ),
    Format(
        "safetensors",
        "application/octet-stream",
        "numbers",
        N_("the whole Trace, for `vf.Trace.load`"),
        _tensors,
        {
            "trace": N_("The weights of every head, for Trace.load in Python"),
            "panels": N_("Their numbers, for NumPy and other libraries"),
        },
    ),
)


def file_of(name: str, kind: Kind, what: Any, how: Options) -> bytes:
    """Return the content of a file in the format of this name, with visformer's own words in ``how.lang``."""
    (item,) = (item for item in FORMATS if item.name == name)
    return item.file(kind, what, replace(how, gettext=translations(how.lang).gettext))
