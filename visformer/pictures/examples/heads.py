"""Worked example of shapes: two sentences on their way through multi-head attention."""

from functools import lru_cache

import numpy as np

from visformer import formulas
from visformer.errors import N_, ShapeError
from visformer.formulas import Floats
from visformer.pictures.examples.worked import Arrays, Worked, matrix, whole
from visformer.system import limits

SENTENCES = (("欢迎", "来", "到", "北京"), ("欢迎", "来", "到", "上海"))


@lru_cache(maxsize=8)
def weights(d_model: int) -> tuple[Floats, Floats]:
    """Random numbers in place of trained ones: an embedding of each word, and W_Q, W_K, W_V and W_O.

    Returns:
        (word, d_model) and (4, d_model, d_model), always the same ones.
    """
    rng = np.random.default_rng(0)
    embedding = rng.normal(size=(len(_WORDS), d_model))
    return embedding, rng.normal(size=(4, d_model, d_model)) / np.sqrt(d_model)


def _multi_head(given: Arrays) -> dict[str, Floats]:
    d_model, h = whole(given, "d_model", most=limits.LAB_WIDTH), whole(given, "n_heads", most=limits.LAB_WIDTH)
    if d_model % h:
        raise ShapeError(N_("d_model = {d} cannot be divided among {h} heads: choose a divisor."), d=d_model, h=h)
    embedding, (w_q, w_k, w_v, w_o) = weights(d_model)
    x = embedding[_IDS] + formulas.sinusoidal_encoding(_IDS.shape[1], d_model)  # (sample, token, d_model)
    batch, n, d_k = *_IDS.shape, d_model // h
    linear = x @ w_q  # (sample, token, d_model)
    cut = linear.reshape(batch, n, h, d_k)  # (sample, token, head, d_k)
    q, k, v = (y.reshape(batch, n, h, d_k).transpose(0, 2, 1, 3) for y in (linear, x @ w_k, x @ w_v))
    heads, pattern = formulas.attention(q, k, v)  # (sample, head, query, d_k), (sample, head, query, key)
    concat = heads.transpose(0, 2, 1, 3).reshape(batch, n, d_model)  # (sample, token, d_model)
    return {
        "X": x,
        "X · W_Q": linear,
        N_("cut into heads"): cut,
        N_("head before token: Q"): q,
        "softmax(Q·Kᵀ / √d_k)": pattern,
        "softmax · V": heads,
        N_("heads end to end"): concat,
        N_("times W_O"): concat @ w_o,
    }


_WORDS = tuple(dict.fromkeys(word for sentence in SENTENCES for word in sentence))
_IDS = np.array([[_WORDS.index(word) for word in sentence] for sentence in SENTENCES])
_WIDE, _HEADS = ("sample", "token", "d_model"), ("sample", "head", "token", "d_k")

EXAMPLES = (
    Worked(
        name="shapes",
        title=N_("Shapes on the way through multi-head attention"),
        section="3.2.2",
        formula=r"""&\sym{q}{Q}_i = \sym{input}{X} W^Q_i, \quad \sym{k}{K}_i = \sym{input}{X} W^K_i \\[4pt]
&\sym{v}{V}_i = \sym{input}{X} W^V_i \\[4pt]
&\sym{heads}{\mathrm{head}}_i = \mathrm{Attention}(\sym{q}{Q}_i, \sym{k}{K}_i, \sym{v}{V}_i) \\[4pt]
&\sym{out}{\mathrm{out}} = [\sym{heads}{\mathrm{head}}_1 \cdots \sym{heads}{\mathrm{head}}_h]\, W^O""",
        code=(("pictures/examples/heads.py", "_multi_head"), ("formulas.py", "attention")),
        inputs={"d_model": matrix([512]), "n_heads": matrix([8])},
        compute=_multi_head,
        remarks={
            "cut into heads": N_("No number moves: the d_model numbers of a token are read as heads of d_k each."),
            "head before token: Q": N_("Head and token change places, so that each head holds all its tokens."),
            "heads end to end": N_("Back to one row of d_model numbers a token, the first head's first."),
        },
        axes={
            "X": _WIDE,
            "X · W_Q": _WIDE,
            "cut into heads": ("sample", "token", "head", "d_k"),
            "head before token: Q": _HEADS,
            "softmax(Q·Kᵀ / √d_k)": ("sample", "head", "query", "key"),
            "softmax · V": _HEADS,
            "heads end to end": _WIDE,
            "times W_O": _WIDE,
        },
        tokens=SENTENCES,
    ),
)
