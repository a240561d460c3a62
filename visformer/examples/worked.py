"""The worked examples of the lab: inputs, what is printed, and the arithmetic. Every input may be changed.

A printed matrix has NaN where the notes print nothing. ``remarks`` say in one line what went wrong in a print.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visformer import formulas
from visformer.errors import N_, ShapeError
from visformer.formulas import Floats

Matrices = Mapping[str, Floats]


@dataclass(frozen=True, kw_only=True)
class Worked:
    """One example.

    Args:
        name: short, for the session state.
        title: for people.
        section: of the paper.
        inputs: name to matrix, as the notes give them.
        compute: inputs to results, in the order of reading.
        printed: name of a result to what the notes print for it.
        remarks: name of a result to what went wrong in print.
        rows: name of an input or a result to labels of its rows, where it has any.
        scalable: whether the scores may be left unscaled.
        instead: name of the nearest example whose shapes fit, where these do not.
    """

    name: str
    title: str
    section: str
    inputs: Matrices
    compute: Callable[[Matrices], dict[str, Floats]]
    printed: Matrices = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    scalable: bool = False
    instead: str = ""


def matrix(*rows: ArrayLike) -> Floats:
    """Rows as float64 (row, column)."""
    return np.array(rows, dtype=np.float64)


def product(left: Floats, right: Floats, names: tuple[str, str]) -> Floats:
    """left · right.

    Raises:
        ShapeError: the inner widths differ; says which, and what would fit.
    """
    if left.shape[1] != right.shape[0]:
        raise ShapeError(
            N_(
                "{left} is {a} × {b} and {right} is {c} × {d}: the product needs as many columns on the left as rows "
                "on the right, and {b} is not {c}. Remove or add columns of {left} or rows of {right}."
            ),
            left=names[0],
            right=names[1],
            a=left.shape[0],
            b=left.shape[1],
            c=right.shape[0],
            d=right.shape[1],
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


def _attend(q: Floats, k: Floats, v: Floats | None, given: Matrices) -> dict[str, Floats]:
    """Scores, scaled scores, pattern and output, as far as there is a V. "scale" 0 leaves the scores as they are."""
    scores = product(q, k.T, ("Q", "Kᵀ"))
    scaled = scores / math.sqrt(q.shape[1]) if _switch(given, "scale") else scores
    mask = given.get("mask")
    pattern = formulas.softmax(scaled, None if mask is None else mask != 0)
    found = {"Q·Kᵀ": scores, "Q·Kᵀ / √d_k": scaled, "softmax": pattern}
    return found if v is None else found | {"softmax · V": product(pattern, v, ("softmax", "V"))}


def _switch(given: Matrices, name: str) -> bool:
    return bool(given.get(name, np.ones(1)).flat[0])


def _sinusoid(given: Matrices) -> dict[str, Floats]:
    places = given["pos"].ravel()
    rates = formulas.frequencies(4)
    angles = np.outer(places, rates)
    table = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(places), -1)
    return {"1 / 10000^(2i/d)": rates[None], "pos × frequency": angles, "PE": table}


def _same_word(given: Matrices) -> dict[str, Floats]:
    places = given["pos"].ravel()
    embedding = np.repeat(given["embedding"], len(places), axis=0)
    encoding = _sinusoid(given)["PE"]
    return {"PE": encoding, "embedding + PE": added(embedding, encoding, ("embedding", "PE"))}


def _sum(given: Matrices) -> dict[str, Floats]:
    return {"E + P": added(given["E"], given["P"], ("E", "P"))}


def _query(given: Matrices) -> dict[str, Floats]:
    return {
        "W_Q · x": product(given["W_Q"], given["x"].T, ("W_Q", "x")).T,
        "xᵀ · W_Q": product(given["x"], given["W_Q"], ("xᵀ", "W_Q")),
    }


def _self_attention(given: Matrices) -> dict[str, Floats]:
    q, k, v = (product(given["X"], given[name], ("X", name)) for name in ("W_Q", "W_K", "W_V"))
    return {"Q": q, "K": k, "V": v} | _attend(q, k, v, given)


def _one_head(given: Matrices) -> dict[str, Floats]:
    return _attend(given["Q"], given["K"], given["V"], given)


def _invented(given: Matrices) -> dict[str, Floats]:
    return {"pattern · V": product(given["pattern"], given["V"], ("pattern", "V"))}


def _softmax(given: Matrices) -> dict[str, Floats]:
    return {"softmax": formulas.softmax(given["scores"]), "exp": np.exp(given["scores"])}


def _norms(given: Matrices) -> dict[str, Floats]:
    x = given["x"]
    return {
        "mean": x.mean(axis=1, keepdims=True),
        "σ, divided by d": x.std(axis=1, keepdims=True),
        "σ, divided by d − 1": x.std(axis=1, ddof=1, keepdims=True) if x.shape[1] > 1 else np.full((len(x), 1), np.nan),
        "LayerNorm": formulas.layer_norm(x),
        "LayerNorm of the notes' code": formulas.layer_norm_sample_std(x),
    }


def _two_norms(given: Matrices) -> dict[str, Floats]:
    """LayerNorm averages over a row; BatchNorm over a column, through all tokens of all sentences."""
    first, second = given["sentence 1"], given["sentence 2"]
    block = np.concatenate([first, added(second, np.zeros_like(first), ("sentence 2", "sentence 1"))])  # (token, d)
    real = given["real tokens"].ravel() != 0
    if len(real) != len(block):
        raise ShapeError(
            N_("There are {tokens} tokens and {marks} marks of real tokens: give one for each token."),
            tokens=len(block),
            marks=len(real),
        )
    return {
        "LayerNorm": formulas.layer_norm(block),
        "BatchNorm, padding included": formulas.batch_norm(block),
        "BatchNorm, real tokens only": formulas.batch_norm(block, real),
        "BatchNorm, sentence 1 alone": formulas.batch_norm(first),
    }


def _zero_mask(given: Matrices) -> dict[str, Floats]:
    mask = given["mask"] != 0
    filled = np.where(mask, given["scores"], -1e9)
    return {
        "scores where the mask is 1, else −1e9": filled,
        "softmax of that": formulas.softmax(filled),
        "visformer's rule": formulas.softmax(given["scores"], mask),
    }


_NAN = math.nan
_E = matrix(
    [0.1, 0.3, 0.2, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 0.1, 0.3, 0.5], [0.2, 0.4, 0.6, 0.8], [0.3, 0.2, 0.1, 0.5]
)
_E_ZH = matrix([0.3, 0.1, 0.2, 0.5], [0.6, 0.3, 0.4, 0.7], [0.8, 0.5, 0.6, 0.9])
_P = np.array([[0.1 * (row + column) for column in range(1, 5)] for row in range(5)])
_EN, _ZH = ("I", "went", "to", "Northeastern", "University"), ("我", "去", "东北大学")
_ALTERNATE = matrix([1, 0], [0, 1], [1, 0], [0, 1])
_COUNTED = matrix([1, 2], [3, 4], [5, 6])

WORKED = (
    Worked(
        name="sinusoid",
        title=N_("Sinusoidal encoding, d = 4"),
        section="3.5",
        inputs={"pos": matrix([0], [1], [2], [3], [4], [9])},
        compute=_sinusoid,
        printed={
            "1 / 10000^(2i/d)": matrix([1.0, 0.1]),
            "PE": matrix(
                [_NAN] * 4, [0.8415, 0.5403, 0.0998, 0.9950], *[[_NAN] * 4] * 3, [0.4121, -0.9111, 0.7833, 0.6216]
            ),
        },
        remarks={
            "1 / 10000^(2i/d)": N_("10000^(2/4) is 100, so the second frequency is 1/100; the notes take 0.1."),
            "PE": N_("The last two columns are those of base 100; the first two are right."),
        },
    ),
    Worked(
        name="same-word",
        title=N_("The same word in two places"),
        section="3.5",
        inputs={"embedding": matrix([0.1, 0.2, 0.3, 0.4]), "pos": matrix([1], [5])},
        compute=_same_word,
        printed={"embedding + PE": matrix([1.0093, -0.2161, 0.3002, 1.4], [-0.1794, 1.1602, 0.3006, 1.4])},
        remarks={
            "embedding + PE": N_(
                "The notes count places from 1 (2 and 6) in a formula that counts from 0 (1 and 5), and take 0.0001 "
                "for the second frequency. The point stands: one word, two inputs."
            )
        },
        rows={"pos": ("和", "和"), "embedding + PE": ("和 1", "和 5")},
    ),
    Worked(
        name="sum",
        title=N_("Embedding + position, English"),
        section="3.5",
        inputs={"E": _E, "P": _P},
        compute=_sum,
        printed={
            "E + P": matrix(
                [0.2, 0.5, 0.5, 0.8],
                [0.7, 0.9, 1.1, 1.3],
                [1.2, 0.5, 0.8, 1.1],
                [0.6, 0.9, 1.2, 1.5],
                [0.8, 0.8, 0.8, 1.3],
            )
        },
        rows={"E": _EN, "P": _EN, "E + P": _EN},
    ),
    Worked(
        name="sum-zh",
        title=N_("Embedding + position, Chinese"),
        section="3.5",
        inputs={"E": _E_ZH, "P": _P[:3]},
        compute=_sum,
        printed={"E + P": matrix([0.4, 0.3, 0.5, 0.9], [0.8, 0.6, 0.8, 1.2], [1.1, 0.9, 1.1, 1.5])},
        rows={"E": _ZH, "P": _ZH, "E + P": _ZH},
    ),
    Worked(
        name="query",
        title=N_("The query of “went”, in both conventions"),
        section="3.2",
        inputs={
            "x": matrix([0.7, 0.9, 1.1, 1.3]),
            "W_Q": matrix([0.2, 0.1, 0.3, 0.5], [0.6, 0.4, 0.1, 0.7], [0.3, 0.8, 0.2, 0.4], [0.5, 0.9, 0.6, 0.1]),
        },
        compute=_query,
        printed={"W_Q · x": matrix([1.27, 1.84, 1.51, 1.61])},
        remarks={
            "W_Q · x": N_(
                "The printed product does not follow from the printed matrix; the sum, not the bare embedding, goes in."
            )
        },
    ),
    Worked(
        name="self-attention",
        title=N_("Self-attention by hand, 3 tokens"),
        section="3.2.1",
        inputs={
            "X": matrix([1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]),
            "W_Q": _ALTERNATE,
            "W_K": _ALTERNATE[:, ::-1].copy(),
            "W_V": _ALTERNATE,
            "mask": np.ones((3, 3)),
        },
        compute=_self_attention,
        printed={
            "Q": matrix([1, 2], [5, 6], [9, 10]),
            "K": matrix([2, 1], [6, 5], [10, 9]),
            "V": matrix([1, 2], [5, 6], [9, 10]),
            "Q·Kᵀ": matrix([4, 16, 28], [16, 60, 104], [28, 104, 180]),
            "Q·Kᵀ / √d_k": matrix([4, 16, 28], [16, 60, 104], [28, 104, 180]) / math.sqrt(2),
        },
        remarks={
            "Q": N_("The notes read off two columns of X instead of multiplying: 1·1 + 2·0 + 3·1 + 4·0 is 4, not 1."),
            "K": N_("As for Q: columns of X in place of the product."),
            "V": N_("As for Q: columns of X in place of the product."),
            "Q·Kᵀ": N_("Built on the wrong Q and K."),
            "Q·Kᵀ / √d_k": N_(
                "Built on the wrong Q and K. Scores this large saturate the softmax: that is why they are scaled."
            ),
        },
        scalable=True,
    ),
    Worked(
        name="one-head",
        title=N_("One head of a 4-dimensional tensor"),
        section="3.2.2",
        inputs={"Q": _COUNTED, "K": _COUNTED, "V": _COUNTED, "mask": np.ones((3, 3))},
        compute=_one_head,
        printed={"Q·Kᵀ": matrix([5, 11, 17], [11, 25, 39], [17, 39, 61])},
        scalable=True,
    ),
    Worked(
        name="invented",
        title=N_("An invented pattern times V"),
        section="3.2.1",
        inputs={"pattern": matrix([0.2, 0.3, 0.5], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]), "V": _COUNTED},
        compute=_invented,
        printed={"pattern · V": matrix([3.6, 4.8], [3.4, 4.4], [2.6, 3.6])},
        remarks={
            "pattern · V": N_(
                "0.2·2 + 0.3·4 + 0.5·6 is 4.6; the pattern itself is invented, not a softmax of the scores."
            )
        },
    ),
    Worked(
        name="softmax",
        title=N_("Softmax of a 4 × 4 score matrix"),
        section="3.2.1",
        inputs={
            "scores": matrix(
                [21.2206, 6.2903, 1.2201, 0.8742],
                [6.2903, 7.1234, 1.5678, 1.2345],
                [1.2201, 1.5678, 5.6789, 0.9876],
                [0.8742, 1.2345, 0.9876, 4.5678],
            )
        },
        compute=_softmax,
        printed={"softmax": np.eye(4), "exp": np.where(np.eye(4) * [1, 0, 0, 0] == 1, 1.63e9, _NAN)},
        remarks={
            "softmax": N_(
                "Only the first row is that sharp: in the second, 6.29 and 7.12 are close and share the weight."
            ),
            "exp": N_("exp(21.2206) is 1.644e9, not 1.63e9."),
        },
    ),
    Worked(
        name="broken",
        title=N_("A product that does not exist"),
        section="3.2.1",
        inputs={
            "Q": matrix([1, 2, 3], [4, 5, 6]),
            "K": matrix([7, 8], [9, 10], [11, 12]),
            "V": matrix([13, 14], [15, 16], [17, 18]),
        },
        compute=_one_head,
        instead="mended",
    ),
    Worked(
        name="mended",
        title=N_("The same without Q's third column"),
        section="3.2.1",
        inputs={
            "Q": matrix([1, 2], [4, 5]),
            "K": matrix([7, 8], [9, 10], [11, 12]),
            "V": matrix([13, 14], [15, 16], [17, 18]),
        },
        compute=_one_head,
        printed={
            "Q·Kᵀ": matrix([23, 29, 35], [50, 64, 78]),
            "Q·Kᵀ / √d_k": matrix([11.5, 14.5, 17.5], [25, 32, 39]),
            "softmax": matrix([0.11, 0.23, 0.66], [0.09, 0.24, 0.67]),
            "softmax · V": matrix([15.62, 16.68], [15.67, 16.74]),
        },
        remarks={
            "Q·Kᵀ": N_("The second row does not follow from Q = (4, 5): 4·7 + 5·8 is 68."),
            "Q·Kᵀ / √d_k": N_("Divided by 2, which is d_k, instead of √2."),
            "softmax": N_("The softmax of the printed scores is far sharper: 0.0024, 0.0473, 0.9503."),
            "softmax · V": N_("Follows neither from the printed softmax (16.10, 17.10) nor from the right one."),
        },
        scalable=True,
    ),
    Worked(
        name="norms",
        title=N_("Layer normalisation, two ways"),
        section="3.1",
        inputs={"x": matrix([1, 2, 3, 4])},
        compute=_norms,
        printed={
            "LayerNorm": matrix([-1.3416, -0.4472, 0.4472, 1.3416]),
            "LayerNorm of the notes' code": matrix([-1.3416, -0.4472, 0.4472, 1.3416]),
        },
        remarks={
            "LayerNorm of the notes' code": N_(
                "The code divides by the sample deviation (d − 1): ±1.1619 and ±0.3873, not the table's numbers."
            )
        },
    ),
    Worked(
        name="two-norms",
        title=N_("LayerNorm beside BatchNorm"),
        section="3.1",
        inputs={
            "sentence 1": matrix([1, 2, 3, 4], [2, 0, 1, 1], [4, 4, 2, 0]),
            "sentence 2": matrix([3, 1, 0, 2], [5, 2, 2, 1], [0, 0, 0, 0]),
            "real tokens": matrix([1], [1], [1], [1], [1], [0]),
        },
        compute=_two_norms,
        remarks={
            "BatchNorm, padding included": N_(
                "A padding row of zeros moves every other row; LayerNorm does not see it."
            ),
            "BatchNorm, sentence 1 alone": N_("With batch size 1 the same tokens get other numbers; LayerNorm's stay."),
        },
    ),
    Worked(
        name="zero-mask",
        title=N_("A mask of zeros: uniform, not empty"),
        section="3.2.3",
        inputs={"scores": matrix([2, 1, 0.5], [0.3, 2, 1], [1, 0.2, 2]), "mask": np.zeros((3, 3))},
        compute=_zero_mask,
        remarks={
            "softmax of that": N_(
                "Every score is −1e9, so all are equal: the row spreads evenly over what it may not see."
            )
        },
    ),
)


def compute(example: Worked, inputs: Matrices) -> dict[str, Floats]:
    """The results for these inputs.

    Raises:
        ShapeError: shapes that do not fit, or a number that is missing.
    """
    for name, values in inputs.items():
        if not np.isfinite(values).all():
            raise ShapeError(N_("{name} has an empty cell: every cell needs a number."), name=name)
    mask, tokens = inputs.get("mask"), inputs.get("X", inputs.get("Q"))
    if mask is not None and tokens is not None and example.name != "zero-mask":
        wanted = (len(tokens), len(inputs.get("K", tokens)))
        if mask.shape != wanted:
            raise ShapeError(
                N_("The mask is {given} and the scores are {wanted}: one row a query and one column a key."),
                given=" × ".join(map(str, mask.shape)),
                wanted=" × ".join(map(str, wanted)),
            )
    return example.compute(inputs)


def differs(computed: Floats, printed: Floats) -> NDArray[np.bool_] | None:
    """Which printed numbers differ from the computed ones by more than the print's rounding; None: other shapes.

    Args:
        computed: what the arithmetic gives.
        printed: NaN where nothing is printed.
    """
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
