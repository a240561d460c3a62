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

_BLOCK = 1 << 15  # weights per block: their float64 copies fit the CPU cache

# Each decade's start, and the coefficients of code = rint(weight * slope) + first in it. A float32 times a power of ten
# up to 1e10 needs 48 bits, so the product in float64 is exact before it is rounded to four digits; ties go to the even
# digit, as in Python's formatting.
_DECADES = [(0.0, 0.0, 0), (2.0**-149, 0.0, 1)]  # 0, and the positive weights below 1e-35
_DECADES += [(10.0**power, 10.0 ** (1 - power), 1 + 90 * i - 10) for i, power in enumerate(range(-35, -7))]
_DECADES += [(10.0**power, 10.0 ** (3 - power), 2521 + 9000 * i - 1000) for i, power in enumerate(range(-7, 0))]
_DECADES += [(1.0, 0.0, ONE)]
_START, _SLOPE, _FIRST = np.array(_DECADES).T
_END = np.append(_START[1:], np.inf)

# For each sign and exponent of a float32, the decade of its smallest; between two powers of two, at most one starts.
_LOWEST = np.searchsorted(_START, (np.arange(256, dtype=np.uint32) << 23).view(np.float32), side="right") - 1
_LOWEST = np.append(_LOWEST, np.zeros_like(_LOWEST))  # negative rounding errors: code 0


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
            N_("Attention weights must be between 0 and 1; {weight} is not."),
            weight=low if low < -TOLERANCE else high,
        )
    codes = np.empty(flat.shape, dtype="<u2")
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        decade = _LOWEST[block.view(np.uint32) >> 23]
        decade += block >= _END[decade]
        scaled = block * _SLOPE[decade]
        np.rint(scaled, out=scaled)
        scaled += _FIRST[decade]
        codes[start : start + _BLOCK] = scaled
    return codes.reshape(np.shape(weights))
