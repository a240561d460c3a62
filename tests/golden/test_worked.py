"""The examples of the course notes: results worked out by hand, and every misprint."""

import re

import numpy as np
import pytest
import torch

from visformer import TransformerConfig, formulas, model
from visformer.errors import NumberError, ShapeError
from visformer.pictures import worked_examples
from visformer.pictures.lab import examples
from visformer.pictures.worked import compute, differs, trimmed

BY_NAME = examples()
COMPUTABLE = pytest.mark.parametrize(
    "example", [example for example in BY_NAME.values() if not example.instead], ids=lambda example: example.name
)


def compute_example(name, **changes):
    """Compute an example of the notes with its inputs, some of them changed."""
    return compute(BY_NAME[name], BY_NAME[name].inputs | changes)


# (example, result, first row, expected rows, digits); of a tensor, its first sample and head.
EXPECTED = [
    ("sinusoid", "1 / base^(2i/d)", 0, [[1, 0.01]], 4),
    ("sinusoid", "PE", 0, [[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 0.99995], [0.9093, -0.4161, 0.0200, 0.9998]], 4),
    ("sinusoid", "PE", 3, [[0.1411, -0.9900, 0.0300, 0.99955], [-0.7568, -0.6536, 0.0400, 0.9992]], 4),
    ("sinusoid", "PE", 9, [[0.4121, -0.9111, 0.0899, 0.9960]], 4),
    ("five-positions", "PE", 3, [[0.1411, -0.9900, 0.0300, 0.99955]], 4),
    ("vectors", "Q·Kᵀ", 2, [[9.6549, 2.9084, 6.8491, -0.0462]], 4),
    ("vectors", "softmax(Q·Kᵀ / √d_k)", 2, [[0.669, 0.062, 0.248, 0.022]], 3),
    ("same-word", "PE", 0, [[0.8415, 0.5403, 0.0100, 0.99995], [-0.9589, 0.2837, 0.0500, 0.9988]], 4),
    ("same-word", "embedding + PE", 0, [[0.9415, 0.7403, 0.3100, 1.4000], [-0.8589, 0.4837, 0.3500, 1.3988]], 4),
    ("query", "W_Q · x", 0, [[1.21, 1.80, 1.67, 1.95]], 4),
    ("self-attention", "Q", 0, [[4, 6], [12, 14], [20, 22]], 4),
    ("self-attention", "K", 0, [[6, 4], [14, 12], [22, 20]], 4),
    ("self-attention", "V", 0, [[4, 6], [12, 14], [20, 22]], 4),
    ("self-attention", "Q·Kᵀ", 0, [[48, 128, 208], [128, 336, 544], [208, 544, 880]], 4),
    (
        "self-attention",
        "Q·Kᵀ / √d_k",
        0,
        [[33.94, 90.51, 147.08], [90.51, 237.59, 384.67], [147.08, 384.67, 622.25]],
        2,
    ),
    ("self-attention", "softmax", 0, [[0, 0, 1]] * 3, 4),
    ("self-attention", "softmax · V", 0, [[20, 22]] * 3, 4),
    ("one-head", "Q·Kᵀ", 0, [[5, 11, 17], [11, 25, 39], [17, 39, 61]], 4),
    ("one-head", "Q·Kᵀ / √d_k", 0, [[3.54, 7.78, 12.02], [7.78, 17.68, 27.58], [12.02, 27.58, 43.13]], 2),
    ("one-head", "softmax", 0, [[0.0002, 0.0142, 0.9856], [0.0000, 0.0001, 0.9999], [0, 0, 1]], 4),
    ("one-head", "softmax · V", 0, [[4.971, 5.971], [5.000, 6.000], [5, 6]], 3),
    ("invented", "pattern · V", 0, [[3.6, 4.6], [3.4, 4.4], [2.6, 3.6]], 4),
    ("softmax", "softmax", 0, [[1, 0, 0, 0], [0.3016, 0.6938, 0.0027, 0.0019], [0.0112, 0.0158, 0.9642, 0.0088]], 4),
    ("softmax", "softmax", 3, [[0.0229, 0.0328, 0.0256, 0.9188]], 4),
    ("mended", "Q·Kᵀ", 0, [[23, 29, 35], [68, 86, 104]], 4),
    ("mended", "Q·Kᵀ / √d_k", 0, [[16.26, 20.51, 24.75], [48.08, 60.81, 73.54]], 2),
    ("norms", "mean", 0, [[2.5]], 4),
    ("norms", "σ, divided by d", 0, [[1.1180]], 4),
    ("norms", "s, divided by d − 1", 0, [[1.2910]], 4),
    ("norms", "LayerNorm", 0, [[-1.3416, -0.4472, 0.4472, 1.3416]], 4),
    ("norms", "LayerNorm of the notes' code", 0, [[-0.1619, 0.6127, 1.3873, 2.1619]], 4),
    ("norms", "the same with b2 = 0", 0, [[-1.1619, -0.3873, 0.3873, 1.1619]], 4),
    ("broadcast", "mean", 0, [[2.5], [3.5], [4.5]], 4),
    ("paths", "layers or steps from the first word to the last", 0, [[1], [7], [7]], 4),
    ("sizes", "encoder: N layers and a last norm", 0, [[6_309_376]], 0),
    ("zero-mask", "softmax of that", 0, [[1 / 3] * 3] * 3, 4),
    ("zero-mask", "visformer's rule", 0, [[0] * 3] * 3, 4),
    ("hidden", "scores to −∞, softmax", 0, [[1, 0, 0], [0.1545, 0.8455, 0]], 4),
    ("hidden", "scores to 0, softmax", 0, [[0.7870, 0.1065, 0.1065], [0.1386, 0.7587, 0.1027]], 4),
]

# (example, result, row): the columns that are misprinted; every other printed number is right.
MISPRINTS = {
    ("sinusoid", "1 / base^(2i/d)", 0): [1],
    **{("sinusoid", "pos × frequency", row): [1] for row in range(1, 10)},
    **{("sinusoid", "PE", row): [2, 3] for row in range(1, 10)},
    ("sinusoid", "PE", 8): [1, 2, 3],
    ("five-positions", "PE", 3): [1],
    ("vectors", "Q·Kᵀ", 0): [1, 2, 3],
    **{("vectors", "Q·Kᵀ", row): [0, 1, 2, 3] for row in (1, 2, 3)},
    ("vectors", "softmax(Q·Kᵀ)", 1): [0, 1],
    ("vectors", "softmax(Q·Kᵀ)", 2): [0, 2],
    **{("vectors", "softmax(Q·Kᵀ) · V", row): [*range(8)] for row in (1, 2, 3)},
    ("same-word", "PE", 0): [0, 1, 2],
    ("same-word", "PE", 1): [0, 1, 2],
    ("same-word", "embedding + PE", 0): [0, 1, 2],
    ("same-word", "embedding + PE", 1): [0, 1, 2],
    ("query", "W_Q · x", 0): [0, 1, 2, 3],
    **{("self-attention", name, row): [0, 1] for name in "QKV" for row in range(3)},
    **{("self-attention", name, row): [0, 1, 2] for name in ("Q·Kᵀ", "Q·Kᵀ / √d_k") for row in range(3)},
    ("invented", "pattern · V", 0): [1],
    ("softmax", "softmax", 1): [0, 1],
    ("softmax", "softmax", 2): [0, 1, 2, 3],
    ("softmax", "softmax", 3): [0, 1, 2, 3],
    ("softmax", "exp", 0): [0, 1],
    ("softmax", "sum of each row", 0): [0],
    ("mended", "Q·Kᵀ", 1): [0, 1, 2],
    **{("mended", "Q·Kᵀ / √d_k", row): [0, 1, 2] for row in range(2)},
    **{("mended", "softmax", row): [0, 1, 2] for row in range(2)},
    **{("mended", "softmax · V", row): [0, 1] for row in range(2)},
    ("norms", "LayerNorm of the notes' code", 0): [0, 1, 2, 3],
}


@pytest.mark.parametrize(("name", "result", "first", "rows", "digits"), EXPECTED)
def test_a_result_equals_the_one_worked_out_by_hand(name, result, first, rows, digits):
    values = compute_example(name)[result]
    values = values[(0,) * (values.ndim - 2)][first : first + len(rows)]
    np.testing.assert_allclose(values, rows, atol=0.5001 * 10.0**-digits, rtol=0)


# How misprints came about


def test_the_encodings_of_the_same_word_were_computed_for_positions_counted_from_1():
    """At 2 and 6, in a formula that counts from 0. The third column is wrong in another way."""
    encoding = formulas.encoding_at([2, 6], 4)
    embedding = BY_NAME["same-word"].inputs["embedding"][0]
    printed = BY_NAME["same-word"].printed["embedding + PE"]
    assert np.allclose((embedding + encoding)[:, 2], [0.3200, 0.3600], atol=5e-5)
    assert np.allclose((embedding + encoding)[:, :2], printed[:, :2], atol=6e-5)
    assert np.allclose(embedding[2] + 0.0001 * np.array([2, 6]), printed[:, 2], atol=5e-5)
    rows = BY_NAME["same-word"].printed["PE"]
    assert np.allclose(encoding[:, :2], rows[:, :2], atol=6e-5)
    assert np.allclose(encoding[:, 2] / 100, rows[:, 2], atol=5e-6), "100 times too small"


def test_base_100_gives_what_is_printed_for_base_10000():
    results = compute_example("sinusoid", base=np.array([[100.0]]))
    for name, printed in BY_NAME["sinusoid"].printed.items():
        rows = np.arange(len(printed)) != 8 if name == "PE" else slice(None)  # cos 8 is misprinted on its own
        assert not differs(results[name][rows], printed[rows]).any()


def test_the_scaled_scores_were_divided_by_two():
    printed = BY_NAME["mended"].printed
    assert np.array_equal(printed["Q·Kᵀ / √d_k"], printed["Q·Kᵀ"] / 2)


def test_the_printed_projections_are_columns_of_x():
    x, printed = BY_NAME["self-attention"].inputs["X"], BY_NAME["self-attention"].printed
    assert np.array_equal(printed["Q"], x[:, :2])
    assert np.array_equal(printed["K"], x[:, 1::-1])
    assert np.array_equal(printed["Q·Kᵀ"], printed["Q"] @ printed["K"].T)
    assert np.array_equal(printed["Q·Kᵀ / √d_k"], printed["Q·Kᵀ"] / np.sqrt(2))


def test_printed_results_of_wrong_scores_follow_neither_from_them_nor_from_each_other():
    """The softmax of the printed scores is not the printed one; nor is that times V what is printed next."""
    v = BY_NAME["mended"].inputs["V"]
    pattern = formulas.softmax([[11.5, 14.5, 17.5], [25, 32, 39]])
    assert np.allclose(pattern, [[0.0024, 0.0473, 0.9503], [0.0000, 0.0009, 0.9991]], atol=5e-5)
    assert np.allclose(pattern @ v, [[16.90, 17.90], [17.00, 18.00]], atol=5e-3)
    printed = np.array([[0.11, 0.23, 0.66], [0.09, 0.24, 0.67]])
    assert np.allclose(printed @ v, [[16.10, 17.10], [16.16, 17.16]], atol=5e-3)


# Examples


def test_the_invented_positions_are_a_tenth_of_row_plus_column():
    positions = BY_NAME["sum"].inputs["P"]
    assert np.allclose(positions, [[0.1 * (p + 1 + j) for j in range(4)] for p in range(5)])


def test_both_conventions_give_the_same_query():
    results = compute_example("query")
    assert np.array_equal(results["W_Q · x"], results["xᵀ · W_Qᵀ"])
    assert not np.allclose(results["W_Q · x"], results["xᵀ · W_Q"])


@pytest.mark.parametrize("sample", [0, 1])
@pytest.mark.parametrize("head", [0, 1])
def test_every_head_of_every_sample_equals_torch(sample, head):
    example = BY_NAME["one-head"]
    assert example.inputs["Q"].shape == (2, 2, 3, 2)
    assert example.inputs["Q"].ravel().tolist() == list(range(1, 25))
    results = compute_example("one-head")
    place = example.place("softmax · V", {"sample": sample, "head": head})
    q = torch.from_numpy(example.inputs["Q"])
    for name, scale in (("softmax · V", None), ("without √d_k: softmax · V", 1.0)):
        expected = torch.nn.functional.scaled_dot_product_attention(q, q, q, scale=scale)[sample, head]
        assert np.allclose(results[name][place], expected.numpy(), rtol=1e-12)


SHAPES = {
    "X": (2, 4, 512),
    "X · W_Q": (2, 4, 512),
    "cut into heads": (2, 4, 8, 64),
    "head before token: Q": (2, 8, 4, 64),
    "softmax(Q·Kᵀ / √d_k)": (2, 8, 4, 4),
    "softmax · V": (2, 8, 4, 64),
    "heads end to end": (2, 4, 512),
    "times W_O": (2, 4, 512),
}


def test_multi_head_attention_has_the_shapes_of_its_steps():
    results = compute_example("shapes")
    assert {name: values.shape for name, values in results.items()} == SHAPES
    assert worked_examples.SENTENCES == (("欢迎", "来", "到", "北京"), ("欢迎", "来", "到", "上海"))
    assert np.array_equal(results["X"][0, :3], results["X"][1, :3]), "the same three words at the same positions"
    assert not np.allclose(results["times W_O"][0, 0], results["times W_O"][1, 0]), "but another last word to read"


def test_multi_head_attention_equals_torch():
    results = compute_example("shapes")
    w_q, w_k, w_v, w_o = torch.from_numpy(worked_examples.weights(512)[1]).transpose(1, 2)
    theirs = torch.nn.MultiheadAttention(512, 8, bias=False, batch_first=True, dtype=torch.float64)
    x = torch.from_numpy(results["X"])
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([w_q, w_k, w_v]))
        theirs.out_proj.weight.copy_(w_o)
        out, pattern = theirs(x, x, x, average_attn_weights=False)
    assert np.allclose(results["softmax(Q·Kᵀ / √d_k)"], pattern.numpy(), atol=1e-12)
    assert np.allclose(results["times W_O"], out.numpy(), atol=1e-10)


@COMPUTABLE
def test_every_tensor_of_an_example_can_be_sliced_to_a_matrix(example):
    arrays = {**example.inputs, **compute_example(example.name)}
    assert set(example.axes) <= set(arrays)
    last = {axis: size - 1 for axis, size in example.choices(arrays).items()}
    for name, values in arrays.items():
        assert values[example.place(name, last)].ndim == 2, name


INVALID = [
    ("sinusoid", "d", [[0]], "d is 0: give a whole number from 1 to 64"),
    ("sinusoid", "d", [[2.5]], "d is 2.5: give a whole number"),
    ("sinusoid", "base", [[-1]], "base is -1: give a whole number"),
    ("sinusoid", "pos", np.empty((0, 1)), "pos has no number"),
    ("same-word", "embedding", np.empty((0, 0)), "embedding has no number"),
    ("sum", "P", [[1, 2]], "E is 5 × 4 and P is 1 × 2"),
    ("query", "x", [[1.0]], "W_Q is 4 × 4 and x is 1 × 1"),
    ("self-attention", "X", [[1e308] * 4] * 3, "exceed 3.4e.38"),
    ("self-attention", "X", [[1e200] * 4] * 3, "exceed 3.4e.38"),
    ("self-attention", "X", [[1, 2, 3, 4]], "The mask is 3 × 3 and the scores are 1 × 1"),
    ("self-attention", "W_Q", [[np.nan, 1]] * 4, "W_Q has an empty cell"),
    ("self-attention", "W_Q", [[np.inf, 1]] * 4, "W_Q has an empty cell"),
    ("mended", "V", [[1, 2]], "softmax is 2 × 3 and V is 1 × 2"),
    ("softmax", "scores", [[800.0]], "exceed 3.4e.38"),
    ("norms", "x", [[1.0]], "at least 2 numbers"),
    ("two-norms", "sentence 2", [[1.0]], "sentence 2 is 1 × 1 and sentence 1 is 3 × 4"),
    ("two-norms", "real tokens", [[1.0]], "There are 6 tokens and 1 marks"),
    ("two-norms", "sentence 1", [[1e308] * 4] * 3, "exceed 3.4e.38"),
    ("shapes", "n_heads", [[7]], "512 cannot be divided among 7 heads"),
    ("shapes", "d_model", [[10**9]], "d_model is 1e.09"),
    ("zero-mask", "mask", [[1.0, 0.0]], "The mask is 1 × 2 and the scores are 3 × 3"),
]


@pytest.mark.parametrize(("name", "input_name", "values", "message"), INVALID)
def test_invalid_inputs_are_reported_in_one_line(name, input_name, values, message):
    with pytest.raises((NumberError, ShapeError), match=message) as caught:
        compute_example(name, **{input_name: np.asarray(values, dtype=np.float64)})
    assert isinstance(caught.value, ShapeError) == bool(re.search(r" × |tokens and|at least 2", message)), (
        "by what is wrong"
    )
    assert "\n" not in str(caught.value)


def test_empty_rows_and_columns_are_removed():
    nan = np.nan
    assert trimmed(np.array([[1, nan, 2, nan], [nan] * 4, [3, nan, nan, nan]])).tolist()[0] == [1, 2]
    assert trimmed(np.array([[1, nan], [nan, 4]])).shape == (2, 2), "a single empty cell stays"
    assert trimmed(np.full((3, 2), nan)).shape == (0, 0)


# Experiments: the reasons that they show, against torch


def test_attention_without_positions_only_shuffles_its_rows():
    results = compute_example("shuffled")
    assert results["largest difference, row by row"] < 1e-14
    assert results["the same with positions"] > 0.1


@pytest.mark.parametrize("d", [4, 16, 64])
def test_no_two_of_64_positions_are_alike(d):
    results = compute_example("unique", n=np.array([[64.0]]), d=np.array([[float(d)]]))
    table = torch.from_numpy(formulas.sinusoidal_encoding(64, d))
    apart = torch.pdist(table)
    assert results["smallest distance of two positions"] == pytest.approx(float(apart.min()), rel=1e-9)
    assert apart.min() > 0.01


def test_softmax_saturates_and_its_gradient_vanishes_unless_scores_are_scaled():
    results = compute_example("saturates")
    for name in ("largest weight", "gradient"):
        scaled = results[f"{name}, scaled"].ravel()
        assert np.ptp(scaled[1:]) < 0.05, "the same for every width"
    assert results["largest weight, not scaled"][-1] > 0.95
    assert results["gradient, not scaled"][-1] < 0.1 * results["gradient, scaled"][-1]
    assert results["spread of q · k"].ravel() == pytest.approx([1, 2, 4, 8, 16, 32], rel=0.06)
    scores = torch.randn(5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    slopes = torch.autograd.functional.jacobian(lambda s: s.softmax(0), scores).diagonal()
    p = scores.softmax(0)
    assert torch.allclose(slopes, p * (1 - p)), "the gradient that the example adds up"


@pytest.mark.parametrize("size", [50, 400])
@pytest.mark.parametrize(
    ("name", "kept", "normed"),
    [("without the sum", 0.0, False), ("with the sum", 1.0, False), ("with the sum and LayerNorm", 1.0, True)],
)
def test_gradients_through_the_layers_equal_torchs(name, kept, normed, size):
    n, width = 5, worked_examples._DEEP
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=width)).requires_grad_()
    weights = torch.from_numpy(rng.normal(size=(n, width, width)) * size / 100 / np.sqrt(width))
    inputs, out = [], x
    for w in weights:
        inputs.append(out)
        out.retain_grad()
        read = torch.nn.functional.layer_norm(out, (width,)) if normed else out
        out = torch.tanh(read @ w) + kept * out
    out.backward(torch.full((width,), 1 / np.sqrt(width), dtype=torch.float64))
    results = compute_example("gradients", n=np.array([[float(n)]]), **{"size of W in %": np.array([[float(size)]])})
    assert results[name].ravel() == pytest.approx([float(each.grad.norm()) for each in inputs], rel=1e-9)


def test_in_24_layers_the_gradient_arrives_only_with_the_residual_sum():
    results = compute_example("gradients")
    assert results["without the sum"][0] < 1e-6 < 1 < results["with the sum"][0]


def test_against_an_exploding_gradient_layernorm_helps_and_the_sum_does_not():
    results = compute_example("gradients", **{"size of W in %": np.array([[400.0]])})
    grown = [float(results[name][0, 0]) for name in worked_examples.RESIDUAL[3].curves.results]
    assert grown == pytest.approx([14_778, 1_517, 23.26], rel=1e-3)


def test_a_layer_by_hand_equals_torchs():
    """One head with Q = K = V = x: the classes' layer has weights there, so this one is built of torch's functions."""
    example, results = BY_NAME["layer"], compute_example("layer")
    x, w_1, w_2 = (torch.from_numpy(example.inputs[name]) for name in ("x", "W_1", "W_2"))

    def norm(rows):
        return torch.nn.functional.layer_norm(rows, (4,))

    def attend(rows):
        return torch.nn.functional.scaled_dot_product_attention(rows, rows, rows)

    def ffn(rows):
        return (rows @ w_1).relu() @ w_2

    post, pre, between = x, x, x
    for sublayer in (attend, ffn):
        post, pre, between = norm(post + sublayer(post)), pre + sublayer(norm(pre)), between + norm(sublayer(between))
    for name, expected in {
        "its LayerNorm: what the layer hands on": post,
        "pre-norm: x + Sublayer(LN(x)), twice": pre,
        "x + LN(Sublayer(x)), twice": between,
    }.items():
        assert np.allclose(results[name], expected.numpy(), atol=1e-12), name
    assert np.allclose(example.inputs["x"], BY_NAME["sum-zh"].printed["E + P"]), "the notes' sums"


def test_a_score_of_0_hides_nothing():
    results = compute_example("hidden")
    infinite, zero, late, divided = results.values()
    later = np.triu_indices(3, 1)
    assert (infinite[later] == 0).all()
    assert (zero[later] > 0.1).all()
    assert (late.sum(axis=1)[:2] < 1).all()
    assert np.allclose(divided, infinite)
    none = compute_example("hidden", mask=np.zeros((3, 3)))["and divided by their sum"]
    assert (none == 0).all()


def test_the_sizes_are_those_of_the_classes():
    config = TransformerConfig(
        1, 1, d_model=512, n_heads=8, d_ff=1024, n_encoder_layers=3, n_decoder_layers=3, norm="pre"
    )
    results = compute_example("sizes")
    for name, module in {
        "encoder layer": model.EncoderLayer(config),
        "encoder: N layers and a last norm": model.Encoder(config),
        "decoder layer": model.DecoderLayer(config),
        "decoder: N layers and a last norm": model.Decoder(config),
    }.items():
        assert results[name] == sum(each.numel() for each in module.parameters()), name


def test_columns_and_rows_give_the_same_attention():
    results = compute_example("columns")
    assert np.allclose(results["columns: V · softmax"].T, results["rows: softmax · V"])
    assert np.allclose(results["columns: softmax(Kᵀ·Q / √d_k)"].sum(axis=0), 1)


def test_the_feed_forward_network_by_hand_equals_torchs():
    inputs = {name: torch.from_numpy(values) for name, values in BY_NAME["feed-forward"].inputs.items()}
    inner = torch.nn.functional.linear(inputs["x"], inputs["W_1"].T, inputs["b_1"][0]).relu()
    out = torch.nn.functional.linear(inner, inputs["W_2"].T, inputs["b_2"][0])
    assert np.allclose(compute_example("feed-forward")["ReLU · W_2 + b_2"], out.numpy())


def test_a_look_up_is_a_product_with_one_hot_rows():
    results = compute_example("look-up")
    assert np.array_equal(results["W[ids]"], results["one-hot · W"])
    assert np.array_equal(results["W[ids]"][1], results["W[ids]"][5]), "both 和"


def test_added_and_appended_positions_are_projected_alike():
    first, *others = compute_example("add").values()
    assert all(np.allclose(first, other) for other in others)


def test_a_head_gets_its_own_numbers_only_after_the_transposition():
    results = [*compute_example("split").values()]
    cut, swapped, wrong = (each.tolist() for each in results)
    assert swapped[:3] == [[11, 12], [21, 22], [31, 32]]
    assert cut == wrong != swapped


def test_the_loss_and_its_perplexity_equal_torchs():
    p = torch.from_numpy(BY_NAME["loss"].inputs["p"])
    loss = torch.nn.functional.nll_loss(torch.log(torch.cat([p, 1 - p], dim=1)), torch.zeros(len(p), dtype=torch.int64))
    results = compute_example("loss")
    assert results["loss: the mean"] == pytest.approx(float(loss))
    assert results["perplexity: exp(loss)"] == pytest.approx(float(loss.exp()))


def test_dropout_drops_about_its_share_and_keeps_the_rest_in_proportion():
    results, x = compute_example("dropout"), BY_NAME["dropout"].inputs["x"]
    kept = results["kept"] == 1
    assert kept.sum() == 14, "10 % of 16, as nearly as can be"
    assert np.allclose(results["after dropout"], np.where(kept, x / 0.9, 0))


def test_cross_attention_reads_the_memory():
    results = compute_example("cross")
    q, k, v = (torch.from_numpy(results[name]) for name in "QKV")
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    assert np.allclose(results["softmax · V"], expected.numpy())
    assert results["softmax"].shape == (3, 5)


def test_below_n_equal_to_d_attention_is_the_cheapest():
    results = compute_example("operations")
    attention, recurrence = results["self-attention: n² · d"].ravel(), results["recurrence: n · d²"].ravel()
    lengths = BY_NAME["operations"].inputs["n"].ravel()
    assert ((attention < recurrence) == (lengths < 512)).all()


def test_the_exponentials_of_the_first_row():
    assert compute_example("softmax")["exp"][0] == pytest.approx([1.644e9, 539.32, 3.3875, 2.3970], rel=5e-4)


@COMPUTABLE
def test_exactly_the_misprints_are_marked(example):
    results = compute_example(example.name)
    assert set(example.printed) <= set(results)
    marked = {}
    for name, printed in example.printed.items():
        marks = differs(results[name], printed)
        rows = marks.reshape(-1, marks.shape[-1])
        marked |= {(example.name, name, row): np.flatnonzero(rows[row]).tolist() for row in range(len(rows))}
        assert not marks.any() or example.remarks[name], "a remark explains the misprint"
    assert {place: columns for place, columns in marked.items() if columns} == {
        place: columns for place, columns in MISPRINTS.items() if place[0] == example.name
    }


def test_the_broken_example_reports_its_shapes_and_another_replaces_it():
    with pytest.raises(ShapeError, match=r"Q is 2 × 3 and Kᵀ is 2 × 3.*3 is not 2"):
        compute_example("broken")
    assert BY_NAME[BY_NAME["broken"].instead].inputs["Q"].shape == (2, 2)
