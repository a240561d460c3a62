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
from visformer.panel import Labels, Panel, axis_labels, numbered, traced
from visformer.pictures.block import is_normed
from visformer.pictures.registry.options import SELECTED, Number
from visformer.pictures.registry.picture import Page, Picture, View
from visformer.pictures.registry.setting import Setting
from visformer.pictures.style import visible
from visformer.trace import Trace

_LARGE = 20.0


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
    """Draw q, K, the scores before and after scaling and masking, the pattern, V and the weighted sum of one query.

    In three columns: the factors, the weights computed from their products, and the weighted sum. If nothing is masked,
    the masked scores are left out.
    """
    path, row, shared = place.path, _row_of(trace, place), key_head(trace, place)
    (n_keys, d_k), products = trace[f"{path}.k"].shape[1:], products_of(trace, place)
    keys = traced(trace, f"{path}.k", shared, title="K", before="×")
    keys = replace(keys, columns=replace(keys.columns, written=False))  # those of q, right above it
    scores, mask, pattern = (place.row(trace, name)[None] for name in ("scores", "mask", "pattern"))
    along = replace(keys.rows, title=N_("is read (key)"))
    dims, d_v = numbered(d_k, N_("dimension (d_k)")), trace[f"{path}.heads"].shape[-1]
    scaled = _divided(trace, place)

    def one(name: str, title: str, values: NDArray[Any], columns: Labels, **settings: object) -> Panel:
        rows = row if name == "q" else replace(row, title="")  # the title is shown only once
        return Panel(name=name, title=title, values=values, rows=rows, columns=columns, **settings)  # type: ignore[arg-type]

    below = replace(along, written=False)
    open_to_all, left = bool(mask.all()), np.where(mask, scores, np.nan)
    masked = one("masked", N_("masked scores (empty: −∞)"), left, below, before="→", symbol="mask")
    multiplied = [
        one("q", "q", place.row(trace, "q")[None], dims, note=f"(1, {d_k})"),
        replace(keys, name="k", note=f"({n_keys}, {d_k})"),
    ]
    weighed = [
        one("products", "q · Kᵀ", products[None], along, before="="),
        one(
            "scores",
            f"q · Kᵀ / √{d_k}{' + b' * (f'{path}.bias' in trace)}"
            if scaled
            else N_("scores, as this model computes them"),
            scores,
            below,
            before="→",
            note=N_("No key is masked for this query.") if open_to_all else "",
        ),
        *([] if open_to_all else [masked]),
        one("pattern", "softmax", pattern, below, scale="weight", before="→"),
    ]
    summed = [
        traced(trace, f"{path}.v", shared, title="V", name="v", before="×", note=f"({n_keys}, {d_v})"),
        one(
            "heads",
            N_("weighted sum of V"),
            place.row(trace, "heads")[None],
            replace(numbered(d_v, N_("dimension (d_k)")), written=False),
            before="=",
        ),
    ]
    return [[replace(panel, click="tells") for panel in column] for column in (multiplied, weighed, summed)]


_PRODUCTS = N_(
    "The query of “{query}” times the key of each token, number by number, and summed: {product} for “{key}”."
)
_SCALED = N_("Divided by √{d_k}, or softmax would be too sharp: {product} becomes {score}.")
_BIASED = N_("Divided by √{d_k}, or softmax would be too sharp, and a bias added: {product} becomes {score}.")
_OWN_WAY = N_("This model makes its scores of the products in its own way: {product} becomes {score}.")
_MASKED = N_("Masked: {n} of {all} keys. Their scores become −∞, and their weights 0.")
_OPEN = N_("No key is masked for this query: it may read all {all}.")
_SOFTMAX = N_("Softmax: e to each score, divided by the sum of all. The row sums to {sum}; “{key}” gets {weight}.")


def stages(trace: Trace, place: Place, gettext: Gettext = str) -> list[tuple[str, str]]:
    """Tell how the query's weights are computed: product, scale, mask and softmax, with the model's own numbers.

    Returns:
        For each the name of its panel in :func:`steps`, and a sentence; the example is the key that is read most.
    """
    products = products_of(trace, place)
    scores, mask, pattern = (place.row(trace, name) for name in ("scores", "mask", "pattern"))
    queries, keys = (trace.tokens[axis.side] for axis in trace[f"{place.path}.pattern"].axes[1:] if axis.side)
    at = int(pattern.argmax())
    values = {
        "query": visible(queries[place.query]),
        "key": visible(keys[at]),
        "d_k": trace[f"{place.path}.q"].shape[-1],
        "product": _number(float(products[at]), digits=2),
        "score": _number(float(scores[at]), digits=2),
        "n": int((~mask).sum()),
        "all": mask.size,
        "sum": f"{float(pattern.sum()):.2f}",  # below 1 with a sink
        "weight": f"{float(pattern[at]):.2f}",
    }
    scaled = (_BIASED if f"{place.path}.bias" in trace else _SCALED) if _divided(trace, place) else _OWN_WAY
    masked = ("scores", _OPEN) if mask.all() else ("masked", _MASKED)
    told = (("products", _PRODUCTS), ("scores", scaled), masked, ("pattern", _SOFTMAX))
    return [(panel, gettext(said).format(**values)) for panel, said in told]


def joined(trace: Trace, place: Place) -> list[Panel]:
    """Draw the outputs of all heads for one query, one head per row, and beside them their projection by W_O."""
    heads = trace[f"{place.path}.heads"].value[:, place.query]  # (head, d_k)
    out = trace[f"{place.path}.out"].value[place.query]  # (d_model,)
    n_heads, d_k = heads.shape
    width = numbered(d_k, N_("dimension (d_k)"))
    rows = n_heads if out.size % n_heads == 0 else 1  # wrapped into rows for legibility only
    bias = f"{place.path}.b_o" in trace.params
    return [
        Panel(
            name="heads",
            title=N_("all heads, to be concatenated"),
            values=heads,
            rows=numbered(n_heads, N_("head"), first=1),
            columns=width,
            note=f"({n_heads}, {d_k}) → ({n_heads * d_k},)",
        ),
        Panel(
            name="out",
            title=N_("output = all heads · W_O + b") if bias else N_("output: what W_O makes of all heads"),
            values=out.reshape(rows, -1),
            rows=Labels(tuple(str(i * out.size // rows) for i in range(rows)), N_("dimension (d_model)")),
            columns=numbered(out.size // rows),
            note=f"({out.size},)",
            before="→",
        ),
    ]


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


def written_out(trace: Trace, place: Place, panel: str, column: int, row: int = 0) -> str:
    """Write out the arithmetic of one cell of :func:`steps` with the model's own numbers.

    Args:
        trace: with the weights of the attention.
        place: the attention, head and query that are shown.
        panel: name of the panel.
        column: the cell's column.
        row: the cell's row, if the panel has several.

    Returns:
        Lines of text, or a message id that says why there is no sum; "" if there is no such cell.
    """
    shown = {each.name: each.values for each in chain.from_iterable(steps(trace, place))}
    if panel not in shown or row >= len(shown[panel]) or column >= shown[panel].shape[1]:
        return ""  # a click on the previous sentence
    result = float(shown[panel][row, column])
    if panel in ("q", "k", "v"):
        return _projected(trace, place, panel, place.query if panel == "q" else row, column, result)
    if panel == "products":
        return _sum(shown["q"][0], shown["k"][column], result)
    if panel == "pattern":
        return weight_of(trace, place, column, result)
    if panel == "heads":
        return _sum(shown["pattern"][0], shown["v"][:, column], result)
    return score_of(trace, place, column, float(shown["products"][0, column]))


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
    return Labels((labels.texts[place.query],), N_("reads (query)"))


def source_of(trace: Trace, path: str, what: str) -> str:
    """Return the tensor that q, k or v is projected from: the sublayer's input, with pre-norm after its norm."""
    stack, layer, kind = path.split(".")
    if kind == "cross_attn" and what != "q":
        return "encoder.out"
    before, part = ("resid_pre", "self") if kind == "self_attn" else ("resid_self", "cross")
    block, norm = f"{stack}.{layer}", f"{stack}.{layer}.norm_{part}"
    return norm if norm in trace and not is_normed(trace, block, part) else f"{block}.{before}"


def _projected(trace: Trace, place: Place, what: str, token: int, column: int, result: float) -> str:
    """Write out the projection, unless its result differs because the model then rotates or normalises its queries."""
    name, head = f"{place.path}.w_{what}", place.head if what == "q" else key_head(trace, place)
    source = source_of(trace, place.path, what)
    if name not in trace.params or source not in trace:
        return N_("q, k and v are W_Q, W_K and W_V times the input; weights of this model are not shown here.")
    x = trace[source].value[token]  # (d_model,)
    at = head * trace[f"{place.path}.{what}"].shape[-1] + column
    weight = trace.params[name].value[:, at]  # (d_model,)
    b = f"{place.path}.b_{what}"
    bias = float(trace.params[b].value[at]) if b in trace.params else None
    if not math.isclose(float(x @ weight) + (bias or 0.0), result, rel_tol=1e-3, abs_tol=1e-3):
        return N_("The projection is not the last step: it is then rotated by its position (rotary), or normalised.")
    return _sum(x, weight, result, bias=bias)


def _sum(a: NDArray[np.float32], b: NDArray[np.float32], result: float, *, bias: float | None = None) -> str:
    terms = [f"{_number(x)} · {_number(y, first=False)}" for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    if bias is not None:
        terms.append(f"{_number(bias)} (b)")
    signed = [f"− {term[1:]}" if term[0] == "−" else f"+ {term}" for term in terms]  # a leading − is subtracted
    return f"{_number(result, digits=6)}\n= {terms[0]}\n" + "\n".join(signed[1:])


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


_NEEDS = ("encoder.out", "encoder.*.pattern", "decoder.*.pattern", "{part}.{layer}.resid_*", "{part}.{layer}.norm_*",
          "{path}.*")  # fmt: skip
# fmt: off
STEPS = Picture(
    name="query", view="steps", title=N_("One query"),
    look_for=N_("One query: q times every key, scaled, masked, softmax, V weighted. Click a cell to read its sum."),
    needs=_NEEDS, options=SELECTED, page_defaults={"query": 1},
    draw=lambda setting: steps(setting.trace, place_of(setting)),
)
JOINED = Picture(
    name="all-heads", view="joined", title=N_("All heads"),
    look_for=N_("The heads' sums are concatenated and mixed by W_O. Which head contributes most to this query?"),
    needs=(*_NEEDS, "{path}.w_*", "{path}.b_*"), options=(*SELECTED[:2], SELECTED[3]), page_defaults={"query": 1},
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
