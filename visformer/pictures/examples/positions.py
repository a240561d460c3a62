"""Worked examples of positional encoding: the sinusoid, one word at two positions, embedding + position."""

import numpy as np

from visformer import formulas
from visformer.errors import N_
from visformer.formulas import Floats
from visformer.pictures.examples.worked import Arrays, Worked, added, matrix, whole
from visformer.system import limits


def _sinusoid(inputs: Arrays) -> dict[str, Floats]:
    d, base = whole(inputs, "d", most=limits.LAB_ENCODING), whole(inputs, "base", most=limits.LAB_BASE)
    places, rates = inputs["pos"].ravel(), formulas.frequencies(d, base)
    return {
        "1 / base^(2i/d)": rates[None],
        N_("pos × frequency"): np.outer(places, rates),
        "PE": formulas.encoding_at(places, d, base),
    }


def _same_word(inputs: Arrays) -> dict[str, Floats]:
    places = inputs["pos"].ravel()
    embedding = np.repeat(inputs["embedding"], len(places), axis=0)
    encoding = formulas.encoding_at(places, embedding.shape[1])
    return {"PE": encoding, N_("embedding + PE"): added(embedding, encoding, (N_("embedding"), "PE"))}


def _sum(inputs: Arrays) -> dict[str, Floats]:
    return {"E + P": added(inputs["E"], inputs["P"], ("E", "P"))}


_SINUSOID = r"""&\sym{scores}{\theta}_{pos,i} = \sym{k}{pos} \cdot \sym{q}{10000^{-2i/d}} \\[4pt]
&\sym{position}{PE}_{(pos,2i)} = \sin \sym{scores}{\theta}_{pos,i} \\[4pt]
&\sym{position}{PE}_{(pos,2i+1)} = \cos \sym{scores}{\theta}_{pos,i}"""
_SUM = r"\sym{input}{x}_{pos} = \sym{embed}{E}_{token} + \sym{position}{P}_{pos}"
_ENCODING = (("formulas.py", "encoding_at"), ("formulas.py", "frequencies"))
_ADDITION = (("pictures/examples/positions.py", "_sum"), ("pictures/examples/worked.py", "added"))

_E = matrix(
    [0.1, 0.3, 0.2, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 0.1, 0.3, 0.5], [0.2, 0.4, 0.6, 0.8], [0.3, 0.2, 0.1, 0.5]
)
_E_ZH = matrix([0.3, 0.1, 0.2, 0.5], [0.6, 0.3, 0.4, 0.7], [0.8, 0.5, 0.6, 0.9])
_P = np.array([[0.1 * (row + column) for column in range(1, 5)] for row in range(5)])
_EN, _ZH = ("I", "went", "to", "Northeastern", "University"), ("我", "去", "东北大学")

EXAMPLES = (
    Worked(
        name="sinusoid",
        title=N_("Sinusoidal encoding, d = 4"),
        section="3.5",
        formula=_SINUSOID,
        code=_ENCODING,
        inputs={
            N_("pos"): matrix([0], [1], [2], [3], [4], [9]),
            N_("d"): matrix([4]),
            N_("base"): matrix([10_000]),
        },
        compute=_sinusoid,
        printed={
            "1 / base^(2i/d)": matrix([1.0, 0.1]),
            "PE": matrix(
                [np.nan] * 4, [0.8415, 0.5403, 0.0998, 0.9950], *[[np.nan] * 4] * 3, [0.4121, -0.9111, 0.7833, 0.6216]
            ),
        },
        remarks={
            "1 / base^(2i/d)": N_("10000^(2/4) is 100, so the second frequency is 1/100; the notes use 0.1."),
            "PE": N_("The last two columns are those of base 100 (try it); the first two are right."),
        },
        rows={"pos × frequency": "pos", "PE": "pos"},
    ),
    Worked(
        name="same-word",
        title=N_("The same word in two positions"),
        section="3.5",
        formula=_SUM,
        code=(("pictures/examples/positions.py", "_same_word"), *_ENCODING),
        inputs={N_("embedding"): matrix([0.1, 0.2, 0.3, 0.4]), "pos": matrix([1], [5])},
        compute=_same_word,
        printed={N_("embedding + PE"): matrix([1.0093, -0.2161, 0.3002, 1.4], [-0.1794, 1.1602, 0.3006, 1.4])},
        remarks={
            "embedding + PE": N_(
                "The notes count positions from 1 (2 and 6) in a formula that counts from 0 (1 and 5), and use "
                "0.0001 for the second frequency. The point still holds: one word, two inputs."
            )
        },
        rows={"pos": ("和", "和"), "PE": ("和 1", "和 5"), "embedding + PE": ("和 1", "和 5")},
    ),
    Worked(
        name="sum",
        title=N_("Embedding + position, English"),
        section="3.5",
        formula=_SUM,
        code=_ADDITION,
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
        remarks={
            "E + P": N_("The sums are right. P here is made up: row p is 0.1 · (p + 1, …, p + 4), not a sinusoid.")
        },
        rows={"E": _EN, "P": _EN, "E + P": _EN},
    ),
    Worked(
        name="sum-zh",
        title=N_("Embedding + position, Chinese"),
        section="3.5",
        formula=_SUM,
        code=_ADDITION,
        inputs={"E": _E_ZH, "P": _P[:3]},
        compute=_sum,
        printed={"E + P": matrix([0.4, 0.3, 0.5, 0.9], [0.8, 0.6, 0.8, 1.2], [1.1, 0.9, 1.1, 1.5])},
        rows={"E": _ZH, "P": _ZH, "E + P": _ZH},
    ),
)
