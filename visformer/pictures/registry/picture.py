"""The registry of pictures, each declared once.

Pages, links, lessons, hand-outs, exported files, the command line, notebooks, docs and tests read the declarations.

Each file of ``visformer/pictures/`` declares one page and its pictures; :func:`pages` discovers them.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import visformer.pictures
from visformer.errors import N_, LinkError, VisformerError
from visformer.pictures.registry.options import SELECTED, Option, OptionError, resolved
from visformer.pictures.registry.setting import Setting, Source
from visformer.trace.stacks import STACKS

if TYPE_CHECKING:  # plotly
    from visformer.panel import Panel

    Drawn = list[Panel] | list[list[Panel]] | Any


@dataclass(frozen=True, kw_only=True)
class View:
    """A view of a page; an interactive one, which is no Picture, can be drawn by its page only.

    Args:
        view: its name in links; "" if the page has only one.
        title: its label on the page's switch.
        look_for: the sentence above it that says what to look for.
        options: its options.
        page_defaults: initial values on the page, where they differ from the options' defaults.
        where: the part of the model that it shows, if it is not its page's.
    """

    view: str = ""
    title: str = ""
    look_for: str = ""
    options: tuple[Option, ...] = ()
    page_defaults: Mapping[str, Any] = field(default_factory=dict)
    where: "Where | None" = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the options that affect what is drawn."""
        return tuple(option.name for option in self.options if not option.page_only)

    def option(self, name: str) -> Option:
        """Return the option with this name."""
        return next(option for option in self.options if option.name == name)


@dataclass(frozen=True, kw_only=True)
class Picture(View):
    """A view that can be drawn without its page.

    Args:
        name: its name in ``--picture`` and, with underscores, as a function of ``visformer.figures``.
        needs: globs over the names of the tensors that it shows. ``{path}`` is the selected attention, such as
            "decoder.0.cross_attn"; ``{part}`` and ``{layer}`` are parts of it.
        draw: draws a setting as panels, as a plotly figure or, what is live, as what the browser draws it from.
        formula: whether it shows a formula or numbers of its own, so that it needs no sentence.
        alone: whether a model makes no difference to it, either.
        in_handouts: whether a lesson saved as a file can show it.
        live: whether a browser draws it, so that its file is a page.
    """

    name: str
    draw: Callable[[Setting], "Drawn"]
    needs: tuple[str, ...] = ()
    formula: bool = False
    alone: bool = False
    in_handouts: bool = True
    live: bool = False

    @property
    def shows_head(self) -> bool:
        """Whether it shows the selection of the explorer, so that it begins with the same head."""
        return SELECTED[0] in self.options

    def make(self, source: Source, values: Mapping[str, Any] | None = None) -> "Drawn":
        """Draw it.

        Args:
            source: where the numbers come from.
            values: option name to value; None or a missing name means the default.

        Raises:
            MissingTensor: the model has no such tensor; the message says why.
            VisformerError: a value is invalid, or the picture needs a model and there is none.
        """
        return self.draw(self.setting(source, values or {}))

    def linked(self, page: str, source: Source, texts: Mapping[str, str]) -> tuple[Setting, set[str]]:
        """Read the options from a link to its page; also return the names in the link that are this picture's.

        Values that the page would not offer are left at their default.
        """
        values: dict[str, Any] = {}
        names = set()
        for option in self.options:
            setting = self.setting(source, values, on_page=True)
            names.add(name := option.key(page, setting))
            if name in texts:
                with suppress(LinkError):
                    values[option.name] = option.read(texts[name], setting)
        return self.setting(source, values, on_page=True), names

    def setting(self, source: Source, values: Mapping[str, Any], *, on_page: bool = False) -> Setting:
        """Return the checked values, with defaults for the others; ``on_page``: with the page's initial values."""
        known = [option.name for option in self.options]
        if unknown := [name for name in values if name not in known]:
            said = N_("{picture} has no option {name!r}; it has {names}.")
            raise OptionError(said, picture=self.name, name=unknown[0], names=", ".join(self.names) or "-")
        setting = Setting(source, self.needs)
        given = {name: value for name, value in values.items() if value is not None}
        if self.shows_head and not given.keys() & _PLACE:
            given |= {name: value for name, value in _first(setting).items() if name in known}
        for option in self.options:
            value = given.get(option.name)
            if value is not None:
                setting[option.name] = option.check(value, setting)
            elif on_page and option.name in self.page_defaults:
                setting[option.name] = resolved(self.page_defaults[option.name], setting)
            else:
                setting[option.name] = option.start(setting)
        return setting


_PLACE = {option.name: option for option in SELECTED[:3]}.keys()


def _first(setting: Setting) -> dict[str, Any]:
    """Return the head that comes first by the names of its options; {} without attention."""
    from visformer.analysis.heads import first_head

    trace = setting.patterns
    there = any(stack.in_trace(trace) for stack in STACKS)
    return dict(zip(_PLACE, first_head(trace), strict=True)) if there else {}


Where = Literal["model", "tokens", "embedding", "position", "masks", "attention", "layer", "output"]
"""The part of a model that a page shows."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of the app: ``pages/<section>/<name>.py``.

    Args:
        name: last part of its address; "" for the first page.
        script: file name without extension; by default the name.
        section: folder of its script.
        order: sort key in the list of pages.
        title: its title in that list.
        about: what it shows, in a line.
        views: its pictures, and the views that only the page can draw.
        has_sentence: whether it shows the sentence; otherwise it has numbers of its own.
        model: of a page of models that read pictures, the one that it shows where the visitor's reads none; "": any
            model is shown.
        where: the part of the model that it shows, marked in the side bar; None: none of it.
    """

    name: str
    section: Literal["see", "understand", "research"]
    order: int
    title: str
    about: str
    views: tuple[View, ...] = ()
    script: str = ""
    has_sentence: bool = True
    model: str = ""
    where: Where | None = None

    @property
    def path(self) -> str:
        """The path of the script, relative to ``app.py``."""
        return f"pages/{self.section}/{self.script or self.name}.py"

    @property
    def titles(self) -> dict[str, str]:
        """The titles of the views on its switch, by name."""
        return {view.view: view.title for view in self.views if view.title}

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The views that are pictures."""
        return tuple(view for view in self.views if isinstance(view, Picture))

    def view(self, name: str) -> View:
        """Return the first view of this name, which has the sentence on what to look for."""
        return next(view for view in self.views if view.view == name)


def is_figure(drawn: object) -> bool:
    """Whether a picture is a plotly figure; does not import plotly."""
    return hasattr(drawn, "to_plotly_json")


SECTIONS = {"see": N_("See"), "understand": N_("Understand"), "research": N_("Research")}


@cache
def pages() -> dict[str, Page]:
    """Return every page by name, in order; imports all files of ``visformer/pictures/``."""
    files = [module.name for module in pkgutil.iter_modules(visformer.pictures.__path__) if not module.ispkg]
    modules = [importlib.import_module(f"visformer.pictures.{name}") for name in files]
    declared = [module.PAGE for module in modules if hasattr(module, "PAGE")]
    return {page.name: page for page in sorted(declared, key=lambda page: page.order)}


@cache
def pictures() -> dict[str, Picture]:
    """Return every picture by name."""
    return {picture.name: picture for page in pages().values() for picture in page.pictures}


def picture(name: str) -> Picture:
    """Return the picture with this name.

    Raises:
        VisformerError: there is none.
    """
    known = pictures()
    if name not in known:
        raise VisformerError(N_("There is no picture {name!r}: {names}."), name=name, names=", ".join(known))
    return known[name]
