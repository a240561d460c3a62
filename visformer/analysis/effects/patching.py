"""Activation patching: which values of a clean run, put into a corrupt one, bring the answer back.

Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis"; Meng et al. 2022,
"Locating and Editing Factual Associations in GPT", section 2; Zhang and Nanda 2024, "Towards Best Practices of
Activation Patching in Language Models".
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.answers import Answer, Asked, asked, traced
from visformer.analysis.effects.weight_effects import Progress, require_choice, with_progress
from visformer.analysis.sensitivity import own_target
from visformer.errors import N_, VisformerError

if TYPE_CHECKING:
    from visformer.adapters.base import TracedModel
    from visformer.adapters.requests import Text
    from visformer.trace import Trace


LEAST = 1e-3
"""Least difference between the clean and the corrupt run, nats: shares of less are rounding errors of float32."""

By = Literal["layer-token", "head"]
Method = Literal["exact", "gradient"]


@dataclass(frozen=True)
class PatchingPair:
    """A bundled pair of texts that differ in one thing, and what they let a model predict.

    Args:
        model: the bundled model that it is for.
        about: what differs, such as "measure word".
        clean: after this text the model prefers the first token of the answer.
        corrupt: after this one it does not, or less.
        target: as for :func:`patching`; None: none is given.
        row: that predicts the answer.
        answer: the token that is right for ``clean``, and that for ``corrupt``.
    """

    model: str
    about: str
    clean: "Text"
    corrupt: "Text"
    target: "Text | None"
    row: int
    answer: Answer


@dataclass(frozen=True)
class Patched:
    """What each patch brings back.

    Args:
        share: (layer, token) or (layer, head) float64: 0: as in the corrupt run, 1: as in the clean one.
        stack: "encoder" or "decoder" for tokens; for heads the attention, such as "decoder.cross_attn".
        clean: the answer in the clean run: its logit, or the difference of two, nats.
        corrupt: the same in the corrupt run.
        tokens: of the clean and of the corrupt text, along the axis of tokens, without the answer; empty for heads.
        row: the row that predicts the answer, from 0; None: it is a label of the whole text.
        answer: the tokens or labels, as displayed; of a pair both.
        method: "exact": each value was patched in a run of its own; "gradient": a first-order estimate.
    """

    share: NDArray[np.float64]
    stack: str
    clean: float
    corrupt: float
    tokens: tuple[tuple[str, ...], tuple[str, ...]]
    row: int | None
    answer: tuple[str, ...]
    method: Method = "exact"


def patching(
    model: "TracedModel",
    clean: "Text",
    corrupt: "Text",
    *,
    answer: Answer | None = None,
    target: "Text | None" = None,
    row: int = -1,
    by: By = "layer-token",
    stack: str | None = None,
    method: Method = "exact",
    progress: Progress | None = None,
    to: str | None = None,
) -> Patched:
    """Put values of the clean run into the corrupt one, one at a time, and measure how much of the answer comes back.

    share = (patched - corrupt) / (clean - corrupt), of the answer's logit or, of a pair, the difference of two. A share
    near 1 says that what the two texts differ in passes through this place; a share near 0 does not say that the place
    is unused, only that it carries nothing of this difference by itself.

    With ``method="gradient"``, attribution patching, all places are estimated at once, by one pass and its gradient:
    patched - corrupt is to first order (v_clean - v_corrupt) · d answer / d v, at the corrupt run. It cannot say what
    norms and softmax do to a large change (Nanda 2023, "Attribution Patching"; Syed et al. 2023, "Attribution Patching
    Outperforms Automated Circuit Discovery", section 2).

    Args:
        model: a model that predicts tokens or labels.
        clean: the text for which the answer is right.
        corrupt: a text of as many tokens.
        answer: an :data:`visformer.analysis.Answer`, best a pair: the right token and a wrong one; None: what the row
            predicts in the clean run.
        target: of both runs, as for ``model.trace``: the last row predicts what follows it. None: an encoder-decoder's
            own output in the clean run.
        row: that predicts the answer, from 0 or, below 0, from the end.
        by: "layer-token": the residual stream that enters a layer, at one token; "head": the output of a head before
            W_O, at all of its positions.
        stack: for "layer-token" "encoder" or "decoder", for "head" an attention such as "decoder.cross_attn". None: the
            encoder, of a decoder-only model the decoder, and its self-attention.
        method: "exact", a run for each place, or "gradient".
        progress: as for :func:`weight_effects`; an estimate is one run.
        to: target language, as for ``model.trace``.

    Returns:
        The shares, with the answer in both runs.

    Raises:
        VisformerError: the texts have different numbers of tokens, there is no such answer or row, it is as large in
            both runs, or the model predicts nothing.
        EditError: the model does not let these values be changed.
        TraceError: it has no such stack.
    """
    require_choice("by", by, ("layer-token", "head"))
    require_choice("method", method, ("exact", "gradient"))
    model._require_logits()
    part = "decoder" if model.info.kind == "decoder" else "encoder"
    names = _names(model, stack or (part if by == "layer-token" else f"{part}.self_attn"), by)
    target = own_target(model, clean, target, to)
    right = traced(model, clean, target, to=to, record=(*names, "logits"))
    wrong = traced(model, corrupt, target, to=to, record=("logits",))
    for side in right.tokens:
        require_same_number(len(right.tokens[side]), len(wrong.tokens[side]))
    of = asked(right, answer, row, model=model)
    of_clean, of_corrupt = (float(of(trace["logits"].value)) for trace in (right, wrong))
    if abs(of_clean - of_corrupt) < LEAST:
        raise VisformerError(
            N_(
                "The answer {answer} is as large in both runs, {clean:.4f} and {corrupt:.4f}: nothing can come back. "
                "Give another answer, or a text with another one."
            ),
            answer=of.name,
            clean=of_clean,
            corrupt=of_corrupt,
        )
    side = right[names[0]].axes[-2 if by == "layer-token" else 1].side or "tgt"
    end = None if side == "src" or of.row is None else of.row + 1  # without the answer
    tokens = (right.tokens[side][:end], wrong.tokens[side][:end])
    size = len(tokens[0]) if by == "layer-token" else right[names[0]].shape[0]
    if method == "gradient":
        found = of_corrupt + _estimated(model, corrupt, target, right, names, of=of, by=by, to=to)[:, :size]
        if progress is not None:
            progress(1, 1)
    else:
        found = _patched(model, right, wrong, names, size, of=of, by=by, progress=progress)
    return Patched(
        (found - of_corrupt) / (of_clean - of_corrupt),
        _stack_of(names[0], by),
        of_clean,
        of_corrupt,
        tokens if by == "layer-token" else ((), ()),
        of.row,
        of.names,
        method,
    )


def _patched(
    model: "TracedModel",
    right: "Trace",
    wrong: "Trace",
    names: Sequence[str],
    size: int,
    *,
    of: Asked,
    by: By,
    progress: Progress | None,
) -> NDArray[np.float64]:
    """The answer in the corrupt run with each value of the clean one, (layer, token or head)."""
    from visformer.edits import Patch

    text, axis = model.read_again(wrong), "token" if by == "layer-token" else "head"
    patches = (Patch.of(right, name, **{axis: i}) for name in names for i in range(size))
    runs = model.logits((text, patch) for patch in patches)
    found = [float(of(each)) for each in with_progress(runs, len(names) * size, progress)]
    return np.array(found).reshape(len(names), size)


def _estimated(
    model: "TracedModel",
    corrupt: "Text",
    target: "Text | None",
    right: "Trace",
    names: Sequence[str],
    *,
    of: Asked,
    by: By,
    to: str | None,
) -> NDArray[np.float64]:
    """By how much each value of the clean run would move the answer, to first order, (layer, token or head)."""
    found = model.gradients(corrupt, target, at=names, to=to, of=of)
    rest = -1 if by == "layer-token" else (-2, -1)  # of (token, d_model), (head, query, d_v)
    moves = []
    for name in names:
        change = right[name].value.astype(np.float64) - found.trace[name].value
        moves.append((change * found.values[name][0]).sum(axis=rest))
    return np.stack(moves)


def patching_pair(
    model: "TracedModel", clean: "Text", corrupt: "Text", *, row: int = -1, to: str | None = None
) -> PatchingPair:
    """Make a pair of two texts of one's own: its answers are the first tokens that the model predicts differently.

    Args:
        model: a model that predicts tokens or labels.
        clean: a text.
        corrupt: a text of as many tokens.
        row: of a classifier of tokens, the token whose labels are compared.
        to: target language, as for ``model.trace``.

    Returns:
        The pair, with its answer as token ids; of a classifier the likeliest label of each text, or of both.

    Raises:
        VisformerError: the texts have different numbers of tokens, the model predicts the same token after both, or one
            of the predictions ends where they begin to differ.
    """
    model._require_logits()
    require_same_number(len(model.tokenize(clean)), len(model.tokenize(corrupt)))
    traces = [model.trace(text, to=to, record=("logits",)) for text in (clean, corrupt)]
    if not model._predicts_next:
        first, second = (asked(trace, None, row, model=model).ids[0] for trace in traces)
        return PatchingPair(
            model.info.name, "", clean, corrupt, None, row, first if first == second else (first, second)
        )
    first, second = (trace.meta["ids"]["next"] for trace in traces)
    if model.info.kind == "decoder":  # of a text that goes on, only the last row is an answer
        first, second = first[-1:], second[-1:]
    at = next((i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    if at is None or any(model.text.is_special([first[at], second[at]])):
        raise VisformerError(
            N_(
                "After both texts the model predicts the same, {answer!r}, or one answer ends where the other goes on: "
                "there is no token in which they differ, so nothing can come back. Give a text with another answer."
            ),
            answer=model.text.decode(first),
        )
    place = -1 if model.info.kind == "decoder" else at
    return PatchingPair(model.info.name, "", clean, corrupt, None, place, (first[at], second[at]))


def patching_pairs(model: str | None = None) -> list[PatchingPair]:
    """Return the bundled pairs, each of which the model that it names can be patched with.

    Args:
        model: name of a bundled model; None: the pairs of all.

    Returns:
        Pairs in the order of the file.
    """
    lines = files("visformer.analysis.effects").joinpath("pairs.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines[1:]]
    pairs = [
        PatchingPair(name, about, clean, corrupt, target or None, int(row), (first, second))
        for name, about, clean, corrupt, target, row, first, second in rows
    ]
    return [pair for pair in pairs if model in (None, pair.model)]


def require_same_number(clean: int, corrupt: int) -> None:
    """Require as many tokens in both texts, so that their places correspond.

    Args:
        clean: number of tokens.
        corrupt: number of tokens.

    Raises:
        VisformerError: they differ.
    """
    if clean != corrupt:
        raise VisformerError(
            N_(
                "The clean text has {clean} tokens and the corrupt one {corrupt}: their tokens have to correspond, so "
                "give "
                "texts of equal length."
            ),
            clean=clean,
            corrupt=corrupt,
        )


def _names(model: "TracedModel", stack: str, by: By) -> list[str]:
    """The tensors whose parts are patched, one for each layer."""
    wanted = f"{stack}.*.resid_pre" if by == "layer-token" else f"{'.*.'.join(stack.split('.'))}.heads"
    names = fnmatch.filter(model._names, wanted)
    if not names:
        raise VisformerError(
            N_("{name} has no {tensor}: nothing can be patched there."),
            name=model.info.name,
            tensor=wanted,
        )
    return names


def _stack_of(name: str, by: By) -> str:
    part, _, rest = name.split(".", 2)
    return part if by == "layer-token" else f"{part}.{rest.removesuffix('.heads')}"
