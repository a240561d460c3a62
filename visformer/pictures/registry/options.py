"""The options of a picture. One declaration serves the slider, links, lessons, the ``--flag`` and the Python keyword.

Programs may use every valid value; a slider may offer fewer (``least`` to ``most``), since pages serve many visitors.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any

from visformer.errors import N_, LinkError, VisformerError
from visformer.pictures.registry.setting import Setting
from visformer.trace.stacks import STACKS, most_heads, ranges, short_name, stack_named

if TYPE_CHECKING:  # numpy
    from visformer.trace import Trace, TracedTensor


_NUMBER = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?")
_LISTED = 12  # choices that an error message lists
Bound = float | Callable[[Setting], float]


class OptionError(VisformerError):
    """An invalid value of an option."""


@dataclass(frozen=True, kw_only=True)
class Option(ABC):
    """Base class of all options.

    Args:
        name: keyword in Python, ``--name`` on the command line, and the name in links unless ``link`` differs.
        label: label of its widget.
        help: help text on the command line.
        tooltip: help text of its widget; ``{own}`` is the model's d_model.
        default: a value, or a function of the picture's setting.
        link: the name in links and lessons, prefixed with the page's; None: the unprefixed name, shared by all pages.
        per: a function of what the widget's range depends on; when its result changes, the widget is reset.
        page_only: whether it affects only the ranges of other options.
        widget: name of the Streamlit widget, if not the usual one.
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
        """Return the default."""
        return resolved(self.default, setting)

    def key(self, page: str, setting: Setting) -> str:
        """Return the option's name in links to a page."""
        return self.name if self.link is None else f"{page}_{resolved(self.link, setting) or self.name}"

    def check(self, value: Any, setting: Setting) -> Any:
        """Validate a value and return it.

        Raises:
            VisformerError: the value is invalid.
        """
        return value

    @abstractmethod
    def read(self, text: str, setting: Setting) -> Any:
        """Parse a value in a link.

        Raises:
            LinkError: the page does not offer this value.
        """

    def write(self, value: Any) -> str:
        """Format a value for links."""
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Number(Option):
    """A number.

    Args:
        least: minimum on the page.
        most: maximum on the page.
        valid: smallest valid value.
        whole: whether it has to be an integer.
        step: step of its slider.
    """

    least: Bound
    most: Bound
    valid: float | None = None
    whole: bool = True
    step: float | None = None

    def check(self, value: Any, setting: Setting) -> Any:
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            needed = N_("{name} is {value!r}; it must be a number.")
            if self.whole:
                needed = N_("{name} is {value!r}; it must be a whole number.")
            raise OptionError(needed, name=self.name, value=value)
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
class PlaceOption(Option):
    """An index: of a layer, a head, a token or a step. In Python it counts from 0.

    Args:
        among: the valid indices, ascending; None: unknown until the picture is drawn.
        first: the number of index 0 on screen, in links and on the command line.
        tokens: the tokens at these indices, so that one can be selected by its text.
        numbered: whether the page shows their numbers before them.
    """

    among: Callable[[Setting], Sequence[int] | None]
    first: int = 1
    tokens: Callable[[Setting], Sequence[str]] | None = None
    numbered: bool = True
    default: Any = 0

    def check(self, value: Any, setting: Setting) -> Any:
        _check_index(self.name, value, self.among(setting))
        return value

    def read(self, text: str, setting: Setting) -> int:
        numbers = [index + self.first for index in self.among(setting) or ()]
        if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) not in numbers:
            raise LinkError(N_("expected one of the numbers {numbers}."), numbers=ranges(numbers) or "-")
        return int(text) - self.first

    def write(self, value: int) -> str:
        return str(value + self.first)


@dataclass(frozen=True, kw_only=True)
class Choice(Option):
    """One of several named values.

    Args:
        values: value to label, which is translated; or a function of the setting.
        spell: formats a value for links and the command line.
        also: alternative spellings, such as former ones, to values.
    """

    values: Mapping[Any, str] | Callable[[Setting], Mapping[Any, str]]
    widget: str = "segmented_control"
    spell: Callable[[Any], str] = str
    also: Mapping[str, Any] | None = None

    def start(self, setting: Setting) -> Any:
        default = super().start(setting)
        return next(iter(resolved(self.values, setting))) if default is None else default

    def check(self, value: Any, setting: Setting) -> Any:
        offered = resolved(self.values, setting)
        if not _is_hashable(value) or value not in offered:
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

    def check(self, value: Any, setting: Setting) -> Any:
        if not isinstance(value, int) and getattr(value, "shape", None) != ():  # of NumPy
            raise OptionError(N_("{name} is {value!r}; it must be True or False."), name=self.name, value=value)
        return value

    def read(self, text: str, setting: Setting) -> bool:
        return read_flag(text)

    def write(self, value: bool) -> str:
        return str(int(value))


@dataclass(frozen=True, kw_only=True)
class Several(Option):
    """A list of integers from 0 to ``count`` - 1; a page takes at most ``most`` of them."""

    count: Callable[[Setting], int]
    most: int

    def check(self, value: Any, setting: Setting) -> Any:
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            needed = N_("{name} is {value!r}; it must be a list of whole numbers.")
            raise OptionError(needed, name=self.name, value=value)
        for one in value:
            _check_index(self.name, one, range(self.count(setting)))
        return list(value)

    def read(self, text: str, setting: Setting) -> list[int]:
        count = self.count(setting)
        numbers = [int(part) for part in text.split(".") if part.isdecimal() and len(part) < 6]
        if any(number >= count for number in numbers) or self.write(numbers) != text:
            needed = N_("expected whole numbers from {low} to {high}, separated by dots.")
            raise LinkError(needed, low=0, high=count - 1)
        self.require_few(numbers)
        return numbers

    def require_few(self, numbers: Sequence[int]) -> None:
        """Require no more than a page shows.

        Raises:
            LinkError: there are more.
        """
        if len(numbers) > self.most:
            few = N_("{given} are selected; at most {limit} can be shown.")
            raise LinkError(few, given=len(numbers), limit=self.most)

    def write(self, value: Sequence[int]) -> str:
        return ".".join(map(str, value))


@dataclass(frozen=True, kw_only=True)
class Text(Option):
    """A text, such as a second sentence or the name of a model.

    Args:
        among: those that a page offers; None: any.
        labels: how a page shows some of them.
        suggested: of any, those that a page suggests, the default first, and how it shows them.

    Links have it as it is: its name there is the page's and its own.
    """

    default: Any = ""
    among: Callable[[Setting], Sequence[str]] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    suggested: Callable[[Setting], Mapping[str, str]] | None = None

    def check(self, value: Any, setting: Setting) -> Any:
        if not isinstance(value, str | PathLike):
            raise OptionError(N_("{name} is {value!r}; it must be a text."), name=self.name, value=value)
        return value

    def read(self, text: str, setting: Setting) -> str:
        if self.among is not None and text not in self.among(setting):
            raise one_of(self.among(setting))
        return text


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _check_index(name: str, value: Any, among: Sequence[int] | None) -> None:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < 0 or (among is not None and value not in among):
        known = N_("There is no {name} {place}: there are {among}, counted from 0.")
        raise OptionError(known, name=name, place=value, among=ranges(among or ()) or "…", indices=among or ())


def resolved(value: Any, setting: Setting) -> Any:
    """Return a value, calling it with the setting if it is a function."""
    return value(setting) if callable(value) else value


def read_flag(text: str) -> bool:
    """Parse "1" or "0".

    Raises:
        LinkError: for any other text.
    """
    if text not in ("0", "1"):
        raise LinkError(N_("1 is on, 0 is off."))
    return text == "1"


def one_of(choices: Iterable[str]) -> LinkError:
    """Make the error for a value that is none of the choices."""
    return LinkError(N_("choose one of {choices}."), choices=", ".join(choices))


STEP_HELP = "From 1. By default the first; of what grows (growing, mask-steps) the last."


def _labels(setting: Setting) -> dict[str, str]:
    return {stack.name: stack.label for stack in STACKS if stack.name in setting.source.stacks}


def _patterns(setting: Setting) -> "Mapping[int, TracedTensor]":
    """The patterns by layer; none for a saved Trace without patterns, which some pictures do not need."""
    stack = stack_named(setting["stack"])
    return stack.layers(setting.patterns) if stack.in_trace(setting.patterns) else {}


def _heads(setting: Setting) -> range | None:
    patterns = _patterns(setting)
    return range(most_heads(patterns)) if patterns else None


def layer_of(numbers: Callable[[Setting], Sequence[int]]) -> PlaceOption:
    """The option of a layer; ``numbers``: of the layers, none if they are unknown."""
    return PlaceOption(
        name="layer", label=N_("Layer"), help="From 1, as on screen.", among=lambda setting: numbers(setting) or None,
        default=lambda setting: (*numbers(setting), 0)[0], per=lambda setting: per_layers(numbers(setting)),
    )  # fmt: skip


def per_layers(numbers: Iterable[int]) -> str:
    """What the widget of a layer depends on."""
    return ranges(number + 1 for number in numbers)


def _tokens(setting: Setting) -> tuple[str, ...]:
    return setting.patterns.tokens[setting.side]


def longest_word(trace: "Trace", side: str) -> int:
    """Return the longest word, which carries content in any language; of equally long ones the first."""
    words, special = trace.tokens[side], trace.special[side]
    return max(range(len(words)), key=lambda i: (not special[i], len(words[i].strip())))


def _token_places(setting: Setting) -> range:
    return range(len(_tokens(setting)))


def decoder_first(setting: Setting) -> str:
    """The decoder's self-attention, the only causal one; if the model has none, its first attention."""
    stacks = setting.source.stacks
    return "decoder.self_attn" if "decoder.self_attn" in stacks else stacks[0]


STACK = Choice(
    name="stack", label=N_("Attention"), help="By default the model's first.", values=_labels,
    spell=short_name,
)  # fmt: skip
LAYER = layer_of(lambda setting: tuple(_patterns(setting)))
HEAD = PlaceOption(
    name="head", label=N_("Head"), help="From 1.", among=_heads, per=lambda setting: len(_heads(setting) or ())
)
QUERY = PlaceOption(
    name="query", label=N_("Query"), help="The query token, from 1.", among=_token_places, tokens=_tokens,
    per=lambda setting: len(_tokens(setting)),
)  # fmt: skip
TOKEN = PlaceOption(
    name="token", label=N_("Token"), help="From 1; by default the longest.", among=_token_places, tokens=_tokens,
    default=lambda setting: longest_word(setting.patterns, setting.side),
    per=lambda setting: f"{setting.side}{len(_tokens(setting))}",
)  # fmt: skip
SELECTED = tuple(replace(option, link=None) for option in (STACK, LAYER, HEAD, QUERY))
"""The same as the explorer's: links have them under the explorer's names."""
