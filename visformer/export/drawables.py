"""What is drawn, sent to a browser and written to files: a class for each, with the same methods.

Nothing slow is imported before one of them is used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from visformer import export
from visformer.pictures.style import Theme

if TYPE_CHECKING:  # numpy
    from visformer.panel import Panel
    from visformer.web.selection import Exported

Kind = Literal["trace", "pair", "panels", "figure", "model", "history"]


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

    @property
    def words(self) -> dict[str, Any]:
        """The language, as the functions that write pages and messages take it."""
        return {"gettext": self.gettext, "lang": self.lang}


@dataclass(frozen=True)
class Drawable:
    """Something that is drawn; each kind has those of the methods that ``FORMATS`` offers for it.

    Args:
        shown: what is drawn.
    """

    name: ClassVar[Kind]
    shown: Any

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        raise NotImplementedError

    def page(self, options: Options) -> str:
        """Return it as one HTML file that loads nothing."""
        raise NotImplementedError

    def frame(self, options: Options) -> str:
        """Return it as the output of a notebook cell."""
        raise NotImplementedError

    def messages(self, options: Options) -> tuple[bytes, bytes]:
        """Return the message that the browser draws, and the weights that did not fit into it; b"": all did."""
        raise NotImplementedError

    def svg(self, options: Options) -> str:
        """Return it as a picture."""
        raise NotImplementedError

    def csv(self, options: Options) -> str:
        """Return its numbers for a spreadsheet."""
        raise NotImplementedError

    def json(self, options: Options) -> str:
        """Return its numbers for programs."""
        raise NotImplementedError

    def safetensors(self) -> bytes:
        """Return its numbers for NumPy."""
        raise NotImplementedError


class DrawnTrace(Drawable):
    """A Trace: the explorer, or one head of it as a picture."""

    name = "trace"

    @property
    def size(self) -> int:
        return sum(tensor.value.size for tensor in (*self.shown.tensors.values(), *self.shown.params.values()))

    def page(self, options: Options) -> str:
        from visformer.export.attention import selected

        start = options.start
        if start is None and any(place is not None for place in options.place.values()):
            start = selected(self.shown, **options.place).start()
        return export.page(self.shown, **options.words, start=start)

    def frame(self, options: Options) -> str:
        from visformer.web.page import frame

        return frame(self.shown, **options.words, start=options.start)

    def messages(self, options: Options) -> tuple[bytes, bytes]:
        from visformer.web.chunks import focus_from
        from visformer.web.payload import pack, pack_rest

        picture = pack(self.shown, **options.words, start=options.start)
        return picture, pack_rest(self.shown, focus=focus_from(options.start)) or b""

    def svg(self, options: Options) -> str:
        view: Mapping[str, Any] = {"view": options.view, "query": options.query, "theme": options.theme}
        return export.attention_svg(self.shown, **options.place, **view, gettext=options.gettext)

    def csv(self, options: Options) -> str:
        return export.to_csv(self.shown)

    def json(self, options: Options) -> str:
        return export.to_json(self.shown)

    def safetensors(self) -> bytes:
        content: bytes = self.shown.to_bytes()
        return content


class DrawnPair(Drawable):
    """Two passes that are compared: two linked explorers."""

    name = "pair"

    @property
    def size(self) -> int:
        return DrawnTrace(self.shown.first).size + DrawnTrace(self.shown.second).size

    def page(self, options: Options) -> str:
        return export.pair_page(self.shown, **options.words, start=options.start)

    def svg(self, options: Options) -> str:
        place = options.place
        if options.start is not None and options.start.get("stack"):
            place = {name: options.start.get(name) for name in ("stack", "layer", "head")}
        return export.pair_svg(self.shown, **place, theme=options.theme, gettext=options.gettext)

    def frame(self, options: Options) -> str:
        from visformer.web.page import pair_frame

        return pair_frame(self.shown, **options.words, start=options.start)


class DrawnPanels(Drawable):
    """Panels, of which a nested list is stacked."""

    name = "panels"

    @property
    def size(self) -> int:
        return sum(panel.values.size for panel in self._each())

    def messages(self, options: Options) -> tuple[bytes, bytes]:
        from visformer.web.panels import pack_panels

        return pack_panels(self.shown, **options.words), b""

    def svg(self, options: Options) -> str:
        return export.panels_svg(*self.shown, theme=options.theme, gettext=options.gettext, about=options.about)

    def page(self, options: Options) -> str:
        from visformer.pictures.charts.panels import matrix

        return _offline(matrix(*self._each(), theme=options.theme))

    def csv(self, options: Options) -> str:
        return export.panels_csv(*self._each(), gettext=options.gettext)

    def json(self, options: Options) -> str:
        return export.panels_json(*self._each(), gettext=options.gettext, about=options.about)

    def safetensors(self) -> bytes:
        return export.panels_tensors(*self._each())

    def _each(self) -> "list[Panel]":
        from visformer.panel import one_by_one

        return one_by_one(self.shown)


class DrawnFigure(Drawable):
    """A Plotly figure of curves, bars or a tree."""

    name = "figure"

    @property
    def size(self) -> int:
        from visformer.export.curves import numbers_of

        return sum(map(len, numbers_of(self.shown)[1].values()))

    def svg(self, options: Options) -> str:
        return export.figure_svg(self.shown, about=options.about)

    def page(self, options: Options) -> str:
        return _offline(self.shown)

    def csv(self, options: Options) -> str:
        return export.figure_csv(self.shown)

    def json(self, options: Options) -> str:
        return export.figure_json(self.shown, about=options.about)


class DrawnModel(Drawable):
    """The whole model, which only a browser draws."""

    name = "model"

    @property
    def size(self) -> int:
        return DrawnTrace(self.shown.trace).size

    def page(self, options: Options) -> str:
        return export.model_page(self.shown.trace, **self._look(options))

    def frame(self, options: Options) -> str:
        from visformer.web.page import model_frame

        return model_frame(self.shown.trace, **self._look(options))

    def messages(self, options: Options) -> tuple[bytes, bytes]:
        from visformer.web.map import pack_map

        return pack_map(self.shown.trace, **self._look(options)), b""

    def _look(self, options: Options) -> dict[str, Any]:
        from visformer.web.chunks import Focus

        return {"focus": Focus(*self.shown.head), **options.words}


class DrawnHistory(Drawable):
    """A sentence at every moment of a training: the explorer with a slider."""

    name = "history"

    def page(self, options: Options) -> str:
        return export.history_page(self.shown, **options.words, start=options.start)

    def frame(self, options: Options) -> str:
        from visformer.web.page import history_frame

        return history_frame(self.shown, **options.words)


def _offline(figure: Any) -> str:
    """Return a figure of Plotly as a page that loads nothing."""
    page: str = figure.to_html(include_plotlyjs=True)
    return page


def drawable_of(shown: Any) -> Drawable:
    """Return what is drawn as a drawable: a Trace, ``Sides``, panels, a figure, a ``WholeModel`` or a ``History``."""
    if hasattr(shown, "to_plotly_json"):
        panels = getattr(shown, "panels", ())
        return DrawnPanels(panels) if panels else DrawnFigure(shown)
    if isinstance(shown, list | tuple):
        return DrawnPanels(shown)
    from visformer.panel import Panel
    from visformer.pictures.attention import History
    from visformer.pictures.map import WholeModel
    from visformer.pictures.sides import Sides
    from visformer.trace import Trace

    if isinstance(shown, Panel):
        return DrawnPanels([shown])
    kinds = {Trace: DrawnTrace, WholeModel: DrawnModel, History: DrawnHistory, Sides: DrawnPair}
    return kinds.get(type(shown), DrawnPanels)(shown)
