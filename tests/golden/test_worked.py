"""Every computed figure of the course notes' examples, and every misprint, worked out by hand in float64."""

import numpy as np
import pytest

from visformer.errors import ShapeError
from visformer.examples.worked import WORKED, compute, differs

BY_NAME = {example.name: example for example in WORKED}

# (example, result, row, values, digits): rows as they must come out.
COMPUTED = [
    ("sinusoid", "1 / 10000^(2i/d)", 0, [1, 0.01], 4),
    ("sinusoid", "PE", 0, [0, 1, 0, 1], 4),
    ("sinusoid", "PE", 1, [0.8415, 0.5403, 0.0100, 0.99995], 4),
    ("sinusoid", "PE", 2, [0.9093, -0.4161, 0.0200, 0.9998], 4),
    ("sinusoid", "PE", 3, [0.1411, -0.9900, 0.0300, 0.99955], 4),
    ("sinusoid", "PE", 4, [-0.7568, -0.6536, 0.0400, 0.9992], 4),
    ("sinusoid", "PE", 5, [0.4121, -0.9111, 0.0899, 0.9960], 4),
    ("same-word", "embedding + PE", 0, [0.9415, 0.7403, 0.3100, 1.4000], 4),
    ("same-word", "embedding + PE", 1, [-0.8589, 0.4837, 0.3500, 1.3988], 4),
    ("sum", "E + P", 0, [0.2, 0.5, 0.5, 0.8], 4),
    ("sum", "E + P", 1, [0.7, 0.9, 1.1, 1.3], 4),
    ("sum", "E + P", 2, [1.2, 0.5, 0.8, 1.1], 4),
    ("sum", "E + P", 3, [0.6, 0.9, 1.2, 1.5], 4),
    ("sum", "E + P", 4, [0.8, 0.8, 0.8, 1.3], 4),
    ("sum-zh", "E + P", 0, [0.4, 0.3, 0.5, 0.9], 4),
    ("sum-zh", "E + P", 1, [0.8, 0.6, 0.8, 1.2], 4),
    ("sum-zh", "E + P", 2, [1.1, 0.9, 1.1, 1.5], 4),
    ("query", "W_Q · x", 0, [1.21, 1.80, 1.67, 1.95], 4),
    ("self-attention", "Q", 0, [4, 6], 4),
    ("self-attention", "Q", 1, [12, 14], 4),
    ("self-attention", "Q", 2, [20, 22], 4),
    ("self-attention", "V", 2, [20, 22], 4),
    ("self-attention", "K", 0, [6, 4], 4),
    ("self-attention", "K", 1, [14, 12], 4),
    ("self-attention", "K", 2, [22, 20], 4),
    ("self-attention", "Q·Kᵀ", 0, [48, 128, 208], 4),
    ("self-attention", "Q·Kᵀ", 1, [128, 336, 544], 4),
    ("self-attention", "Q·Kᵀ", 2, [208, 544, 880], 4),
    ("self-attention", "Q·Kᵀ / √d_k", 0, [33.94, 90.51, 147.08], 2),
    ("self-attention", "Q·Kᵀ / √d_k", 1, [90.51, 237.59, 384.67], 2),
    ("self-attention", "Q·Kᵀ / √d_k", 2, [147.08, 384.67, 622.25], 2),
    *[("self-attention", "softmax", row, [0, 0, 1], 4) for row in range(3)],
    *[("self-attention", "softmax · V", row, [20, 22], 4) for row in range(3)],
    ("one-head", "Q·Kᵀ", 0, [5, 11, 17], 4),
    ("one-head", "Q·Kᵀ", 1, [11, 25, 39], 4),
    ("one-head", "Q·Kᵀ", 2, [17, 39, 61], 4),
    ("one-head", "Q·Kᵀ / √d_k", 0, [3.54, 7.78, 12.02], 2),
    ("one-head", "Q·Kᵀ / √d_k", 1, [7.78, 17.68, 27.58], 2),
    ("one-head", "Q·Kᵀ / √d_k", 2, [12.02, 27.58, 43.13], 2),
    ("one-head", "softmax", 0, [0.0002, 0.0142, 0.9856], 4),
    ("one-head", "softmax", 1, [0.0000, 0.0001, 0.9999], 4),
    ("one-head", "softmax", 2, [0, 0, 1], 4),
    ("one-head", "softmax · V", 0, [4.971, 5.971], 3),
    ("one-head", "softmax · V", 1, [5.000, 6.000], 3),
    ("one-head", "softmax · V", 2, [5, 6], 3),
    ("invented", "pattern · V", 0, [3.6, 4.6], 4),
    ("invented", "pattern · V", 1, [3.4, 4.4], 4),
    ("invented", "pattern · V", 2, [2.6, 3.6], 4),
    ("softmax", "softmax", 0, [1.000, 0, 0, 0], 3),
    ("softmax", "softmax", 1, [0.3016, 0.6938, 0.0027, 0.0019], 4),
    ("softmax", "softmax", 2, [0.0112, 0.0158, 0.9642, 0.0088], 4),
    ("softmax", "softmax", 3, [0.0229, 0.0328, 0.0256, 0.9188], 4),
    ("mended", "Q·Kᵀ", 0, [23, 29, 35], 4),
    ("mended", "Q·Kᵀ", 1, [68, 86, 104], 4),
    ("mended", "Q·Kᵀ / √d_k", 0, [16.26, 20.51, 24.75], 2),
    ("mended", "Q·Kᵀ / √d_k", 1, [48.08, 60.81, 73.54], 2),
    ("norms", "mean", 0, [2.5], 4),
    ("norms", "σ, divided by d", 0, [1.1180], 4),
    ("norms", "σ, divided by d − 1", 0, [1.2910], 4),
    ("norms", "LayerNorm", 0, [-1.3416, -0.4472, 0.4472, 1.3416], 4),
    ("norms", "LayerNorm of the notes' code", 0, [-1.1619, -0.3873, 0.3873, 1.1619], 4),
    *[("zero-mask", "softmax of that", row, [1 / 3, 1 / 3, 1 / 3], 4) for row in range(3)],
    *[("zero-mask", "visformer's rule", row, [0, 0, 0], 4) for row in range(3)],
]

# (example, result, row): the columns whose print is wrong; every other printed number is right.
MISPRINTS = {
    ("sinusoid", "1 / 10000^(2i/d)", 0): [1],
    ("sinusoid", "PE", 1): [2, 3],
    ("sinusoid", "PE", 5): [2, 3],
    ("same-word", "embedding + PE", 0): [0, 1, 2],
    ("same-word", "embedding + PE", 1): [0, 1, 2],
    ("query", "W_Q · x", 0): [0, 1, 2, 3],
    **{("self-attention", name, row): [0, 1] for name in "QKV" for row in range(3)},
    **{("self-attention", name, row): [0, 1, 2] for name in ("Q·Kᵀ", "Q·Kᵀ / √d_k") for row in range(3)},
    ("invented", "pattern · V", 0): [1],
    ("softmax", "softmax", 1): [0, 1],
    ("softmax", "softmax", 2): [0, 1, 2, 3],
    ("softmax", "softmax", 3): [0, 1, 2, 3],
    ("softmax", "exp", 0): [0],
    ("mended", "Q·Kᵀ", 1): [0, 1, 2],
    **{("mended", "Q·Kᵀ / √d_k", row): [0, 1, 2] for row in range(2)},
    **{("mended", "softmax", row): [0, 1, 2] for row in range(2)},
    **{("mended", "softmax · V", row): [0, 1] for row in range(2)},
    ("norms", "LayerNorm of the notes' code", 0): [0, 1, 2, 3],
}


@pytest.mark.parametrize(("name", "result", "row", "values", "digits"), COMPUTED)
def test_computed(name, result, row, values, digits):
    found = compute(BY_NAME[name], BY_NAME[name].inputs)[result][row]
    assert np.allclose(found, values, atol=0.5001 * 10.0**-digits, rtol=0)


def test_exp_of_the_largest_score():
    assert compute(BY_NAME["softmax"], BY_NAME["softmax"].inputs)["exp"][0, 0] == pytest.approx(1.644e9, rel=5e-4)


@pytest.mark.parametrize("example", WORKED, ids=lambda example: example.name)
def test_misprints_are_marked_and_nothing_else(example):
    if example.instead:
        return
    found = compute(example, example.inputs)
    assert set(example.printed) <= set(found)
    marked = {}
    for name, printed in example.printed.items():
        marks = differs(found[name], printed)
        marked |= {(example.name, name, row): np.flatnonzero(marks[row]).tolist() for row in range(len(marks))}
        assert bool(marks.any()) == (name in example.remarks)
    assert {place: columns for place, columns in marked.items() if columns} == {
        place: columns for place, columns in MISPRINTS.items() if place[0] == example.name
    }


def test_the_broken_example_says_what_does_not_fit():
    with pytest.raises(ShapeError, match=r"Q is 2 × 3 and Kᵀ is 2 × 3.*3 is not 2"):
        compute(BY_NAME["broken"], BY_NAME["broken"].inputs)
    assert BY_NAME[BY_NAME["broken"].instead].inputs["Q"].shape == (2, 2)


def test_the_notes_own_follow_ups_of_wrong_scores():
    """The softmax of the printed scores, and the printed softmax times V: neither gives what is printed next."""
    from visformer.formulas import softmax

    v = BY_NAME["mended"].inputs["V"]
    pattern = softmax([[11.5, 14.5, 17.5], [25, 32, 39]])
    assert np.allclose(pattern, [[0.0024, 0.0473, 0.9503], [0.0000, 0.0009, 0.9991]], atol=5e-5)
    assert np.allclose(pattern @ v, [[16.90, 17.90], [17.00, 18.00]], atol=5e-3)
    printed = np.array([[0.11, 0.23, 0.66], [0.09, 0.24, 0.67]])
    assert np.allclose(printed @ v, [[16.10, 17.10], [16.16, 17.16]], atol=5e-3)
