"""The 16-bit codes of weights, compared with Python's decimal formatting."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.messages import decode
from visformer.errors import TraceError
from visformer.web.codes import ONE, encode

ALL = np.arange(ONE + 1, dtype=np.uint16)

weight = st.floats(0, 1, width=32) | st.integers(0, 0x3F800000).map(
    lambda bits: float(np.uint32(bits).view(np.float32))
)
"""Weights of all magnitudes; every exponent is equally likely."""


def code_of(value):
    return int(encode(np.array([value], dtype=np.float32))[0])


def four_digits(values):
    return [f"{value:.3e}" for value in values.tolist()]


@given(weight)
@example(0.0078125)  # 7.8125e-3: a tie
@example(0.01171875)
@example(float(np.float32(9.99996e-8)))
@example(float(np.nextafter(np.float32(1), np.float32(0))))
def test_a_code_decodes_to_the_digits_that_python_prints(value):
    """Four digits, two below 1e-7, none below 1e-35."""
    if value >= 1e-7:
        assert f"{decode(code_of(value)):.3e}" == f"{value:.3e}"
    elif value >= 1e-35:
        assert math.isclose(decode(code_of(value)), float(f"{value:.1e}"), rel_tol=1e-12) or is_near_a_tie(value)
    else:
        assert code_of(value) == (value > 0)


def is_near_a_tie(value):
    """Two digits are rounded in float64, which cannot hold the powers of ten below 1e-22."""
    return f"{value:.17e}"[3:].startswith(("4999999999999", "5000000000000"))


def test_ties_are_rounded_to_the_even_digit():
    """All ties between floats: n / 2^k has the digits of n 5^k, which are five or fewer only for k <= 7."""
    ties = np.array([n / 2**k for k in range(1, 8) for n in range(1, 2**k, 2) if len(str(n * 5**k)) == 5])
    assert ties[0] == 0.15625
    assert four_digits(decode(encode(ties.astype(np.float32)))) == four_digits(ties)


def test_floats_around_powers_of_ten_keep_their_order_and_digits():
    powers = np.array([10.0**power for power in range(-35, 1)], dtype=np.float32)
    around = np.unique((powers.view(np.uint32)[:, None] + np.arange(-2000, 2000)).ravel()).astype(np.uint32)
    floats = around.view(np.float32)
    floats = floats[floats <= 1]
    codes = encode(floats)
    assert (np.diff(codes.astype(int)) >= 0).all()
    larger = floats[floats >= np.float32(1e-7)]
    assert four_digits(decode(encode(larger))) == four_digits(larger)


def test_codes_enumerate_decimals_in_ascending_order():
    values = decode(ALL)
    assert (np.diff(values) > 0).all()
    assert (values[0], values[1], values[2520], values[2521], values[65520], values[ONE]) == (
        0.0, 1.0e-35, 9.9e-8, 1.000e-7, 0.9999, 1.0,
    )  # fmt: skip
    assert np.array_equal(encode(values.astype(np.float32)), ALL)
    assert all(value == float(f"{value:.3e}") for value in values.tolist()), "each is the float nearest to its digits"


def test_rounding_errors_are_clipped_tiny_weights_are_not_0_and_invalid_ones_are_refused():
    for value, code in ((1 + 1e-6, ONE), (-1e-9, 0), (-0.0, 0), (1e-45, 1), (1e-36, 1), (1.0, ONE)):
        assert code_of(value) == code, value
    for value in (1.5, -0.5, float("nan"), float("inf")):
        with pytest.raises(TraceError, match=str(value)):
            encode(np.array([0.5, value], dtype=np.float32))


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (2, 3, 5, 7), (70_000,)])
def test_codes_of_any_array_have_its_shape_and_are_16_bit(shape):
    weights = np.random.default_rng(0).random(shape, dtype=np.float32)
    codes = encode(weights)
    assert (codes.shape, codes.dtype) == (shape, np.dtype("<u2"))
    assert np.array_equal(codes, encode(weights.astype(np.float64)[..., ::-1])[..., ::-1]), "float64, not contiguous"
