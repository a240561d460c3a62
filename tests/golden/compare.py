"""Compare recorded results with current ones, within tolerances.

Words, choices and counts have to be equal. Numbers that a model computed may differ in their last digits, since
another processor adds them in another order. Of an array, a few numbers are recorded; a decimal in a text may differ by
one in its last digit.
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
SAVED = FOLDER / "saved"
"""Files saved by earlier versions, which must not be saved again."""

TOLERANCE = 2e-3
"""Relative to the largest number in an array, or to a number that stands alone."""

EXACT = frozenset({"link", "value", "from", "to", "address", "along"})
"""Keys of selections: decimals in them have to be equal."""

_ROUNDING_ERROR = 1e-6
_MAX_LISTED = 40  # texts; of more than that, the middle is left out
_DECIMAL = re.compile(r"\d+(?:\.\d+)?e[+-]?\d+|\d+\.\d{2,}|\d+\.\d(?=\s?%)")
"""Not "3.5", which may be a section of the paper."""


def numbers(values) -> dict:
    """Summarise an array: "tilt" weighs each position differently, so that it changes if two values are exchanged."""
    array = np.asarray(values, dtype=np.float64)
    finite = array[np.isfinite(array)]
    summary = {"shape": [*array.shape]}
    if finite.size < array.size:
        summary["not_finite"] = int(array.size - finite.size)
    if finite.size:
        tilt = np.where(np.isfinite(array), array, 0).ravel() @ np.cos(np.arange(1, array.size + 1)) / array.size**0.5
        summary |= {"min": finite.min(), "max": finite.max(), "mean": finite.mean(), "tilt": tilt}
    return {name: short(value) if isinstance(value, float) else value for name, value in summary.items()}


def short(value: float) -> float | None:
    """Round to four significant digits; None for a value that is not finite, 0 for one that may be rounding error."""
    if not math.isfinite(value):
        return None
    return float(f"{value:.4g}") if abs(value) > _ROUNDING_ERROR else 0.0


def listed(texts) -> list[str]:
    """Return the texts; of many, the first, the number and the last."""
    texts = [str(text) for text in texts]
    return texts if len(texts) <= _MAX_LISTED else [*texts[:3], f"… {len(texts)} in all …", *texts[-3:]]


def assert_alike(expected, actual) -> None:
    """Fail with a line for each difference, if there are any."""
    lines = [*differences(expected, actual)]
    assert not lines, "\n".join(lines)


def differences(expected, actual, *, place: str = "", exact: bool = False) -> Iterator[str]:
    """Yield every significant difference as a line that names its place.

    Args:
        expected: JSON values, as they were recorded.
        actual: the same, as they are now.
        place: where both are in the whole.
        exact: whether decimals have to be equal.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        scale = max((abs(one.get(end) or 0) for one in (expected, actual) for end in ("min", "max")), default=0)
        for name in [*expected, *(name for name in actual if name not in expected)]:
            values = (expected.get(name, "(nothing)"), actual.get(name, "(nothing)"))
            if name in ("min", "max", "mean", "tilt") and _are_close(*values, scale=scale):
                continue
            yield from differences(*values, place=f"{place}.{name}".strip("."), exact=exact or name in EXACT)
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            lost, new = ([x for x in one if x not in other] for one, other in ((expected, actual), (actual, expected)))
            yield f"{place}: was {len(expected)} items, is {len(actual)}; lost {_brief(lost)}, new {_brief(new)}"
            return
        for i, values in enumerate(zip(expected, actual, strict=True)):
            yield from differences(*values, place=f"{place}[{i}]", exact=exact)
    elif expected != actual and (exact or not _are_alike(expected, actual)):
        yield f"{place}: was {_brief(expected)}, is {_brief(actual)}"


def _are_alike(expected, actual) -> bool:
    if isinstance(expected, str) and isinstance(actual, str):
        return _texts_are_alike(expected, actual)
    return _are_close(expected, actual, scale=0)


def _are_close(expected, actual, *, scale: float) -> bool:
    """Whether two numbers, at least one of them a float, differ by no more than rounding error."""
    both = (expected, actual)
    if not any(isinstance(one, float) for one in both) or any(isinstance(one, bool) for one in both):
        return False
    if not all(isinstance(one, int | float) for one in both):
        return False
    return abs(expected - actual) <= TOLERANCE * max(scale, abs(expected), abs(actual))


def _texts_are_alike(expected: str, actual: str) -> bool:
    """Whether two texts differ only in the last digit of decimals."""
    if _DECIMAL.sub("0", expected) != _DECIMAL.sub("0", actual):
        return False
    pairs = zip(_DECIMAL.findall(expected), _DECIMAL.findall(actual), strict=True)
    return all(_decimals_are_alike(*pair) for pair in pairs)


def _decimals_are_alike(expected: str, actual: str) -> bool:
    mantissa, _, power = expected.partition("e")
    unit = 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
    return abs(float(expected) - float(actual)) <= 1.01 * unit


def _brief(value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else f"{text[:400]}…"


def read(name: str):
    """Read a recorded file of this folder."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def write(name: str, records: list[dict]) -> None:
    """Write records with one field per line, so that a changed field is a changed line."""
    texts = [",\n".join(f"  {_json(key)}: {_lines(value)}" for key, value in record.items()) for record in records]
    text = "[\n" + ",\n".join(f" {{\n{text}\n }}" for text in texts) + "\n]\n"
    (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")


def _lines(value) -> str:
    """Format a list of dicts as a line for each."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return "[\n" + ",\n".join(f"   {_json(item)}" for item in value) + "\n  ]"
    return _json(value)


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False)
