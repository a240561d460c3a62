"""One head in detail, for one query (section 3.2): from the block's input to the output projection."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_
from visformer.i18n import Gettext
from visformer.panel import Labels, Panel, Stage, axis_labels, numbered
from visformer.pictures.block import is_normed
from visformer.pictures.registry.options import SELECTED, Number
from visformer.pictures.registry.picture import Page, Picture, View
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style import visible
from visformer.trace import Trace
from visformer.trace.stacks import stack_named

_LARGE = 20.0
_EMPTY = 0.005  # a cell leaves out a weight that would read .00


@dataclass(frozen=True)
class Place:
    """The attention, head and query that are shown, counted from 0."""

    path: str
    head: int
    query: int

    def row(self, trace: Trace, name: str) -> NDArray[Any]:
        """Return the query's row of one of the attention's tensors, such as "scores"."""
        values: NDArray[Any] = trace[f"{self.path}.{name}"].value[self.head, self.query]
        return values


def steps(trace: Trace, place: Place) -> list[list[Panel]]:
    """Draw x, q, K, the scores before and after scaling and masking, the pattern, V and the weighted sum of one query.

    In three columns: the factors, the weights computed from their products, and the weighted sum. If nothing is masked,
    the masked scores are left out.
    """
    queries, keys, values = (_Projection.of(trace, place, what) for what in ("q", "k", "v"))
    q, k, v = queries.result, keys.result, values.result
    k = replace(k, columns=replace(k.columns, written=False), before="×")  # those of q, above it
    x = [replace(each, columns=replace(each.columns, written=False)) for each in (queries.x,) if each]
    multiplied = [*x, replace(q, before="→" if x else ""), k]
    return [multiplied, _weighed(trace, place), [replace(v, before="×"), _summed(trace, place)]]


def _one(trace: Trace, place: Place, name: str, values: NDArray[Any], columns: Labels, **settings: Any) -> Panel:
    """Draw the query's row of what the head computes."""
    return Panel(name=name, values=values[None], rows=_row_of(trace, place), columns=columns, click="tells", **settings)


def _weighed(trace: Trace, place: Place) -> list[Panel]:
    """Draw the products of q and the keys, and what becomes of them up to the weights."""
    path, products = place.path, products_of(trace, place)
    scores, mask, pattern = (place.row(trace, name) for name in ("scores", "mask", "pattern"))
    along = replace(axis_labels(trace, trace[f"{path}.k"].axes[-2], len(products)), title=N_("is read (key)"))
    below, d_k = replace(along, written=False), trace[f"{path}.q"].shape[-1]
    divided = f"q · Kᵀ / √{d_k}{' + b' * (f'{path}.bias' in trace)}"
    panels = [
        _one(trace, place, "products", products, along, title="q · Kᵀ", before="="),
        _one(
            trace,
            place,
            "scores",
            scores,
            below,
            title=divided if _divided(trace, place) else N_("scores, as this model computes them"),
            before="→",
            note=N_("No key is masked for this query.") if mask.all() else "",
        ),
        _one(
            trace,
            place,
            "masked",
            np.where(mask, scores, np.nan),
            below,
            title=N_("masked scores (empty: −∞)"),
            before="→",
            symbol="mask",
        ),
        _one(
            trace,
            place,
            "pattern",
            pattern,
            below,
            title="softmax",
            scale="weight",
            before="→",
            note=N_("Empty: below 0.005. 0: exactly 0, masked.") if (pattern < _EMPTY).any() else "",
        ),
    ]
    untitled = [replace(panel, rows=replace(panel.rows, title="")) for panel in panels]  # q shows it
    return [panel for panel in untitled if panel.name != "masked" or not mask.all()]


def _summed(trace: Trace, place: Place) -> Panel:
    heads = place.row(trace, "heads")
    width = replace(numbered(heads.size, N_("dimension (d_k)")), written=False)  # V shows it
    summed = _one(trace, place, "heads", heads, width, title=N_("weighted sum of V"), before="=")
    return replace(summed, rows=replace(summed.rows, title=""))


@dataclass(frozen=True, kw_only=True)
class _Projection:
    """How q, K or V of a head come from the input.

    Args:
        result: q of the query, K or V.
        x: what they are computed from; None: not recorded.
        weight: the head's columns of W_Q, W_K or W_V; None: the model's weights are not known.
        bias: the head's part of the bias; None: there is none.
        exact: whether nothing else happens to the result, such as a rotation by its position.
    """

    result: Panel
    x: Panel | None = None
    weight: Panel | None = None
    bias: Panel | None = None
    exact: bool = False

    @classmethod
    def of(cls, trace: Trace, place: Place, what: str) -> "_Projection":
        """Read "q", "k" or "v" and what it is computed from."""
        path, is_query = place.path, what == "q"
        head, letter = place.head if is_query else key_head(trace, place), what.upper()
        value = trace[f"{path}.{what}"].value[head]  # (token, d_k)
        tokens = axis_labels(trace, trace[f"{path}.{what}"].axes[-2], len(value))
        rows = _row_of(trace, place) if is_query else replace(tokens, title=N_("is read (key)"))
        chosen = slice(place.query, place.query + 1) if is_query else slice(None)
        width = numbered(value.shape[-1], N_("dimension (d_k)"))
        shape = f"({len(rows)}, {len(width)})"
        plain = Panel(
            name=what,
            title=what if is_query else letter,
            values=value[chosen],
            note=shape,
            rows=rows,
            columns=width,
            click="tells",
        )
        source = source_of(trace, path, what)
        if source not in trace:
            return cls(result=plain)
        is_memory = source == "encoder.out" and not is_query and "cross" in path
        name = "x" if is_query else "X"
        along = trace[source].value[chosen]  # (token, d_model)
        x = Panel(
            name="input",
            title=N_("X: the encoder's output (memory)") if is_memory else name,
            values=along,
            rows=rows,
            columns=numbered(along.shape[-1], N_("dimension (d_model)")),
            note=f"({len(rows)}, {along.shape[-1]})",
        )
        whole = trace.params.get(f"{path}.w_{what}")
        if whole is None:
            return cls(result=plain, x=x)
        part = slice(head * len(width), (head + 1) * len(width))
        weight = Panel(
            name=f"w_{what}",
            symbol=what,
            title=f"W_{letter}",
            values=whole.value[:, part],
            before="×",
            rows=replace(x.columns, title="d_model"),  # short: the whole words stand above x
            columns=width,
            note=f"({along.shape[-1]}, {len(width)})",
        )
        offset = trace.params.get(f"{path}.b_{what}")
        bias = (
            None
            if offset is None
            else Panel(
                name=f"b_{what}",
                symbol=what,
                title=f"b_{letter}",
                values=offset.value[None, part],
                rows=Labels(("",)),
                columns=replace(width, written=False),
                before="+",
            )
        )
        made = along @ weight.values + (0 if bias is None else bias.values)
        exact = np.allclose(made, plain.values, rtol=1e-3, atol=1e-3)
        formula = f"{plain.title} = {name} · W_{letter}" + f" + b_{letter}" * (bias is not None)
        return cls(result=replace(plain, title=formula) if exact else plain, x=x, weight=weight, bias=bias, exact=exact)

    @property
    def shown(self) -> list[list[Panel]]:
        """The input, times the weights, plus the bias, and the result."""
        factors = [panel for panel in (self.weight, self.bias) if panel is not None]
        made = replace(self.result, before="=" if self.exact else "→")
        return [[panel] for panel in (self.x,) if panel] + ([factors] if factors else []) + [[made]]


def _put_together(trace: Trace, place: Place) -> list[list[Panel]]:
    """Draw how the sums of all heads become the attention's output: of W_O, the rows that multiply this head's sum."""
    path, heads = place.path, trace[f"{place.path}.heads"].value[:, place.query]  # (head, d_k)
    out, d_k = trace[f"{path}.out"].value[place.query], heads.shape[-1]
    along = numbered(out.size, N_("dimension (d_model)"))
    below, row = replace(along, written=False), Labels(("",))
    output = _one(trace, place, "out", out, below, title=N_("output"), before="=")
    if (weight := trace.params.get(f"{path}.w_o")) is None:
        return [[replace(output, before="→", columns=along)]]
    part = weight.value[place.head * d_k : (place.head + 1) * d_k]  # (d_k, d_model)
    share = heads[place.head] @ part
    bias = f"{path}.b_o" in trace.params
    return [
        [replace(_summed(trace, place), before="", columns=numbered(d_k, N_("dimension (d_k)")))],
        [
            Panel(
                name="w_o",
                symbol="out",
                title=N_("W_O, the rows of this head"),
                values=part,
                rows=numbered(d_k),
                columns=along,
                note=f"({d_k}, {out.size})",
                before="×",
            ),
            _one(trace, place, "share", share, below, title=N_("this head's share"), before="=", symbol="heads"),
            Panel(
                name="others",
                title=N_("the other heads' shares, and b_O") if bias else N_("the other heads' shares"),
                values=(out - share)[None],
                rows=row,
                columns=below,
                before="+",
            ),
            output,
        ],
    ]


_PROJECTED = {
    "q": N_("x is the vector of “{query}”, {d_model} numbers. Times W_Q{plus_q}: its query q, {d_k} numbers."),
    "k": N_("The vector of each of the {all} tokens that may be read, times W_K{plus_k}: its key."),
    "v": N_("The same vectors times W_V{plus_v}: the values, which the head hands on."),
}
_TURNED = N_("This model then rotates it by its position, or normalises it.")
_UNKNOWN = {
    "q": N_("The query q of “{query}”, {d_k} numbers, is made of its vector x."),
    "k": N_("The key of each of the {all} tokens that may be read is made of its vector."),
    "v": N_("The value of each token is made of its vector: it is what the head hands on."),
}
_PRODUCTS = N_(
    "The query of “{query}” times the key of each token, number by number, and summed: {product} for “{key}”."
)
_SCALED = N_("Divided by √{d_k}, or softmax would be too sharp: {product} becomes {score}.")
_BIASED = N_("Divided by √{d_k}, or softmax would be too sharp, and a bias added: {product} becomes {score}.")
_OWN_WAY = N_("This model makes its scores of the products in its own way: {product} becomes {score}.")
_MASKED = N_("Masked: {n} of {all} keys. Their scores become −∞, and their weights 0.")
_OPEN = N_("No key is masked for this query: it may read all {all}.")
_SOFTMAX = N_("Softmax: e to each score, divided by the sum of all. The row sums to {sum}; “{key}” gets {weight}.")
_SUMMED = N_("The value of each token times its weight, summed: {weight} of it is the value of “{key}”.")
_JOINED = N_("The sums of all {n_heads} heads, one after the other, are {width} numbers.")
_OUT = N_(
    "They are multiplied by W_O{plus_o}: here this head's share, and the sum of all, which is added to “{query}”."
)
_OUT_UNKNOWN = N_("W_O makes the output of them, which the attention adds to “{query}”.")


def stages(trace: Trace, place: Place, gettext: Gettext = str) -> list[Stage]:
    """Tell how the query's output is computed from the input, with the model's own numbers, one step after the other.

    The example is the key that is read most.
    """
    products = products_of(trace, place)
    scores, mask, pattern = (place.row(trace, name) for name in ("scores", "mask", "pattern"))
    queries, keys = (trace.tokens[axis.side] for axis in trace[f"{place.path}.pattern"].axes[1:] if axis.side)
    at, (n_heads, _, d_v) = int(pattern.argmax()), trace[f"{place.path}.heads"].shape
    made = {what: _Projection.of(trace, place, what) for what in _PROJECTED}
    values = {
        "query": visible(queries[place.query]),
        "key": visible(keys[at]),
        "d_k": trace[f"{place.path}.q"].shape[-1],
        "d_model": trace[f"{place.path}.out"].shape[-1],
        "n_heads": n_heads,
        "width": n_heads * d_v,
        "product": _number(float(products[at]), digits=2),
        "score": _number(float(scores[at]), digits=2),
        "n": int((~mask).sum()),
        "all": mask.size,
        "sum": f"{float(pattern.sum()):.2f}",  # below 1 with a sink
        "weight": f"{float(pattern[at]):.2f}",
        **{
            f"plus_{what}": gettext(N_(", plus {bias}")).format(bias=f"b_{what.upper()}")
            if f"{place.path}.b_{what}" in trace.params
            else ""
            for what in "qkvo"
        },
    }

    def stage(shown: list[list[Panel]], panel: str, *said: str) -> Stage:
        return Stage(shown=shown, panel=panel, said=" ".join(gettext(one).format(**values) for one in said))

    projected = [
        stage(
            each.shown,
            what,
            *([_UNKNOWN[what]] if each.weight is None else [_PROJECTED[what], *[_TURNED] * (not each.exact)]),
        )
        for what, each in made.items()
    ]
    q, k, v = (each.result for each in made.values())
    weighing = [[q, replace(k, before="×", columns=replace(k.columns, written=False))], _weighed(trace, place)]
    weights = replace(
        weighing[1][-1], before="", columns=axis_labels(trace, trace[f"{place.path}.k"].axes[-2], mask.size)
    )
    summing = [[weights], [replace(v, before="×"), _summed(trace, place)]]
    scaled = (_BIASED if f"{place.path}.bias" in trace else _SCALED) if _divided(trace, place) else _OWN_WAY
    together = _put_together(trace, place)
    return [
        *projected,
        stage(weighing, "products", _PRODUCTS),
        stage(weighing, "scores", scaled),
        stage(weighing, *(("scores", _OPEN) if mask.all() else ("masked", _MASKED))),
        stage(weighing, "pattern", _SOFTMAX),
        stage(summing, "heads", _SUMMED),
        stage([[joined(trace, place)[0]]], "heads", _JOINED),
        stage(together, "out", _OUT if len(together) > 1 else _OUT_UNKNOWN),
    ]


def joined(trace: Trace, place: Place) -> list[Panel]:
    """Draw the outputs of all heads for one query, how much each adds, and the output, their projection by W_O.

    What a head adds are its d_k rows of W_O; it is left out if the model's weights are not known.
    """
    heads, out = trace[f"{place.path}.heads"].value[:, place.query], trace[f"{place.path}.out"].value[place.query]
    n_heads, d_k = heads.shape
    rows = numbered(n_heads, N_("head"), first=1)
    panels = [
        Panel(
            name="heads",
            title=N_("all heads, to be concatenated"),
            values=heads,
            rows=rows,
            columns=numbered(d_k, N_("dimension (d_k)")),
            note=f"({n_heads}, {d_k}) → ({n_heads * d_k},)",
        )
    ]
    if (weight := trace.params.get(f"{place.path}.w_o")) is not None:
        shares = np.einsum("hk,hkd->hd", heads, weight.value.reshape(n_heads, d_k, -1))  # (head, d_model)
        panels.append(
            Panel(
                name="share",
                symbol="heads",
                title=N_("length of what each head adds"),
                values=np.linalg.norm(shares, axis=-1)[:, None],
                rows=rows,
                columns=Labels(("",)),
                scale="unsigned",
                before="→",
            )
        )
    bias = f"{place.path}.b_o" in trace.params
    panels.append(
        Panel(
            name="out",
            title=N_("output = all heads · W_O + b") if bias else N_("output: what W_O makes of all heads"),
            values=out[None],
            rows=Labels(("",)),
            columns=numbered(out.size, N_("dimension (d_model)")),
            note=f"({out.size},)",
            before="→",
        )
    )
    return panels


def shapes(trace: Trace, place: Place) -> str:
    """Return the shapes of all tensors on the way, with a batch of one sentence."""
    n_heads, n, d_k = trace[f"{place.path}.q"].shape
    n_read, m, _ = trace[f"{place.path}.k"].shape
    d_v, d_model = trace[f"{place.path}.heads"].shape[-1], trace[f"{place.path}.out"].shape[-1]
    return (
        f"x (1, {n}, {d_model}) → q (1, {n}, {n_heads * d_k}) → (1, {n_heads}, {n}, {d_k}); "
        f"k, v (1, {n_read}, {m}, {d_k}); pattern (1, {n_heads}, {n}, {m}) → heads (1, {n_heads}, {n}, {d_v}) → "
        f"(1, {n}, {n_heads * d_v}) → out (1, {n}, {d_model})"
    )


def factors(scales: NDArray[np.float64], layers: Sequence[int]) -> Panel:
    """Draw the factor of each head's output, (layer, head), for selection by click; changed factors are outlined.

    ``layers``: their numbers, from 0.
    """
    return Panel(
        name="factors",
        title=N_("factor of each head: click one"),
        values=scales,
        rows=Labels(tuple(str(layer + 1) for layer in layers), N_("layer")),
        columns=numbered(scales.shape[1], N_("head"), first=1),
        limit=2.0,
        outlined=scales != 1,
        click="changes",
    )


def written_out(trace: Trace, place: Place, panel: str, column: int, row: int = 0, gettext: Gettext = str) -> str:
    """Write out the arithmetic of one cell of :func:`steps` or :func:`stages`: names, and the model's own numbers.

    Of a long sum, the largest terms have a line each, and the others one together.

    Args:
        trace: with the weights of the attention.
        place: the attention, head and query that are shown.
        panel: name of the panel.
        column: the cell's column.
        row: the cell's row, if the panel has several.
        gettext: translates the words around the numbers.

    Returns:
        Lines of text; "" if there is no such cell, or nothing to compute.
    """
    drawn = chain(steps(trace, place), _put_together(trace, place))
    shown = {each.name: each.values for each in chain.from_iterable(drawn)}
    if panel not in shown or row >= len(shown[panel]) or column >= shown[panel].shape[1]:
        return ""  # a click on the previous sentence
    result = float(shown[panel][row, column])
    queries, keys = (trace.tokens[axis.side] for axis in trace[f"{place.path}.pattern"].axes[1:] if axis.side)
    query, names = visible(queries[place.query]), [visible(key) for key in keys]
    if panel in ("q", "k", "v"):
        token = query if panel == "q" else names[row]
        return _projected(trace, place, panel, row, column, token, gettext)
    if panel == "products":
        terms = [
            (f"q[{i}] · k[{i}]", float(a), float(b))
            for i, (a, b) in enumerate(zip(shown["q"][0], shown["k"][column], strict=True))
        ]
        return _sum(f"q · k[{names[column]}]", "Σᵢ q[i] · k[i]", terms, result, gettext)
    if panel == "pattern":
        named = f"softmax[{names[column]}] = exp(score[{names[column]}]) / Σ exp(score)\n= "
        return named + weight_of(trace, place, column, result)
    if panel == "heads":
        both = zip(names, shown["pattern"][0], shown["v"][:, column], strict=True)
        terms = [(f"softmax[{name}] · V[{name}, {column}]", float(a), float(b)) for name, a, b in both]
        return _sum(f"sum[{column}]", f"Σ softmax[key] · V[key, {column}]", terms, result, gettext)
    if panel in ("share", "out"):
        return _put_out(trace, place, column, result, gettext, all_heads=panel == "out")
    if panel in ("scores", "masked"):
        if np.isnan(result):
            return f"score[{names[column]}] = −∞"
        written = gettext(score_of(trace, place, column, float(shown["products"][0, column])))
        return f"score[{names[column]}] = {written}"
    return ""


def key_head(trace: Trace, place: Place) -> int:
    """Return the index of the key-value head that this head uses; with grouped queries several heads share one."""
    groups = len(trace[f"{place.path}.k"])
    return place.head * groups // len(trace[f"{place.path}.q"])


def products_of(trace: Trace, place: Place) -> NDArray[np.float64]:
    """Return the products of q and every key, (key,)."""
    q = np.asarray(place.row(trace, "q"), dtype=np.float64)
    products: NDArray[np.float64] = trace[f"{place.path}.k"].value[key_head(trace, place)] @ q
    return products


def _divided(trace: Trace, place: Place) -> bool:
    """Whether the scores are q · k / √d_k as in the paper, plus a known bias; some models scale or cap differently."""
    expected = products_of(trace, place) / math.sqrt(trace[f"{place.path}.q"].shape[-1])
    if f"{place.path}.bias" in trace:
        expected += place.row(trace, "bias")
    atol = 1e-4 * max(1.0, float(np.abs(expected).max()))
    return np.allclose(place.row(trace, "scores"), expected, rtol=1e-3, atol=atol)


def score_of(trace: Trace, place: Place, column: int, product: float) -> str:
    """Write out the score of a key as lines of text; where it is computed in another way, a message id says so."""
    score = float(place.row(trace, "scores")[column])
    above, result, d_k = _number(product, digits=6), _number(score, digits=6), trace[f"{place.path}.q"].shape[-1]
    if _divided(trace, place):
        plus = ""
        if f"{place.path}.bias" in trace:
            plus = f" + {_number(float(place.row(trace, 'bias')[column]), digits=6, first=False)} (b)"
        return f"{result}\n= {above} / √{d_k}{plus}\n= {above} / {math.sqrt(d_k):.6f}{plus}"
    if trace.meta.get("position") == "relative":
        return f"{result}\n= {above} + {_number(score - product, digits=6, first=False)} (b)"
    return N_("This model computes its scores from q · k in its own way, with another factor or a cap.")


def _row_of(trace: Trace, place: Place) -> Labels:
    labels = axis_labels(trace, trace[f"{place.path}.pattern"].axes[1], 0)
    return Labels((labels.texts[place.query],), N_("reads (query)"))  # in the decoder, the word that is its input


def source_of(trace: Trace, path: str, what: str) -> str:
    """Return the tensor that q, k or v is projected from: the sublayer's input, with pre-norm after its norm."""
    stack, layer, kind = path.split(".")
    if kind == "cross_attn" and what != "q":
        return "encoder.out"
    before, part = ("resid_pre", "self") if kind == "self_attn" else ("resid_self", "cross")
    block, norm = f"{stack}.{layer}", f"{stack}.{layer}.norm_{part}"
    return norm if norm in trace and not is_normed(trace, block, part) else f"{block}.{before}"


def _projected(trace: Trace, place: Place, what: str, row: int, column: int, token: str, gettext: Gettext) -> str:
    """Write out the projection, unless its result differs because the model then rotates or normalises its queries."""
    made, letter = _Projection.of(trace, place, what), what.upper()
    if made.x is None or made.weight is None:
        return gettext(N_("q, k and v are W_Q, W_K and W_V times the input; weights of this model are not shown here."))
    if not made.exact:
        return gettext(
            N_("The projection is not the last step: it is then rotated by its position (rotary), or normalised.")
        )
    both = zip(made.x.values[row], made.weight.values[:, column], strict=True)
    terms = [(f"x[{i}] · W_{letter}[{i}, {column}]", float(a), float(b)) for i, (a, b) in enumerate(both)]
    bias = None if made.bias is None else (f"b_{letter}[{column}]", float(made.bias.values[0, column]))
    name = f"{what}[{column}]" if what == "q" else f"{letter}[{token}, {column}]"
    return _sum(
        name, f"Σᵢ x[i] · W_{letter}[i, {column}]", terms, float(made.result.values[row, column]), gettext, bias
    )


def _put_out(trace: Trace, place: Place, column: int, result: float, gettext: Gettext, *, all_heads: bool) -> str:
    """Write out a number of the output: the share of one head, or the sum of all and the bias."""
    heads, weight = trace[f"{place.path}.heads"].value[:, place.query], trace.params.get(f"{place.path}.w_o")
    if weight is None:
        return ""
    by_head = weight.value[:, column].reshape(heads.shape)  # (head, d_k)
    if not all_heads:
        both, first = zip(heads[place.head], by_head[place.head], strict=True), place.head * heads.shape[1]
        terms = [(f"sum[{i}] · W_O[{first + i}, {column}]", float(a), float(b)) for i, (a, b) in enumerate(both)]
        return _sum(f"share[{column}]", f"Σᵢ sum[i] · W_O[{first} + i, {column}]", terms, result, gettext)
    shares = (heads * by_head).sum(axis=-1)
    named = [(f"share[{gettext(N_('head'))} {i + 1}]", float(share)) for i, share in enumerate(shares)]
    offset = trace.params.get(f"{place.path}.b_o")
    bias = None if offset is None else (f"b_O[{column}]", float(offset.value[column]))
    return _sum(f"out[{column}]", f"Σ share[h][{column}]", named, result, gettext, bias)


_TERMS = 4  # of a sum, so many have a line of their own


def _sum(
    name: str,
    formula: str,
    terms: Sequence[tuple[str, *tuple[float, ...]]],
    result: float,
    gettext: Gettext,
    bias: tuple[str, float] | None = None,
) -> str:
    """Write out a sum: its name and formula, its largest terms, the others together, the bias, and the result.

    Args:
        name: of the result.
        formula: of the sum.
        terms: of each its name, and its factors or its value.
        result: the sum as the model computed it.
        gettext: translates the words.
        bias: the name of a summand that is no term, and its value.
    """
    sizes = [math.prod(factors) for _, *factors in terms]
    order = sorted(range(len(terms)), key=lambda i: -abs(sizes[i]))
    few = order if len(order) <= _TERMS + 1 else order[:_TERMS]
    lines = [f"{name} = {formula}{f' + {bias[0]}' if bias else ''}"]
    for i in few:
        term, *factors = terms[i]
        product = " · ".join(_number(factor, first=not place) for place, factor in enumerate(factors))
        lines.append(f"{term} = {product}" + f" = {_number(sizes[i])}" * (len(factors) > 1))
    if len(few) < len(order):
        rest = _number(sum(sizes[i] for i in order[_TERMS:]))
        lines.append(gettext(N_("the other {n} terms = {sum}")).format(n=len(order) - _TERMS, sum=rest))
    if bias:
        lines.append(f"{bias[0]} = {_number(bias[1])}")
    return "\n  ".join(lines) + f"\n{name} = {_number(result, digits=6)}"


def _number(value: float, *, digits: int = 4, first: bool = True) -> str:
    """Format a number with a proper minus sign; a negative number is in parentheses unless it is first in its term."""
    text = f"{value:.{digits}f}".replace("-", "−")
    return text if first or text[0] != "−" else f"({text})"


def weight_of(trace: Trace, place: Place, column: int, result: float) -> str:
    """Write out one softmax weight; the sink's is the weight that goes to no key."""
    scores, mask = place.row(trace, "scores"), place.row(trace, "mask")
    if not mask[column]:
        return "0\n= exp(−∞)"
    sink = float(place.row(trace, "sink")) if f"{place.path}.sink" in trace else 0.0
    visible = scores[mask].tolist()
    largest = max(visible)
    shift = largest if abs(largest) > _LARGE else 0.0  # subtracting the maximum does not change the softmax
    terms = " + ".join(f"exp({_number(score - shift)})" for score in visible) + " + sink" * bool(sink)
    top, total = math.exp(scores[column] - shift), sum(math.exp(score - shift) for score in visible) / (1 - sink)
    less = f"\n({_number(scores[column])} − {_number(shift, first=False)})" if shift else ""
    return f"{result:.6f}\n= {top:.6f} / {total:.6f}\n= exp({_number(scores[column] - shift)}) / ({terms}){less}"


def place_of(setting: Setting) -> Place:
    """Return the place that a setting selects."""
    return Place(setting.path, setting.get("head", 0), setting["query"])


def telling_query(setting: Setting) -> int:
    """Return the query that a page shows first: the word that reads another one most; without a head, in any head."""
    from visformer.analysis.heads import strongest_word

    trace = setting.patterns
    stack = stack_named(setting["stack"])
    pattern = stack.layers(trace)[setting["layer"]].value  # (head, query, key)
    pattern = pattern[setting["head"]] if "head" in setting else pattern.max(axis=0)
    reads, read = stack.sides
    special = trace.special[reads], trace.special[read]
    return strongest_word(pattern, trace.tokens[reads], trace.tokens[read], special) or 0


_NEEDS = ("encoder.out", "encoder.*.pattern", "decoder.*.pattern", "{part}.{layer}.resid_*", "{part}.{layer}.norm_*",
          "{path}.*")  # fmt: skip
# fmt: off
STEPS = Picture(
    name="query", view="steps", title=N_("One query"),
    look_for=N_("One query: q times every key, scaled, masked, softmax, V weighted. Click a cell to read its sum."),
    needs=_NEEDS, options=SELECTED, page_defaults={"query": telling_query},
    draw=lambda setting: steps(setting.trace, place_of(setting)),
)
JOINED = Picture(
    name="all-heads", view="joined", title=N_("All heads"),
    look_for=N_("The heads' sums are concatenated and mixed by W_O. Which head contributes most to this query?"),
    needs=(*_NEEDS, "{path}.w_*", "{path}.b_*"), options=(*SELECTED[:2], SELECTED[3]),
    page_defaults={"query": telling_query},
    draw=lambda setting: joined(setting.trace, place_of(setting)),
)
FACTOR = Number(
    name="factor", label=N_("Factor"), tooltip=N_("0 silences it, 1 changes nothing."), default=0.0, least=0.0,
    most=2.0, step=0.25, whole=False,
)
SILENCE = View(
    view="silence", title=N_("Silence or scale a head"),
    look_for=N_("Click a head: its output is multiplied by the factor, and the model runs again. 0 silences it."),
    options=(FACTOR,),
)
PAGE = Page(
    name="head", section="understand", order=60, title=N_("Inside a head"),
    about=N_("Queries, keys, values, scores and softmax of one head; silence it and see what changes."),
    views=(STEPS, JOINED, SILENCE),
    where="attention",
)
# fmt: on
