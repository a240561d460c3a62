"""Worked examples: attention with its shapes, normalisation, and positional encoding."""

import math
from functools import lru_cache

import numpy as np

from visformer import formulas
from visformer.errors import N_, NumberError, ShapeError
from visformer.formulas import Floats
from visformer.pictures.worked import Arrays, Worked, added, allowed, matrix, product, whole
from visformer.system import limits

SENTENCES = (("欢迎", "来", "到", "北京"), ("欢迎", "来", "到", "上海"))


def _query(inputs: Arrays) -> dict[str, Floats]:
    x, w = inputs["x"], inputs["W_Q"]
    return {
        "W_Q · x": product(w, x.T, ("W_Q", "x")).T,
        "xᵀ · W_Qᵀ": product(x, w.T, ("xᵀ", "W_Qᵀ")),
        "xᵀ · W_Q": product(x, w, ("xᵀ", "W_Q")),
    }


def _self_attention(inputs: Arrays) -> dict[str, Floats]:
    q, k, v = (product(inputs["X"], inputs[name], ("X", name)) for name in ("W_Q", "W_K", "W_V"))
    return {"Q": q, "K": k, "V": v} | _attend(q, k, v, inputs.get("mask"))


def _one_head(inputs: Arrays) -> dict[str, Floats]:
    return _attend(inputs["Q"], inputs["K"], inputs["V"], inputs.get("mask"))


def _attend(q: Floats, k: Floats, v: Floats, mask: Floats | None) -> dict[str, Floats]:
    scores = product(q, k.swapaxes(-2, -1), ("Q", "Kᵀ"))  # (..., query, key)
    seen = None if mask is None else allowed(mask, scores)
    scaled = scores / math.sqrt(q.shape[-1])
    pattern, unscaled = formulas.softmax(scaled, seen), formulas.softmax(scores, seen)
    return {
        "Q·Kᵀ": scores,
        "Q·Kᵀ / √d_k": scaled,
        "softmax": pattern,
        "softmax · V": product(pattern, v, ("softmax", "V")),  # (..., query, d_v)
        N_("without √d_k: softmax"): unscaled,
        N_("without √d_k: softmax · V"): product(unscaled, v, ("softmax", "V")),
    }


def _invented(inputs: Arrays) -> dict[str, Floats]:
    return {N_("pattern · V"): product(inputs["pattern"], inputs["V"], (N_("pattern"), "V"))}


def _softmax(inputs: Arrays) -> dict[str, Floats]:
    return {"softmax": formulas.softmax(inputs["scores"]), "exp": np.exp(inputs["scores"])}


def _begins(first: Floats, shape: tuple[int, ...]) -> Floats:
    """Make a printed array of this shape of which the notes show only the first numbers."""
    printed = np.full(shape, np.nan)
    block = printed[(0,) * (len(shape) - 2)]  # (row, column)
    block[: first.shape[0], : first.shape[1]] = first
    return printed


def _zero_mask(inputs: Arrays) -> dict[str, Floats]:
    mask = allowed(inputs["mask"], inputs["scores"])
    filled = np.where(mask, inputs["scores"], -1e9)
    return {
        N_("scores where the mask is 1, else −1e9"): filled,
        N_("softmax of that"): formulas.softmax(filled),
        N_("visformer's rule"): formulas.softmax(inputs["scores"], mask),
    }


@lru_cache(maxsize=8)
def weights(d_model: int) -> tuple[Floats, Floats]:
    """Return random weights with a fixed seed: an embedding of each word, and W_Q, W_K, W_V and W_O.

    Returns:
        (word, d_model) and (4, d_model, d_model).
    """
    rng = np.random.default_rng(0)
    embedding = rng.normal(size=(len(_WORDS), d_model))
    return embedding, rng.normal(size=(4, d_model, d_model)) / np.sqrt(d_model)


def _multi_head(inputs: Arrays) -> dict[str, Floats]:
    d_model, h = whole(inputs, "d_model", most=limits.LAB_WIDTH), whole(inputs, "n_heads", most=limits.LAB_WIDTH)
    if d_model % h:
        raise NumberError(N_("d_model = {d} cannot be divided among {h} heads: choose a divisor."), d=d_model, h=h)
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


_ATTENTION = r"""&\mathrm{Attention}(\sym{q}{Q}, \sym{k}{K}, \sym{v}{V}) \\[4pt]
&= \sym{pattern}{\mathrm{softmax}}\left(\frac{\sym{q}{Q}\sym{k}{K}^T}{\sqrt{d_k}}\right) \sym{v}{V}"""
_PROJECTED = r"""&\sym{q}{Q} = \sym{input}{X} W_Q, \quad \sym{k}{K} = \sym{input}{X} W_K \\[4pt]
&\sym{v}{V} = \sym{input}{X} W_V \\[4pt] """
_ATTEND = (("pictures/worked_examples.py", "_attend"), ("formulas.py", "softmax"))

_ALTERNATE = matrix([1, 0], [0, 1], [1, 0], [0, 1])
_V = matrix([1, 2], [3, 4], [5, 6])
_READ = {"K": matrix([7, 8], [9, 10], [11, 12]), "V": matrix([13, 14], [15, 16], [17, 18])}
_COUNTED = np.arange(1.0, 25.0).reshape(2, 2, 3, 2)  # (sample, head, token, d_k)
_IN, _SCORES = ("sample", "head", "token", "d_k"), ("sample", "head", "query", "key")
_WORDS = tuple(dict.fromkeys(word for sentence in SENTENCES for word in sentence))
_IDS = np.array([[_WORDS.index(word) for word in sentence] for sentence in SENTENCES])

_OF_ATTENTION = (
    Worked(
        name="query",
        title=N_("The query of “went”, in both conventions"),
        section="3.2.2",
        formula=r"""&\sym{q}{q} = W_Q\, \sym{input}{x} \\[4pt]
&\sym{q}{q}^T = \sym{input}{x}^T\, W_Q^T""",
        code=(("pictures/worked_examples.py", "_query"), ("pictures/worked.py", "product")),
        inputs={
            "x": matrix([0.7, 0.9, 1.1, 1.3]),
            "W_Q": matrix([0.2, 0.1, 0.3, 0.5], [0.6, 0.4, 0.1, 0.7], [0.3, 0.8, 0.2, 0.4], [0.5, 0.9, 0.6, 0.1]),
        },
        compute=_query,
        printed={"W_Q · x": matrix([1.27, 1.84, 1.51, 1.61])},
        remarks={
            "W_Q · x": N_(
                "The printed product does not follow from the printed matrix; the input should be the sum, not "
                "the bare embedding."
            ),
            "xᵀ · W_Qᵀ": N_("Columns or rows: with the weights transposed, both conventions give the same query."),
            "xᵀ · W_Q": N_("The same table in the other convention, not transposed, gives another query."),
        },
    ),
    Worked(
        name="self-attention",
        title=N_("Self-attention by hand, 3 tokens"),
        section="3.2.1",
        formula=_PROJECTED + _ATTENTION,
        code=(("pictures/worked_examples.py", "_self_attention"), *_ATTEND),
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
            "Q·Kᵀ": N_("Computed from the wrong Q and K."),
            "Q·Kᵀ / √d_k": N_(
                "Computed from the wrong Q and K. Scores this large saturate the softmax: that is why they are scaled."
            ),
        },
    ),
    Worked(
        name="one-head",
        title=N_("A tensor of four dimensions: one head of one sample"),
        section="3.2.2",
        formula=_ATTENTION,
        code=_ATTEND,
        inputs={"Q": _COUNTED, "K": _COUNTED, "V": _COUNTED, "mask": np.ones((3, 3))},
        compute=_one_head,
        printed={"Q·Kᵀ": _begins(matrix([5, 11, 17], [11, 25, 39], [17, 39, 61]), (2, 2, 3, 3))},
        remarks={
            "softmax": N_(
                "Each head of each sample attends on its own: choose another, and no number of this one is used."
            )
        },
        axes={
            **dict.fromkeys(("Q", "K", "V", "softmax · V", "without √d_k: softmax · V"), _IN),
            **dict.fromkeys(("Q·Kᵀ", "Q·Kᵀ / √d_k", "softmax", "without √d_k: softmax"), _SCORES),
        },
    ),
    Worked(
        name="invented",
        title=N_("An invented pattern times V"),
        section="3.2.1",
        formula=r"\sym{heads}{O} = \sym{pattern}{A}\, \sym{v}{V}",
        code=(("pictures/worked_examples.py", "_invented"), ("pictures/worked.py", "product")),
        inputs={N_("pattern"): matrix([0.2, 0.3, 0.5], [0.1, 0.6, 0.3], [0.4, 0.4, 0.2]), "V": _V},
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
        formula=r"\sym{pattern}{A}_{ij} = \frac{\exp \sym{scores}{S}_{ij}}{\sum_k \exp \sym{scores}{S}_{ik}}",
        code=(("formulas.py", "softmax"),),
        inputs={
            N_("scores"): matrix(
                [21.2206, 6.2903, 1.2201, 0.8742],
                [6.2903, 7.1234, 1.5678, 1.2345],
                [1.2201, 1.5678, 5.6789, 0.9876],
                [0.8742, 1.2345, 0.9876, 4.5678],
            )
        },
        compute=_softmax,
        printed={"softmax": np.eye(4), "exp": _begins(matrix([1.63e9]), (4, 4))},
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
        formula=_ATTENTION,
        code=(*_ATTEND, ("pictures/worked.py", "product")),
        inputs={"Q": matrix([1, 2, 3], [4, 5, 6]), **_READ},
        compute=_one_head,
        instead="mended",
    ),
    Worked(
        name="mended",
        title=N_("The same without Q's third column"),
        section="3.2.1",
        formula=_ATTENTION,
        code=_ATTEND,
        inputs={"Q": matrix([1, 2], [4, 5]), **_READ},
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
    ),
    Worked(
        name="shapes",
        title=N_("Shapes on the way through multi-head attention"),
        section="3.2.2",
        formula=r"""&\sym{q}{Q}_i = \sym{input}{X} W^Q_i, \quad \sym{k}{K}_i = \sym{input}{X} W^K_i \\[4pt]
&\sym{v}{V}_i = \sym{input}{X} W^V_i \\[4pt]
&\sym{heads}{\mathrm{head}}_i = \mathrm{Attention}(\sym{q}{Q}_i, \sym{k}{K}_i, \sym{v}{V}_i) \\[4pt]
&\sym{out}{\mathrm{out}} = [\sym{heads}{\mathrm{head}}_1 \cdots \sym{heads}{\mathrm{head}}_h]\, W^O""",
        code=(("pictures/worked_examples.py", "_multi_head"), ("formulas.py", "attention")),
        inputs={N_("d_model"): matrix([512]), N_("n_heads"): matrix([8])},
        compute=_multi_head,
        remarks={
            "cut into heads": N_("No numbers move: the d_model numbers of a token are split into heads of d_k each."),
            "head before token: Q": N_("The head and token axes are swapped, so that each head holds all its tokens."),
            "heads end to end": N_("Back to one row of d_model numbers per token, the first head's first."),
        },
        axes={
            **dict.fromkeys(("X", "X · W_Q", "heads end to end", "times W_O"), ("sample", "token", "d_model")),
            **dict.fromkeys(("head before token: Q", "softmax · V"), _IN),
            "cut into heads": ("sample", "token", "head", "d_k"),
            "softmax(Q·Kᵀ / √d_k)": _SCORES,
        },
        tokens=SENTENCES,
    ),
)

_ZERO_MASK = Worked(
    name="zero-mask",
    title=N_("A mask of zeros: uniform, not empty"),
    section="3.2.3",
    formula=r"""&\sym{heads}{F}_{ij} = \begin{cases} \sym{scores}{S}_{ij} & \sym{mask}{M}_{ij} = 1 \\
-10^9 & \sym{mask}{M}_{ij} = 0 \end{cases} \\[4pt]
&\sym{pattern}{A} = \mathrm{softmax}(\sym{heads}{F})""",
    code=(("pictures/worked_examples.py", "_zero_mask"), ("formulas.py", "softmax")),
    inputs={N_("scores"): matrix([2, 1, 0.5], [0.3, 2, 1], [1, 0.2, 2]), N_("mask"): np.zeros((3, 3))},
    compute=_zero_mask,
    remarks={
        "softmax of that": N_(
            "Every score is −1e9, so all are equal: the row spreads evenly over what it may not see."
        ),
        "visformer's rule": N_("A row that may see nothing gives zeros."),
    },
)


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


_OF_NORMS = (
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
                "A padding row of zeros changes every other row; LayerNorm is not affected."
            ),
            "BatchNorm, sentence 1 alone": N_(
                "With batch size 1 the same tokens get different numbers; LayerNorm's stay the same."
            ),
        },
    ),
)


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
_ADDITION = (("pictures/worked_examples.py", "_sum"), ("pictures/worked.py", "added"))

_E = matrix(
    [0.1, 0.3, 0.2, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 0.1, 0.3, 0.5], [0.2, 0.4, 0.6, 0.8], [0.3, 0.2, 0.1, 0.5]
)
_E_ZH = matrix([0.3, 0.1, 0.2, 0.5], [0.6, 0.3, 0.4, 0.7], [0.8, 0.5, 0.6, 0.9])
_P = np.array([[0.1 * (row + column) for column in range(1, 5)] for row in range(5)])
_EN, _ZH = ("I", "went", "to", "Northeastern", "University"), ("我", "去", "东北大学")

_OF_POSITIONS = (
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
        code=(("pictures/worked_examples.py", "_same_word"), *_ENCODING),
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

EXAMPLES = (*_OF_POSITIONS, *_OF_ATTENTION, *_OF_NORMS, _ZERO_MASK)
"""Every worked example, in menu order."""
