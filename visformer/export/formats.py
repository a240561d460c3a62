"""The file formats, each an entry of FORMATS, which ``save``, the page, the command line and the docs read, by use.

Nothing slow is imported before a file is written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from visformer import export
from visformer.errors import N_
from visformer.export.drawables import Drawable, Kind, Options, drawable_of
from visformer.i18n import translations

Content = Literal["page", "picture", "numbers"]
"""What a file holds. Only a picture has a theme."""


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str  # on the button; in lower case the ending
    mime: str
    content: Content
    about: str  # what a file contains, for docs/export.md
    write: Callable[[Drawable, Options], str | bytes]
    offers: Mapping[Kind, str]  # the supported kinds, with the tooltip of the button; "": without one
    limited: bool = False  # to a Trace of at most limits.MAX_NUMBERS numbers
    scaled: bool = False  # whether Options.scale applies

    @property
    def ending(self) -> str:
        """The ending of its files, such as ``.svg``."""
        return f".{self.name.lower()}"

    def file(self, drawable: Drawable, options: Options) -> bytes:
        """Return the content of the file."""
        content = self.write(drawable, options)
        return content if isinstance(content, bytes) else content.encode()


FORMATS = (
    Format(
        "PNG",
        "image/png",
        "picture",
        N_("the same as SVG in pixels, about 300 per inch"),
        lambda drawn, options: export.to_png(drawn.svg(options), scale=options.scale),
        {
            "trace": "",  # the explorer has a button for what is on screen
            "pair": N_("One head of both, for slides"),
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
            "one head as a matrix, arcs or shaded tokens, one of two passes, all heads of a stack, any panels, curves, "
            "bars and trees; sharp at every size"
        ),
        lambda drawn, options: drawn.svg(options),
        {
            "trace": N_("The selected head, sharp at every size"),
            "pair": N_("One head of both, sharp at every size"),
            "panels": N_("The pictures, sharp at every size"),
            "figure": N_("The picture, sharp at every size"),
        },
    ),
    Format(
        "PDF",
        "application/pdf",
        "picture",
        N_("the same as SVG on a page of its size, for papers and printing; needs the extra `pdf`"),
        lambda drawn, options: export.to_pdf(drawn.svg(options)),
        {
            "trace": N_("The selected head, for papers and printing"),
            "pair": N_("One head of both, for papers and printing"),
            "panels": N_("The pictures, for papers and printing"),
            "figure": N_("The picture, for papers and printing"),
        },
    ),
    Format(
        "HTML",
        "text/html",
        "page",
        N_(
            "the explorer with all heads, two that are linked, one at every moment of a training, or the whole model, "
            "in one file: opens from disk, loads nothing, light or dark as the viewer prefers; panels and figures as "
            "Plotly draws them, with hover"
        ),
        lambda drawn, options: drawn.page(options),
        {
            "trace": N_("The explorer in one file that works offline"),
            "pair": N_("Both explorers, linked, in one file that works offline"),
            "model": N_("The whole model, which plays, in one file that works offline"),
            "panels": "",  # five megabytes of Plotly: from Python and the command line
            "figure": "",
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
        lambda drawn, options: drawn.csv(options),
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
        lambda drawn, options: drawn.json(options),
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
        lambda drawn, options: drawn.safetensors(),
        {
            "trace": N_("The weights of every head, for Trace.load in Python"),
            "panels": N_("Their numbers, for NumPy and other libraries"),
        },
    ),
)


def file_of(name: str, shown: Any, options: Options) -> bytes:
    """Return the content of a file in the format of this name, with visformer's own words in ``options.lang``."""
    (item,) = (item for item in FORMATS if item.name == name)
    return item.file(drawable_of(shown), replace(options, gettext=translations(options.lang).gettext))
