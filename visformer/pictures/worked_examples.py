"""The worked examples of the course notes, by topic: what they print beside what is computed, and experiments.

An experiment has no printed numbers: it shows a reason, such as why scores are divided by the root of d_k.
"""

import math
from functools import lru_cache

import numpy as np

from visformer import formulas
from visformer.errors import N_, NumberError, ShapeError
from visformer.formulas import Bools, Floats
from visformer.pictures.worked import Arrays, Curves, Worked, added, allowed, matrix, product, whole
from visformer.system import limits

_HERE = "pictures/worked_examples.py"
_ATTENTION = r"""&\mathrm{Attention}(\sym{q}{Q}, \sym{k}{K}, \sym{v}{V}) \\[4pt]
&= \sym{pattern}{\mathrm{softmax}}\left(\frac{\sym{q}{Q}\sym{k}{K}^T}{\sqrt{d_k}}\right) \sym{v}{V}"""
_PROJECTED = r"""&\sym{q}{Q} = \sym{input}{X} W_Q, \quad \sym{k}{K} = \sym{input}{X} W_K \\[4pt]
&\sym{v}{V} = \sym{input}{X} W_V \\[4pt] """
_ATTEND = ((_HERE, "_attend"), ("formulas.py", "softmax"))


def _column(inputs: Arrays, name: str, *, most: int) -> list[int]:
    """Return an input that is a column of integers from 1 to ``most``."""
    return [whole({name: value}, name, most=most) for value in inputs[name].reshape(-1, 1, 1)]


# Why not recurrence ---------------------------------------------------------------------------------------------------


def _paths(inputs: Arrays) -> dict[str, Floats]:
    n, k = whole(inputs, "n", most=limits.LAB_ROWS), whole(inputs, "k", most=limits.LAB_ROWS)
    far = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))  # (reader, read)
    reads = {"attention": far >= 0, "recurrence": far <= 1, "convolution": far <= k // 2}
    return {
        N_("layers or steps from the first word to the last"): matrix(*([_hops(each)] for each in reads.values())),
        N_("steps that wait for one another"): matrix([1], [n], [1]),
    }


def _hops(reads: Bools) -> float:
    """Return in how many steps the last word hears from the first one; infinite: never."""
    heard: Bools = np.zeros(len(reads), dtype=np.bool_)
    heard[0] = True
    for step in range(len(reads)):
        if heard[-1]:
            return step
        heard = np.asarray((reads & heard).any(axis=1))
    raise NumberError(N_("A convolution of width 1 never reads another word: k is at least 2."))


_WAYS = (N_("self-attention"), N_("recurrence"), N_("convolution"))

WHY = (
    Worked(
        name="paths",
        title=N_("How far it is from the first word to the last"),
        terms="长距离依赖 门控机制",
        section="4",
        formula=r"""&1, \qquad n - 1, \\[4pt]
&\left\lceil \frac{n - 1}{\lfloor k / 2 \rfloor} \right\rceil""",
        code=((_HERE, "_paths"), (_HERE, "_hops")),
        inputs={"n": matrix([8]), "k": matrix([3])},
        compute=_paths,
        remarks={
            "layers or steps from the first word to the last": N_(
                "Counted by following who reads whom. A word of 20 words ago is one step away in attention, and 20 "
                "in a recurrent network: on so long a way its trace, and in training the gradient, fades. Gates (LSTM, "
                "GRU) slow that down, but do not stop it."
            ),
            "steps that wait for one another": N_(
                "A recurrent network computes word 5 only after word 4. Attention computes all words at once, by a "
                "few products of matrices, which is what a GPU is made for."
            ),
        },
        rows={
            "layers or steps from the first word to the last": _WAYS,
            "steps that wait for one another": _WAYS,
        },
    ),
)

# Words to vectors -----------------------------------------------------------------------------------------------------


def _look_up(inputs: Arrays) -> dict[str, Floats]:
    table, ids = inputs["W"], inputs["ids"].ravel()
    one_hot = np.zeros((len(ids), len(table)))  # (token, vocabulary)
    for place, row in enumerate(ids):
        if row not in range(len(table)):
            raise NumberError(
                N_("There is no row {row}: the table has rows 0 to {last}."), row=f"{row:g}", last=len(table) - 1
            )
        one_hot[place, int(row)] = 1
    return {"W[ids]": table[ids.astype(int)], N_("one-hot"): one_hot, N_("one-hot · W"): one_hot @ table}


def _scale(inputs: Arrays) -> dict[str, Floats]:
    d = whole(inputs, "d_model", most=limits.LAB_WIDTH)
    drawn = np.random.default_rng(0).normal(size=(1000, d))  # (word, d_model), variance 1: torch's nn.Embedding
    length = np.linalg.norm(drawn, axis=1).mean()
    position = np.linalg.norm(formulas.sinusoidal_encoding(50, d + d % 2), axis=1).mean()
    return {
        N_("length of a position's encoding"): matrix([position]),
        N_("length of an embedding of variance 1/d"): matrix([length / math.sqrt(d)]),
        N_("the same times √d_model"): matrix([length]),
        N_("length of nn.Embedding's, variance 1, times √d_model"): matrix([length * math.sqrt(d)]),
    }


_SEVEN = ("我", "和", "同学", "一起", "听", "和", "光同尘")

WORDS = (
    Worked(
        name="look-up",
        title=N_("A table, and the rows that are read"),
        section="3.4",
        formula=r"\sym{embed}{E} = W[\mathrm{ids}] = \mathrm{onehot}(\mathrm{ids}) \, W",
        code=((_HERE, "_look_up"), ("model/embedding.py", "Embedding")),
        inputs={
            "W": matrix(
                [0.3, 0.1, 0.2, 0.5],
                [0.1, 0.2, 0.3, 0.4],
                [0.7, 0.4, 0.1, 0.2],
                [0.2, 0.6, 0.5, 0.1],
                [0.9, 0.3, 0.4, 0.8],
                [0.6, 0.8, 0.2, 0.7],
            ),
            "ids": matrix([0], [1], [2], [3], [4], [1], [5]),
        },
        compute=_look_up,
        remarks={
            "W[ids]": N_(
                "V × D numbers, and each token's number names the row to copy: (N, T) numbers become (N, T, D). "
                "Both 和 read the same row; only their positions will differ."
            ),
            "one-hot · W": N_("The same as a product: that is how the rows that were read learn, and only they."),
        },
        rows={
            "W": tuple(dict.fromkeys(_SEVEN)),
            "ids": _SEVEN,
            "W[ids]": _SEVEN,
            "one-hot": _SEVEN,
            "one-hot · W": _SEVEN,
        },
    ),
    Worked(
        name="scale",
        title=N_("Why the embedding is multiplied by √d_model"),
        terms="量纲 math.sqrt",
        section="3.4",
        formula=r"\sym{input}{x} = \sqrt{d_\mathrm{model}} \, \sym{embed}{e} + \sym{position}{P}",
        code=((_HERE, "_scale"), ("model/embedding.py", "Embedding.forward")),
        inputs={N_("d_model"): matrix([512])},
        compute=_scale,
        remarks={
            "the same times √d_model": N_(
                "A position's encoding has the length √(d/2). Embeddings that start with variance 1/d have the length "
                "1 and would be lost beside it: times √d_model, both weigh about the same."
            ),
            "length of nn.Embedding's, variance 1, times √d_model": N_(
                "The notes take nn.Embedding as it is, with variance 1, and multiply all the same: then the position "
                "is small beside the word, until training corrects it. Means of 1,000 drawn words."
            ),
        },
    ),
)

# Positions ------------------------------------------------------------------------------------------------------------


def _sinusoid(inputs: Arrays) -> dict[str, Floats]:
    d, base = whole(inputs, "d", most=limits.LAB_ENCODING), whole(inputs, "base", most=limits.LAB_BASE)
    places, rates = inputs["pos"].ravel(), formulas.frequencies(d, base)
    return {
        "1 / base^(2i/d)": rates[None],
        N_("pos × frequency"): np.outer(places, rates),
        "PE": formulas.encoding_at(places, d, base),
    }


def _rates(inputs: Arrays) -> dict[str, Floats]:
    d, base = whole(inputs, "d", most=limits.LAB_ENCODING), whole(inputs, "base", most=limits.LAB_BASE)
    even = np.arange(0, d, 2)
    return {
        "2i": even[None].astype(float),
        "−2i · ln(base) / d": -even[None] * math.log(base) / d,
        "exp(−2i · ln(base) / d)": np.exp(-even[None] * math.log(base) / d),
        "1 / base^(2i/d)": formulas.frequencies(d, base)[None],
    }


def _outer(inputs: Arrays) -> dict[str, Floats]:
    a, b, column, row = inputs["A"], inputs["B"], inputs["column"], inputs["row"]
    if column.shape[1] != 1 or row.shape[0] != 1:
        raise ShapeError(N_("column is n × 1 and row is 1 × m: only then is their product an outer product."))
    if a.shape != b.shape:
        raise ShapeError(
            N_("{left} is {a} and {right} is {b}: element by element they need one shape."),
            left="A",
            right="B",
            a=" × ".join(map(str, a.shape)),
            b=" × ".join(map(str, b.shape)),
        )
    return {"A * B": a * b, "column * row": column * row, "column @ row": column @ row}


def _unique(inputs: Arrays) -> dict[str, Floats]:
    n, d = whole(inputs, "n", most=limits.LAB_ROWS), whole(inputs, "d", most=limits.LAB_ENCODING)
    encoding = formulas.sinusoidal_encoding(n, d)
    apart = np.linalg.norm(encoding[:, None] - encoding[None], axis=2)  # (position, position)
    others = np.where(np.eye(n, dtype=bool), np.inf, apart)
    smallest = others.min() if n > 1 else 0.0
    return {
        N_("smallest distance of two positions"): matrix([smallest]),
        N_("between which"): np.argwhere(others == smallest)[:1].astype(float) if n > 1 else np.zeros((1, 2)),
        N_("distance of each two"): apart,
    }


def _shuffled(inputs: Arrays) -> dict[str, Floats]:
    x, order = inputs["X"], inputs["order"].ravel()
    if sorted(order) != list(range(len(x))):
        raise NumberError(N_("order needs each number from 0 to {last} once."), last=len(x) - 1)
    order = order.astype(int)
    placed = formulas.sinusoidal_encoding(len(x), x.shape[1]) if x.shape[1] % 2 == 0 else np.zeros_like(x)

    def attend(rows: Floats) -> Floats:
        return formulas.attention(rows, rows, rows)[0]

    return {
        N_("attention"): attend(x),
        N_("attention of the shuffled words"): attend(x[order]),
        N_("largest difference, row by row"): matrix([np.abs(attend(x[order]) - attend(x)[order]).max()]),
        N_("the same with positions"): matrix([np.abs(attend(x[order] + placed) - attend(x + placed)[order]).max()]),
    }


def _add(inputs: Arrays) -> dict[str, Floats]:
    e, p, w = inputs["E"], inputs["P"], inputs["W"]
    total = added(e, p, ("E", "P"))
    return {
        "(E + P) · W": product(total, w, ("E + P", "W")),
        "E · W + P · W": e @ w + p @ w,
        "[E P] · [W; W]": np.hstack([e, p]) @ np.vstack([w, w]),
    }


def _same_word(inputs: Arrays) -> dict[str, Floats]:
    places = inputs["pos"].ravel()
    embedding = np.repeat(inputs["embedding"], len(places), axis=0)
    encoding = formulas.encoding_at(places, embedding.shape[1])
    return {"PE": encoding, N_("embedding + PE"): added(embedding, encoding, (N_("embedding"), "PE"))}


def _sum(inputs: Arrays) -> dict[str, Floats]:
    return {"E + P": added(inputs["E"], inputs["P"], ("E", "P"))}


_SINUSOID = r"""&\sym{scores}{\theta}_{pos,i} = \sym{k}{pos} \cdot \sym{q}{\mathrm{base}^{-2i/d}} \\[4pt]
&\sym{position}{PE}_{(pos,2i)} = \sin \sym{scores}{\theta}_{pos,i} \\[4pt]
&\sym{position}{PE}_{(pos,2i+1)} = \cos \sym{scores}{\theta}_{pos,i}"""
_SUM = r"\sym{input}{x}_{pos} = \sym{embed}{E}_{token} + \sym{position}{P}_{pos}"
_ENCODING = (("formulas.py", "encoding_at"), ("formulas.py", "frequencies"))
_ADDITION = ((_HERE, "_sum"), ("pictures/worked.py", "added"))

_E = matrix(
    [0.1, 0.3, 0.2, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 0.1, 0.3, 0.5], [0.2, 0.4, 0.6, 0.8], [0.3, 0.2, 0.1, 0.5]
)
_E_ZH = matrix([0.3, 0.1, 0.2, 0.5], [0.6, 0.3, 0.4, 0.7], [0.8, 0.5, 0.6, 0.9])
_P = np.array([[0.1 * (row + column) for column in range(1, 5)] for row in range(5)])
_MADE_UP = N_("The sums are right. P here is made up: row p is 0.1 · (p + 1, …, p + 4), not a sinusoid.")
_EN, _ZH = ("I", "went", "to", "Northeastern", "University"), ("我", "去", "东北大学")
_BASE: dict[str, Floats] = {N_("d"): matrix([4]), N_("base"): matrix([10_000])}

POSITIONS = (
    Worked(
        name="sinusoid",
        title=N_("Sinusoidal encoding, d = 4: ten positions"),
        terms="div_term my_matmulres torch.zeros torch.arange unsqueeze(1) 位置列-矩阵 变化矩阵 频率衰减因子",
        section="3.5",
        formula=_SINUSOID,
        code=_ENCODING,
        inputs={N_("pos"): np.arange(10.0)[:, None], **_BASE},
        compute=_sinusoid,
        printed={
            "1 / base^(2i/d)": matrix([1.0, 0.1]),
            "pos × frequency": np.outer(np.arange(10), [1.0, 0.1]),
            "PE": matrix(
                [0, 1, 0, 1],
                [0.8415, 0.5403, 0.0998, 0.9950],
                [0.9093, -0.4161, 0.1987, 0.9801],
                [0.1411, -0.9900, 0.2955, 0.9553],
                [-0.7568, -0.6536, 0.3894, 0.9211],
                [-0.9589, 0.2837, 0.4794, 0.8776],
                [-0.2794, 0.9602, 0.5646, 0.8253],
                [0.6570, 0.7539, 0.6442, 0.7648],
                [0.9894, -0.1459, 0.7174, 0.6967],
                [0.4121, -0.9111, 0.7833, 0.6216],
            ),
        },
        remarks={
            "1 / base^(2i/d)": N_("10000^(2/4) is 100, so the second frequency is 1/100; the notes use 0.1."),
            "pos × frequency": N_("The second column is ten times too large, with the frequency."),
            "PE": N_(
                "The last two columns are those of base 100 (try it). The first two are right but for one digit: "
                "cos 8 is −0.1455."
            ),
        },
        rows={"pos × frequency": "pos", "PE": "pos"},
    ),
    Worked(
        name="five-positions",
        title=N_("Sinusoidal encoding, d = 4: the table that is right"),
        section="3.5",
        formula=_SINUSOID,
        code=_ENCODING,
        inputs={N_("pos"): np.arange(5.0)[:, None], **_BASE},
        compute=_sinusoid,
        printed={
            "PE": matrix(
                [0, 1, 0, 1],
                [0.8415, 0.5403, 0.01, 0.99995],
                [0.9093, -0.4161, 0.02, 0.9998],
                [0.1411, -0.9899, 0.03, 0.99955],
                [-0.7568, -0.6536, 0.04, 0.9992],
            )
        },
        remarks={
            "PE": N_("Other notes print this table, with the frequencies 1 and 0.01. Only cos 3 is cut off: −0.9900.")
        },
        rows={"pos × frequency": "pos", "PE": "pos"},
    ),
    Worked(
        name="rates",
        title=N_("Frequencies through exp and log"),
        terms="div_term torch.exp math.log(10000.0) register_buffer",
        section="3.5",
        formula=r"\mathrm{base}^{-2i/d} = \exp\left(-\frac{2i}{d} \ln \mathrm{base}\right)",
        code=((_HERE, "_rates"), ("formulas.py", "frequencies")),
        inputs={N_("d"): matrix([8]), N_("base"): matrix([10_000])},
        compute=_rates,
        remarks={
            "exp(−2i · ln(base) / d)": N_(
                "The notes' code writes the power as exp(log): the same numbers. They are constants, kept in a buffer "
                "that no optimiser changes; one of the notes forgets to register it."
            )
        },
    ),
    Worked(
        name="outer",
        title=N_("Broadcasting: an outer product"),
        terms="广播机制 逐元素 element-wise 外积 结构巧合",
        section="3.5",
        formula=r"""&(A * B)_{ij} = A_{ij} B_{ij} \\[4pt]
&(c * r)_{ij} = c_i \, r_j""",
        code=((_HERE, "_outer"),),
        inputs={
            "A": matrix([1, 2], [3, 4]),
            "B": matrix([10, 20], [30, 40]),
            N_("column"): matrix([1], [2], [3]),
            N_("row"): matrix([10, 20, 30]),
        },
        compute=_outer,
        printed={
            "A * B": matrix([10, 40], [90, 160]),
            "column * row": matrix([10, 20, 30], [20, 40, 60], [30, 60, 90]),
        },
        remarks={
            "A * B": N_("Of one shape: element by element, which is neither an outer nor a matrix product."),
            "column * row": N_(
                "(3, 1) times (1, 3): both are repeated to (3, 3), so that each position meets each frequency. "
                "position * div_term is such a product."
            ),
        },
    ),
    Worked(
        name="unique",
        title=N_("No two positions are alike"),
        terms="唯一性",
        section="3.5",
        formula=r"\min_{a \neq b} \left\| \sym{position}{PE}_a - \sym{position}{PE}_b \right\|",
        code=((_HERE, "_unique"), *_ENCODING),
        inputs={N_("n"): matrix([16]), N_("d"): matrix([8])},
        compute=_unique,
        remarks={
            "distance of each two": N_(
                "Never 0 but on the diagonal. The slowest wave needs 2π · 10000^(1 − 2/d) positions for one round: "
                "before that no encoding returns."
            )
        },
    ),
    Worked(
        name="shuffled",
        title=N_("Without positions a shuffled sentence gives shuffled rows"),
        terms="顺序感",
        section="3.5",
        formula=_ATTENTION,
        code=((_HERE, "_shuffled"), ("formulas.py", "attention")),
        inputs={"X": _E, N_("order"): matrix([4], [2], [0], [3], [1])},
        compute=_shuffled,
        remarks={
            "largest difference, row by row": N_(
                "None: attention takes a sentence for a bag of words. “Dog bites man” would be “man bites dog”."
            ),
            "the same with positions": N_("With positions added, another order gives other rows."),
        },
        rows={"X": _EN},
    ),
    Worked(
        name="add",
        title=N_("Why positions are added, not appended"),
        terms="为什么是相加",
        section="3.5",
        formula=r"(\sym{embed}{E} + \sym{position}{P}) \, W = \sym{embed}{E} W + \sym{position}{P} W",
        code=((_HERE, "_add"),),
        inputs={"E": _E_ZH, "P": _P[:3], "W": matrix([1, 0], [0, 1], [1, 1], [0.5, -1])},
        compute=_add,
        remarks={
            "[E P] · [W; W]": N_(
                "All three are equal: to add is to append with the same weights for both halves, at half the width. "
                "In hundreds of dimensions word and position leave each other room."
            )
        },
        rows={"E": _ZH, "P": _ZH},
    ),
    Worked(
        name="same-word",
        title=N_("The same word in two positions"),
        terms="和光同尘",
        section="3.5",
        formula=_SUM,
        code=((_HERE, "_same_word"), *_ENCODING),
        inputs={N_("embedding"): matrix([0.1, 0.2, 0.3, 0.4]), "pos": matrix([1], [5])},
        compute=_same_word,
        printed={
            "PE": matrix([0.9093, -0.4161, 0.0002, 1], [-0.2794, 0.9602, 0.0006, 1]),
            N_("embedding + PE"): matrix([1.0093, -0.2161, 0.3002, 1.4], [-0.1794, 1.1602, 0.3006, 1.4]),
        },
        remarks={
            "PE": N_("The notes' rows are those of positions 2 and 6, and their third column is 100 times too small."),
            "embedding + PE": N_(
                "The notes count positions from 1 (2 and 6) in a formula that counts from 0 (1 and 5), and use "
                "0.0001 for the second frequency. Set pos to 2 and 6: the first two columns are theirs. The point "
                "still holds: one word, two inputs."
            ),
        },
        rows={"pos": ("和", "和"), "PE": "pos", "embedding + PE": "pos"},
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
        remarks={"E + P": _MADE_UP},
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
        remarks={"E + P": _MADE_UP},
        rows={"E": _ZH, "P": _ZH, "E + P": _ZH},
    ),
)

# Attention by hand ----------------------------------------------------------------------------------------------------


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
    q, k, v, mask = inputs["Q"], inputs["K"], inputs["V"], inputs.get("mask")
    results = _attend(q, k, v, mask)
    seen = None if mask is None else allowed(mask, results["Q·Kᵀ"])
    unscaled = formulas.softmax(results["Q·Kᵀ"], seen)
    return {
        **results,
        N_("without √d_k: softmax"): unscaled,
        N_("without √d_k: softmax · V"): product(unscaled, v, ("softmax", "V")),
    }


def _attend(q: Floats, k: Floats, v: Floats, mask: Floats | None = None) -> dict[str, Floats]:
    scores = product(q, k.swapaxes(-2, -1), ("Q", "Kᵀ"))  # (..., query, key)
    scaled = scores / math.sqrt(q.shape[-1])
    pattern = formulas.softmax(scaled, None if mask is None else allowed(mask, scores))
    return {
        "Q·Kᵀ": scores,
        "Q·Kᵀ / √d_k": scaled,
        "softmax": pattern,
        "softmax · V": product(pattern, v, ("softmax", "V")),  # (..., query, d_v)
    }


def _columns(inputs: Arrays) -> dict[str, Floats]:
    q, k, v = inputs["Q"], inputs["K"], inputs["V"]
    rows = _attend(q, k, v)
    scores = product(k, q.T, ("K", "Q")) / math.sqrt(q.shape[1])  # (key, query)
    pattern = formulas.softmax(scores.T).T  # each column sums to 1
    return {
        N_("rows: softmax(Q·Kᵀ / √d_k)"): rows["softmax"],
        N_("rows: softmax · V"): rows["softmax · V"],
        N_("columns: softmax(Kᵀ·Q / √d_k)"): pattern,
        N_("columns: V · softmax"): v.T @ pattern,
    }


def _vectors(inputs: Arrays) -> dict[str, Floats]:
    x = inputs["X"]  # (sample, token, d_model)
    scores = x @ x.swapaxes(-2, -1)  # (sample, query, key)
    pattern = formulas.softmax(scores)
    return {
        "Q·Kᵀ": scores,
        "softmax(Q·Kᵀ)": pattern,
        "softmax(Q·Kᵀ) · V": pattern @ x,
        "softmax(Q·Kᵀ / √d_k)": formulas.softmax(scores / math.sqrt(x.shape[-1])),
    }


def _softmax(inputs: Arrays) -> dict[str, Floats]:
    powers = np.exp(inputs["scores"])
    return {
        "softmax": formulas.softmax(inputs["scores"]),
        "exp": powers,
        N_("sum of each row"): powers.sum(axis=1, keepdims=True),
    }


_DRAWS, _KEYS = 200, 10


def _saturates(inputs: Arrays) -> dict[str, Floats]:
    """Draw queries and keys of variance 1: means over 200 queries of 10 keys each."""
    results: dict[str, list[float]] = {}
    for d in _column(inputs, "d_k", most=1024):
        rng = np.random.default_rng(0)
        q, k = rng.normal(size=(_DRAWS, 1, d)), rng.normal(size=(_DRAWS, _KEYS, d))
        scores = (q * k).sum(axis=2)  # (draw, key)
        plain, scaled = formulas.softmax(scores), formulas.softmax(scores / math.sqrt(d))
        row = {
            N_("spread of q · k"): scores.std(),
            N_("largest weight, not scaled"): plain.max(axis=1).mean(),
            N_("largest weight, scaled"): scaled.max(axis=1).mean(),
            N_("gradient, not scaled"): (plain * (1 - plain)).sum(axis=1).mean(),
            N_("gradient, scaled"): (scaled * (1 - scaled)).sum(axis=1).mean(),
        }
        for name, value in row.items():
            results.setdefault(name, []).append(float(value))
    return {name: matrix(values).T for name, values in results.items()}


def _begins(first: Floats, shape: tuple[int, ...]) -> Floats:
    """Make a printed array of this shape of which the notes show only the first numbers."""
    printed = np.full(shape, np.nan)
    block = printed[(0,) * (len(shape) - 2)]  # (row, column)
    block[: first.shape[0], : first.shape[1]] = first
    return printed


_ALTERNATE = matrix([1, 0], [0, 1], [1, 0], [0, 1])
_V = matrix([1, 2], [3, 4], [5, 6])
_READ = {"K": matrix([7, 8], [9, 10], [11, 12]), "V": matrix([13, 14], [15, 16], [17, 18])}
SENTENCES = (("欢迎", "来", "到", "北京"), ("欢迎", "来", "到", "上海"))
_EIGHT_NUMBERS = np.array(
    [
        [
            [-1.9052, -0.9970, 2.4629, -0.9832, 0.5912, 0.7575, -1.8449, -2.2885],
            [-1.0458, 0.8641, 0.9074, 0.2570, 2.1946, 0.6371, -0.3272, -0.3470],
            [0.1827, -0.1038, 1.4048, -0.1738, 0.4960, -0.2144, -1.6113, -1.3831],
            [-0.8744, -0.9542, -1.7613, 0.6556, 0.6225, 0.8198, -0.3386, -1.3912],
        ],
        [
            [-1.9859, 1.5068, 1.8134, 0.2302, 0.8836, 2.6075, 0.0109, -0.4834],
            [0.0526, -0.8190, -1.6013, 0.6656, -0.9374, -1.0759, 0.1085, 0.6963],
            [-1.1066, 1.4148, 0.0370, 0.0127, -1.2052, -0.9551, -0.4569, 1.8279],
            [1.3182, 0.0177, 2.0565, 0.1859, -0.7157, -1.5397, 1.3168, 0.4910],
        ],
    ]
)  # (sample, token, d_model)
_SCORES_PRINTED = matrix(
    [21.2206, 6.2903, 1.2201, 0.8742],
    [6.2903, 7.1234, 1.5678, 1.2345],
    [1.2201, 1.5678, 5.6789, 0.9876],
    [0.8742, 1.2345, 0.9876, 4.5678],
)
_SATURATED = (
    N_("largest weight, not scaled"),
    N_("largest weight, scaled"),
    N_("gradient, not scaled"),
    N_("gradient, scaled"),
)

ATTENTION = (
    Worked(
        name="query",
        title=N_("The query of “went”, in both conventions"),
        terms="查询向量",
        section="3.2.2",
        formula=r"""&\sym{q}{q} = W_Q\, \sym{input}{x} \\[4pt]
&\sym{q}{q}^T = \sym{input}{x}^T\, W_Q^T""",
        code=((_HERE, "_query"), ("pictures/worked.py", "product")),
        inputs={
            "x": matrix([0.7, 0.9, 1.1, 1.3]),
            "W_Q": matrix([0.2, 0.1, 0.3, 0.5], [0.6, 0.4, 0.1, 0.7], [0.3, 0.8, 0.2, 0.4], [0.5, 0.9, 0.6, 0.1]),
        },
        compute=_query,
        printed={"W_Q · x": matrix([1.27, 1.84, 1.51, 1.61])},
        remarks={
            "W_Q · x": N_(
                "The printed product does not follow from the printed matrix: it is 1.21, 1.80, 1.67, 1.95. The "
                "formula "
                "beside it says E of went; what is put in is the sum with the position, which is right."
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
        code=((_HERE, "_self_attention"), *_ATTEND),
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
                "Computed from the wrong Q and K. Even scaled, numbers this large saturate the softmax: real ones "
                "are smaller."
            ),
        },
    ),
    Worked(
        name="saturates",
        title=N_("Why scores are divided by √d_k"),
        terms="缩放因子 梯度消失 梯度爆炸 数值稳定 占比过重 效率较低",
        section="3.2.1",
        formula=r"""&\mathrm{Var}(\sym{q}{q} \cdot \sym{k}{k}) = d_k \\[4pt]
&\frac{\partial \sym{pattern}{p}_i}{\partial \sym{scores}{s}_i} = \sym{pattern}{p}_i (1 - \sym{pattern}{p}_i)""",
        code=((_HERE, "_saturates"), ("formulas.py", "softmax")),
        inputs={N_("d_k"): matrix([1], [4], [16], [64], [256], [1024])},
        compute=_saturates,
        remarks={
            "spread of q · k": N_("A product of d_k terms of variance 1 spreads like √d_k."),
            "largest weight, not scaled": N_(
                "Such scores make softmax choose one key and ignore the others: it saturates. Means of 200 random "
                "queries of 10 keys; evenly spread, the largest weight would be 0.1 and the gradient 0.9."
            ),
            "gradient, not scaled": N_(
                "Σ p (1 − p), how far the weights follow a change of the scores: near 0 nothing is learned any more. "
                "Divided by √d_k, it stays the same for every width. It vanishes but never explodes: "
                "p (1 − p) is at most 1/4."
            ),
        },
        rows={"spread of q · k": "d_k"},
        curves=Curves(over="d_k", results=_SATURATED, axis=N_("mean"), log="x"),
    ),
    Worked(
        name="columns",
        title=N_("Rows or columns: softmax(Q·Kᵀ)·V and V·softmax(Kᵀ·Q)"),
        terms="列向量 对齐函数 alignment",
        section="3.2.1",
        formula=r"""&\sym{pattern}{\mathrm{softmax}}(\sym{q}{Q} \sym{k}{K}^T / \sqrt{d_k}) \, \sym{v}{V} \\[4pt]
&\sym{v}{V} \, \sym{pattern}{\mathrm{softmax}}(\sym{k}{K}^T \sym{q}{Q} / \sqrt{d_q})""",
        code=((_HERE, "_columns"), *_ATTEND),
        inputs={"Q": matrix([1, 0], [0.5, 1], [0, 2]), "K": matrix([1, 1], [0, 1], [2, 0]), "V": _V},
        compute=_columns,
        remarks={
            "columns: softmax(Kᵀ·Q / √d_k)": N_(
                "The slides write each word as a column: the same numbers, transposed, and each column sums to 1 "
                "instead of each row. What scores a pair, a(x, y) = xᵀy, they call the alignment function."
            )
        },
    ),
    Worked(
        name="vectors",
        title=N_("Four words of eight numbers, each with itself"),
        terms="相关性最大 单位矩阵 seqlen dimWord",
        section="3.2.1",
        formula=r"""&\sym{pattern}{A} = \mathrm{softmax}(\sym{input}{X} \sym{input}{X}^T) \\[4pt]
&\sym{heads}{O} = \sym{pattern}{A} \sym{input}{X}""",
        code=((_HERE, "_vectors"), ("formulas.py", "softmax")),
        inputs={"X": _EIGHT_NUMBERS},
        compute=_vectors,
        printed={
            "Q·Kᵀ": _begins(_SCORES_PRINTED, (2, 4, 4)),
            "softmax(Q·Kᵀ)": _begins(np.eye(4), (2, 4, 4)),
            "softmax(Q·Kᵀ) · V": _begins(_EIGHT_NUMBERS[0], (2, 4, 8)),
        },
        remarks={
            "Q·Kᵀ": N_(
                "Of the 16 printed scores only 21.2206 follows from the notes' own vectors. And a word does not "
                "always score highest with "
                "itself: "
                "到 · 欢迎 is 9.65, 到 · 到 only 6.85."
            ),
            "softmax(Q·Kᵀ)": N_(
                "So it is no identity matrix: 到 reads 欢迎. Where it nearly is, that comes of taking Q = K = V = X "
                "without weights and without √d_k, not of words being most related to themselves."
            ),
            "softmax(Q·Kᵀ) · V": N_("Not V itself: the row of 到 is nearly that of 欢迎."),
            "softmax(Q·Kᵀ / √d_k)": N_(
                "Scaled, the rows are softer: the weight of 到 on 欢迎 is 0.669, on itself 0.248."
            ),
        },
        axes={
            **dict.fromkeys(("X", "softmax(Q·Kᵀ) · V"), ("sample", "token", "d_model")),
            **dict.fromkeys(("Q·Kᵀ", "softmax(Q·Kᵀ)", "softmax(Q·Kᵀ / √d_k)"), ("sample", "query", "key")),
        },
        tokens=SENTENCES,
    ),
    Worked(
        name="softmax",
        title=N_("Softmax of a 4 × 4 score matrix"),
        terms="单位矩阵 归一化 指数 分母 F.softmax",
        section="3.2.1",
        formula=r"\sym{pattern}{A}_{ij} = \frac{\exp \sym{scores}{S}_{ij}}{\sum_k \exp \sym{scores}{S}_{ik}}",
        code=(("formulas.py", "softmax"),),
        inputs={N_("scores"): _SCORES_PRINTED},
        compute=_softmax,
        printed={
            "softmax": np.eye(4),
            "exp": _begins(matrix([1.63e9, 540.49, 3.39, 2.40]), (4, 4)),
            "sum of each row": _begins(matrix([1.63e9]), (4, 1)),
        },
        remarks={
            "softmax": N_(
                "Only the first row is that sharp: in the second, 6.29 and 7.12 are close and share the weight."
            ),
            "exp": N_("exp(21.2206) is 1.644e9, not 1.63e9, and exp(6.2903) is 539.32, not 540.49."),
            "sum of each row": N_("With the right power it is 1.644e9: the other three hardly count."),
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
        terms="Scaled Dot-Product Attention",
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
)

# Masks ----------------------------------------------------------------------------------------------------------------


def _triangles(inputs: Arrays) -> dict[str, Floats]:
    a = inputs["A"]
    return {
        N_("upper triangle"): np.triu(a),
        N_("lower triangle"): np.tril(a),
        N_("causal mask"): np.tril(np.ones(a.shape)),
    }


def _time_steps(inputs: Arrays) -> dict[str, Floats]:
    n = whole(inputs, "n", most=limits.LAB_ROWS)
    return {
        N_("1 = hidden, of the words to be written"): 1.0 - np.tril(np.ones((n, n)), -1),
        N_("1 = may attend, of what the decoder is given"): formulas.causal_mask(n).astype(float),
    }


def _zero_mask(inputs: Arrays) -> dict[str, Floats]:
    mask = allowed(inputs["mask"], inputs["scores"])
    filled = np.where(mask, inputs["scores"], -1e9)
    return {
        N_("scores where the mask is 1, else −1e9"): filled,
        N_("softmax of that"): formulas.softmax(filled),
        N_("visformer's rule"): formulas.softmax(inputs["scores"], mask),
    }


def _hidden(inputs: Arrays) -> dict[str, Floats]:
    scores, mask = inputs["scores"], allowed(inputs["mask"], inputs["scores"])
    late = formulas.softmax(scores) * mask
    rest = late.sum(axis=1, keepdims=True)
    return {
        N_("scores to −∞, softmax"): formulas.softmax(scores, mask),
        N_("scores to 0, softmax"): formulas.softmax(np.where(mask, scores, 0.0)),
        N_("softmax, weights to 0"): late,
        N_("and divided by their sum"): np.divide(late, rest, out=np.zeros_like(late), where=rest > 0),
    }


_HIDDEN = (
    "scores to −∞, softmax",
    "scores to 0, softmax",
    "softmax, weights to 0",
    "and divided by their sum",
)

MASKS = (
    Worked(
        name="time-steps",
        title=N_("Step by step: 欢迎来中国"),
        terms="遮掩",
        section="3.2.3",
        formula=r"\sym{mask}{M}_{ij} = [\,j \le i\,]",
        code=((_HERE, "_time_steps"), ("formulas.py", "causal_mask")),
        inputs={N_("n"): matrix([5])},
        compute=_time_steps,
        printed={
            "1 = hidden, of the words to be written": matrix(
                [1, 1, 1, 1, 1], [0, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1]
            )
        },
        remarks={
            "1 = hidden, of the words to be written": N_(
                "The notes' picture: at step 1 all five are hidden, at step 5 only the last one is."
            ),
            "1 = may attend, of what the decoder is given": N_(
                "The same picture as the decoder has it: it is given the start token and the words so far, <s> 欢 迎 "
                "来 中, so row 1 reads the start token, and no row is empty."
            ),
        },
        rows={
            "1 = hidden, of the words to be written": ("1", "2", "3", "4", "5"),
            "1 = may attend, of what the decoder is given": ("<s>", "欢", "迎", "来", "中"),
        },
        columns={
            "1 = hidden, of the words to be written": ("欢", "迎", "来", "中", "国"),
            "1 = may attend, of what the decoder is given": ("<s>", "欢", "迎", "来", "中"),
        },
    ),
    Worked(
        name="triangles",
        title=N_("Upper and lower triangle"),
        section="3.2.3",
        formula=r"\mathrm{triu}: j \ge i \qquad \mathrm{tril}: j \le i",
        code=((_HERE, "_triangles"),),
        inputs={"A": np.arange(1.0, 17.0).reshape(4, 4)},
        compute=_triangles,
        printed={
            "upper triangle": matrix([1, 2, 3, 4], [0, 6, 7, 8], [0, 0, 11, 12], [0, 0, 0, 16]),
            "lower triangle": matrix([1, 0, 0, 0], [5, 6, 0, 0], [9, 10, 11, 0], [13, 14, 15, 16]),
        },
        remarks={"causal mask": N_("A lower triangle of ones: row i may read the words up to i, itself included.")},
    ),
    Worked(
        name="hidden",
        title=N_("−∞, not 0"),
        section="3.2.3",
        formula=r"e^{-\infty} = 0, \qquad e^0 = 1",
        code=((_HERE, "_hidden"), ("formulas.py", "softmax")),
        inputs={N_("scores"): matrix([2, 1, 0.5], [0.3, 2, 1], [1, 0.2, 2]), N_("mask"): np.tril(np.ones((3, 3)))},
        compute=_hidden,
        remarks={
            "scores to −∞, softmax": N_("What is hidden has the weight 0, and each row sums to 1."),
            "scores to 0, softmax": N_(
                "Not hidden: 0 is a score like any other, and 我 still reads the words after it."
            ),
            "softmax, weights to 0": N_("Hidden, but the rows no longer sum to 1."),
            "and divided by their sum": N_("The same as −∞ from the beginning."),
        },
        rows=dict.fromkeys(("scores", "mask", *_HIDDEN), _ZH),
        columns=dict.fromkeys(_HIDDEN, _ZH),
    ),
    Worked(
        name="zero-mask",
        title=N_("A mask of zeros: uniform, not empty"),
        section="3.2.3",
        formula=r"""&\sym{heads}{F}_{ij} = \begin{cases} \sym{scores}{S}_{ij} & \sym{mask}{M}_{ij} = 1 \\
-10^9 & \sym{mask}{M}_{ij} = 0 \end{cases} \\[4pt]
&\sym{pattern}{A} = \mathrm{softmax}(\sym{heads}{F})""",
        code=((_HERE, "_zero_mask"), ("formulas.py", "softmax")),
        inputs={N_("scores"): matrix([2, 1, 0.5], [0.3, 2, 1], [1, 0.2, 2]), N_("mask"): np.zeros((3, 3))},
        compute=_zero_mask,
        remarks={
            "softmax of that": N_(
                "Every score is −1e9, so all are equal: the row spreads evenly over what it may not see."
            ),
            "visformer's rule": N_("A row that may see nothing gives zeros."),
        },
    ),
)

# Many heads -----------------------------------------------------------------------------------------------------------


def _invented(inputs: Arrays) -> dict[str, Floats]:
    return {N_("pattern · V"): product(inputs["pattern"], inputs["V"], (N_("pattern"), "V"))}


def _split(inputs: Arrays) -> dict[str, Floats]:
    x, h = inputs["x"], whole(inputs, "n_heads", most=limits.LAB_WIDTH)
    n, d = x.shape
    if d % h:
        raise NumberError(N_("d_model = {d} cannot be divided among {h} heads: choose a divisor."), d=d, h=h)
    cut = x.reshape(n, h, d // h)  # (token, head, d_k)
    return {
        N_("view: token by token, its heads below each other"): cut.reshape(-1, d // h),
        N_("transposed: head by head, its tokens below each other"): cut.swapaxes(0, 1).reshape(-1, d // h),
        N_("a view as (head, token) without transposing"): x.reshape(h, n, d // h).reshape(-1, d // h),
    }


_IDS_OF = tuple(dict.fromkeys(word for sentence in SENTENCES for word in sentence))
_IDS = np.array([[_IDS_OF.index(word) for word in sentence] for sentence in SENTENCES])


@lru_cache(maxsize=8)
def weights(d_model: int) -> tuple[Floats, Floats]:
    """Return random weights with a fixed seed: an embedding of each word, and W_Q, W_K, W_V and W_O.

    Returns:
        (word, d_model) and (4, d_model, d_model).
    """
    rng = np.random.default_rng(0)
    embedding = rng.normal(size=(len(_IDS_OF), d_model))
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


_THREE = ("我", "去", "东北")
_COUNTED = np.arange(1.0, 25.0).reshape(2, 2, 3, 2)  # (sample, head, token, d_k)
_IN, _SCORES = ("sample", "head", "token", "d_k"), ("sample", "head", "query", "key")

HEADS = (
    Worked(
        name="split",
        title=N_("Cut into heads, small enough to see"),
        terms="切分 view transpose(1, 2) 转置 head_num head_size",
        section="3.2.2",
        formula=r"""&(n, d_\mathrm{model}) \to (n, h, d_k) \\[4pt]
&(n, h, d_k) \to (h, n, d_k)""",
        code=((_HERE, "_split"), ("model/attention.py", "MultiHeadAttention.forward")),
        inputs={"x": matrix([11, 12, 13, 14], [21, 22, 23, 24], [31, 32, 33, 34]), N_("n_heads"): matrix([2])},
        compute=_split,
        remarks={
            "view: token by token, its heads below each other": N_(
                "The tens are the word, the ones the dimension. view cuts each word's numbers into heads; none moves."
            ),
            "transposed: head by head, its tokens below each other": N_(
                "Now each head holds its own numbers of all words. A product of the last two axes, (n, d_k) with "
                "(d_k, n), then compares words: that, and not how “near” axes are, is why one transposes."
            ),
            "a view as (head, token) without transposing": N_(
                "Not the same: a head would get numbers of the wrong words."
            ),
        },
        rows={
            "x": _THREE,
            "view: token by token, its heads below each other": tuple(
                f"{word}{head}" for word in _THREE for head in "₁₂"
            ),
            **dict.fromkeys(
                (
                    "transposed: head by head, its tokens below each other",
                    "a view as (head, token) without transposing",
                ),
                tuple(f"{word}{head}" for head in "₁₂" for word in _THREE),
            ),
        },
    ),
    Worked(
        name="one-head",
        title=N_("A tensor of four dimensions: one head of one sample"),
        terms="4维张量 key_transposed torch.matmul",
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
        code=((_HERE, "_invented"), ("pictures/worked.py", "product")),
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
        name="shapes",
        title=N_("Shapes on the way through multi-head attention"),
        terms="线性变换 view切分 Concat 拼接 列拼接 整合 融合 head_i hd_k contiguous 512个特征 4个头 128个特征",
        section="3.2.2",
        formula=r"""&\sym{q}{Q}_i = \sym{input}{X} W^Q_i, \quad \sym{k}{K}_i = \sym{input}{X} W^K_i \\[4pt]
&\sym{v}{V}_i = \sym{input}{X} W^V_i \\[4pt]
&\sym{heads}{\mathrm{head}}_i = \mathrm{Attention}(\sym{q}{Q}_i, \sym{k}{K}_i, \sym{v}{V}_i) \\[4pt]
&\sym{out}{\mathrm{out}} = [\sym{heads}{\mathrm{head}}_1 \cdots \sym{heads}{\mathrm{head}}_h]\, W^O""",
        code=((_HERE, "_multi_head"), ("formulas.py", "attention")),
        inputs={N_("d_model"): matrix([512]), N_("n_heads"): matrix([8])},
        compute=_multi_head,
        remarks={
            "cut into heads": N_("No numbers move: the d_model numbers of a token are split into heads of d_k each."),
            "head before token: Q": N_("The head and token axes are swapped, so that each head holds all its tokens."),
            "heads end to end": N_(
                "Back to one row of d_model numbers per token, the first head's first. A transposition only changes "
                "strides, and view wants contiguous numbers: so the code says contiguous() in between."
            ),
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

# Feed-forward ---------------------------------------------------------------------------------------------------------


def _feed_forward(inputs: Arrays) -> dict[str, Floats]:
    x, w_1, w_2 = inputs["x"], inputs["W_1"], inputs["W_2"]
    inner = added(product(x, w_1, ("x", "W_1")), np.repeat(inputs["b_1"], len(x), axis=0), ("x · W_1", "b_1"))
    active = np.maximum(inner, 0)
    out = product(active, w_2, ("ReLU", "W_2"))
    return {
        "x · W_1 + b_1": inner,
        "ReLU": active,
        "ReLU · W_2 + b_2": added(out, np.repeat(inputs["b_2"], len(x), axis=0), ("ReLU · W_2", "b_2")),
    }


FEED_FORWARD = (
    Worked(
        name="feed-forward",
        title=N_("Two words through W_1, ReLU and W_2"),
        section="3.3",
        formula=r"""&\mathrm{FFN}(\sym{input}{x}) \\[4pt]
&= \max(0, \sym{input}{x} W_1 + b_1) \, W_2 + b_2""",
        code=((_HERE, "_feed_forward"), ("model/layers.py", "FeedForward")),
        inputs={
            "x": matrix([1, -1, 2], [0, 3, 1]),
            "W_1": matrix([1, 0, -1, 2], [0, 1, 1, -1], [1, -1, 0, 0.5]),
            "b_1": matrix([0, 1, 0, -1]),
            "W_2": matrix([1, 0, 0.5], [0, 1, 0], [1, 1, -1], [0.5, 0, 1]),
            "b_2": matrix([0.1, 0, -0.1]),
        },
        compute=_feed_forward,
        remarks={
            "x · W_1 + b_1": N_("From d_model (here 3) to the wider d_ff (here 4): room for more features."),
            "ReLU": N_("What is negative becomes 0: without it both products would be a single one."),
            "ReLU · W_2 + b_2": N_(
                "Back to d_model. Change a word: only its own row changes. Words talk to each other in attention alone."
            ),
        },
    ),
)

# Residual sums and normalisation --------------------------------------------------------------------------------------


def _norms(inputs: Arrays) -> dict[str, Floats]:
    x = inputs["x"]
    by_code = formulas.layer_norm_sample_std(x)  # first, because its error explains what is wrong with a single number
    return {
        N_("mean"): x.mean(axis=1, keepdims=True),
        N_("σ, divided by d"): x.std(axis=1, keepdims=True),
        N_("s, divided by d − 1"): x.std(axis=1, ddof=1, keepdims=True),
        "LayerNorm": formulas.layer_norm(x),
        N_("LayerNorm of the notes' code"): formulas.layer_norm_sample_std(x, bias=1.0),
        N_("the same with b2 = 0"): by_code,
    }


def _broadcast(inputs: Arrays) -> dict[str, Floats]:
    x = inputs["x"]
    mean, deviation = x.mean(axis=-1, keepdims=True), x.std(axis=-1, keepdims=True)
    gain, bias = inputs["γ"], inputs["β"]
    if not gain.shape == bias.shape == (1, x.shape[-1]):
        raise ShapeError(N_("γ and β are 1 × {d}: one number for each of a word's."), d=x.shape[-1])
    normed = (x - mean) / (deviation + 1e-6)
    return {
        N_("mean"): mean,
        N_("σ, divided by d"): deviation,
        "x − μ": x - mean,
        "(x − μ) / (σ + ε)": normed,
        "γ · x̂ + β": gain * normed + bias,
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


def _three_layers(inputs: Arrays) -> dict[str, Floats]:
    x, w_1, w_2, w_3 = (inputs[name] for name in ("x", "W_1", "W_2", "W_3"))
    first = product(x, w_1, ("x", "W_1"))
    second = product(first, w_2, ("h₁", "W_2"))
    kept = added(second, first, ("h₁ · W_2", "h₁"))
    return {
        "h₁": first,
        "h₂": second,
        N_("y, without the sum"): product(second, w_3, ("h₂", "W_3")),
        "h₂ + h₁": kept,
        N_("y, with the sum"): product(kept, w_3, ("h₂ + h₁", "W_3")),
    }


_DEEP = 32  # the width


def _gradients(inputs: Arrays) -> dict[str, Floats]:
    """Send a gradient of length 1 back through layers tanh(x W), with and without the residual sum."""
    n, size = whole(inputs, "n", most=limits.LAB_ROWS), whole(inputs, "size of W in %", most=1000) / 100
    lengths = {
        N_("without the sum"): _lengths(n, size, 0.0),
        N_("with the sum"): _lengths(n, size, 1.0),
        N_("with the sum and LayerNorm"): _lengths(n, size, 1.0, normed=True),
    }
    return {N_("layer"): np.arange(1.0, n + 1)[:, None], **{name: matrix(values).T for name, values in lengths.items()}}


def _lengths(n: int, size: float, kept: float, *, normed: bool = False) -> list[float]:
    """Return the gradient's length at each layer's input.

    Args:
        n: the number of layers.
        size: of W, whose numbers have the standard deviation size/√d.
        kept: the share of the input that is added to the output.
        normed: whether each layer reads the LayerNorm of its input.
    """
    rng = np.random.default_rng(0)
    x, layers = rng.normal(size=_DEEP), rng.normal(size=(n, _DEEP, _DEEP)) * size / math.sqrt(_DEEP)
    slopes = []  # of each layer, (input, output)
    for w in layers:
        read, slope = x, np.eye(_DEEP)
        if normed:
            read = formulas.layer_norm(x[None])[0]
            slope = (slope - (1 + np.outer(read, read)) / _DEEP) / math.sqrt(x.var() + 1e-5)
        out = np.tanh(read @ w)
        slopes.append(slope @ (w * (1 - out**2)) + kept * np.eye(_DEEP))
        x = out + kept * x
    gradient, lengths = np.full(_DEEP, 1 / math.sqrt(_DEEP)), []
    for slope in reversed(slopes):
        gradient = slope @ gradient
        lengths.append(float(np.linalg.norm(gradient)))
    return lengths[::-1]


_IN_BLOCK = ("sample", "token", "d_model")

RESIDUAL = (
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
            "mean": matrix([2.5]),
            "σ, divided by d": matrix([1.118]),
            "LayerNorm": matrix([-1.3416, -0.4472, 0.4472, 1.3416]),
            "LayerNorm of the notes' code": matrix([-1.3416, -0.4472, 0.4472, 1.3416]),
        },
        remarks={
            "LayerNorm": N_("The notes' table, and torch.nn.LayerNorm: divided by d, ε = 1e-5 inside the root."),
            "LayerNorm of the notes' code": N_(
                "The code gives other numbers than the table beside it: b2 starts as ones (should be zeros), and x.std "
                "divides by d − 1. Its ε = 1e-6 stands outside the root, which hardly shows."
            ),
            "the same with b2 = 0": N_(
                "What remains: the sample deviation, ±1.1619 and ±0.3873 instead of ±1.3416 and ±0.4472."
            ),
        },
    ),
    Worked(
        name="broadcast",
        title=N_("Broadcasting in LayerNorm: (2, 3, 4) − (2, 3, 1)"),
        terms="广播机制 keepdims feature_dim x_hat",
        section="3.1",
        formula=r"\hat{\sym{input}{x}}_{tj} = \frac{\sym{input}{x}_{tj} - \mu_t}{\sym{q}{\sigma}_t + \epsilon}",
        code=((_HERE, "_broadcast"),),
        inputs={
            "x": np.arange(1.0, 7.0).reshape(2, 3, 1) + np.arange(4.0),
            "γ": np.ones((1, 4)),
            "β": np.zeros((1, 4)),
        },
        compute=_broadcast,
        printed={
            "mean": np.arange(2.5, 8.5).reshape(2, 3, 1),
            "σ, divided by d": np.full((2, 3, 1), 1.118),
            "(x − μ) / (σ + ε)": np.tile([-1.3416, -0.4472, 0.4472, 1.3416], (2, 3, 1)),
        },
        remarks={
            "mean": N_(
                "One mean for each word, its last axis kept with size 1: so it is repeated along all numbers of the "
                "word."
            ),
            "(x − μ) / (σ + ε)": N_(
                "The printed numbers are right: the table divides by d, unlike the code beside it."
            ),
        },
        axes=dict.fromkeys(("x", "mean", "σ, divided by d", "x − μ", "(x − μ) / (σ + ε)", "γ · x̂ + β"), _IN_BLOCK),
    ),
    Worked(
        name="two-norms",
        title=N_("LayerNorm beside BatchNorm"),
        terms="批量归一化 批次维度 变长序列 计算开销 channels height width",
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
    Worked(
        name="gradients",
        title=N_("Why a residual sum: the gradient on its way down"),
        terms="梯度消失 梯度爆炸 保留输入信息",
        section="3.1",
        formula=r"""&\sym{input}{x} \leftarrow f(\sym{input}{x}): \ \frac{\partial}{\partial x} = f' \\[4pt]
&\sym{input}{x} \leftarrow \sym{input}{x} + f(\sym{input}{x}): \ \frac{\partial}{\partial x} = 1 + f'""",
        code=((_HERE, "_lengths"),),
        inputs={N_("n"): matrix([24]), N_("size of W in %"): matrix([50])},
        compute=_gradients,
        remarks={
            "without the sum": N_(
                "Each layer shrinks the gradient; in layer 1 of 24 hardly anything arrives, and it does not learn."
            ),
            "with the sum": N_(
                "The sum passes it on unchanged, beside what the layer makes of it: the 1 in 1 + f′. Layers tanh(x "
                "W) of "
                "width 32 with random weights."
            ),
            "with the sum and LayerNorm": N_(
                "Against a gradient that explodes the sum does not help. Set the size of W to 400: without the sum "
                "the gradient grows ten thousandfold, with it a thousandfold; if each layer reads the LayerNorm of its "
                "input, twentyfold."
            ),
        },
        curves=Curves(
            over="layer",
            results=(N_("without the sum"), N_("with the sum"), N_("with the sum and LayerNorm")),
            axis=N_("length of the gradient"),
            log="y",
        ),
    ),
    Worked(
        name="three-layers",
        title=N_("Three layers, one of which loses everything"),
        terms="跳线 快捷通道",
        section="3.1",
        formula=r"""&h_1 = \sym{input}{x} W_1, \quad h_2 = h_1 W_2, \quad y = h_2 W_3 \\[4pt]
&y_{+} = (h_2 + h_1) W_3""",
        code=((_HERE, "_three_layers"),),
        inputs={
            "x": matrix([1, 2]),
            "W_1": matrix([1, -1], [0.5, 2]),
            "W_2": np.zeros((2, 2)),
            "W_3": matrix([1, 0], [1, 1]),
        },
        compute=_three_layers,
        remarks={
            "y, without the sum": N_("The second layer has thrown away what the first one found: nothing is left."),
            "y, with the sum": N_(
                "Added past it, h₁ is still there: a layer adds to what is known, it need not carry it."
            ),
        },
    ),
)

# Encoder, decoder -----------------------------------------------------------------------------------------------------


def _sizes(inputs: Arrays) -> dict[str, Floats]:
    d, d_ff = whole(inputs, "d_model", most=limits.LAB_WIDTH), whole(inputs, "d_ff", most=4096)
    n = whole(inputs, "N", most=limits.LAB_ROWS)
    attention, ffn, norm = 4 * (d * d + d), d * d_ff + d_ff + d_ff * d + d, 2 * d
    encoder, decoder = attention + ffn + 2 * norm, 2 * attention + ffn + 3 * norm
    return {
        N_("multi-head attention: 4 (d² + d)"): matrix([attention]),
        N_("feed-forward: 2 d·d_ff + d_ff + d"): matrix([ffn]),
        N_("normalisation: γ and β"): matrix([norm]),
        N_("encoder layer"): matrix([encoder]),
        N_("encoder: N layers and a last norm"): matrix([n * encoder + norm]),
        N_("decoder layer"): matrix([decoder]),
        N_("decoder: N layers and a last norm"): matrix([n * decoder + norm]),
        N_("decoder layer if both attentions are one object"): matrix([decoder - attention]),
    }


def _layer(inputs: Arrays) -> dict[str, Floats]:
    x, w_1, w_2 = inputs["x"], inputs["W_1"], inputs["W_2"]
    norm = formulas.layer_norm

    def ffn(rows: Floats) -> Floats:
        return product(np.maximum(product(rows, w_1, ("x", "W_1")), 0), w_2, ("ReLU", "W_2"))

    def attend(rows: Floats) -> Floats:
        return formulas.attention(rows, rows, rows)[0]

    first = norm(x + attend(x))
    raised = x + attend(norm(x))
    between = x + norm(attend(x))
    return {
        N_("attention of x"): attend(x),
        N_("x + attention"): x + attend(x),
        N_("its LayerNorm: the new x"): first,
        N_("FFN of that"): ffn(first),
        N_("new x + FFN"): added(first, ffn(first), (N_("new x"), "FFN")),
        N_("its LayerNorm: what the layer hands on"): norm(first + ffn(first)),
        N_("pre-norm: x + Sublayer(LN(x)), twice"): raised + ffn(norm(raised)),
        N_("x + LN(Sublayer(x)), twice"): between + norm(ffn(between)),
    }


def _cross(inputs: Arrays) -> dict[str, Floats]:
    x, memory = inputs["x"], inputs["memory"]
    q = product(x, inputs["W_Q"], ("x", "W_Q"))
    k, v = (product(memory, inputs[name], (N_("memory"), name)) for name in ("W_K", "W_V"))
    return {"Q": q, "K": k, "V": v} | _attend(q, k, v)


_SIZES: dict[str, Floats] = {N_("d_model"): matrix([512]), N_("d_ff"): matrix([1024]), N_("N"): matrix([3])}

ENCODER = (
    Worked(
        name="sizes",
        title=N_("How many numbers a layer learns"),
        section="3.1",
        formula=r"""&4 (d^2 + d) \\[4pt]
&+ 2 d \, d_\mathit{ff} + d_\mathit{ff} + d \\[4pt]
&+ 2 \cdot 2 d""",
        code=((_HERE, "_sizes"), ("model/layers.py", "EncoderLayer")),
        inputs=_SIZES,
        compute=_sizes,
        remarks={
            "encoder layer": N_(
                "With the notes' sizes, 512 wide and 1,024 inside: 1,050,624 + 1,050,112 + 2 · 1,024 = 2,102,784; "
                "three "
                "layers and the last norm have 6,309,376. BERT-base is 768 wide."
            ),
            "decoder layer if both attentions are one object": N_(
                "The notes' test makes self-attention and cross-attention one object, so that both learn the same "
                "weights: a third of the layer is missing."
            ),
        },
    ),
    Worked(
        name="layer",
        title=N_("A layer by hand: post-norm, pre-norm"),
        section="3.1",
        formula=r"""&\sym{input}{X} \leftarrow \sym{input}{X} + \mathrm{MhSa}(\sym{input}{X}) \\[4pt]
&\sym{input}{X} \leftarrow \mathrm{LayerNorm}(\sym{input}{X}) \\[4pt]
&\sym{input}{x}_i \leftarrow \sym{input}{x}_i + \mathrm{MLP}(\sym{input}{x}_i) \\[4pt]
&\sym{input}{X} \leftarrow \mathrm{LayerNorm}(\sym{input}{X})""",
        code=((_HERE, "_layer"), ("model/layers.py", "EncoderLayer")),
        inputs={
            "x": _E_ZH + _P[:3],
            "W_1": matrix([1, 0, -1, 2, 0], [0, 1, 1, -1, 1], [1, -1, 0, 0.5, 0], [0, 1, -1, 0, 1]),
            "W_2": matrix([1, 0, 0.5, 0], [0, 1, 0, 1], [1, 1, -1, 0], [0.5, 0, 1, -1], [0, 1, 0, 1]),
        },
        compute=_layer,
        remarks={
            "x + attention": N_(
                "One head with Q = K = V = x and no biases, to keep it short; x is 我去东北大学 with the notes' "
                "positions."
            ),
            "its LayerNorm: what the layer hands on": N_("Post-norm, the formula's four lines: mean 0, variance 1."),
            "pre-norm: x + Sublayer(LN(x)), twice": N_(
                "The stream itself is never normalised, so it grows; hence a last norm above the top layer."
            ),
            "x + LN(Sublayer(x)), twice": N_("The order in one sentence of the notes: other numbers again."),
        },
        rows=dict.fromkeys(
            (
                "x",
                "attention of x",
                "x + attention",
                "its LayerNorm: the new x",
                "FFN of that",
                "new x + FFN",
                "its LayerNorm: what the layer hands on",
                "pre-norm: x + Sublayer(LN(x)), twice",
                "x + LN(Sublayer(x)), twice",
            ),
            _ZH,
        ),
    ),
)

DECODER = (
    Worked(
        name="cross",
        title=N_("What the decoder reads: keys and values from the memory"),
        section="3.2.3",
        formula=r"""&\sym{q}{Q} = \sym{input}{x} W_Q \\[4pt]
&\sym{k}{K} = \mathrm{memory}\, W_K \\[4pt]
&\sym{v}{V} = \mathrm{memory}\, W_V""",
        code=((_HERE, "_cross"), ("model/layers.py", "DecoderLayer")),
        inputs={
            "x": _E_ZH,
            N_("memory"): _E,
            "W_Q": matrix([1, 0], [0, 1], [1, 0], [0, 1]),
            "W_K": matrix([0, 1], [1, 0], [0, 1], [1, 0]),
            "W_V": matrix([1, 0], [0, 1], [0, 1], [1, 0]),
        },
        compute=_cross,
        remarks={
            "K": N_(
                "One key and one value for each English word, from the encoder's output: it is computed once, and "
                "every layer of the decoder reads it, with weights of its own."
            ),
            "softmax": N_("Three Chinese words ask, five English words answer: 3 × 5 weights, each row sums to 1."),
        },
        rows={
            "x": _ZH,
            "memory": _EN,
            "Q": _ZH,
            "K": _EN,
            "V": _EN,
            "Q·Kᵀ": _ZH,
            "Q·Kᵀ / √d_k": _ZH,
            "softmax": _ZH,
            "softmax · V": _ZH,
        },
    ),
)

# Output, training, cost -----------------------------------------------------------------------------------------------


def _output(inputs: Arrays) -> dict[str, Floats]:
    logits = product(inputs["h"], inputs["E"].T, ("h", "Eᵀ"))
    return {
        "h · Eᵀ": logits.T,
        "softmax": formulas.softmax(logits).T,
        "log softmax": np.log(formulas.softmax(logits)).T,
    }


def _loss(inputs: Arrays) -> dict[str, Floats]:
    p = inputs["p"]
    if not ((p > 0) & (p <= 1)).all():
        raise NumberError(N_("p holds probabilities: each is above 0 and at most 1."))
    mean = -np.log(p).mean()
    return {
        "−ln p": -np.log(p),
        N_("loss: the mean"): matrix([mean]),
        N_("perplexity: exp(loss)"): matrix([math.exp(mean)]),
    }


def _dropout(inputs: Arrays) -> dict[str, Floats]:
    x, percent = inputs["x"], whole(inputs, "p in %", most=99)
    # This seed drops 2 of the 16 numbers at first, as near to 10 % as can be; another one dropped 4.
    kept = np.random.default_rng(2).random(x.shape) >= percent / 100
    dropped = np.where(kept, x / (1 - percent / 100), 0.0)
    return {N_("kept"): kept.astype(float), N_("after dropout"): dropped, N_("without it, in use"): x}


def _operations(inputs: Arrays) -> dict[str, Floats]:
    lengths = np.array(_column(inputs, "n", most=65_536), dtype=float)[:, None]
    d, h, k = (whole(inputs, name, most=limits.LAB_WIDTH) for name in ("d_model", "n_heads", "k"))
    return {
        N_("self-attention: n² · d"): lengths**2 * d,
        N_("recurrence: n · d²"): lengths * d**2,
        N_("convolution: k · n · d²"): k * lengths * d**2,
        N_("weights of a layer, MiB"): h * lengths**2 * 4 / 2**20,
    }


_VOCABULARY = ("我", "去", "东北大学", "。", "</s>")
_WRITTEN = ("我", "去", "东北大学", "。", "</s>")
_COSTS = (N_("self-attention: n² · d"), N_("recurrence: n · d²"), N_("convolution: k · n · d²"))

OUTPUT = (
    Worked(
        name="output",
        title=N_("From the last vector to a word"),
        section="3.4",
        formula=r"\sym{pattern}{p} = \mathrm{softmax}(\sym{input}{h} \, \sym{embed}{E}^T)",
        code=((_HERE, "_output"), ("model/transformer.py", "Output")),
        inputs={
            "h": matrix([0.9, 0.2, 0.4, 1.1]),
            "E": np.vstack([_E_ZH, matrix([0.1, 0.7, 0.1, 0.2], [0.2, 0.5, 0.3, 0.1])]),
        },
        compute=_output,
        remarks={
            "h · Eᵀ": N_(
                "One score for each word of the vocabulary. Here the rows of the embedding serve again, as in the "
                "paper."
            ),
            "softmax": N_("The most probable word is written, and given to the decoder in the next step."),
            "log softmax": N_(
                "Code often returns this, and calls the layer Generator: sums of logarithms instead of products of "
                "small "
                "numbers."
            ),
        },
        rows=dict.fromkeys(("E", "h · Eᵀ", "softmax", "log softmax"), _VOCABULARY),
    ),
)

_DROPOUT = Worked(
    name="dropout",
    title=N_("Dropout"),
    section="5.4",
    formula=r"\sym{input}{x}_i \to \frac{m_i}{1 - p} \, \sym{input}{x}_i, \quad P(m_i = 0) = p",
    code=((_HERE, "_dropout"),),
    inputs={"x": matrix([1, 2, 3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3, 2, 1]), N_("p in %"): matrix([10])},
    compute=_dropout,
    remarks={
        "after dropout": N_(
            "In training each number is set to 0 with probability p and the others are divided by 1 − p, so that no "
            "unit "
            "can rely on another one. The notes do so with p = 0.1 after the positions, after ReLU and on each "
            "sublayer's output before the sum; the paper only on the latter and on the input. Their attention() could "
            "drop weights, too, but their MultiHeadedAttention never hands it its dropout."
        ),
        "without it, in use": N_("Once trained, nothing is dropped: that is why this app never shows it."),
    },
)

TRAINING = (
    Worked(
        name="loss",
        title=N_("What training makes smaller"),
        section="5.4",
        formula=r"\mathcal{L} = -\frac{1}{n} \sum_t \ln \sym{pattern}{p}(y_t \mid y_{<t}, x)",
        code=((_HERE, "_loss"), ("training/train.py", "_LabelSmoothing")),
        inputs={"p": matrix([0.9], [0.7], [0.5], [0.99], [0.95])},
        compute=_loss,
        remarks={
            "−ln p": N_(
                "p is the probability of the right word at each position. In training the decoder is given the right "
                "words, shifted by one, so that all positions are learned at once; the mask hides what comes after."
            ),
            "perplexity: exp(loss)": N_("As if the model had to choose among this many words that are equally likely."),
        },
        rows={"p": _WRITTEN, "−ln p": _WRITTEN},
    ),
    _DROPOUT,
)

COST = (
    Worked(
        name="operations",
        title=N_("Multiplications and memory for n words"),
        section="4",
        formula=r"""&O(n^2 d), \qquad O(n d^2), \\[4pt]
&O(k n d^2)""",
        code=((_HERE, "_operations"),),
        inputs={
            N_("n"): matrix([16], [32], [64], [128], [256], [512], [1024]),
            N_("d_model"): matrix([512]),
            N_("n_heads"): matrix([8]),
            N_("k"): matrix([3]),
        },
        compute=_operations,
        remarks={
            "self-attention: n² · d": N_(
                "Twice as many words, four times as many weights. Below n = d attention is the cheapest of the three."
            ),
            "weights of a layer, MiB": N_("n_heads · n² numbers of 4 bytes: 8 MiB for 512 words, 512 for 4,096."),
        },
        rows={"weights of a layer, MiB": "n"},
        curves=Curves(over="n", results=_COSTS, axis=N_("multiplications"), log="xy"),
    ),
)
