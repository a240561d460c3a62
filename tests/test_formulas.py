"""The formulas in NumPy against plain loops; `tests/golden/test_worked.py` compares them with worked examples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from visformer import formulas
from visformer.errors import ConfigError, ShapeError

NUMBERS = st.floats(-50, 50)
SCORES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=4, max_side=5), elements=NUMBERS)


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def test_encodings_of_single_positions_are_rows_of_the_table():
    table = formulas.sinusoidal_encoding(10, 5, 100)
    np.testing.assert_array_equal(formulas.encoding_at([9, 0, 4], 5, 100), table[[9, 0, 4]])


def test_the_sinusoidal_encoding_is_the_papers_formula():
    for d_model in (1, 2, 3, 7, 8, 33):
        table = formulas.sinusoidal_encoding(6, d_model, base=50.0)
        assert table.shape == (6, d_model) and table.dtype == np.float64
        for pos, column in np.ndindex(table.shape):
            angle = pos / 50.0 ** (2 * (column // 2) / d_model)
            wave = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[pos, column] == pytest.approx(wave, abs=1e-14), d_model
    assert formulas.sinusoidal_encoding(0, 4).shape == (0, 4), "no positions"


@pytest.mark.parametrize(("n", "d", "base"), [(-1, 4, 1e4), (3, 0, 1e4), (3, 4, 0.0), (3, 4, -2.0), (3, 4, math.nan)])
def test_invalid_sizes_and_bases_are_refused(n, d, base):
    with pytest.raises(ConfigError, match=f"n_positions={n}, d_model={d}, base={base}"):
        formulas.sinusoidal_encoding(n, d, base)


def test_layer_norm_adds_eps_to_the_variance_or_to_the_sample_standard_deviation():
    x, centred = [1.0, 2.0, 3.0, 4.0], np.array([-1.5, -0.5, 0.5, 1.5])
    assert_close(formulas.layer_norm(x, eps=2.0), centred / math.sqrt(1.25 + 2.0))
    assert_close(formulas.layer_norm_sample_std(x, eps=2.0), centred / (math.sqrt(5 / 3) + 2.0))


@pytest.mark.parametrize("norm", [formulas.layer_norm, formulas.layer_norm_sample_std])
def test_layer_norm_gain_and_bias_act_per_feature(norm):
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    gain, bias = np.array([1.0, 2.0, -3.0, 0.5]), np.array([0.0, 1.0, 2.0, 3.0])
    assert_close(norm(x, gain=gain, bias=bias), norm(x) * gain + bias)
    assert_close(norm(x)[1, 2], norm(x[1, 2]))


def test_the_deviation_of_one_number_and_an_unknown_activation_are_refused():
    for x in ([1.0], 3.0):
        with pytest.raises(ShapeError, match="at least 2"):
            formulas.layer_norm_sample_std(x)
    with pytest.raises(ConfigError, match="swish"):
        formulas.feed_forward([[1.0]], [[1.0]], b_1=[0.0], w_2=[[1.0]], b_2=[0.0], activation="swish")


def test_the_causal_mask_is_lower_triangular():
    np.testing.assert_array_equal(formulas.causal_mask(3), [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
    assert formulas.causal_mask(2).dtype == np.bool_


@given(SCORES, st.data())
def test_rows_of_softmax_sum_to_one_or_if_fully_masked_to_zero(scores, data):
    mask = data.draw(hnp.arrays(np.bool_, scores.shape))
    pattern = formulas.softmax(scores, mask)
    visible = mask.any(-1)
    assert_close(pattern.sum(-1), visible.astype(float))
    assert (pattern[~mask] == 0).all()
    assert (pattern >= 0).all()


@given(SCORES, st.floats(-1000, 1000))
def test_adding_a_constant_to_all_scores_leaves_softmax_unchanged(scores, constant):
    np.testing.assert_allclose(formulas.softmax(scores + constant), formulas.softmax(scores), rtol=0, atol=1e-10)


def test_softmax_of_huge_scores_does_not_overflow():
    assert_close(formulas.softmax([[1e300, 0.0], [-1e300, -1e300]]), [[1, 0], [0.5, 0.5]])
