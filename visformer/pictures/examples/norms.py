"""Worked examples of normalisation: two standard deviations, and two axes."""

import numpy as np

from visformer import formulas
from visformer.errors import N_, ShapeError
from visformer.formulas import Floats
from visformer.pictures.examples.worked import Arrays, Worked, added, matrix


def _norms(inputs: Arrays) -> dict[str, Floats]:
    x = inputs["x"]
    by_code = formulas.layer_norm_sample_std(x)  # first, because its error explains what is wrong with a single number
    return {
        N_("mean"): x.mean(axis=1, keepdims=True),
        N_("σ, divided by d"): x.std(axis=1, keepdims=True),
        N_("s, divided by d − 1"): x.std(axis=1, ddof=1, keepdims=True),
        "LayerNorm": formulas.layer_norm(x),
        N_("LayerNorm of the notes' code"): by_code,
    }


def _two_norms(inputs: Arrays) -> dict[str, Floats]:
    """LayerNorm averages over a row; BatchNorm over a column, through all tokens of all sentences."""
    first, second = inputs["sentence 1"], inputs["sentence 2"]
    second = added(second, np.zeros_like(first), (N_("sentence 2"), N_("sentence 1")))
    block = np.concatenate([first, second])  # (token, d)
    real = inputs["real tokens"].ravel() != 0
    if len(real) != len(block):
        raise ShapeError(
            N_("There are {tokens} tokens and {marks} marks of real tokens: give one for each token."),
            tokens=len(block),
            marks=len(real),
        )
    return {
        "LayerNorm": formulas.layer_norm(block),
        N_("BatchNorm, padding included"): formulas.batch_norm(block),
        N_("BatchNorm, real tokens only"): formulas.batch_norm(block, real),
        N_("BatchNorm, sentence 1 alone"): formulas.batch_norm(first),
    }


EXAMPLES = (
    Worked(
        name="norms",
        title=N_("Layer normalisation, two ways"),
        section="3.1",
        formula=r"""&\mathrm{LN}(\sym{input}{x}) = \gamma \frac{\sym{input}{x} - \mu}
{\sqrt{\sym{q}{\sigma}^2 + \epsilon}} + \beta \\[4pt]
&\sym{q}{\sigma}^2 = \tfrac{1}{d} \textstyle\sum_i (\sym{input}{x}_i - \mu)^2 \\[4pt]
&\sym{k}{s}^2 = \tfrac{1}{d-1} \textstyle\sum_i (\sym{input}{x}_i - \mu)^2""",
        code=(("formulas.py", "layer_norm"), ("formulas.py", "layer_norm_sample_std")),
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
        formula=r"""&\mathrm{LN}: \ \mu_t = \tfrac{1}{d} \textstyle\sum_j \sym{input}{x}_{tj} \\[4pt]
&\mathrm{BN}: \ \mu_j = \tfrac{1}{T} \textstyle\sum_t \sym{input}{x}_{tj}""",
        code=(("formulas.py", "layer_norm"), ("formulas.py", "batch_norm")),
        inputs={
            N_("sentence 1"): matrix([1, 2, 3, 4], [2, 0, 1, 1], [4, 4, 2, 0]),
            N_("sentence 2"): matrix([3, 1, 0, 2], [5, 2, 2, 1], [0, 0, 0, 0]),
            N_("real tokens"): matrix([1], [1], [1], [1], [1], [0]),
        },
        compute=_two_norms,
        remarks={
            "LayerNorm": N_("Each row by itself, whatever the other rows hold."),
            "BatchNorm, padding included": N_(
                "A padding row of zeros moves every other row; LayerNorm does not see it."
            ),
            "BatchNorm, sentence 1 alone": N_("With batch size 1 the same tokens get other numbers; LayerNorm's stay."),
        },
    ),
)
