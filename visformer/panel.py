"""A panel: a matrix with its labels and colour scale, independent of how it is drawn.

The browser draws panels on the app's pages, and plotly draws the same panels in notebooks.
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visformer.errors import N_, TraceError
from visformer.i18n import Gettext
from visformer.trace import Trace
from visformer.trace.from_arrays import check_finite
from visformer.trace.names import PREFIX, Axis
from visformer.trace.stacks import Stack

Scale = Literal["weight", "unsigned", "signed"]
"""``weight``: one hue from 0 to 1, on a square-root scale. ``unsigned``: one hue from 0 to limit. ``signed``: two hues,
from middle - limit to middle + limit.
"""

AXIS_TITLES = {
    "query": N_("reads (query)"),
    "key": N_("is read (key)"),
    "token": N_("token"),
    "d_model": N_("dimension (d_model)"),
    "d_k": N_("dimension (d_k)"),
    "d_ff": N_("dimension (d_ff)"),
    "d_heads": N_("dimension (heads × d_k)"),
    "vocab": N_("vocabulary"),
    "label": N_("label"),
    "head": N_("head"),
}


@dataclass(frozen=True)
class Labels:
    """The labels of the rows or columns of a matrix.

    Args:
        texts: one for each row or column.
        title: axis title; translated if it is a message id.
        places: whether each label also shows its position, from 1, which distinguishes equal tokens.
        kept: which tokens of a text these are, from 0, where others are left out; empty: all.
        special: which labels are special tokens; empty: none.
        after: the token that each row predicts; empty: none.
        speakers: of a chat, who says each, see :func:`speakers`; empty: it is no chat.
        written: False if the labels of an adjacent panel serve for these too; hovering still shows them.
    """

    texts: tuple[str, ...]
    title: str = ""
    places: bool = False
    kept: tuple[int, ...] = ()
    special: tuple[bool, ...] = ()
    after: tuple[str, ...] = ()
    speakers: "tuple[Speaker | None, ...]" = ()
    written: bool = True

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def numbers(self) -> list[str]:
        """The position of each label as it is written; "" where positions are not shown."""
        return [str(i + 1) if self.places else "" for i in self.kept or range(len(self))]

    @property
    def numeric(self) -> bool:
        """Whether all labels are numbers."""
        return all(text.isdecimal() for text in self.texts)


def numbered(count: int, title: str = "", *, first: int = 0) -> Labels:
    """Return labels that number rows or columns."""
    return Labels(tuple(str(first + i) for i in range(count)), title)


def axis_labels(trace: Trace, axis: Axis, size: int) -> Labels:
    """Return the labels of an axis of a traced tensor: tokens with their positions, or numbers.

    A row of a decoder is named for the token that is its input; see :func:`predicting`.
    """
    title = AXIS_TITLES[axis.name]
    if axis.side is None:
        return numbered(size, title, first=1 if axis.name == "head" else 0)
    return tokens_of(trace, axis.side, title)


PREDICTING = N_("input → prediction")
"""The title of rows that are named for their input and for what they predict."""


def predicting(trace: Trace, rows: Labels) -> Labels:
    """Name a decoder's rows also for what they predict, and say so: for pictures of what happens to the prediction."""
    following = trace.tokens.get("next", ())
    return replace(rows, after=following, title=PREDICTING) if any(following) else rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """A labelled matrix to be drawn.

    Args:
        name: identifies the panel in click events.
        symbol: key of :data:`visformer.pictures.style.SYMBOLS` for the title's colour; by default the name.
        title: shown above the matrix.
        values: (row, column), any real unit; NaN for empty cells.
        rows: labels on the left.
        columns: labels at the top.
        scale: see :data:`Scale`.
        limit: the end of an unsigned scale, or the distance of a signed one's ends from its middle; None: the largest
            in ``values``.
        middle: the value in the middle of a signed scale.
        note: shown below the matrix, such as its shape.
        before: operator between the previous panel and this one, such as "×" or "=".
        outlined: bool (row, column), cells to outline, such as edited cells or misprints; None: none.
        digits: the most decimals in the cells.
        click: action of a click: "locks" locks the cell; "tells", "opens", "says" and "keeps" also report it to the
            page, which shows where its value comes from or what it stands for, or goes on showing it; "explores" asks
            the page to open the head that it stands for, "changes" and "places" to change it.
        picture: uint8 (pixel row, pixel column, RGB), drawn in place of the cells' colours, below a veil: the larger
            the value of a cell, the clearer what it shows; None: no picture.
        follows: name of the panel beside it that this one follows: while the pointer is on a cell there, it shows other
            values; "": none.
        whole: (cell of that panel, row by row; row; column), the values that it shows then.

    Raises:
        TraceError: the shapes of values, labels and outlined cells do not match.
    """

    name: str
    title: str
    values: NDArray[Any]
    rows: Labels
    columns: Labels
    scale: Scale = "signed"
    limit: float | None = None
    middle: float = 0.0
    note: str = ""
    before: str = ""
    outlined: NDArray[np.bool_] | None = None
    digits: int = 2
    click: Literal["locks", "tells", "opens", "says", "keeps", "explores", "changes", "places"] = "locks"
    symbol: str = ""
    picture: NDArray[np.uint8] | None = None
    follows: str = ""
    whole: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        wanted = (len(self.rows), len(self.columns))
        for array in (self.values, self.outlined):
            if array is not None and array.shape != wanted:
                raise TraceError(
                    N_("Panel {name}: an array of shape {given} does not match {wanted} labels."),
                    name=self.name,
                    given=array.shape,
                    wanted=wanted,
                )

    @property
    def overflows(self) -> bool:
        """Whether some numbers exceed the colour scale by more than rounding errors."""
        return bool((np.abs(np.asarray(self.values) - self.middle) > self.end * (1 + _ROUNDING)).any())

    @property
    def end(self) -> float:
        """Distance of the end of the colour scale from its middle; 1 for weights."""
        if self.scale == "weight":
            return 1.0
        return common_limit(np.asarray(self.values) - self.middle) if self.limit is None else self.limit

    @property
    def decimals(self) -> int:
        """Number of decimals of every number in the cells: none if all are whole, fewer if some are large."""
        sizes = np.abs(np.asarray(self.values, dtype=np.float64))
        sizes = sizes[sizes < LARGE]
        if not (sizes % 1).any():
            return 0
        before = int(np.log10(max(float(sizes.max()), 1.0)))
        return max(0, min(self.digits, self.digits + 1 - before))


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A step of a computation that is played.

    Args:
        shown: the panels of this step, like a picture of their own; steps with the same ones come one after the other.
        panel: name of the panel that is computed.
        said: a sentence in the visitor's language.
    """

    shown: "Sequence[Panel | Sequence[Panel]]"
    panel: str
    said: str


LARGE, FINE = 1e6, 6
"""From this size on, and with more decimals than this, cells show numbers with an exponent."""

LEAST = 1e-6
"""Below this size a number in a cell is a rounding error of 0."""


def common_limit(*arrays: ArrayLike) -> float:
    """Return the largest finite magnitude in the arrays, for a common scale; 1 if there is none or all are 0."""
    sizes = [np.abs(array[np.isfinite(array)]) for array in (np.asarray(a, dtype=np.float64) for a in arrays)]
    return max((float(size.max()) for size in sizes if size.size), default=0.0) or 1.0


_ROUNDING = 1e-5  # relative error of a sum of many float32 numbers
_OUTLYING = 4.0


def telling_limit(*arrays: ArrayLike, share: float = 0.99) -> float:
    """Return :func:`common_limit`, unless outliers would make all other numbers look like 0.

    Then it is a quantile of the magnitudes. In trained models, a few dimensions are many times larger than the rest.

    Args:
        arrays: arrays that share the scale.
        share: the quantile; use a smaller one for arrays of only some hundred numbers.
    """
    largest = common_limit(*arrays)
    sizes = np.abs(np.concatenate([np.ravel(np.asarray(array, dtype=np.float64)) for array in arrays]))
    usual = float(np.nanquantile(sizes, share))
    return usual if 0 < usual * _OUTLYING < largest else largest


def map_scale(trace: Trace) -> dict[str, Any]:
    """Choose the colour scale of a Trace's attention, one for all heads, so that they can be compared.

    Returns:
        Settings of :class:`Panel`: ``scale`` "weight" for patterns; for maps "unsigned" or, if any number is negative,
        "signed", with its ``limit``, and as many ``digits`` as distinguish a hundredth of it.

    Raises:
        TraceError: a map holds NaN or an infinity.
    """
    maps = [tensor for name, tensor in trace.tensors.items() if name.endswith(".map")]
    if not maps:
        return {"scale": "weight"}
    for tensor in maps:
        check_finite(tensor.value, tensor.name)
    limit = common_limit(*(tensor.value for tensor in maps))
    whole = not any((tensor.value % 1).any() for tensor in maps)
    digits = 0 if whole else max(2, 1 - math.floor(math.log10(limit)))
    return {
        "scale": "signed" if min(float(tensor.value.min()) for tensor in maps) < 0 else "unsigned",
        "limit": limit,
        "digits": digits,
    }


def ticks(scale: Scale, limit: float, middle: float = 0.0) -> list[tuple[str, float]]:
    """Return the labels of a colour bar, each with its place from 0 to 1; the ends are among them."""
    if scale == "weight":
        return [(f"{tick:g}", tick**0.5) for tick in (0.0, 0.05, 0.25, 0.5, 1.0)]
    low = 0.0 if scale == "unsigned" else middle - limit
    return [(f"{low + place * (middle + limit - low):.3g}".replace("-", "−"), place) for place in (0.0, 0.5, 1.0)]


def stack_title(trace: Trace, stack: Stack, gettext: Gettext = str) -> str:
    """Return the title above all heads of a stack: who reads whom or, of maps, what the numbers are."""
    if not any(name.endswith(".map") for name in trace):
        return gettext(stack.about)
    return _with_quantity(gettext(stack.label), trace)


def stack_says(trace: Trace, stack: Stack, gettext: Gettext = str) -> str:
    """Return who reads whom, in everyday words; "" of maps, whose numbers may be anything."""
    if any(name.endswith(".map") for name in trace):
        return ""
    if not (trace.tokens.get("src") and trace.tokens.get("tgt")):
        is_picture = "grid" in trace.meta and "tgt" not in trace.tokens
        return gettext(N_("picture reads itself") if is_picture else N_("text reads itself"))
    translates = trace.meta.get("to") and "grid" not in trace.meta  # a caption has a language, too
    return gettext(stack.translating if translates else stack.says)


def _with_quantity(title: str, trace: Trace) -> str:
    return " · ".join(filter(None, (title, trace.meta.get("quantity"))))


def traced(trace: Trace, tensor: str, *index: int, title: str, **settings: Any) -> Panel:
    """Make a panel of a traced tensor or a parameter, labelled by its axes.

    Args:
        trace: holds the tensor.
        tensor: name of the tensor.
        index: indices of its leading axes, such as the head, that leave two dimensions.
        title: shown above the matrix.
        settings: further arguments of :class:`Panel`; ``name`` is by default the last part of the tensor's name.

    Raises:
        MissingTensor: the tensor was not recorded.
    """
    source = trace.params[tensor] if tensor in trace.params else trace[tensor]
    values = np.asarray(source.value[index])
    rows, columns = (axis_labels(trace, axis, size) for axis, size in zip(source.axes[-2:], values.shape, strict=True))
    settings.setdefault("name", tensor.rsplit(".", 1)[-1])
    if tensor.endswith(".map"):
        rows, columns = replace(rows, title=N_("query")), replace(columns, title=N_("key"))
        title = _with_quantity(title, trace)
    return Panel(title=title, values=values, rows=rows, columns=columns, **settings)


def one_by_one(shown: Iterable[Panel | Sequence[Panel]]) -> list[Panel]:
    """Flatten a sequence of panels and columns of panels."""
    return [panel for one in shown for panel in ([one] if isinstance(one, Panel) else one)]


@dataclass(frozen=True)
class Speaker:
    """Who says something in a chat.

    Args:
        name: in links and in Python, such as "system".
        label: on screen, translated if it is a message id.
        colour: a place in :data:`visformer.pictures.style.CURVES`.
    """

    name: str
    label: str
    colour: int


_ROLES = {"system": N_("system"), "user": N_("user"), "assistant": N_("assistant"), "tool": N_("tool")}
_TEMPLATE = Speaker("template", N_("template"), 7)
"""What a chat template writes between the messages, in grey."""


def speakers(trace: Trace) -> dict[str | None, Speaker]:
    """Map each role in a Trace's chat to who it is, in the order of their colours; {} where no role is known."""
    found = {role for side in ("src", "tgt") for role in trace.roles.get(side, ())}
    names = [*_ROLES, *sorted(role for role in found if role is not None and role not in _ROLES)]
    known: dict[str | None, Speaker] = {
        role: Speaker(_named(role), _ROLES.get(role, role), place % _TEMPLATE.colour)
        for place, role in enumerate(names)
        if role in found
    }
    return {**known, **({None: _TEMPLATE} if None in found else {})} if known else {}


def _named(role: str) -> str:
    """Spell a role for a link."""
    return re.sub(r"[^a-z0-9_-]", "_", role.lower())[:32] or "_"


def speakers_of(trace: Trace, side: str) -> "tuple[Speaker | None, ...]":
    """Return who says each token of a side in a Trace's chat, None for keys before the text; (): no role is known."""
    known, roles = speakers(trace), trace.roles.get(side, ())
    if not known or not roles:
        return ()
    before = len(roles) - len(trace.tokens[side.removeprefix(PREFIX)])  # keys that no template has written
    return (None,) * before + tuple(known.get(role, _TEMPLATE) for role in roles[before:])


def remaining(trace: Trace, side: str, *, without: Collection[str] = (), hiding: bool = False) -> NDArray[np.intp]:
    """Return the tokens of a side that remain where some are left out, from 0 and ascending; all if none would.

    Args:
        trace: holds the tokens and, of a chat, their roles.
        side: such as "tgt".
        without: names of the roles whose tokens are left out, see :class:`Speaker`.
        hiding: whether special tokens are.
    """
    said = [one and one.name for one in speakers_of(trace, side)] or [None] * len(trace.tokens[side])
    hidden = [(hiding and special) or name in without for special, name in zip(trace.special[side], said, strict=True)]
    kept = np.flatnonzero(~np.array(hidden, dtype=bool))
    return kept if len(kept) else np.arange(len(hidden))


def kept_tokens(trace: Trace, axes: Sequence[Axis], without: Iterable[str]) -> list[NDArray[np.intp]]:
    """Return for each axis the tokens that remain without those of some roles, see :func:`remaining`.

    Raises:
        TraceError: there is no such role in the Trace.
    """
    names = [without] if isinstance(without, str) else [*without]
    known = [one.name for one in speakers(trace).values()]
    for name in names:
        if not known:
            raise TraceError(
                N_("without has {given!r}, and this text has no roles: trace a chat, as a list of messages."),
                given=name,
            )
        if name not in known:
            raise TraceError(
                N_("without has {given!r}: the roles of this text are {known}."), given=name, known=", ".join(known)
            )
    return [remaining(trace, str(axis.side), without=names) for axis in axes]


def without_roles(trace: Trace, panel: Panel, axes: Sequence[Axis], without: Iterable[str]) -> Panel:
    """Leave out the rows and columns whose tokens are of some roles; the values that remain stay as they are.

    Args:
        trace: what the panel shows.
        panel: its rows and columns are the tokens of two axes.
        axes: of the rows and of the columns.
        without: names of roles, see :class:`Speaker`; empty: none.

    Raises:
        TraceError: there is no such role in the Trace.
    """
    rows, columns = kept_tokens(trace, axes, without)
    if (len(rows), len(columns)) == panel.values.shape:
        return panel
    values = np.asarray(panel.values)[np.ix_(rows, columns)]
    return replace(panel, values=values, rows=_those(panel.rows, rows), columns=_those(panel.columns, columns))


def _those(labels: Labels, kept: NDArray[np.intp]) -> Labels:
    """Return some of the labels, which keep their positions."""
    named = ("texts", "special", "after", "speakers")
    each: dict[str, Any] = {
        name: tuple(getattr(labels, name)[i] for i in kept) for name in named if getattr(labels, name)
    }
    return replace(labels, kept=tuple(kept.tolist()), **each)


def tokens_of(trace: Trace, side: str, title: str = "") -> Labels:
    """Return the tokens of a side as labels."""
    said = speakers_of(trace, side)
    return Labels(trace.tokens[side], title, places=True, special=trace.special[side], speakers=said)
