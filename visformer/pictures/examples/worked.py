"""What a worked example is: inputs that may be changed, their arithmetic, and what course notes print for it.

A printed matrix has NaN where the notes print nothing. ``remarks`` say in one line what went wrong in a print.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visformer.errors import N_, ShapeError
from visformer.formulas import Bools, Floats

Arrays = Mapping[str, Floats]

LARGEST = float(np.finfo(np.float32).max)
"""Pictures hold 32-bit numbers: beyond this one there is nothing to draw."""

SLICED = ("sample", "head")
"""Axes of which one place at a time is looked at."""


@dataclass(frozen=True, kw_only=True)
class Worked:
    r"""One example.

    Args:
        name: short, for the session state.
        title: for people.
        section: of the paper.
        formula: lines of LaTeX's ``aligned``, with symbols as ``\sym{name}{tex}``.
        code: (file, name) of what computes it, see :func:`visformer.app.widgets.formula_box.excerpt`.
        inputs: name to matrix, or to an array whose ``axes`` are named; a 1 x 1 matrix is a whole number.
        compute: inputs to results, in the order of reading.
        printed: name of a result to what the notes print for it.
        remarks: name of a result to what went wrong in print, or to what it shows.
        rows: name of an input or a result to labels of its rows, where it has any; or to the input whose numbers
            label them.
        axes: name of an input or a result to the names of its axes, where it has more than two; those in
            :data:`SLICED` come first or in the middle, and two are left.
        tokens: for axes "token", "query" and "key": the tokens of each sample.
        instead: name of the nearest example whose shapes fit, where these do not.
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
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tokens: tuple[tuple[str, ...], ...] = ()
    instead: str = ""

    def place(self, name: str, at: Mapping[str, int]) -> tuple[int | slice, ...]:
        """The index that leaves two axes of an input or a result: one place of each axis in :data:`SLICED`."""
        return tuple(at[axis] if axis in SLICED else slice(None) for axis in self.axes.get(name, ()))

    def labels(self, name: str, inputs: Arrays) -> tuple[str, ...]:
        """Of the rows of an input or a result; none: they only count."""
        found = self.rows.get(name, ())
        return tuple(f"{value:g}" for value in inputs[found].flat) if isinstance(found, str) else found

    def choices(self, arrays: Arrays) -> dict[str, int]:
        """Each axis in :data:`SLICED` that one of these arrays has, and how many places there are along it."""
        return {
            axis: size
            for name, array in arrays.items()
            for axis, size in zip(self.axes.get(name, ()), array.shape, strict=False)
            if axis in SLICED
        }


def matrix(*rows: ArrayLike) -> Floats:
    """Rows as float64 (row, column)."""
    return np.array(rows, dtype=np.float64)


def product(left: Floats, right: Floats, names: tuple[str, str]) -> Floats:
    """left · right, of the last two axes.

    Raises:
        ShapeError: the inner widths differ; says which, and what would fit.
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
    """left + right.

    Raises:
        ShapeError: they differ in shape.
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
    """A mask that was typed: 0 is hidden, every other number may be attended to.

    Raises:
        ShapeError: it is no mask for these scores.
    """
    if mask.shape != scores.shape[-2:]:
        raise ShapeError(
            N_("The mask is {given} and the scores are {wanted}: one row a query and one column a key."),
            given=" × ".join(map(str, mask.shape)),
            wanted=" × ".join(map(str, scores.shape[-2:])),
        )
    return np.asarray(mask != 0)


def whole(given: Arrays, name: str, *, most: int) -> int:
    """A whole number from 1 to ``most``.

    Raises:
        ShapeError: it is none.
    """
    value = float(given[name].flat[0])
    if value != int(value) or not 1 <= value <= most:
        raise ShapeError(
            N_("{name} is {value}: give a whole number from 1 to {most}."), name=name, value=f"{value:g}", most=most
        )
    return int(value)


def compute(example: Worked, inputs: Arrays) -> dict[str, Floats]:
    """The results for these inputs.

    Raises:
        ShapeError: shapes that do not fit, a number that is missing, or numbers too large to be drawn.
    """
    for name, values in inputs.items():
        if not values.size:
            raise ShapeError(N_("{name} has no number: type at least one."), name=name)
        if not np.isfinite(values).all():
            raise ShapeError(N_("{name} has an empty cell: every cell needs a number."), name=name)
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            results = example.compute(inputs)
    except FloatingPointError:
        results = None
    if results is None or any((np.abs(values) > LARGEST).any() for values in results.values()):
        raise ShapeError(
            N_("The results exceed {largest}, the largest value a picture can hold: type smaller numbers."),
            largest=f"{LARGEST:.1e}",
        )
    return results


def trimmed(values: Floats) -> Floats:
    """Without the rows and the columns in which no number stands: to clear one is to remove it."""
    known = ~np.isnan(values)
    return values[known.any(axis=1)][:, known.any(axis=0)]


def differs(computed: Floats, printed: Floats) -> NDArray[np.bool_] | None:
    """Which printed numbers differ from the computed ones by more than the print's rounding; None: other shapes."""
    if computed.shape != printed.shape:
        return None
    marks = np.zeros(printed.shape, dtype=np.bool_)
    for place, value in np.ndenumerate(printed):
        marks[place] = math.isfinite(value) and abs(computed[place] - value) > 0.5001 * _last_digit(float(value))
    return marks


def _last_digit(value: float) -> float:
    """What the last printed digit is worth: two to four behind the point, or the third of a large number."""
    if abs(value) >= 1e4:
        return 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    digits = len(f"{value:.4f}".rstrip("0").partition(".")[2])
    return 10.0 ** -max(digits, 2)
