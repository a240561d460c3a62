"""Encode weights in 16 bits that keep the four significant decimal digits the explorer displays.

Half-precision floats keep three digits, and a linear scale none of a small weight. These codes enumerate decimals:

    code 0              exactly 0
    codes 1..2520       two digits, 10..99, of the 28 decades from 1e-35 up to 1e-7; smaller weights have code 1
    codes 2521..65520   four digits, 1000..9999, of the 7 decades from 1e-7 up to 1
    code 65521          1

Codes are monotonic in the weight; rounding up past the end of a decade gives the next decade's first code.
"""

import numpy as np
import numpy.typing as npt

from visformer.errors import N_, TraceError

ONE = 65521
"""The code of weight 1, the largest code."""

TOLERANCE = 1e-3
"""A weight further than this outside [0, 1] is not a rounding error."""

_COARSE = range(-35, -7)  # decades of two digits, by their power of ten
_FINE = range(-7, 0)  # decades of four digits
_BLOCK = 1 << 15  # weights per block: their float64 copies fit the CPU cache


def _lines() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return, for each sign and exponent of a float32, the coefficients of code = rint(weight * slope) + first.

    Between two powers of two lies at most one power of ten, ``change``. Slope and first come in pairs: for weights
    below it and for the others. A float32 times a power of ten up to 1e10 needs 48 bits, so the product in float64 is
    exact before it is rounded to four digits; ties go to the even digit, as in Python's formatting.
    """
    decades = [(10.0**power, 10.0 ** (1 - power), 1 + 90 * i - 10) for i, power in enumerate(_COARSE)]
    decades += [(10.0**power, 10.0 ** (3 - power), 2521 + 9000 * i - 1000) for i, power in enumerate(_FINE)]
    decades += [(1.0, 0.0, ONE)]
    change = np.full(512, np.inf, dtype=np.float32)
    slope, first = np.zeros((2, 512, 2))
    at = (0.0, 1.0)  # code 1, before the first decade
    for exponent in range(256):
        slope[exponent], first[exponent] = at
        upper = 2.0 ** (exponent - 126)
        if decades and decades[0][0] < upper:
            start, *line = decades.pop(0)
            nearest = np.float32(start)
            change[exponent] = nearest if float(nearest) >= start else np.nextafter(nearest, np.float32(1))
            at = (line[0], line[1])
            slope[exponent, 1], first[exponent, 1] = at
    change[0], first[0] = np.nextafter(np.float32(0), np.float32(1)), (0, 1)
    return change, slope.ravel(), first.ravel()  # the upper 256 entries, negative rounding errors, give code 0


_CHANGE, _SLOPE, _FIRST = _lines()


def encode(weights: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Encode weights.

    Args:
        weights: any shape, float32, from 0 to 1; values outside by a rounding error are clipped.

    Returns:
        Same shape, uint16, little-endian.

    Raises:
        TraceError: a weight is not between 0 and 1.
    """
    flat = np.ascontiguousarray(weights, dtype=np.float32).ravel()
    low, high = flat.min(initial=0), flat.max(initial=0)
    if not (low >= -TOLERANCE and high <= 1 + TOLERANCE):
        raise TraceError(
            N_("Attention weights are between 0 and 1, but {weight} is among them."),
            weight=low if low < -TOLERANCE else high,
        )
    codes = np.empty(flat.shape, dtype="<u2")
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        exponent = (block.view(np.uint32) >> 23).astype(np.intp)  # including the sign bit: 0..511
        line = 2 * exponent + (block >= _CHANGE[exponent])
        scaled = block * _SLOPE[line]
        np.rint(scaled, out=scaled)
        scaled += _FIRST[line]
        codes[start : start + _BLOCK] = scaled
    return codes.reshape(np.shape(weights))
