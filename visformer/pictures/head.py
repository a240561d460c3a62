"""One head, number by number (section 3.2): from the block's input to the output projection, for one query."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_
from visformer.panel import Labels, Panel, axis_labels, numbered, traced
from visformer.trace import Trace

_ONE = Labels(("",))


@dataclass(frozen=True)
class Place:
    """Which numbers are looked at, all counted from 0."""

    path: str
    head: int
    query: int

    @property
    def record(self) -> tuple[str, ...]:
        """What these pictures need of a trace."""
        stack, layer, _ = self.path.split(".")
        ends = {"encoder.out", "encoder.*.pattern", "decoder.*.pattern"}
        return (*sorted(ends), f"{stack}.{layer}.resid_*", f"{self.path}.*")


def steps(trace: Trace, place: Place) -> list[list[Panel]]:
    """q, K, scores before and after scaling and masking, pattern, V, and the weighted sum, for one query of one head.

    In three columns: what is multiplied, what becomes of the products, and the sum that they weight. Where nothing is
    masked, that step is left out.
    """
    path, head, query = place.path, place.head, place.query
    row = _row_of(trace, path, query)
    d_k = trace[f"{path}.q"].shape[-1]
    keys = traced(trace, f"{path}.k", head, title="K", before="×")
    keys = replace(keys, columns=replace(keys.columns, written=False))
    scores, mask, pattern = (trace[f"{path}.{name}"].value[head, query][None] for name in ("scores", "mask", "pattern"))
    along = replace(keys.rows, title=N_("is read (key)"))
    dims = numbered(d_k, N_("dimension (d_k)"))

    def one(name: str, title: str, values: NDArray[np.float32], columns: Labels, **settings: object) -> Panel:
        rows = row if name == "q" else replace(row, title="")  # once says it
        return Panel(name=name, title=title, values=values, rows=rows, columns=columns, **settings)  # type: ignore[arg-type]

    below = replace(along, written=False)
    open_to_all, left = bool(mask.all()), np.where(mask, scores, np.nan)
    masked = one("masked", N_("masked scores (empty: −∞)"), left, below, before="→", symbol="mask")
    multiplied = [
        one("q", "q", trace[f"{path}.q"].value[head, query][None], dims, note=f"(1, {d_k})"),
        replace(keys, name="k", note=f"({len(along)}, {d_k})"),
    ]
    weighed = [
        one("products", "q · Kᵀ", scores * math.sqrt(d_k), along, before="="),
        one(
            "scores",
            f"÷ √{d_k} = scores",
            scores,
            below,
            before="→",
            note=N_("No key is masked for this query.") if open_to_all else "",
        ),
        *([] if open_to_all else [masked]),
        one("pattern", "softmax", pattern, below, scale="weight", before="→"),
    ]
    summed = [
        traced(trace, f"{path}.v", head, title="V", name="v", before="×", note=f"({len(along)}, {d_k})"),
        one(
            "heads",
            N_("weighted sum of V"),
            trace[f"{path}.heads"].value[head, query][None],
            replace(dims, written=False),
            before="=",
        ),
    ]
    return [[replace(panel, click="tells") for panel in column] for column in (multiplied, weighed, summed)]


def joined(trace: Trace, place: Place) -> list[Panel]:
    """The sums of all heads of one query, one head a row; beside it what W_O makes of them, end to end."""
    heads = trace[f"{place.path}.heads"].value[:, place.query]  # (head, d_k)
    out = trace[f"{place.path}.out"].value[place.query]  # (d_model,)
    n_heads, d_k = heads.shape
    width = numbered(d_k, N_("dimension (d_k)"))
    return [
        Panel(
            name="heads",
            title=N_("all heads, to be put end to end"),
            values=heads,
            rows=numbered(n_heads, N_("head"), first=1),
            columns=width,
            note=f"({n_heads}, {d_k}) → ({n_heads * d_k},)",
        ),
        Panel(
            name="out",
            title=N_("output = all heads · W_O + b"),
            values=out.reshape(n_heads, -1),
            rows=Labels(tuple(str(i * d_k) for i in range(n_heads)), N_("dimension (d_model)")),
            columns=numbered(d_k),
            note=f"({out.size},)",
            before="→",
        ),
    ]


def shapes(trace: Trace, place: Place) -> str:
    """The shape of everything on the way, with the batch of one sentence."""
    n_heads, n, m = trace[f"{place.path}.pattern"].shape
    d_model = trace[f"{place.path}.out"].shape[-1]
    d_k = d_model // n_heads
    return (
        f"x (1, {n}, {d_model}) → q (1, {n}, {d_model}) → (1, {n_heads}, {n}, {d_k}); k, v (1, {n_heads}, {m}, {d_k}); "
        f"pattern (1, {n_heads}, {n}, {m}) → heads (1, {n_heads}, {n}, {d_k}) → (1, {n}, {d_model}) → "
        f"out (1, {n}, {d_model})"
    )


def factors(scales: NDArray[np.float64]) -> Panel:
    """What each head's output is multiplied by, (layer, head), to be clicked; changed ones are outlined."""
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
    """The arithmetic of one cell of :func:`steps`, every number as the model had it: what comes out = what goes in.

    Args:
        trace: with the weights of the attention.
        place: what the pictures show.
        panel: name of the panel.
        column: of the cell.
        row: of the cell, where the panel has several.

    Returns:
        Lines of text; empty where there is no such cell, or nothing to it.
    """
    path, head, query = place.path, place.head, place.query
    t = {name: trace[f"{path}.{name}"].value[head] for name in ("q", "k", "v", "scores", "mask", "pattern", "heads")}
    (n_keys, d_k), many = t["k"].shape, panel in ("k", "v")
    if column >= (d_k if panel in ("q", "k", "v", "heads") else n_keys) or row >= (n_keys if many else 1):
        return ""  # clicked in another sentence
    if panel in ("q", "k", "v"):
        at = query if panel == "q" else row
        return _projected(trace, place, panel, at, column, float(t[panel][at, column]))
    if panel == "products":
        return _sum(t["q"][query], t["k"][column], float(t["scores"][query, column]) * math.sqrt(d_k))
    if panel in ("scores", "masked"):
        product = float(t["scores"][query, column]) * math.sqrt(d_k)
        score, above = _number(t["scores"][query, column], digits=6), _number(product, digits=6)
        return f"{score}\n= {above} / √{d_k}\n= {above} / {math.sqrt(d_k):.6f}"
    if panel == "pattern":
        return _softmax(t["scores"][query], t["mask"][query], column, float(t["pattern"][query, column]))
    if panel == "heads":
        return _sum(t["pattern"][query], t["v"][:, column], float(t["heads"][query, column]))
    return ""


def _row_of(trace: Trace, path: str, query: int) -> Labels:
    labels = axis_labels(trace, trace[f"{path}.pattern"].axes[1], 0)
    after = f" → {labels.after[query]}" if labels.after else ""
    return Labels((f"{labels.texts[query]}{after}",), N_("reads (query)"))


def source_of(path: str, what: str) -> str:
    """The tensor that q, k or v is projected from."""
    stack, layer, kind = path.split(".")
    if kind == "self_attn":
        return f"{stack}.{layer}.resid_pre"
    return f"{stack}.{layer}.resid_self" if what == "q" else "encoder.out"


def _projected(trace: Trace, place: Place, what: str, token: int, column: int, result: float) -> str:
    x = trace[source_of(place.path, what)].value[token]  # (d_model,)
    d_k = trace[f"{place.path}.q"].shape[-1]
    weight = trace.params[f"{place.path}.w_{what}"].value[:, place.head * d_k + column]  # (d_model,)
    bias = float(trace.params[f"{place.path}.b_{what}"].value[place.head * d_k + column])
    return _sum(x, weight, result, bias=bias)


def _sum(a: NDArray[np.float32], b: NDArray[np.float32], result: float, *, bias: float | None = None) -> str:
    terms = [f"{_number(x)} · {_number(y, first=False)}" for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    if bias is not None:
        terms.append(f"{_number(bias)} (b)")
    signed = [f"− {term[1:]}" if term[0] == "−" else f"+ {term}" for term in terms]  # a leading − becomes subtraction
    return f"{_number(result, digits=6)}\n= {terms[0]}\n" + "\n".join(signed[1:])


def _number(value: float, *, digits: int = 4, first: bool = True) -> str:
    """With a minus sign, in parentheses where it is not the first of a term."""
    text = f"{value:.{digits}f}".replace("-", "−")
    return text if first or text[0] != "−" else f"({text})"


def _softmax(scores: NDArray[np.float32], mask: NDArray[np.bool_], column: int, result: float) -> str:
    if not mask[column]:
        return "0\n= exp(−∞)"
    visible = [float(score) for score, seen in zip(scores, mask, strict=True) if seen]
    terms = " + ".join(f"exp({_number(score)})" for score in visible)
    top, total = math.exp(scores[column]), sum(map(math.exp, visible))
    return f"{result:.6f}\n= {top:.6f} / {total:.6f}\n= exp({_number(scores[column])}) / ({terms})"
