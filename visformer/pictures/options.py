"""What can be set on a picture. One declaration serves its slider, link, lesson, ``--flag`` and keyword in Python.

A range says what is valid: a program may ask for anything in it. What a slider offers may be less (``least`` and
``most``), since a page is for everybody.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from visformer.errors import N_, LinkError, VisformerError
from visformer.pictures.setting import Setting

_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?")
_LISTED = 12  # choices that an error lists; more would be no help
Bound = float | Callable[[Setting], float]


class OptionError(VisformerError):
    """A value that an option cannot have."""


class Outside(OptionError):
    """A place beyond the last one; ``params``: name, place (from 0) and count."""


@dataclass(frozen=True, kw_only=True)
class Option(ABC):
    """What all kinds have in common.

    Args:
        name: keyword in Python, ``--name`` on the command line, and the name in links unless ``link`` differs.
        label: above its slider.
        help: on the command line.
        tooltip: beside its slider; ``{own}`` is the model's d_model.
        default: a value, or a function of the picture's setting.
        link: the name in links and lessons, behind the page's; None: the option's name alone, which pages share.
        per: what the slider's range depends on; with another value of it the slider starts anew.
        page_only: only the ranges of other sliders depend on it.
        widget: Streamlit's, where an option's kind may have another than its usual one.
    """

    name: str
    label: str = ""
    help: str = ""
    tooltip: str = ""
    default: Any = None
    link: str | Callable[[Setting], str] | None = ""
    per: Callable[[Setting], object] | None = None
    page_only: bool = False
    widget: str = ""

    def start(self, setting: Setting) -> Any:
        """The default."""
        return resolved(self.default, setting)

    def key(self, page: str, setting: Setting) -> str:
        """The name in the links of a page."""
        return self.name if self.link is None else f"{page}_{resolved(self.link, setting) or self.name}"

    def check(self, value: Any, setting: Setting) -> Any:
        """The value, if it is valid.

        Raises:
            VisformerError: it is not.
        """
        return value

    @abstractmethod
    def read(self, text: str, setting: Setting) -> Any:
        """A value as a link has it, within what the page offers.

        Raises:
            LinkError: the page does not offer it.
        """

    def write(self, value: Any) -> str:
        """A value as links have it."""
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Number(Option):
    """A number.

    Args:
        least: the least that a page offers.
        most: the largest that a page offers.
        valid: the least that is valid.
        whole: whether only whole numbers are.
        step: of its slider.
    """

    least: Bound
    most: Bound
    valid: float | None = None
    whole: bool = True
    step: float | None = None

    def check(self, value: Any, setting: Setting) -> Any:
        if self.valid is not None and value < self.valid:
            needed = N_("{name} is {value}; it must be at least {least}.")
            raise OptionError(needed, name=self.name, value=value, least=self.write(self.valid))
        return value

    def read(self, text: str, setting: Setting) -> float:
        low, high = resolved(self.least, setting), resolved(self.most, setting)
        if not _NUMBER.fullmatch(text) or (self.whole and "." in text) or not low <= float(text) <= high:
            needed = N_("expected a number from {low} to {high}.")
            if self.whole:
                needed = N_("expected a whole number from {low} to {high}.")
            raise LinkError(needed, low=self.write(low), high=self.write(high))
        return int(text) if self.whole else float(text)

    def write(self, value: float) -> str:
        return format(value, ".10g")


@dataclass(frozen=True, kw_only=True)
class Place(Option):
    """One of several that are counted: a layer, a head, a token, a step. In Python it counts from 0.

    Args:
        count: how many there are; None: not known before the picture is drawn.
        first: what the first is called on screen, in links and on the command line.
        tokens: what stands there, to be chosen by its text instead of its number.
    """

    count: Callable[[Setting], int | None]
    first: int = 1
    tokens: Callable[[Setting], Sequence[str]] | None = None
    default: Any = 0

    def check(self, value: Any, setting: Setting) -> Any:
        count = self.count(setting)
        if value < 0 or (count is not None and value >= count):
            known = N_("There is no {name} {place}: there are {count}, counted from 0.")
            raise Outside(known, name=self.name, place=value, count=count)
        return value

    def read(self, text: str, setting: Setting) -> int:
        low = self.first
        high = low - 1 + (self.count(setting) or 0)
        if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
            raise LinkError(N_("expected a whole number from {low} to {high}."), low=low, high=high)
        return int(text) - self.first

    def write(self, value: int) -> str:
        return str(value + self.first)


@dataclass(frozen=True, kw_only=True)
class Choice(Option):
    """One of several by name.

    Args:
        values: value to label, which is translated; or a function of the setting.
        spell: a value as links and the command line have it.
        also: other spellings, such as earlier ones, to values.
    """

    values: Mapping[Any, str] | Callable[[Setting], Mapping[Any, str]]
    widget: str = "segmented_control"
    spell: Callable[[Any], str] = str
    also: Mapping[str, Any] | None = None

    def start(self, setting: Setting) -> Any:
        found = super().start(setting)
        return next(iter(resolved(self.values, setting))) if found is None else found

    def check(self, value: Any, setting: Setting) -> Any:
        offered = resolved(self.values, setting)
        if value not in offered:
            known = N_("{name} is {value!r}; it can be {names}.")
            names = ", ".join(map(repr, offered))
            raise OptionError(known, name=self.name, value=value, names=names)
        return value

    def read(self, text: str, setting: Setting) -> Any:
        offered = resolved(self.values, setting)
        by_name = {self.spell(value): value for value in offered}
        by_name |= {name: value for name, value in (self.also or {}).items() if value in offered}
        if text not in by_name:
            names = [self.spell(value) for value in offered]
            raise one_of([*names[:_LISTED], *["…"] * (len(names) > _LISTED)])
        return by_name[text]

    def write(self, value: Any) -> str:
        return self.spell(value)


@dataclass(frozen=True, kw_only=True)
class Flag(Option):
    """On or off."""

    default: Any = False

    def read(self, text: str, setting: Setting) -> bool:
        return read_flag(text)

    def write(self, value: bool) -> str:
        return str(int(value))


@dataclass(frozen=True, kw_only=True)
class Several(Option):
    """Any number of whole numbers from 0, below ``count``."""

    count: Callable[[Setting], int]

    def check(self, value: Any, setting: Setting) -> Any:
        count = self.count(setting)
        for one in value:
            if not 0 <= one < count:
                known = N_("There is no {name} {place}: there are {count}, counted from 0.")
                raise Outside(known, name=self.name, place=one, count=count)
        return list(value)

    def read(self, text: str, setting: Setting) -> list[int]:
        count = self.count(setting)
        found = [int(part) for part in text.split(".") if part.isdecimal() and len(part) < 6]
        if any(one >= count for one in found) or self.write(found) != text:
            needed = N_("expected whole numbers from {low} to {high}, separated by dots.")
            raise LinkError(needed, low=0, high=count - 1)
        return found

    def write(self, value: Sequence[int]) -> str:
        return ".".join(map(str, value))


def resolved(value: Any, setting: Setting) -> Any:
    """A value, or what a function makes of the setting."""
    return value(setting) if callable(value) else value


def read_flag(text: str) -> bool:
    """1 or 0.

    Raises:
        LinkError: anything else.
    """
    if text not in ("0", "1"):
        raise LinkError(N_("1 is on, 0 is off."))
    return text == "1"


def one_of(choices: Iterable[str]) -> LinkError:
    """What to say where none of the choices was given."""
    return LinkError(N_("choose one of {choices}."), choices=", ".join(choices))
