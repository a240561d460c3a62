"""Compare recorded results with today's, within tolerances.

Words, choices and counts have to be the same. Numbers that a model computed may differ in their last digits, since
another processor adds them in another order: of a whole array five numbers are kept, of a number in a text its last
written digit is free by one.
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
SAVED = FOLDER / "saved"
"""Files saved by earlier versions; they are never saved again."""

TOLERANCE = 2e-3
"""Relative to the largest number in an array, or to a number that stands alone."""

EXACT = frozenset({"link", "value", "from", "to", "address", "along"})
"""Keys of selections: numbers in them have to be equal to the last digit."""

_NOTHING = 1e-6
_LONG = 40  # texts or labels; of more the middle is left out
_DECIMAL = re.compile(r"\d+(?:\.\d+)?e[+-]?\d+|\d+\.\d{2,}|\d+\.\d(?=\s?%)")
"""Not "3.5", which may be a section of the paper."""


def numbers(values) -> dict:
    """An array in a few numbers: "tilt" weighs each place differently, so that no two can be exchanged unseen."""
    array = np.asarray(values, dtype=np.float64)
    finite = array[np.isfinite(array)]
    found = {"shape": [*array.shape]}
    if finite.size < array.size:
        found["not_finite"] = int(array.size - finite.size)
    if finite.size:
        tilt = np.where(np.isfinite(array), array, 0).ravel() @ np.cos(np.arange(1, array.size + 1)) / array.size**0.5
        found |= {"min": finite.min(), "max": finite.max(), "mean": finite.mean(), "tilt": tilt}
    return {name: short(value) if isinstance(value, float) else value for name, value in found.items()}


def short(value: float) -> float | None:
    """Round to four significant digits; None for a value that is not a number, 0 for what may be rounding error."""
    if not math.isfinite(value):
        return None
    return float(f"{value:.4g}") if abs(value) > _NOTHING else 0.0


def listed(texts) -> list[str]:
    """Texts or labels; of many the first, the last and how many there are."""
    texts = [str(text) for text in texts]
    return texts if len(texts) <= _LONG else [*texts[:3], f"… {len(texts)} in all …", *texts[-3:]]


def hold(expected, found) -> None:
    """Fail with a line for each difference, if there are any."""
    told = [*differences(expected, found)]
    assert not told, "\n".join(told)


def differences(expected, found, *, place: str = "", exact: bool = False) -> Iterator[str]:
    """Yield every significant difference as a line that names its place.

    Args:
        expected: JSON values, as they were recorded.
        found: the same, as they are today.
        place: of both in the whole.
        exact: whether decimals in a text have to be the same.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        scale = max((abs(one.get(end) or 0) for one in (expected, found) for end in ("min", "max")), default=0)
        for name in [*expected, *(name for name in found if name not in expected)]:
            inner = (expected.get(name, "(nothing)"), found.get(name, "(nothing)"))
            if name in ("min", "max", "mean", "tilt") and _are_close(*inner, scale=scale):
                continue
            yield from differences(*inner, place=f"{place}.{name}".strip("."), exact=exact or name in EXACT)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            lost, new = ([x for x in one if x not in other] for one, other in ((expected, found), (found, expected)))
            yield f"{place}: {len(expected)} were there, {len(found)} are; lost {_brief(lost)}, new {_brief(new)}"
            return
        for at, inner in enumerate(zip(expected, found, strict=True)):
            yield from differences(*inner, place=f"{place}[{at}]", exact=exact)
    elif expected != found and not _are_alike(expected, found, exact):
        yield f"{place}: was {_brief(expected)}, is {_brief(found)}"


def _are_alike(expected, found, exact: bool) -> bool:
    if isinstance(expected, str) and isinstance(found, str):
        return not exact and _read_alike(expected, found)
    return not exact and _are_close(expected, found, scale=0)


def _are_close(expected, found, *, scale: float) -> bool:
    """Whether the numbers, at least one of them with a fraction, differ by no more than rounding error."""
    both = (expected, found)
    if not any(isinstance(one, float) for one in both) or any(isinstance(one, bool) for one in both):
        return False
    if not all(isinstance(one, int | float) for one in both):
        return False
    return abs(expected - found) <= TOLERANCE * max(scale, abs(expected), abs(found))


def _read_alike(expected: str, found: str) -> bool:
    """Whether two texts differ in the last digit of decimals alone."""
    if _DECIMAL.sub("0", expected) != _DECIMAL.sub("0", found):
        return False
    pairs = zip(_DECIMAL.findall(expected), _DECIMAL.findall(found), strict=True)
    return all(_are_written_alike(*pair) for pair in pairs)


def _are_written_alike(expected: str, found: str) -> bool:
    mantissa, _, power = expected.partition("e")
    unit = 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
    return abs(float(expected) - float(found)) <= 1.01 * unit


def _brief(value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else f"{text[:400]}…"


def read(name: str):
    """Read a recorded file of this folder."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def write(name: str, records: list[dict]) -> None:
    """Write records with one field per line, so that a changed field is a changed line."""
    texts = [",\n".join(f"  {_json(key)}: {_written(value)}" for key, value in record.items()) for record in records]
    text = "[\n" + ",\n".join(f" {{\n{text}\n }}" for text in texts) + "\n]\n"
    (FOLDER / name).write_text(text, encoding="utf-8", newline="\n")


def _written(value) -> str:
    """A list of dicts with a line for each."""
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return "[\n" + ",\n".join(f"   {_json(one)}" for one in value) + "\n  ]"
    return _json(value)


def _json(value) -> str:
    return json.dumps(value, ensure_ascii=False)
