"""One head in detail, for one query (section 3.2): from the block's input to the output projection."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_
from visformer.panel import Labels, Panel, axis_labels, numbered, traced
from visformer.pictures.registry.options import Number
from visformer.pictures.registry.picture import Page, Picture, View
from visformer.pictures.registry.places import HEAD, LAYER, QUERY, STACK
from visformer.pictures.registry.setting import Setting
from visformer.trace import Trace

_LARGE = 20.0


@dataclass(frozen=True)
class Place:
    """The attention, head and query that are shown, counted from 0."""

    path: str
    head: int
    query: int

    @property
    def record(self) -> tuple[str, ...]:
        """Globs over the tensors that these pictures need."""
        stack, layer, _ = self.path.split(".")
        ends = {"encoder.out", "encoder.*.pattern", "decoder.*.pattern"}
        return (*sorted(ends), f"{stack}.{layer}.resid_*", f"{stack}.{layer}.norm_*", f"{self.path}.*")


def steps(trace: Trace, place: Place) -> list[list[Panel]]:
    """Draw q, K, the scores before and after scaling and masking, the pattern, V and the weighted sum of one query.

    In three columns: the factors, the weights computed from their products, and the weighted sum. If nothing is masked,
    the masked scores are left out.
    """
    path, head, query = place.path, place.head, place.query
    row, shared = _row_of(trace, path, query), _shared(trace, place)
    (n_keys, d_k), products = trace[f"{path}.k"].shape[1:], _products(trace, place)
    keys = traced(trace, f"{path}.k", shared, title="K", before="×")
    keys = replace(keys, columns=replace(keys.columns, written=False))
    scores, mask, pattern = (trace[f"{path}.{name}"].value[head, query][None] for name in ("scores", "mask", "pattern"))
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
        one("q", "q", trace[f"{path}.q"].value[head, query][None], dims, note=f"(1, {d_k})"),
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
            trace[f"{path}.heads"].value[head, query][None],
            replace(numbered(d_v, N_("dimension (d_k)")), written=False),
            before="=",
        ),
    ]
    return [[replace(panel, click="tells") for panel in column] for column in (multiplied, weighed, summed)]


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


def factors(scales: NDArray[np.float64]) -> Panel:
    """Draw the factor of each head's output, (layer, head), for selection by click; changed factors are outlined."""
    return Panel(
        name="factors",
        title=N_("factor of each head: click one"),
        values=scales,
        rows=numbered(scales.shape[0], N_("layer"), first=1),
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
    path, head, query = place.path, place.head, place.query
    shared, products = _shared(trace, place), _products(trace, place)
    t = {name: trace[f"{path}.{name}"].value[head] for name in ("q", "scores", "mask", "pattern", "heads")}
    t |= {name: trace[f"{path}.{name}"].value[shared] for name in ("k", "v")}
    n_keys, many = len(t["k"]), panel in ("k", "v")
    if column >= (t[panel].shape[-1] if panel in ("q", "k", "v", "heads") else n_keys) or row >= (
        n_keys if many else 1
    ):
        return ""  # a click on the previous sentence
    if panel in ("q", "k", "v"):
        at = query if panel == "q" else row
        return _projected(trace, place, panel, at, column, float(t[panel][at, column]))
    if panel == "products":
        return _sum(t["q"][query], t["k"][column], float(products[column]))
    if panel in ("scores", "masked"):
        return _scored(trace, place, column, float(products[column]))
    if panel == "pattern":
        sink = trace[f"{path}.sink"].value[head, query] if f"{path}.sink" in trace else 0.0
        return _softmax(t["scores"][query], t["mask"][query], column, float(t["pattern"][query, column]), float(sink))
    if panel == "heads":
        return _sum(t["pattern"][query], t["v"][:, column], float(t["heads"][query, column]))
    return ""


def _shared(trace: Trace, place: Place) -> int:
    """Return the index of the key-value head that this head uses; with grouped queries several heads share one."""
    groups = len(trace[f"{place.path}.k"])
    return place.head * groups // len(trace[f"{place.path}.q"])


def _products(trace: Trace, place: Place) -> NDArray[np.float64]:
    """Return the products of q and every key, (key,)."""
    q = np.asarray(trace[f"{place.path}.q"].value[place.head, place.query], dtype=np.float64)
    products: NDArray[np.float64] = trace[f"{place.path}.k"].value[_shared(trace, place)] @ q
    return products


def _bias(trace: Trace, place: Place) -> NDArray[np.float32]:
    """Return the positional bias of the scores, (key,); zeros if the model has no such tensor."""
    path = place.path
    scores = trace[f"{path}.scores"].value[place.head, place.query]
    return trace[f"{path}.bias"].value[place.head, place.query] if f"{path}.bias" in trace else np.zeros_like(scores)


def _divided(trace: Trace, place: Place) -> bool:
    """Whether the scores are q · k / √d_k as in the paper, plus a known bias; some models scale or cap differently."""
    path = place.path
    scores = trace[f"{path}.scores"].value[place.head, place.query]
    expected = _products(trace, place) / math.sqrt(trace[f"{path}.q"].shape[-1]) + _bias(trace, place)
    return bool(np.allclose(scores, expected, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(expected).max()))))


def _scored(trace: Trace, place: Place, column: int, product: float) -> str:
    score = float(trace[f"{place.path}.scores"].value[place.head, place.query, column])
    above, result, d_k = _number(product, digits=6), _number(score, digits=6), trace[f"{place.path}.q"].shape[-1]
    if _divided(trace, place):
        bias = float(_bias(trace, place)[column])
        plus = f" + {_number(bias, digits=6, first=False)} (b)" if f"{place.path}.bias" in trace else ""
        return f"{result}\n= {above} / √{d_k}{plus}\n= {above} / {math.sqrt(d_k):.6f}{plus}"
    if trace.meta.get("position") == "relative":
        return f"{result}\n= {above} + {_number(score - product, digits=6, first=False)} (b)"
    return N_("This model computes its scores from q · k in its own way, with another factor or a cap.")


def _row_of(trace: Trace, path: str, query: int) -> Labels:
    labels = axis_labels(trace, trace[f"{path}.pattern"].axes[1], 0)
    after = f" → {labels.after[query]}" if labels.after else ""
    return Labels((f"{labels.texts[query]}{after}",), N_("reads (query)"))


def source_of(trace: Trace, path: str, what: str) -> str:
    """Return the tensor that q, k or v is projected from: the sublayer's input, with pre-norm after its norm."""
    stack, layer, kind = path.split(".")
    if kind == "cross_attn" and what != "q":
        return "encoder.out"
    before, part = ("resid_pre", "self") if kind == "self_attn" else ("resid_self", "cross")
    return f"{stack}.{layer}.{f'norm_{part}' if norms_first(trace, f'{stack}.{layer}', part) else before}"


def norms_first(trace: Trace, path: str, part: str) -> bool:
    """Whether the block at ``path`` normalises a sublayer's input (pre-norm) rather than the sum (post-norm)."""
    norm, after = f"{path}.norm_{part}", f"{path}.resid_{part if part != 'ffn' else 'post'}"
    return norm in trace and not (after in trace and np.array_equal(trace[after].value, trace[norm].value))


def _projected(trace: Trace, place: Place, what: str, token: int, column: int, result: float) -> str:
    """Write out the projection, unless its result differs because the model then rotates or normalises its queries."""
    name, head = f"{place.path}.w_{what}", place.head if what == "q" else _shared(trace, place)
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


def _softmax(
    scores: NDArray[np.float32], mask: NDArray[np.bool_], column: int, result: float, sink: float = 0.0
) -> str:
    """Write out one softmax weight; ``sink`` is the weight that goes to no key."""
    if not mask[column]:
        return "0\n= exp(−∞)"
    visible = [float(score) for score, seen in zip(scores, mask, strict=True) if seen]
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
_SELECTED = tuple(replace(option, link=None) for option in (STACK, LAYER, HEAD, QUERY))  # shared with the explorer
# fmt: off
STEPS = Picture(
    name="query", view="steps", title=N_("One query"),
    look_for=N_("One query: q times every key, scaled, masked, softmax, V weighted. Click a cell to read its sum."),
    needs=_NEEDS, options=_SELECTED, page_defaults={"query": 1},
    draw=lambda setting: steps(setting.trace, place_of(setting)),
)
JOINED = Picture(
    name="all-heads", view="joined", title=N_("All heads"),
    look_for=N_("The heads' sums are concatenated and mixed by W_O. Which head contributes most to this query?"),
    needs=(*_NEEDS, "{path}.w_*", "{path}.b_*"), options=(*_SELECTED[:2], _SELECTED[3]), page_defaults={"query": 1},
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
PAGE = Page(name="head", section="understand", order=60, title=N_("Inside a head"), views=(STEPS, JOINED, SILENCE))
# fmt: on
