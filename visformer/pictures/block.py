"""Through the block: the residual stream, what each sublayer adds to it, and which parts mix tokens (section 3.1)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from visformer import formulas
from visformer.errors import N_, Message
from visformer.i18n import Gettext
from visformer.panel import Labels, Panel, Stage, common_limit, numbered, telling_limit, tokens_of, traced
from visformer.pictures.registry.options import STACK, TOKEN, Choice, layer_of
from visformer.pictures.registry.picture import Page, Picture, View
from visformer.pictures.style import visible
from visformer.trace import Trace

Stack = Literal["encoder", "decoder"]
Rows = NDArray[np.float64]
Weights = Mapping[str, NDArray[Any]]
RECORD = ("*.resid_*", "*_sum", "*.norm_*", "*.self_attn.out", "*.cross_attn.out", "*.ffn.*")
"""Globs over the tensors that these pictures need."""

SMALL = 0.01
"""With a smooth activation, values below this fraction of a layer's largest count as unused."""

KINDS = {"self": "self_attn", "cross": "cross_attn", "ffn": "ffn"}
"""The sublayers in tensor names, by their names on the page and in links."""

_SIDE = {"encoder": "src", "decoder": "tgt"}
_SUBLAYERS = {"encoder": ("self", "ffn"), "decoder": ("self", "cross", "ffn")}
_OUT = {part: f"{kind}.out" for part, kind in KINDS.items()}
_SUM = {"self": "attn_sum", "cross": "cross_sum", "ffn": "ffn_sum"}
_BEFORE = {"self": ("resid_pre",), "cross": ("resid_self",), "ffn": ("resid_cross", "resid_self")}
_AFTER = {"self": "resid_self", "cross": "resid_cross", "ffn": "resid_post"}


def layers(trace: Trace, stack: Stack) -> list[int]:
    """Return the recorded layers of the stack, from 0; as with patterns, some may be missing."""
    named = re.compile(rf"{stack}\.(\d+)\.resid_post")
    return sorted(int(match[1]) for match in map(named.fullmatch, trace) if match)


def first(trace: Trace, stack: Stack) -> str:
    """Return the path of the first recorded layer."""
    return f"{stack}.{min(layers(trace, stack), default=0)}"


def sublayers(trace: Trace, stack: Stack) -> tuple[str, ...]:
    """Return the sublayers, of "self", "cross" and "ffn", whose output is in the trace."""
    path = first(trace, stack)
    return tuple(part for part in _SUBLAYERS[stack] if f"{path}.{_OUT[part]}" in trace)


def norms_first(trace: Trace, stack: Stack) -> bool:
    """Whether the block normalises a sublayer's input (pre-norm) rather than the sum (post-norm)."""
    return not is_normed(trace, first(trace, stack), "ffn")


def note_overflow(panel: Panel, gettext: Gettext = str) -> Panel:
    """Add a translated note to a panel if some of its numbers exceed the colour scale."""
    note = gettext(N_("The colour scale ends at {limit:.2f}; a few values lie beyond it."))
    return replace(panel, note=note.format(limit=panel.end)) if panel.overflows else panel


def stream(trace: Trace, stack: Stack) -> Panel:
    """Draw how much each sublayer adds to each token: the length of its output, relative to what it is added to.

    Sublayers whose output a model does not expose are left out.
    """
    recorded = [(layer, part) for layer in layers(trace, stack) or [0] for part in _SUBLAYERS[stack]]
    outs = {(layer, part): f"{stack}.{layer}.{_OUT[part]}" for layer, part in recorded}
    shown = {place: name for place, name in outs.items() if name in trace} or outs  # without any, the first says why
    shares = [
        np.linalg.norm(trace[name].value, axis=-1)
        / np.linalg.norm(trace[_comes_in(trace, f"{stack}.{layer}", part)].value, axis=-1)
        for (layer, part), name in shown.items()
    ]  # (token,) each
    values = np.stack(shares, axis=1)
    return Panel(
        name="embed",
        title=N_("length of what a sublayer adds, relative to what it is added to"),
        values=values,
        rows=tokens_of(trace, _SIDE[stack]),
        columns=Labels(tuple(f"{part} {layer + 1}" for layer, part in shown)),
        scale="unsigned",
        limit=telling_limit(values, share=0.95),
        digits=1,
    )


def _comes_in(trace: Trace, path: str, part: str) -> str:
    """Return the residual stream that a sublayer adds to; in a parallel block, all share one."""
    return next((name for before in _BEFORE[part] if (name := f"{path}.{before}") in trace), f"{path}.resid_pre")


def is_normed(trace: Trace, path: str, part: str) -> bool:
    """Whether the stream after a sublayer is LayerNorm's output (post-norm)."""
    after, norm = f"{path}.{_AFTER[part]}", f"{path}.norm_{part}"
    return after in trace and norm in trace and np.array_equal(trace[after].value, trace[norm].value)


def added(trace: Trace, stack: Stack, layer: int, part: str) -> list[Panel]:
    """Draw one sublayer: its residual input, its output and their sum, on one scale, and LayerNorm's output.

    With pre-norm, LayerNorm's output comes first, since the sublayer reads it. Tensors that a model does not expose are
    left out; the "=" becomes "→" if the model normalises or scales what it adds.
    """
    path = f"{stack}.{layer}"
    by = traced(trace, _comes_in(trace, path, part), title="x", name="input")
    out = traced(trace, f"{path}.{_OUT[part]}", title=N_("what the sublayer adds"), name="out", before="+")
    panels, total = [by, out], f"{path}.{_SUM[part]}"
    if total in trace:
        exact = np.allclose(by.values + out.values, trace[total].value, rtol=1e-3, atol=1e-3 * common_limit(by.values))
        title = N_("their sum") if exact else N_("passed on: this model normalises or scales what it adds")
        panels.append(traced(trace, total, title=title, name="scores", before="=" if exact else "→"))
    limit = common_limit(*(panel.values for panel in panels))
    panels = [replace(panel, limit=limit) for panel in panels]
    if f"{path}.norm_{part}" in trace:
        norm = traced(trace, f"{path}.norm_{part}", title=N_("LayerNorm's output"), name="heads", before="→")
        if is_normed(trace, path, part):
            panels.append(norm)
        else:
            panels.insert(0, replace(norm, title=N_("LayerNorm's output: what the sublayer reads"), before=""))
    return [replace(panel, rows=by.rows, columns=panels[0].columns) for panel in panels]


def inside(trace: Trace, stack: Stack, layer: int, token: int, gettext: Gettext = str) -> list[list[Panel]]:
    """Draw what the feed-forward network does to one token: its units after the activation, and what they add."""
    network = _Network.of(trace, stack, layer, token)
    _unit, _value, d_ff, zeros = network.strong
    after = network.after
    if network.before is not None:
        title = gettext(N_("ReLU leaves {n} of {d_ff} units above 0")).format(n=d_ff - zeros, d_ff=d_ff)
        after = replace(after, title=title)
    return [[network.x, after], network.sums]


_STRONGEST = 8
_WIDE = 64  # units in a row


@dataclass(frozen=True, kw_only=True)
class _Network:
    """The panels of a feed-forward network for one token.

    Args:
        x: its input.
        before: all units before the activation; None: the model's weights are not known, or it computes them otherwise.
        after: all units after it.
        strongest: the units with the largest values, what makes each, and its value.
        w_1: the columns of W_1 of the strongest units, one below the other; None: not known.
        shares: what each of the strongest units adds, its value times its row of W_2; None: not known.
        others: what all others and b_2 add; None: not known.
        out: the sum of all.
        strong: the strongest unit, its value, the number of units, and how many are exactly 0.
    """

    x: Panel
    before: Panel | None
    after: Panel
    strongest: Panel
    w_1: Panel | None
    shares: Panel | None
    others: Panel | None
    out: Panel
    strong: tuple[int, float, int, int]

    @classmethod
    def of(cls, trace: Trace, stack: Stack, layer: int, token: int) -> "_Network":
        """Read the network of a layer."""
        path = f"{stack}.{layer}.ffn"
        row = tokens_of(trace, _SIDE[stack])
        row = Labels(row.texts[token : token + 1], special=row.special[token : token + 1])
        norm, inputs = f"{stack}.{layer}.norm_ffn", [f"{stack}.{layer}.{before}" for before in _BEFORE["ffn"]]
        reads_norm = norm in trace and not is_normed(trace, f"{stack}.{layer}", "ffn")
        x = trace[norm if reads_norm else next((name for name in inputs if name in trace), inputs[0])].value[token]
        hidden, out = trace[f"{path}.hidden"].value[token], trace[f"{path}.out"].value[token]
        w_1, b_1, w_2 = (
            None if p is None else p.value
            for p in (trace.params.get(f"{path}.{name}") for name in ("w_1", "b_1", "w_2"))
        )
        n_strong = min(_STRONGEST, max(1, int(np.count_nonzero(hidden))))
        top = np.argsort(-np.abs(hidden), kind="stable")[:n_strong]
        units = Labels(tuple(map(str, top)), N_("unit"))
        along = numbered(out.size, N_("dimension (d_model)"))
        below = replace(along, written=False)

        before = None if w_1 is None else x @ w_1 + (0.0 if b_1 is None else b_1)  # (d_ff,)
        if before is not None and not np.allclose(np.maximum(before, 0), hidden, atol=1e-4):
            before = None  # another activation, or a gate
        made: dict[str, Rows] = {N_("value"): hidden}
        if before is not None:
            bias = np.zeros_like(before) if b_1 is None else b_1
            made = {"x · W_1": before - bias, "+ b_1": bias, "=": before, "ReLU": hidden}
        shares = None if w_2 is None else hidden[top, None] * w_2[top]  # (unit, d_model)

        def one(name: str, title: str, values: Rows, sign: str = "") -> Panel:
            return Panel(name=name, title=title, values=values[None], rows=row, columns=below, before=sign)

        def of_units(name: str, title: str, values: Rows, columns: Labels, **settings: str) -> Panel:
            return Panel(name=name, title=title, values=values, rows=units, columns=columns, **settings)  # type: ignore[arg-type]

        activated = "ReLU" if before is not None else N_("after the activation")
        table = np.stack([values[top] for values in made.values()], axis=1)
        rest = None if shares is None else one("others", N_("all other units, and b_2"), out - shares.sum(axis=0), "+")
        titled = N_("W_1, the columns of the strongest units")
        return cls(
            x=replace(one("input", "x", x), columns=along, note=f"({x.size},)"),
            before=None if before is None else _grid("before", "x · W_1 + b_1", before),
            after=replace(_grid("after", activated, hidden), symbol="pattern"),
            strongest=of_units("strongest", N_("the strongest units"), table, Labels(tuple(made)), symbol="pattern"),
            w_1=None if w_1 is None or before is None else of_units("w_1", titled, w_1[:, top].T, below, before="×"),
            shares=None
            if shares is None
            else of_units("shares", N_("what each adds: its value · its row of W_2"), shares, along),
            others=rest,
            out=one("out", N_("what the network adds"), out, "=" if shares is not None else ""),
            strong=(int(top[0]), float(hidden[top[0]]), hidden.size, int((hidden == 0).sum())),
        )

    @property
    def sums(self) -> list[Panel]:
        """The strongest units, what they and all others add, and the sum."""
        return [panel for panel in (self.strongest, self.shares, self.others, self.out) if panel is not None]


def _grid(name: str, title: str, units: Rows) -> Panel:
    """Draw the units of a network in rows."""
    n_rows = -(-units.size // _WIDE)
    filled = np.full(n_rows * _WIDE, np.nan)
    filled[: units.size] = units
    rows = Labels(tuple(str(i * _WIDE) for i in range(n_rows)), N_("unit"))
    values, columns = filled.reshape(n_rows, _WIDE), numbered(_WIDE)
    return Panel(name=name, title=title, values=values, rows=rows, columns=columns, note=f"({units.size},)", before="→")


_FIRST = N_("x is the vector of “{token}”. Times W_1, plus b_1: {d_ff} units. W_1 has a column for each.")
_FIRST_UNKNOWN = N_("x is the vector of “{token}”. The first matrix and the activation make {d_ff} units of it.")
_RELU = N_("ReLU leaves {zeros} of {d_ff} units at 0, {share}: those below 0. The strongest is unit {unit}: {value}.")
_ACTIVATED = N_("The strongest is unit {unit}: {value}. Exactly 0 are {zeros} of {d_ff} units, {share}.")
_SECOND = N_("Each unit adds its row of W_2 times its value. With b_2, the sum of all is what the network adds.")
_SECOND_UNKNOWN = N_("The second matrix makes of all units what the network adds.")
_ADDED = N_("It is added to the residual stream of “{token}”.")
_NORMED = N_("It is added to the residual stream of “{token}”, and LayerNorm follows.")


def inside_stages(trace: Trace, stack: Stack, layer: int, token: int, gettext: Gettext = str) -> list[Stage]:
    """Tell what the feed-forward network does to one token, one step after the other."""
    network, path = _Network.of(trace, stack, layer, token), f"{stack}.{layer}"
    unit, value, d_ff, zeros = network.strong
    values = {
        "token": visible(trace.tokens[_SIDE[stack]][token]),
        "unit": unit,
        "value": f"{value:.2f}".replace("-", "−"),
        "d_ff": d_ff,
        "zeros": zeros,
        "share": f"{zeros / d_ff:.1%}",
    }

    def stage(shown: list[list[Panel]], panel: str, said: str) -> Stage:
        return Stage(shown=shown, panel=panel, said=gettext(said).format(**values))

    known = network.before is not None
    units = network.before or network.after
    first = [network.x, *([network.w_1] if network.w_1 else [])]
    activated = [[replace(network.before, before="")]] if network.before else []
    at = slice(token, token + 1)
    summed = [
        replace(panel, values=panel.values[at], rows=network.x.rows, limit=None)
        for panel in added(trace, stack, layer, "ffn")
    ]
    last = next((panel.name for panel in summed if panel.name == "scores"), "out")
    return [
        stage([first, [units]], units.name, _FIRST if known else _FIRST_UNKNOWN),
        stage([*activated, [network.after], [network.strongest]], "after", _RELU if known else _ACTIVATED),
        stage([[network.strongest], network.sums[1:]], "out", _SECOND if network.shares else _SECOND_UNKNOWN),
        stage([summed], last, _NORMED if is_normed(trace, path, "ffn") else _ADDED),
    ]


def has_zeros(trace: Trace, stack: Stack) -> bool:
    """Whether the activation gives exact zeros, as ReLU does; a smooth one hardly gives any."""
    return float((trace[f"{first(trace, stack)}.ffn.hidden"].value == 0).mean()) > 0.01


def silent_share(trace: Trace, stack: Stack) -> Panel:
    """Draw the share of feed-forward activations that are zero: a row for each layer, a column for each token.

    With a smooth activation, those below SMALL times the layer's largest count. The colours are centred on the mean,
    because the shares differ too little.
    """
    exact, shares, recorded = has_zeros(trace, stack), [], layers(trace, stack)
    for layer in recorded:
        sizes = np.abs(trace[f"{stack}.{layer}.ffn.hidden"].value)  # (token, d_ff)
        shares.append((sizes <= (0.0 if exact else SMALL * sizes.max())).mean(axis=-1))
    values = np.stack(shares)
    return Panel(
        name="pattern",
        title=N_("share of zeros") if exact else N_("share of values below a hundredth of the layer's largest"),
        values=values,
        rows=Labels(tuple(str(layer + 1) for layer in recorded), N_("layer")),
        columns=tokens_of(trace, _SIDE[stack]),
        middle=float(values.mean()),
        digits=3,
    )


def similarities(trace: Trace, stack: Stack, gettext: Gettext = str) -> list[Panel]:
    """Draw the cosine similarity of all pairs of tokens in the input and after each layer."""
    names = {0: f"{first(trace, stack)}.resid_pre"}  # by layer, from 1
    names |= {layer + 1: f"{stack}.{layer}.resid_post" for layer in layers(trace, stack)}
    labels = tokens_of(trace, _SIDE[stack])
    panels = []
    for layer, name in names.items():
        rows = trace[name].value
        unit = rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), np.finfo(np.float32).tiny)
        title = gettext(N_("after layer {layer}")).format(layer=layer) if layer else N_("input")
        panels.append(
            Panel(name=f"cosine{layer}", title=title, values=unit @ unit.T, rows=labels, columns=labels, limit=1.0)
        )
    return panels


@dataclass(frozen=True)
class BlockPart:
    """A part of the block, as measured on the model.

    Args:
        name: a message id.
        moved: the largest change in any dimension of any other token's output when 1 is added to all dimensions of one
            input token; rounding errors count as 0.
        parameters: number of trained parameters in one layer.
    """

    name: Message
    moved: float
    parameters: int

    @property
    def talks(self) -> bool:
        """Whether changing one token's input changes another token's output."""
        return self.moved > 0


def who_talks(trace: Trace, stack: Stack) -> list[BlockPart]:
    """Measure for each part of the first layer whether changing one input token changes another token's output.

    ``trace`` holds :data:`RECORD` and the weights of the layer, for cross-attention also "encoder.out".
    """
    path = f"{stack}.0"
    x = np.asarray(trace[f"{path}.resid_pre"].value, dtype=np.float64)  # (token, d_model)
    w = {name.removeprefix(f"{path}."): p.value for name, p in trace.params.items() if name.startswith(f"{path}.")}
    causal = formulas.causal_mask(len(x)) if stack == "decoder" else None
    crosses = "cross_attn.w_q" in w
    memory = np.asarray(trace["encoder.out"].value, dtype=np.float64) if crosses else x  # (token, d_model)

    attend = partial(_attend, w, trace[f"{path}.self_attn.q"].shape[0])

    def feed_forward(rows: Rows) -> Rows:
        return formulas.feed_forward(rows, w["ffn.w_1"], b_1=w["ffn.b_1"], w_2=w["ffn.w_2"], b_2=w["ffn.b_2"])

    def norm(rows: Rows) -> Rows:
        return formulas.layer_norm(rows, gain=w["norm_self.gamma"], bias=w["norm_self.beta"])

    # name, function, its input, prefix of its weights' names
    parts: tuple[tuple[Message, Callable[[Rows], Rows], Rows, str], ...] = (
        (N_("self-attention"), lambda rows: attend("self_attn", rows, rows, causal), x, "self_attn."),
        (N_("cross-attention"), lambda rows: attend("cross_attn", x, rows), memory, "cross_attn."),
        (N_("feed-forward"), feed_forward, x, "ffn."),
        (N_("layer norm"), norm, x, "norm_"),
        (N_("residual sum"), lambda rows: rows + x, x, "-"),
    )
    return [
        BlockPart(name, _moves_others(part, read), sum(v.size for n, v in w.items() if n.startswith(prefix)))
        for name, part, read, prefix in parts
        if crosses or prefix != "cross_attn."
    ]


def _attend(w: Weights, n_heads: int, kind: str, x: Rows, source: Rows, mask: formulas.Bools | None = None) -> Rows:
    def projected(name: str, rows: Rows) -> Rows:
        whole: Rows = rows @ w[f"{kind}.w_{name}"] + w[f"{kind}.b_{name}"]  # (token, d_model)
        cut: Rows = whole.reshape(len(rows), n_heads, -1).swapaxes(0, 1)  # (head, token, d_k)
        return cut

    heads, _ = formulas.attention(projected("q", x), projected("k", source), projected("v", source), mask=mask)
    joined = heads.swapaxes(0, 1).reshape(len(x), -1)  # (token, d_model)
    out: Rows = joined @ w[f"{kind}.w_o"] + w[f"{kind}.b_o"]
    return out


def _moves_others(part: Callable[[Rows], Rows], read: Rows) -> float:
    changed = read.copy()
    changed[0] += 1.0
    moved = float(np.abs(part(changed) - part(read))[1:].max(initial=0.0))
    return moved if moved > 1e-9 else 0.0


AT = layer_of(lambda setting: layers(setting.trace, setting.part))
PARTS = {"self": N_("self-attention"), "cross": N_("cross-attention"), "ffn": N_("feed-forward")}
# fmt: off
PART = Choice(
    name="part", label=N_("Sublayer"), help="self, cross or ffn.", values=PARTS,
    default=lambda setting: "cross" if setting.kind == "cross_attn" else "self",
    link=lambda setting: f"part_{setting.part}",
)
STREAM = Picture(
    name="stream", view="stream", title=N_("Residual stream"), needs=RECORD, options=(STACK,),
    look_for=N_("How much each sublayer changes each word: at 1, it adds a vector as long as the one it is added to."),
    draw=lambda setting: [note_overflow(stream(setting.trace, setting.part), setting.gettext)],
)
SUBLAYER = Picture(
    name="sublayer", view="added", title=N_("Sublayer"), needs=RECORD, options=(STACK, AT, PART),
    look_for=N_("The stream, what is added to it, and the LayerNorm of the sum. A few dimensions do most of the work."),
    draw=lambda setting: [added(setting.trace, setting.part, setting["layer"], setting["part"])],
)
FEED_FORWARD = Picture(
    name="feed-forward", view="added", needs=RECORD, options=(STACK, AT), in_handouts=False,
    draw=lambda setting: [added(setting.trace, setting.part, setting["layer"], "ffn")],
)
INSIDE = Picture(
    name="feed-forward-inside", view="inside", title=N_("Feed-forward"), needs=RECORD, options=(STACK, AT, TOKEN),
    look_for=N_("One token in the feed-forward network: which units does ReLU leave, and what do they add?"),
    draw=lambda setting: inside(setting.trace, setting.part, setting["layer"], setting["token"], setting.gettext),
)
ZEROS = Picture(
    name="zeros", view="zeros", title=N_("Share of zeros"), needs=RECORD, options=(STACK,),
    look_for=N_("ReLU zeroes most values. Blue: more zeros than the mean of all cells; orange: fewer, so more in use."),
    draw=lambda setting: [note_overflow(silent_share(setting.trace, setting.part), setting.gettext)],
)
SIMILAR = Picture(
    name="similarity", view="similar", title=N_("Similarity"), needs=RECORD, options=(STACK,),
    look_for=N_("The cosine of every two tokens, layer by layer: do they become more alike, or less?"),
    draw=lambda setting: similarities(setting.trace, setting.part, setting.gettext),
)
WHO_TALKS = View(
    view="parts", title=N_("Who talks to whom"),
    look_for=N_("Measured: add 1 to each number of one token's input; how does every other token's output change?"),
)
PAGE = Page(
    name="block", section="understand", order=70, title=N_("Through the block"),
    about=N_("What attention and feed-forward network add to each word, layer by layer."),
    views=(STREAM, SUBLAYER, FEED_FORWARD, INSIDE, ZEROS, SIMILAR, WHO_TALKS), where="layer",
)
# fmt: on
