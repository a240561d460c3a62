"""Masks and their effect on scores (sections 3.1 and 3.2.3). True = may attend."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from visformer import formulas
from visformer.errors import N_
from visformer.panel import Labels, Panel, axis_labels, traced
from visformer.pictures.registry.options import (
    HEAD,
    LAYER,
    STACK,
    STEP_HELP,
    Choice,
    Number,
    PlaceOption,
    decoder_first,
)
from visformer.pictures.registry.picture import Page, Picture, View
from visformer.pictures.registry.setting import Setting
from visformer.trace import Trace

PAD = "<pad>"
SHORT = "Thanks."
"""The second sentence of the batch, shorter than most, so that there is padding."""
SMALL = "a purple cross in the middle"
"""The second picture of the batch, of a model that reads pictures: its caption is short."""

_READS, _READ = N_("reads (query)"), N_("is read (key)")


def batch(traces: Sequence[Trace], *, hidden_is_one: bool = False) -> list[Panel]:
    """Draw the masks of the last sentence of a small batch, which has padding if another one is longer.

    Of a decoder: the causal mask, times that of the padding, is its own; beside it the cross mask, if it has one. Of an
    encoder-only model: its mask. ``hidden_is_one``: use the notation 1 = hidden instead of 1 = may attend.
    """
    panels = []
    texts = {side: _padded([t.tokens[side] for t in traces if side in t.tokens])[-1:] for side in ("src", "tgt")}
    (rows,) = texts["tgt"] or texts["src"]
    reads = _tokens(rows, _READS)

    def shown(name: str, title: str, mask: NDArray[np.bool_], columns: Sequence[str], sign: str = "") -> Panel:
        values = ~mask if hidden_is_one else mask
        return replace(_mask(name, title, values, reads, _tokens(columns, _READ)), before=sign)

    for written in texts["tgt"]:
        causal, real = formulas.causal_mask(len(written)), np.broadcast_to(_real(written), (len(rows), len(written)))
        sign = "∨" if hidden_is_one else "×"
        panels += [
            shown("causal", N_("causal mask"), causal, written),
            shown("padding", N_("padding mask"), real, written, sign),
            shown("combined", N_("causal and padding"), causal & real, written, "="),
        ]
    for read in texts["src"]:
        title = N_("cross mask") if texts["tgt"] else N_("mask of the encoder")
        panels.append(shown("cross", title, np.broadcast_to(_real(read), (len(rows), len(read))), read))
    return panels


def revealed(tokens: Sequence[str], step: int, *, causal: bool = True) -> Panel:
    """Draw the rows of the causal mask of the first ``step`` tokens.

    Without ``causal``, the mask of an encoder, in which every token may attend to all.
    """
    n = len(tokens)
    mask = (formulas.causal_mask(n) if causal else np.ones((n, n))).astype(np.float32)
    mask[step:] = np.nan
    title = N_("causal mask, step by step") if causal else N_("mask of the encoder")
    rows, columns = (Labels(tuple(tokens), side, places=True) for side in (_READS, _READ))
    return _mask("mask", title, mask, rows, columns)


def before_and_after(trace: Trace, path: str, head: int) -> list[Panel]:
    """Draw the scores of one head, the mask, the masked scores, and the pattern after softmax."""
    scores = traced(trace, f"{path}.scores", head, title=N_("scores"))
    mask = traced(trace, f"{path}.mask", head, title=N_("mask"), scale="weight", before="→")
    mask = replace(mask, values=mask.values.astype(np.float32))
    left = replace(
        scores,
        title=N_("masked scores (empty: −∞)"),
        values=np.where(mask.values > 0, scores.values, np.nan),
        limit=scores.end,
        before="→",
    )
    pattern = traced(trace, f"{path}.pattern", head, title=N_("pattern = softmax"), scale="weight", before="→")
    return [scores, mask, left, pattern]


def editable(trace: Trace, path: str, switched: NDArray[np.bool_], mask: NDArray[np.bool_]) -> Panel:
    """Draw the mask of an attention with the visitor's changes, which are outlined.

    Args:
        trace: where the labels come from.
        path: of the attention.
        switched: bool (layer, head, query, key), the changed cells in the selected heads.
        mask: the model's mask, bool (query, key) or broadcastable to ``switched``.
    """
    allowed = (switched ^ mask).mean(axis=(0, 1))  # (query, key), share of the heads
    rows, columns = (axis_labels(trace, axis, 0) for axis in trace[f"{path}.pattern"].axes[1:])
    return replace(
        _mask("mask", N_("mask: click a cell, a row's or a column's label"), allowed, rows, columns),
        note=N_("Between 0 and 1: the share of these heads that may attend.") if (allowed % 1).any() else "",
        outlined=np.asarray(switched.any(axis=(0, 1))),
        click="changes",
    )


def future_mass(trace: Trace, pattern: str) -> NDArray[np.float64]:
    """Return the share of each head's self-attention that goes to later positions, mean over queries: (head,).

    It is 0 under a causal mask.
    """
    weights = np.asarray(trace[pattern].value, dtype=np.float64)  # (head, query, key)
    mass: NDArray[np.float64] = np.triu(weights, k=1).sum(axis=-1).mean(axis=-1)
    return mass


def changed_most(before: Trace, after: Trace, *, among: str = "*", head: int | None = None) -> tuple[str, int] | None:
    """Find the head whose pattern differs most between two traces of the same pair, by the mean over its cells.

    Args:
        before: with the patterns.
        after: with the same patterns.
        among: glob over the paths of the attentions to compare.
        head: the only head to compare, from 0; None: all.

    Returns:
        Path and head, or None if all are equal.
    """
    sizes = {
        (path, i): float(size)
        for name in before
        if name.endswith(".pattern") and fnmatchcase(path := name.removesuffix(".pattern"), among)
        for i, size in enumerate(np.abs(after[name].value - before[name].value).mean(axis=(1, 2)))
        if head in (None, i)
    }
    most = max(sizes, key=sizes.__getitem__)
    return most if sizes[most] > 1e-6 else None  # below: rounding errors


def answers_otherwise(before: Trace, after: Trace) -> bool:
    """Return whether two traces of the same pair differ in their logits, beyond rounding; False: they have none."""
    return "logits" in before and bool(np.abs(after["logits"].value - before["logits"].value).max() > 1e-4)


def next_tokens(traces: Sequence[tuple[str, Trace]]) -> Panel:
    """Draw the probability that each trace assigns to the next token, at every position of the target.

    ``traces``: pairs of a row name and a trace with logits, all with the same target.
    """
    first = traces[0][1]
    ids = first.meta["ids"]["next"]
    chances = [formulas.softmax(trace["logits"].value) for _, trace in traces]  # (tgt, vocab)
    return Panel(
        name="out",
        title=N_("probability of the target's next token"),
        values=np.stack([each[np.arange(len(ids)), ids] for each in chances]),
        rows=Labels(tuple(name for name, _ in traces)),
        columns=Labels(first.tokens["next"], N_("next token"), places=True, special=first.special["next"]),
        scale="weight",
        digits=4,
    )


def _padded(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    longest = max(map(len, rows), default=0)
    return [[*row, *[PAD] * (longest - len(row))] for row in rows]


def _real(row: Sequence[str]) -> NDArray[np.bool_]:
    return np.array([token != PAD for token in row])  # (token,)


def _tokens(row: Sequence[str], title: str) -> Labels:
    return Labels(tuple(row), title, places=True, special=tuple(token == PAD for token in row))


def _mask(name: str, title: str, values: NDArray[Any], rows: Labels, columns: Labels) -> Panel:
    return Panel(name=name, title=title, values=values.astype(np.float32), rows=rows, columns=columns, scale="weight")


def _written(setting: Setting) -> tuple[str, tuple[str, ...]]:
    """Return the side that the decoder generates, or that an encoder-only model reads, and its tokens."""
    trace = setting.patterns
    side = "tgt" if "tgt" in trace.tokens else "src"
    return side, trace.tokens[side]


def _second(setting: Setting) -> Trace:
    return setting.source.read(SMALL if "grid" in setting.trace.meta else SHORT)


def _shown(setting: Setting) -> int:
    return min(int(setting["tokens"]), len(_written(setting)[1]))


def _revealed(setting: Setting) -> list[Panel]:
    side, tokens = _written(setting)
    return [revealed(tokens[: setting["tokens"]], setting["step"] + 1, causal=side == "tgt")]


# fmt: off
NOTATION = Choice(
    name="hidden", label=N_("Notation"), help="Notation: 0 where 1 = may attend, 1 where 1 = hidden.", default=0,
    widget="radio", values={0: N_("1 = may attend"), 1: N_("1 = hidden")}, also={"0": 0, "1": 1},
)
MOST = 40  # tokens on the page
TOKENS = Number(
    name="tokens", help="Number of tokens; by default all.", default=lambda setting: len(_written(setting)[1]),
    least=1, most=MOST, valid=1,
)
STEP = PlaceOption(
    name="step", label=N_("Tokens read so far"), help=STEP_HELP, default=lambda setting: _shown(setting) - 1,
    among=lambda setting: range(_shown(setting)), per=_shown,
)
BATCH = Picture(
    name="mask-batch", view="batch", title=N_("In a batch"), in_handouts=False,
    look_for=N_("The masks of “Thanks.” in a batch with your sentence: it is filled up to the same length with <pad>."),
    needs=("*.pattern",), options=(NOTATION,),
    draw=lambda setting: batch([setting.trace, _second(setting)], hidden_is_one=bool(setting["hidden"])),
)
SCORES = Picture(
    name="mask", view="scores", title=N_("On the scores"),
    look_for=N_("A masked score counts as −∞, so softmax gives it exactly 0. What becomes of its share?"),
    needs=("{path}.scores", "{path}.mask", "{path}.pattern"),
    options=(replace(STACK, default=decoder_first), LAYER, HEAD),
    draw=lambda setting: before_and_after(setting.trace, setting.path, setting["head"]),
)
STEPS = Picture(
    name="mask-steps", view="steps", title=N_("Step by step"), in_handouts=False,
    look_for=N_("One more token at each step: each may read itself and those before it, none that comes after."),
    options=(TOKENS, STEP),
    page_defaults={
        "tokens": lambda setting: min(MOST, len(_written(setting)[1])),
        "step": lambda setting: min(3, _shown(setting)) - 1,
    },
    draw=_revealed,
)
EDIT = View(
    view="edit", title=N_("Change it"),
    look_for=N_(
        "Click cells to block or open them. Then let the decoder see ahead: how sure does it become, and of what?"
    ),
)
PAGE = Page(
    name="masks", section="see", order=50, title=N_("Masks"),
    about=N_("Which words may read which: padding, no looking ahead, and a mask of your own."),
    views=(BATCH, SCORES, STEPS, EDIT), where="masks",
)
# fmt: on
