"""The structure of a worked example: editable inputs, a computation, and the results that course notes print.

A printed matrix has NaN where the notes print nothing. ``remarks`` explain misprints in one line each.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visformer.errors import N_, Message, NumberError, ShapeError
from visformer.formulas import Bools, Floats

Arrays = Mapping[str, Floats]

LARGEST = float(np.finfo(np.float32).max)
"""Largest number that can be drawn: pictures hold 32-bit floats."""

SLICED = ("sample", "head")
"""Axes of which a single index is shown at a time."""


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Results that are drawn as curves instead of matrices.

    Args:
        over: name of the column on the horizontal axis, an input or a result.
        results: names of the results.
        axis: title of the vertical axis.
        log: the logarithmic axes, "x", "y" or both.
    """

    over: str
    results: tuple[str, ...]
    axis: str
    log: str = ""


@dataclass(frozen=True, kw_only=True)
class Worked:
    r"""One example.

    Args:
        name: short name, for links and the session state.
        title: title for readers.
        section: section of the paper.
        formula: lines of LaTeX's ``aligned``, with symbols as ``\sym{name}{tex}``.
        code: (file, name) of the code that computes it, see :func:`visformer.app.widgets.formula_box.excerpt`.
        inputs: name to matrix, or to an array whose ``axes`` are named; a 1 x 1 matrix is an integer.
        compute: maps inputs to results, in reading order.
        printed: name of a result to the numbers that the notes print.
        remarks: name of a result to an explanation of a misprint, or of what the result shows.
        rows: name of an input or result to the labels of its rows, or to the name of the input whose numbers label
            them.
        columns: name of an input or result to the labels of its columns.
        axes: name of an input or result to the names of its axes, if it has more than two; all but two of them are in
            :data:`SLICED`, first or in the middle.
        tokens: the tokens of each sample, for axes "token", "query" and "key".
        instead: if the shapes do not fit, the name of the most similar example whose shapes do.
        curves: the results that are drawn as curves.
        terms: what else the notes call it, for the search, as they write it.
    """

    name: str
    title: str
    section: str
    formula: str
    code: tuple[tuple[str, str], ...]
    inputs: Arrays
    compute: Callable[[Arrays], dict[str, Floats]]
    printed: Arrays = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, tuple[str, ...] | str] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tokens: tuple[tuple[str, ...], ...] = ()
    instead: str = ""
    curves: Curves | None = None
    terms: str = ""

    def place(self, name: str, at: Mapping[str, int]) -> tuple[int | slice, ...]:
        """Return the index that reduces an input or result to two axes: ``at`` on each axis in :data:`SLICED`."""
        return tuple(at[axis] if axis in SLICED else slice(None) for axis in self.axes.get(name, ()))

    def labels(self, name: str, inputs: Arrays) -> tuple[str, ...]:
        """Return the labels of the rows of an input or result; empty if they are only numbered."""
        rows = self.rows.get(name, ())
        return tuple(f"{value:g}" for value in inputs[rows].flat) if isinstance(rows, str) else rows

    def choices(self, arrays: Arrays) -> dict[str, int]:
        """Return the size of each axis in :data:`SLICED` that one of these arrays has."""
        return {
            axis: size
            for name, array in arrays.items()
            for axis, size in zip(self.axes.get(name, ()), array.shape, strict=False)
            if axis in SLICED
        }


def matrix(*rows: ArrayLike) -> Floats:
    """Make a float64 matrix (row, column) from its rows."""
    return np.array(rows, dtype=np.float64)


def product(left: Floats, right: Floats, names: tuple[str, str]) -> Floats:
    """Multiply left · right over the last two axes.

    Raises:
        ShapeError: the inner sizes differ; the message says which, and what would fit.
    """
    if left.shape[-1] != right.shape[-2]:
        raise ShapeError(
            N_(
                "{left} is {a} × {b} and {right} is {c} × {d}: the product needs as many columns on the left as rows "
                "on the right, and {b} is not {c}. Remove or add columns of {left} or rows of {right}."
            ),
            left=names[0],
            right=names[1],
            a=left.shape[-2],
            b=left.shape[-1],
            c=right.shape[-2],
            d=right.shape[-1],
        )
    result: Floats = left @ right
    return result


def added(left: Floats, right: Floats, names: tuple[str, str]) -> Floats:
    """Add left + right.

    Raises:
        ShapeError: the shapes differ.
    """
    if left.shape != right.shape:
        raise ShapeError(
            N_("{left} is {a} and {right} is {b}: a sum needs two matrices of one shape."),
            left=names[0],
            right=names[1],
            a=" × ".join(map(str, left.shape)),
            b=" × ".join(map(str, right.shape)),
        )
    return left + right


def allowed(mask: Floats, scores: Floats) -> Bools:
    """Convert a mask that was typed: 0 is masked, every other number may be attended to.

    Raises:
        ShapeError: its shape does not fit the scores.
    """
    if mask.shape != scores.shape[-2:]:
        raise ShapeError(
            N_("The mask is {given} and the scores are {wanted}: one row a query and one column a key."),
            given=" × ".join(map(str, mask.shape)),
            wanted=" × ".join(map(str, scores.shape[-2:])),
        )
    return np.asarray(mask != 0)


def whole(inputs: Arrays, name: str, *, most: int) -> int:
    """Return an input as an integer from 1 to ``most``.

    Raises:
        NumberError: it is not such an integer.
    """
    value = float(inputs[name].flat[0])
    if value != int(value) or not 1 <= value <= most:
        raise NumberError(
            N_("{name} is {value}: give a whole number from 1 to {most}."),
            name=Message(name),
            value=f"{value:g}",
            most=most,
        )
    return int(value)


def compute(example: Worked, inputs: Arrays) -> dict[str, Floats]:
    """Compute an example's results for these inputs.

    Raises:
        ShapeError: shapes do not fit.
        NumberError: a number is missing or out of range, or numbers are too large to be drawn.
    """
    for name, values in inputs.items():
        if not values.size:
            raise NumberError(N_("{name} has no number: type at least one."), name=Message(name))
        if not np.isfinite(values).all():
            raise NumberError(N_("{name} has an empty cell: every cell needs a number."), name=Message(name))
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            results = example.compute(inputs)
    except FloatingPointError:
        results = None
    if results is None or any((np.abs(values) > LARGEST).any() for values in results.values()):
        raise NumberError(
            N_("The results exceed {largest}, the largest value a picture can hold: type smaller numbers."),
            largest=f"{LARGEST:.1e}",
        )
    return results


def trimmed(values: Floats) -> Floats:
    """Drop empty rows and columns, so that clearing one in the table removes it."""
    known = ~np.isnan(values)
    return values[known.any(axis=1)][:, known.any(axis=0)]


def differs(computed: Floats, printed: Floats) -> NDArray[np.bool_] | None:
    """Return which printed numbers differ from the computed ones by more than rounding; None if the shapes differ."""
    if computed.shape != printed.shape:
        return None
    marks = np.zeros(printed.shape, dtype=np.bool_)
    for place, value in np.ndenumerate(printed):
        marks[place] = math.isfinite(value) and abs(computed[place] - value) > 0.5001 * _last_digit(float(value))
    return marks


def decimals(value: float) -> int:
    """Return how many decimals of a printed number are not zeros at its end, at most five."""
    return len(f"{value:.5f}".rstrip("0").partition(".")[2])


def _last_digit(value: float) -> float:
    """Return the unit of the last printed digit: the second to fifth decimal, or the third digit of a large number."""
    if abs(value) >= 1e4:
        return 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return 10.0 ** -max(decimals(value), 2)
