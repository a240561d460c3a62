"""The formulas in NumPy against worked examples (held as data) and against plain loops."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from visformer import formulas
from visformer.errors import ConfigError, ShapeError

NUMBERS = st.floats(-50, 50)
SCORES = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=4, max_side=5), elements=NUMBERS)

# Positions for d = 4 (position: row), to the digits that are written down.
POSITIONS = {
    0: (0, 1, 0, 1),
    1: (0.8415, 0.5403, 0.0100, 0.99995),
    2: (0.9093, -0.4161, 0.0200, 0.9998),
    3: (0.1411, -0.9900, 0.0300, 0.99955),
    4: (-0.7568, -0.6536, 0.0400, 0.9992),
    9: (0.4121, -0.9111, 0.0899, 0.9960),
}
SAME_WORD = ((1, (0.9415, 0.7403, 0.3100, 1.4000)), (5, (-0.8589, 0.4837, 0.3500, 1.3988)))

BY_HAND = {
    "x": [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]],
    "w_q": [[1, 0], [0, 1], [1, 0], [0, 1]],
    "w_k": [[0, 1], [1, 0], [0, 1], [1, 0]],
    "q": [[4, 6], [12, 14], [20, 22]],
    "k": [[6, 4], [14, 12], [22, 20]],
    "scores": [[33.94, 90.51, 147.08], [90.51, 237.59, 384.67], [147.08, 384.67, 622.25]],
    "pattern": [[0, 0, 1]] * 3,
    "output": [[20, 22]] * 3,
}
FOUR_DIMENSIONS = {
    "scores": [[3.54, 7.78, 12.02], [7.78, 17.68, 27.58], [12.02, 27.58, 43.13]],
    "pattern": [[0.0002, 0.0142, 0.9856], [0, 0.0001, 0.9999], [0, 0, 1]],
    "output": [[4.971, 5.971], [5, 6], [5, 6]],
    "invented": [[0.2, 0.3, 0.5], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]],
    "invented_output": [[3.6, 4.6], [3.4, 4.4], [2.6, 3.6]],
}
SOFTMAX = {
    "scores": [
        [21.2206, 6.2903, 1.2201, 0.8742],
        [6.2903, 7.1234, 1.5678, 1.2345],
        [1.2201, 1.5678, 5.6789, 0.9876],
        [0.8742, 1.2345, 0.9876, 4.5678],
    ],
    "pattern": [
        [1, 0, 0, 0],
        [0.3016, 0.6938, 0.0027, 0.0019],
        [0.0112, 0.0158, 0.9642, 0.0088],
        [0.0229, 0.0328, 0.0256, 0.9188],
    ],
}
BROKEN = {
    "query": [[1, 2, 3], [4, 5, 6]],
    "key": [[7, 8], [9, 10], [11, 12]],
    "value": [[13, 14], [15, 16], [17, 18]],
    "mended_scores": [[16.26, 20.51, 24.75], [48.08, 60.81, 73.54]],
    "printed_scores": [[11.5, 14.5, 17.5], [25, 32, 39]],
    "their_softmax": [[0.0024, 0.0473, 0.9503], [0.0000, 0.0009, 0.9991]],
    "their_output": [[16.90, 17.90], [17.00, 18.00]],
}
NORMED = {
    "population": [-1.3416, -0.4472, 0.4472, 1.3416],
    "sample": [-1.1619, -0.3873, 0.3873, 1.1619],
}


def close(got, wanted, digits):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=0.5000001 * 10**-digits)


def test_positions_of_the_worked_example():
    table = formulas.sinusoidal_encoding(10, 4)
    for position, row in POSITIONS.items():
        close(table[position], row, 4)
    close(table[[1, 3], 3], [0.99995, 0.99955], 5)


def test_rows_of_chosen_positions_are_those_of_the_table():
    np.testing.assert_array_equal(
        formulas.encoding_at([9, 0, 4], 5, 100), formulas.sinusoidal_encoding(10, 5, 100)[[9, 0, 4]]
    )


def test_the_printed_positions_are_those_of_base_100():
    table = formulas.sinusoidal_encoding(10, 4, base=100)
    close(table[1, 2:], [0.0998, 0.9950], 4)
    close(table[9, 2:], [0.7833, 0.6216], 4)


@pytest.mark.parametrize(("position", "wanted"), SAME_WORD)
def test_the_same_word_in_two_places(position, wanted):
    close(np.array([0.1, 0.2, 0.3, 0.4]) + formulas.sinusoidal_encoding(7, 4)[position], wanted, 4)


@pytest.mark.parametrize("d_model", [1, 2, 3, 7, 8, 33])
def test_positions_are_the_papers_formula(d_model):
    table = formulas.sinusoidal_encoding(6, d_model, base=50.0)
    assert table.shape == (6, d_model) and table.dtype == np.float64
    for pos in range(6):
        for column in range(d_model):
            angle = pos / 50.0 ** (2 * (column // 2) / d_model)
            wave = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[pos, column] == pytest.approx(wave, abs=1e-14)


def test_no_positions():
    assert formulas.sinusoidal_encoding(0, 4).shape == (0, 4)


@pytest.mark.parametrize(("n", "d", "base"), [(-1, 4, 1e4), (3, 0, 1e4), (3, 4, 0.0), (3, 4, -2.0), (3, 4, math.nan)])
def test_positions_that_make_no_sense(n, d, base):
    with pytest.raises(ConfigError, match=f"n_positions={n}, d_model={d}, base={base}"):
        formulas.sinusoidal_encoding(n, d, base)


def test_self_attention_by_hand():
    x, w_q, w_k = (np.array(BY_HAND[name]) for name in ("x", "w_q", "w_k"))
    np.testing.assert_array_equal(x @ w_q, BY_HAND["q"])
    np.testing.assert_array_equal(x @ w_k, BY_HAND["k"])
    close(np.array(BY_HAND["q"]) @ np.array(BY_HAND["k"]).T / math.sqrt(2), BY_HAND["scores"], 2)
    output, pattern = formulas.attention(x @ w_q, x @ w_k, x @ w_q)
    close(pattern, BY_HAND["pattern"], 4)
    close(output, BY_HAND["output"], 4)


def test_four_dimensions():
    tensor = np.arange(1, 25).reshape(2, 2, 3, 2)
    output, pattern = formulas.attention(tensor, tensor, tensor)
    assert output.shape == (2, 2, 3, 2) and pattern.shape == (2, 2, 3, 3)
    close(tensor[0, 0] @ tensor[0, 0].T / math.sqrt(2), FOUR_DIMENSIONS["scores"], 2)
    close(pattern[0, 0], FOUR_DIMENSIONS["pattern"], 4)
    close(output[0, 0], FOUR_DIMENSIONS["output"], 3)
    close(np.array(FOUR_DIMENSIONS["invented"]) @ tensor[0, 0], FOUR_DIMENSIONS["invented_output"], 4)


def test_softmax_of_the_worked_example():
    close(formulas.softmax(SOFTMAX["scores"]), SOFTMAX["pattern"], 4)


def test_the_broken_example_says_so_and_mended_it_works():
    with pytest.raises(ShapeError, match=r"\(2, 3\), \(3, 2\) and \(3, 2\)"):
        formulas.attention(BROKEN["query"], BROKEN["key"], BROKEN["value"])
    query, key, value = np.array(BROKEN["query"])[:, :2], np.array(BROKEN["key"]), np.array(BROKEN["value"])
    output, pattern = formulas.attention(query, key, value)
    close(pattern, formulas.softmax(BROKEN["mended_scores"]), 3)
    close(output, pattern @ value, 9)
    close(query @ key.T / math.sqrt(2), BROKEN["mended_scores"], 2)


def test_softmax_of_the_printed_scores():
    pattern = formulas.softmax(BROKEN["printed_scores"])
    close(pattern, BROKEN["their_softmax"], 4)
    close(pattern @ np.array(BROKEN["value"]), BROKEN["their_output"], 2)


def test_both_layer_norms():
    close(formulas.layer_norm([1, 2, 3, 4], eps=0.0), NORMED["population"], 4)
    close(formulas.layer_norm_sample_std([1, 2, 3, 4]), NORMED["sample"], 4)


def test_layer_norm_eps_stands_where_it_is_said_to():
    x = [1.0, 2.0, 3.0, 4.0]
    close(formulas.layer_norm(x, eps=2.0), np.array([-1.5, -0.5, 0.5, 1.5]) / math.sqrt(1.25 + 2.0), 9)
    close(formulas.layer_norm_sample_std(x, eps=2.0), np.array([-1.5, -0.5, 0.5, 1.5]) / (math.sqrt(5 / 3) + 2.0), 9)


@pytest.mark.parametrize("norm", [formulas.layer_norm, formulas.layer_norm_sample_std])
def test_layer_norm_gain_and_bias_act_per_feature(norm):
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    gain, bias = np.array([1.0, 2.0, -3.0, 0.5]), np.array([0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(norm(x, gain=gain, bias=bias), norm(x) * gain + bias, rtol=0, atol=1e-12)
    np.testing.assert_allclose(norm(x)[1, 2], norm(x[1, 2]), rtol=0, atol=1e-14)


@pytest.mark.parametrize("x", [[1.0], 3.0])
def test_one_number_has_no_sample_deviation(x):
    with pytest.raises(ShapeError, match="at least 2"):
        formulas.layer_norm_sample_std(x)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_feed_forward_by_plain_loops(activation):
    rng = np.random.default_rng(1)
    x, w_1, b_1, w_2, b_2 = (rng.normal(size=shape) for shape in ((2, 3), (3, 5), (5,), (5, 3), (3,)))
    got = formulas.feed_forward(x, w_1, b_1=b_1, w_2=w_2, b_2=b_2, activation=activation)
    for row in range(2):
        inner = [sum(x[row, i] * w_1[i, j] for i in range(3)) + b_1[j] for j in range(5)]
        if activation == "relu":
            inner = [max(0.0, h) for h in inner]
        else:
            inner = [h * 0.5 * math.erfc(-h / math.sqrt(2)) for h in inner]
        out = [sum(inner[j] * w_2[j, i] for j in range(5)) + b_2[i] for i in range(3)]
        np.testing.assert_allclose(got[row], out, rtol=0, atol=1e-13)


def test_feed_forward_knows_two_activations():
    with pytest.raises(ConfigError, match="swish"):
        formulas.feed_forward([[1.0]], [[1.0]], b_1=[0.0], w_2=[[1.0]], b_2=[0.0], activation="swish")


def test_masks():
    np.testing.assert_array_equal(formulas.causal_mask(3), [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
    mask = formulas.padding_mask([[5, 0, 7], [0, 0, 1]])
    assert mask.shape == (2, 1, 1, 3) and mask.dtype == formulas.causal_mask(2).dtype == np.bool_
    np.testing.assert_array_equal(mask[:, 0, 0], [[True, False, True], [False, False, True]])
    np.testing.assert_array_equal(formulas.padding_mask([[5, 0]], pad_id=5)[0, 0, 0], [False, True])


@given(SCORES, st.data())
def test_rows_sum_to_one_or_are_all_zero(scores, data):
    mask = data.draw(hnp.arrays(np.bool_, scores.shape))
    pattern = formulas.softmax(scores, mask)
    visible = mask.any(-1)
    np.testing.assert_allclose(pattern.sum(-1), visible.astype(float), rtol=0, atol=1e-12)
    assert (pattern[~mask] == 0).all()
    assert (pattern >= 0).all()


@given(SCORES, st.floats(-1000, 1000))
def test_softmax_does_not_care_for_a_constant(scores, constant):
    np.testing.assert_allclose(formulas.softmax(scores + constant), formulas.softmax(scores), rtol=0, atol=1e-10)


def test_softmax_of_huge_scores():
    close(formulas.softmax([[1e300, 0.0], [-1e300, -1e300]]), [[1, 0], [0.5, 0.5]], 12)


def test_the_formulas_need_no_torch():
    code = "import visformer.formulas, sys; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
