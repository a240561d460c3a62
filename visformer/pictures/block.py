"""Through the block: the residual stream, what each sublayer adds to it, and who talks to whom (section 3.1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from visformer import formulas
from visformer.errors import N_, Message
from visformer.examples.claims import PARAMETERS_PRINTED
from visformer.panel import Labels, Panel, common_limit, numbered, tokens_of, traced
from visformer.trace import Trace

Stack = Literal["encoder", "decoder"]
Rows = NDArray[np.float64]
RECORD = ("*.resid_*", "*_sum", "*.norm_*", "*.self_attn.out", "*.cross_attn.out", "*.ffn.*")
"""What these pictures need of a trace."""

_SIDE = {"encoder": "src", "decoder": "tgt"}
_SUBLAYERS = {"encoder": ("self", "ffn"), "decoder": ("self", "cross", "ffn")}
_OUT = {"self": "self_attn.out", "cross": "cross_attn.out", "ffn": "ffn.out"}
_SUM = {"self": "attn_sum", "cross": "cross_sum", "ffn": "ffn_sum"}
_AFTER = {"self": "resid_self", "cross": "resid_cross", "ffn": "resid_post"}


def depth(trace: Trace, stack: Stack) -> int:
    """How many layers of the stack were recorded."""
    return sum(f"{stack}.{layer}.resid_post" in trace for layer in range(len(trace.tensors)))


def norms(traces: Sequence[tuple[str, Trace]], stack: Stack) -> list[Panel]:
    """The stream of several models. The first ones share a colour scale; the last, which is trained, has its own.

    Args:
        traces: (title, trace with :data:`RECORD`), all of one pair of sentences.
        stack: "encoder" or "decoder".
    """
    panels = [stream(trace, stack, title=title) for title, trace in traces]
    shared = common_limit(*(panel.values for panel in panels[:-1]))
    return [replace(panel, limit=shared) for panel in panels[:-1]] + panels[-1:]


def noted(panels: Sequence[Panel], note: str) -> list[Panel]:
    """The panels with a note below each: ``{limit}`` in it is the end of that panel's colour scale."""
    return [replace(panel, note=note.format(limit=panel.end)) for panel in panels]


def stream(trace: Trace, stack: Stack, *, title: str = "") -> Panel:
    """The length of each token's vector on its way: what came in, what each sublayer added, what went on.

    Columns: |x| of the first layer's input, then for each layer the length of every sublayer's output and of what goes
    on: LayerNorm's output with post-norm, the bare sum with pre-norm.
    """
    names, texts = [f"{stack}.0.resid_pre"], ["|x|"]
    for layer in range(depth(trace, stack)):
        for part in _SUBLAYERS[stack]:
            names += [f"{stack}.{layer}.{_OUT[part]}", f"{stack}.{layer}.{_AFTER[part]}"]
            texts += [f"|{part} {layer + 1}|", "|LN|" if _normed(trace, f"{stack}.{layer}", part) else "|sum|"]
    lengths = np.stack([np.linalg.norm(trace[name].value, axis=-1) for name in names], axis=1)
    return Panel(
        name="embed",
        title=title or N_("length of each token's vector"),
        values=lengths,
        rows=tokens_of(trace, _SIDE[stack]),
        columns=Labels(tuple(texts)),
    )


def _normed(trace: Trace, path: str, part: str) -> bool:
    """Whether what goes on behind a sublayer is LayerNorm's output: post-norm."""
    return np.array_equal(trace[f"{path}.{_AFTER[part]}"].value, trace[f"{path}.norm_{part}"].value)


def added(trace: Trace, stack: Stack, layer: int, part: str) -> list[Panel]:
    """One sublayer: what goes by, what is added, the sum, and what LayerNorm makes of it.

    The first three have one scale. With pre-norm the norm comes before the sublayer instead.
    """
    path = f"{stack}.{layer}"
    before = {"self": "resid_pre", "cross": "resid_self", "ffn": "resid_cross" if stack == "decoder" else "resid_self"}
    by = traced(trace, f"{path}.{before[part]}", title="x", name="input")
    out = traced(trace, f"{path}.{_OUT[part]}", title=N_("what the sublayer adds"), name="out", before="+")
    out = replace(out, rows=by.rows)
    total = traced(trace, f"{path}.{_SUM[part]}", title=N_("their sum"), name="scores", before="=")
    norm = traced(trace, f"{path}.norm_{part}", title=N_("LayerNorm's output"), name="heads", before="→")
    limit = common_limit(by.values, out.values, total.values)
    below = replace(by.columns, written=False)
    rest = [replace(panel, limit=limit, columns=below) for panel in (out, total)]
    return [replace(by, limit=limit), *rest, replace(norm, columns=below)]


def silent_share(trace: Trace, stack: Stack) -> Panel:
    """The share of feed-forward activations that ReLU leaves at zero: a row for each layer, a column for each token.

    Coloured by how far each is from the mean of them all: the shares themselves are too near each other.
    """
    shares = [(trace[f"{stack}.{layer}.ffn.hidden"].value == 0).mean(axis=-1) for layer in range(depth(trace, stack))]
    values = np.stack(shares)
    return Panel(
        name="pattern",
        title=N_("share of zeros"),
        values=values,
        rows=numbered(len(shares), N_("layer"), first=1),
        columns=tokens_of(trace, _SIDE[stack]),
        middle=float(values.mean()),
        digits=3,
    )


def similarities(trace: Trace, stack: Stack, behind: str = "after layer {layer}") -> list[Panel]:
    """The cosine of every two tokens' vectors: as they enter, and behind each layer, whose title is ``behind``."""
    names = [f"{stack}.0.resid_pre", *(f"{stack}.{layer}.resid_post" for layer in range(depth(trace, stack)))]
    labels = tokens_of(trace, _SIDE[stack])
    panels = []
    for layer, name in enumerate(names):
        rows = trace[name].value
        unit = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
        title = N_("input") if layer == 0 else behind.format(layer=layer)
        panels.append(
            Panel(name=f"cosine{layer}", title=title, values=unit @ unit.T, rows=labels, columns=labels, limit=1.0)
        )
    return panels


@dataclass(frozen=True)
class Part:
    """A part of the block, as measured on the model.

    Args:
        name: a message id.
        moved: the largest change of any other token's output, in any dimension, when one token that it reads is changed
            by 1 in each dimension; what rounding makes of it counts as 0.
        parameters: how many numbers are trained in it, in one layer.
        printed: whether course notes say that it has parameters.
    """

    name: Message
    moved: float
    parameters: int
    printed: bool

    @property
    def talks(self) -> bool:
        """Whether changing one token that it reads changes another token's output."""
        return self.moved > 0

    @property
    def trained(self) -> bool:
        """Whether it has parameters."""
        return self.parameters > 0

    @property
    def misprinted(self) -> bool:
        """Whether course notes say the contrary."""
        return self.printed != self.trained


def who_talks(trace: Trace, stack: Stack, layer: int = 0) -> list[Part]:
    """Each part of one layer: changes one token that it reads, and looks whether any other token's output moves.

    Args:
        trace: with :data:`RECORD` and the weights of the layer; for the decoder also with "encoder.out".
        stack: "encoder" or "decoder".
        layer: counted from 0.
    """
    path = f"{stack}.{layer}"
    x = np.asarray(trace[f"{path}.resid_pre"].value, dtype=np.float64)  # (token, d_model)
    w = {name.removeprefix(f"{path}."): p.value for name, p in trace.params.items() if name.startswith(f"{path}.")}
    w_1, b_1, w_2, b_2 = (w[f"ffn.{name}"] for name in ("w_1", "b_1", "w_2", "b_2"))
    causal = formulas.causal_mask(len(x)) if stack == "decoder" else None
    n_heads = trace[f"{path}.self_attn.q"].shape[0]
    parts: list[tuple[Message, Callable[[Rows], Rows], Rows, str]] = [
        (
            N_("self-attention"),
            lambda rows: _attend(w, "self_attn", rows, rows, n_heads=n_heads, mask=causal),
            x,
            "self_attn.",
        ),
        (N_("feed-forward"), lambda rows: formulas.feed_forward(rows, w_1, b_1=b_1, w_2=w_2, b_2=b_2), x, "ffn."),
        (
            N_("layer norm"),
            lambda rows: formulas.layer_norm(rows, gain=w["norm_self.gamma"], bias=w["norm_self.beta"]),
            x,
            "norm_",
        ),
        (N_("residual sum"), lambda rows: rows + x, x, "-"),
    ]
    if stack == "decoder":
        memory = np.asarray(trace["encoder.out"].value, dtype=np.float64)  # (source token, d_model)
        cross = (
            N_("cross-attention"),
            lambda rows: _attend(w, "cross_attn", x, rows, n_heads=n_heads, mask=None),
            memory,
            "cross_attn.",
        )
        parts.insert(1, cross)
    return [
        Part(name, _moves_others(part, read), sum(v.size for n, v in w.items() if n.startswith(prefix)), printed)
        for (name, part, read, prefix), printed in ((part, PARAMETERS_PRINTED[part[0]]) for part in parts)
    ]


def _attend(
    weights: Mapping[str, NDArray[Any]], kind: str, x: Rows, source: Rows, *, n_heads: int, mask: formulas.Bools | None
) -> Rows:
    def projected(name: str, rows: Rows) -> Rows:
        whole: Rows = rows @ weights[f"{kind}.w_{name}"] + weights[f"{kind}.b_{name}"]  # (token, d_model)
        cut: Rows = whole.reshape(len(rows), n_heads, -1).swapaxes(0, 1)  # (head, token, d_k)
        return cut

    heads, _ = formulas.attention(projected("q", x), projected("k", source), projected("v", source), mask=mask)
    joined = heads.swapaxes(0, 1).reshape(len(x), -1)  # (token, d_model)
    out: Rows = joined @ weights[f"{kind}.w_o"] + weights[f"{kind}.b_o"]
    return out


def _moves_others(part: Callable[[Rows], Rows], read: Rows) -> float:
    changed = read.copy()
    changed[0] += 1.0
    moved = float(np.abs(part(changed) - part(read))[1:].max(initial=0.0))
    return moved if moved > 1e-9 else 0.0
