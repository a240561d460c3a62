"""A panel: one matrix with what stands along its sides and how it is coloured. What to draw, kept apart from drawing.

The pages, in the browser, and the figures of a notebook draw the same panels.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visformer.errors import N_, TraceError
from visformer.trace import Trace
from visformer.trace.names import Axis

Scale = Literal["weight", "signed"]
"""``weight``: one hue from 0 to 1, on a square-root scale. ``signed``: two hues, to ``limit`` either way of the middle.
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
    "head": N_("head"),
    "layer": N_("layer"),
}


@dataclass(frozen=True)
class Labels:
    """What stands along one side of a matrix.

    Args:
        texts: one for each row or column.
        title: of the side; translated where it is a message id.
        places: whether each label also shows its place, from 1, which tells equal tokens apart.
        special: which labels stand for no text; empty: none.
        after: what each token's row predicts; empty: nothing.
        written: False where the labels of the panel above stand for these too; pointing at a cell still names them.
    """

    texts: tuple[str, ...]
    title: str = ""
    places: bool = False
    special: tuple[bool, ...] = ()
    after: tuple[str, ...] = ()
    written: bool = True

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def numeric(self) -> bool:
        """Whether the labels only count."""
        return all(text.isdecimal() for text in self.texts)


def numbered(count: int, title: str = "", *, first: int = 0) -> Labels:
    """Labels that count."""
    return Labels(tuple(str(first + i) for i in range(count)), title)


def axis_labels(trace: Trace, axis: Axis, size: int) -> Labels:
    """The labels of an axis of a traced tensor: tokens with their places, or numbers."""
    title = AXIS_TITLES[axis.name]
    if axis.side is None:
        return numbered(size, title, first=1 if axis.name in ("head", "layer") else 0)
    predicts = axis.side == "tgt" and axis.name in ("query", "token")
    return Labels(
        trace.tokens[axis.side],
        title,
        places=True,
        special=trace.special[axis.side],
        after=trace.tokens["next"] if predicts and axis.name == "query" and any(trace.tokens["next"]) else (),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """One matrix to be drawn.

    Args:
        name: says in a click which panel it was.
        symbol: of :data:`visformer.pictures.theme.SYMBOLS`, whose colour the title then has; by default the name.
        title: above it.
        values: (row, column), any real unit; NaN where there is no number.
        rows: along the left.
        columns: along the top.
        scale: see :data:`Scale`.
        limit: value at the ends of a signed scale, counted from its middle; None: the largest distance in ``values``.
        middle: the value in the middle of a signed scale.
        note: below it, such as the shape.
        before: an operator between the panel before and this one, such as "×" or "=".
        outlined: bool (row, column), cells to point out: edited ones, or misprints; None: none.
        digits: behind the point, in the cells.
        click: what a click does: it locks the cell ("locks"), also tells the page which it was ("tells"), or tells the
            page to change it ("changes").

    Raises:
        TraceError: values and labels differ in number.
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
    click: Literal["locks", "tells", "changes"] = "locks"
    symbol: str = ""

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
        """Whether some numbers lie beyond the end of the colours, and not by rounding alone."""
        return bool((np.abs(np.asarray(self.values) - self.middle) > self.end * (1 + _ROUNDING)).any())

    @property
    def end(self) -> float:
        """The value at the end of the colour scale."""
        if self.scale == "weight":
            return 1.0
        return common_limit(np.asarray(self.values) - self.middle) if self.limit is None else self.limit


def common_limit(*arrays: ArrayLike) -> float:
    """The largest finite magnitude in any of the arrays, for one scale over all of them; 1 where all are 0 or none."""
    sizes = [np.abs(array[np.isfinite(array)]) for array in (np.asarray(a, dtype=np.float64) for a in arrays)]
    return max((float(size.max()) for size in sizes if size.size), default=0.0) or 1.0


_ROUNDING = 1e-5  # of a number in float32, after a sum of many
_OUTLYING = 4.0


def telling_limit(*arrays: ArrayLike, share: float = 0.99) -> float:
    """As :func:`common_limit`, unless a few numbers are so large that all others would look empty.

    Then what 99 of 100 stay below; it is those of trained models, whose few outlying dimensions are many times larger.

    Args:
        arrays: what has one scale.
        share: of the numbers that stay below; less where there are but some hundred of them.
    """
    largest = common_limit(*arrays)
    sizes = np.abs(np.concatenate([np.ravel(np.asarray(array, dtype=np.float64)) for array in arrays]))
    usual = float(np.nanquantile(sizes, share))
    return usual if 0 < usual * _OUTLYING < largest else largest


def traced(trace: Trace, tensor: str, *index: int, title: str, **settings: Any) -> Panel:
    """A panel of a traced tensor, or of a weight, labelled by its own axes.

    Args:
        trace: where it is.
        tensor: its name.
        index: along its leading axes, such as the head, down to two dimensions.
        title: above it.
        settings: of the :class:`Panel`; its name is by default the last part of the tensor's.

    Raises:
        MissingTensor: it was not recorded.
    """
    found = trace.params[tensor] if tensor in trace.params else trace[tensor]
    values = np.asarray(found.value[index])
    rows, columns = (axis_labels(trace, axis, size) for axis, size in zip(found.axes[-2:], values.shape, strict=True))
    settings.setdefault("name", tensor.rsplit(".", 1)[-1])
    return Panel(title=title, values=values, rows=rows, columns=columns, **settings)


def one_by_one(shown: Iterable[Panel | Sequence[Panel]]) -> list[Panel]:
    """Panels, of which some stand in a list of those below each other, without such lists."""
    return [panel for one in shown for panel in ([one] if isinstance(one, Panel) else one)]


def tokens_of(trace: Trace, side: str, title: str = "") -> Labels:
    """A side's tokens as labels."""
    return Labels(trace.tokens[side], title, places=True, special=trace.special[side])
