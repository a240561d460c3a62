"""The registry of pictures: each says once what it is.

Pages, links, lessons, hand-outs, files, the command line, notebooks, docs and tests read it here.

Each file of this folder declares the pictures of one page, and the page; :func:`pages` finds them by itself.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import visformer.pictures
from visformer.errors import N_, LinkError, VisformerError
from visformer.pictures.options import Option, OptionError, resolved
from visformer.pictures.setting import Setting, Source

if TYPE_CHECKING:  # plotly
    from visformer.panel import Panel

    Drawn = list[Panel] | list[list[Panel]] | Any


@dataclass(frozen=True, kw_only=True)
class View:
    """One of the views of a page. An interactive one is drawn by the page alone.

    Args:
        view: its name in links; "" where the page has but one.
        title: on the switch.
        look_for: the one sentence above it.
        options: what can be set on it.
        page_defaults: values that the page begins with, where these are not the options' own defaults.
    """

    view: str = ""
    title: str = ""
    look_for: str = ""
    options: tuple[Option, ...] = ()
    page_defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the options that make a difference to it."""
        return tuple(option.name for option in self.options if not option.page_only)

    def option(self, name: str) -> Option:
        """One of its options."""
        return next(option for option in self.options if option.name == name)


@dataclass(frozen=True, kw_only=True)
class Picture(View):
    """A view that can be drawn without its page.

    Args:
        name: in ``--picture``, and with underscores of a function of ``visformer.figures``.
        needs: globs over the tensors that it shows. ``{path}`` is the attention that is chosen, such as
            "decoder.0.cross_attn", ``{part}`` and ``{layer}`` are parts of it.
        draw: a setting to panels, or to a figure of plotly.
        formula: shows formulas, and needs no sentence.
        in_handouts: whether a lesson as a file can show it.
    """

    name: str
    draw: Callable[[Setting], "Drawn"]
    needs: tuple[str, ...] = ()
    formula: bool = False
    in_handouts: bool = True

    def make(self, source: Source, values: Mapping[str, Any] | None = None) -> "Drawn":
        """Draw it.

        Args:
            source: where numbers come from.
            values: by the names of its options; what is None or left out is the default.

        Raises:
            MissingTensor: the model has no such tensor; the message says why.
            VisformerError: a value that is not valid, or something that there is no model for.
        """
        return self.draw(self.setting(source, values or {}))

    def linked(self, page: str, source: Source, texts: Mapping[str, str]) -> tuple[Setting, set[str]]:
        """What a link to its page chooses, and the names in the link that are this picture's options.

        What the page would not offer is left at its default.
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
        """The values, each checked, and the defaults of the others; ``on_page``: those that the page begins with."""
        known = [option.name for option in self.options]
        if unknown := [name for name in values if name not in known]:
            said = N_("{picture} has no option {name!r}; it has {names}.")
            raise OptionError(said, picture=self.name, name=unknown[0], names=", ".join(self.names) or "-")
        setting = Setting(source, self.needs)
        for option in self.options:
            value = values.get(option.name)
            if value is not None:
                setting[option.name] = option.check(value, setting)
            elif on_page and option.name in self.page_defaults:
                setting[option.name] = resolved(self.page_defaults[option.name], setting)
            else:
                setting[option.name] = option.start(setting)
        return setting


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of the app: ``pages/<section>/<name>.py``.

    Args:
        name: last part of its address; "" for the first page.
        script: file name without its ending.
        section: folder of its script.
        order: among the pages.
        title: in the list of pages.
        views: pictures, and views that are drawn by the page alone.
        has_sentence: whether it shows the sentence; else it has numbers of its own.
    """

    name: str
    section: Literal["see", "understand"]
    order: int
    title: str
    views: tuple[View, ...] = ()
    script: str = ""
    has_sentence: bool = True

    @property
    def path(self) -> str:
        """The script's, from where ``app.py`` is."""
        return f"pages/{self.section}/{self.script or self.name}.py"

    @property
    def titles(self) -> dict[str, str]:
        """The views of its switch, by name."""
        return {one.view: one.title for one in self.views if one.title}

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Those of its views that are pictures."""
        return tuple(one for one in self.views if isinstance(one, Picture))

    def view(self, name: str) -> View:
        """The first of this name: it says what to look for."""
        return next(one for one in self.views if one.view == name)


def is_figure(drawn: object) -> bool:
    """Whether a picture is one of plotly's, which is not imported to find out."""
    return hasattr(drawn, "to_plotly_json")


SECTIONS = {"see": N_("See"), "understand": N_("Understand")}


@cache
def pages() -> dict[str, Page]:
    """Every page by name, in order. The files of this folder are imported for it."""
    files = [one.name for one in pkgutil.iter_modules(visformer.pictures.__path__) if not one.ispkg]
    modules = [importlib.import_module(f"{__package__}.{name}") for name in files]
    declared = [module.PAGE for module in modules if hasattr(module, "PAGE")]
    return {page.name: page for page in sorted(declared, key=lambda page: page.order)}


@cache
def pictures() -> dict[str, Picture]:
    """Every picture by name."""
    return {picture.name: picture for page in pages().values() for picture in page.pictures}


def picture(name: str) -> Picture:
    """The picture of this name.

    Raises:
        VisformerError: there is none.
    """
    found = pictures()
    if name not in found:
        raise VisformerError(N_("There is no picture {name!r}: {names}."), name=name, names=", ".join(found))
    return found[name]
