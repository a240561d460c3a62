"""The formats of files, each declared once: ``save``, the page, the command line and the docs read them here.

Another format is another entry of FORMATS. Nothing slow is imported before a file is made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from visformer import export
from visformer.errors import N_
from visformer.pictures.theme import Theme

if TYPE_CHECKING:  # numpy
    from visformer.export.attention import View
    from visformer.panel import Panel
    from visformer.trace import Trace

Kind = Literal["trace", "panels", "figure"]
"""What is written: a Trace, panels (each alone or in a list of those below each other), curves, bars or a tree."""

Content = Literal["page", "picture", "numbers"]
"""What a file holds. Only a picture has a theme."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a file is made, as in :func:`visformer.export.save`; a format reads those that concern it."""

    place: Mapping[str, Any] = field(default_factory=dict)  # stack, layer and head
    start: Mapping[str, Any] | None = None  # what a page shows first; None: the head at this place
    view: "View" = "heatmap"
    query: int = 0
    theme: Theme = "light"
    scale: float = 3.0
    gettext: Callable[[str], str] = str
    lang: str = "en"
    about: str = ""


@dataclass(frozen=True)
class Offer:
    """One kind of thing in a format.

    Args:
        make: the thing and how, to what the file holds.
        help: of the button on the page, a message id; empty: there is no button.
    """

    make: Callable[[Any, Options], str | bytes]
    help: str = ""

    def file(self, what: Any, how: Options) -> bytes:
        """What the file holds."""
        made = self.make(what, how)
        return made if isinstance(made, bytes) else made.encode()


@dataclass(frozen=True)
class Format:
    """A format of files.

    Args:
        name: on the button; in small letters the ending.
        mime: the media type.
        content: what a file holds.
        offers: by the kind of thing that can be written.
        limited: a Trace may hold at most limits.MAX_NUMBERS numbers.
    """

    name: str
    mime: str
    content: Content
    offers: Mapping[Kind, Offer]
    limited: bool = False

    @property
    def ending(self) -> str:
        """``.svg``."""
        return f".{self.name.lower()}"


def endings(*contents: Content) -> tuple[str, ...]:
    """The endings of files that hold one of these; by default all."""
    return tuple(one.ending for one in FORMATS if not contents or one.content in contents)


def _page(trace: "Trace", how: Options) -> str:
    from visformer.export.attention import selected

    start = how.start
    if start is None and any(place is not None for place in how.place.values()):
        start = selected(trace, **how.place).start()
    return export.page(trace, gettext=how.gettext, lang=how.lang, start=start)


def _attention(trace: "Trace", how: Options) -> str:
    view: Mapping[str, Any] = {"view": how.view, "query": how.query, "theme": how.theme}
    return export.attention_svg(trace, **how.place, **view, gettext=how.gettext)


def _panels(shown: Any, how: Options) -> str:
    return export.panels_svg(*shown, theme=how.theme, gettext=how.gettext, about=how.about)


def _figure(shown: Any, how: Options) -> str:
    return export.figure_svg(shown, about=how.about)


def _pixels(draw: Callable[[Any, Options], str]) -> Offer:
    """No button: the page draws its own PNG."""
    return Offer(lambda what, how: export.to_png(draw(what, how), scale=how.scale))


def _each(shown: Any) -> "list[Panel]":
    from visformer.panel import Panel

    return [panel for one in shown for panel in ([one] if isinstance(one, Panel) else one)]


FORMATS = (
    Format("HTML", "text/html", "page", {"trace": Offer(_page, N_("The explorer in one file, without a network"))}),
    Format(
        "SVG",
        "image/svg+xml",
        "picture",
        {
            "trace": Offer(_attention, N_("The head in focus; PNG is above the picture")),
            "panels": Offer(_panels, N_("These pictures")),
            "figure": Offer(_figure, N_("This picture; PNG is the camera over it")),
        },
    ),
    Format(
        "PNG",
        "image/png",
        "picture",
        {"trace": _pixels(_attention), "panels": _pixels(_panels), "figure": _pixels(_figure)},
    ),
    Format(
        "CSV",
        "text/csv",
        "numbers",
        {
            "trace": Offer(lambda trace, how: export.to_csv(trace), N_("The weights of every head, for a spreadsheet")),
            "panels": Offer(
                lambda shown, how: export.panels_csv(*_each(shown), gettext=how.gettext),
                N_("Their numbers, for a spreadsheet"),
            ),
            "figure": Offer(lambda shown, how: export.figure_csv(shown), N_("Its numbers, for a spreadsheet")),
        },
        limited=True,
    ),
    Format(
        "JSON",
        "application/json",
        "numbers",
        {
            "trace": Offer(lambda trace, how: export.to_json(trace), N_("The weights of every head, for programs")),
            "panels": Offer(
                lambda shown, how: export.panels_json(*_each(shown), gettext=how.gettext, about=how.about),
                N_("Their numbers, for programs"),
            ),
            "figure": Offer(
                lambda shown, how: export.figure_json(shown, about=how.about), N_("Its numbers, for programs")
            ),
        },
        limited=True,
    ),
    Format(
        "safetensors",
        "application/octet-stream",
        "numbers",
        {
            "trace": Offer(
                lambda trace, how: trace.to_bytes(), N_("The weights of every head, for Trace.load in Python")
            ),
            "panels": Offer(
                lambda shown, how: export.panels_tensors(*_each(shown)),
                N_("Their numbers, for NumPy and other libraries"),
            ),
        },
    ),
)
