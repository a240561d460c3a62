"""What weights do: how the prediction changes when one is taken away, and when those of a row are shuffled.

A large weight may change nothing, and a small one much (Jain and Wallace 2019, "Attention is not Explanation";
Serrano and Smith 2019, "Is Attention Interpretable?", section 3: weights set to zero). If the output stays as it is
when weights are shuffled within each row, or spread evenly, the head might as well have attended to anything (Jain and
Wallace, section 4.2.1: permuted weights, whose effect on the output is measured by the total variation distance).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.answers import Answer, ask, predicted, traced
from visformer.analysis.needs import Floats
from visformer.errors import N_, VisformerError
from visformer.system.arguments import require_whole

if TYPE_CHECKING:  # a model is above an analysis
    from visformer.adapters.base import TracedModel
    from visformer.adapters.interventions import Scalar
    from visformer.adapters.requests import Encoded, Text
    from visformer.edits import Edit
    from visformer.trace import Trace


DRAWS = 20
"""Shuffles of which the median is taken."""

EXACT_TOKENS = 24
"""Texts of at most so many tokens are run once for each weight; longer ones are estimated by the gradient."""

Progress = Callable[[int, int], object]
_T = TypeVar("_T")


@dataclass(frozen=True)
class WeightEffects:
    """The effects of the weights of one head.

    Args:
        values: (query, key) float64, nats: log-probability, or logit of an answer, without the weight minus that with
            it; below 0: the weight speaks for it. 0 where the mask allows no weight; NaN where it was not asked for.
        pattern: (query, key) float32: the weights themselves.
        method: "exact": each weight was taken away in a run of its own; "gradient": a first-order estimate.
        how: "zero": set to 0 after the softmax; "mask": masked before it, so that the rest of the row shares it.
        predicts: "row": of what the row itself predicts; "target": of the whole target, for rows of an encoder;
            "answer": of what was asked for.
        answer: what was asked for, as displayed, of a pair both; empty: nothing else than the prediction.
    """

    values: Floats
    pattern: NDArray[np.float32]
    method: Literal["exact", "gradient"]
    how: Literal["zero", "mask"]
    predicts: Literal["row", "target", "answer"]
    answer: tuple[str, ...] = ()


def weight_effects(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    path: str,
    head: int,
    how: Literal["zero", "mask"] = "zero",
    method: Literal["exact", "gradient"] | None = None,
    cells: Collection[tuple[int, int]] | None = None,
    answer: Answer | None = None,
    row: int = -1,
    progress: Progress | None = None,
    to: str | None = None,
) -> WeightEffects:
    """Compute how much the prediction of a row changes when a single weight of one head is taken away.

    The number says what this weight does alone: two weights that can stand in for each other both seem to do nothing.

    Args:
        model: a model that predicts tokens or labels.
        source: a text or its token ids, as for ``model.trace``.
        target: as for ``model.trace``; None: an encoder-decoder's own greedy output. Of an encoder its second sentence.
        path: path of an attention, such as "decoder.0.cross_attn".
        head: from 0.
        how: "zero": the weight becomes 0 after the softmax and its row is not renormalised; "mask": the key is masked
            before the softmax.
        method: None: "exact" up to 24 tokens on each side and for single cells, "gradient" above.
        cells: (query, key) of the weights to take away, one run each; None: every weight of the head.
        answer: an :data:`visformer.analysis.Answer`, on whose logit the effect is; None: on what is predicted.
        row: of the answer.
        progress: called with runs done and all runs; an exception that it raises ends the computation.
        to: target language, as for ``model.trace``.

    Returns:
        The effects, with how they were found. The log-probability is that of what the row predicts: of a text's last
        row the model's own choice; for a row of an encoder it is that of the whole target.

    Raises:
        VisformerError: the model predicts nothing, has no such head or weight, or a setting is unknown.
        EditError: the model does not let its weights be changed.
        TraceError: there is no such attention.
    """
    require_choice("how", how, ("zero", "mask"))
    require_choice("method", method, (None, "exact", "gradient"))
    record = (f"{path}.pattern", f"{path}.mask")
    trace, of = ask(model, source, target, answer=answer, row=row, to=to, record=record)
    allowed: NDArray[np.bool_] = _head_of(trace, f"{path}.mask", head).astype(bool)
    text, whole = model.read_again(trace), path.startswith("encoder.")
    few = cells is not None or max(allowed.shape) <= EXACT_TOKENS
    exact = few if method is None else method == "exact"
    wanted = allowed & (True if cells is None else _at(cells, allowed.shape))
    values = np.zeros(allowed.shape)
    if exact:
        run = model.log_probabilities if of is None else model.logits
        clean = next(run([(text, ())])).astype(np.float64)
        runs = ((text, _edit(how, path, head, cell)) for cell in _cells(wanted))
        for (query, key), changed in zip(
            _cells(wanted), with_progress(run(runs), int(wanted.sum()), progress), strict=True
        ):
            if of is not None:
                values[query, key] = of(changed) - of(clean)
            else:
                values[query, key] = (changed - clean).sum() if whole else changed[query] - clean[query]
    else:
        rows = range(len(text.predicted))
        numbers: list[Scalar] = (
            [of] if of else [predicted(text, rows)] if whole else [predicted(text, [i]) for i in rows]
        )
        values = _first_order(model, text, f"{path}.pattern", head, how=how, numbers=numbers, progress=progress)
    return WeightEffects(
        np.where(wanted, values, np.where(allowed, np.nan, 0.0)),
        np.asarray(_head_of(trace, f"{path}.pattern", head), dtype=np.float32),
        "exact" if exact else "gradient",
        how,
        "answer" if of else "target" if whole else "row",
        of.names if of else (),
    )


def with_progress(runs: Iterable[_T], total: int, progress: Progress | None) -> Iterator[_T]:
    """Yield the runs, and report after each how many of all are done."""
    for done, run in enumerate(runs, start=1):
        if progress is not None:
            progress(done, total)
        yield run


def _at(cells: Collection[tuple[int, int]], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return where these cells are, (query, key)."""
    chosen = np.zeros(shape, dtype=bool)
    for query, key in cells:
        if not (0 <= query < shape[0] and 0 <= key < shape[1]):
            raise VisformerError(
                N_("There is no weight at ({query}, {key}): the head has {rows} queries and {columns} keys, from 0."),
                query=query,
                key=key,
                rows=shape[0],
                columns=shape[1],
            )
        chosen[query, key] = True
    return chosen


def _cells(allowed: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    for query, key in np.argwhere(allowed):
        yield int(query), int(key)


def _edit(how: str, path: str, head: int, cell: tuple[int, int]) -> "Edit":
    from visformer.edits import Block, Zero

    return (Zero if how == "zero" else Block)(path, head, *cell)


def _first_order(
    model: "TracedModel",
    text: "Encoded",
    name: str,
    head: int,
    *,
    how: str,
    numbers: "Sequence[Scalar]",
    progress: Progress | None,
) -> Floats:
    """-a da at every cell; with the mask, plus what the other keys gain: each its share of a / (1 - a).

    ``numbers``: of the logits, one for all rows or one for each.
    """
    gradients = model.gate_gradients(((text, number) for number in numbers), [name])
    each = [found[name][head] for found in with_progress(gradients, len(numbers), progress)]
    of_rows = each[0] if len(each) == 1 else np.stack([found[row] for row, found in enumerate(each)])
    slopes: Floats = of_rows.astype(np.float64)
    if how == "zero":
        return -slopes
    pattern = next(model.recorded([text], [name]))[name][head].astype(np.float64)
    others = slopes.sum(axis=1, keepdims=True) - slopes
    found: Floats = -slopes + pattern / np.maximum(1 - pattern, 1e-6) * others
    return found


def _head_of(trace: "Trace", name: str, head: int) -> NDArray[np.generic]:
    heads = trace[name].value
    if not 0 <= head < len(heads):
        raise VisformerError(
            N_("{name} has no head {head}: they are numbered from 0 to {last}."),
            name=name,
            head=head,
            last=len(heads) - 1,
        )
    return heads[head]  # type: ignore[no-any-return]


def require_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Refuse a value that is none of the choices.

    Raises:
        VisformerError: the message lists them.
    """
    if value not in choices:
        raise VisformerError(
            N_("{name}={value!r} is unknown: choose one of {choices}."),
            name=name,
            value=value,
            choices=", ".join(map(repr, choices)),
        )


@dataclass(frozen=True)
class ShuffleEffect:
    """How far the output distributions move.

    Args:
        draws: (draw, row) float64, from 0 to 1: total variation distance of a row's distribution over the vocabulary,
            of a classifier over its labels, from what it is with the weights as they are. Of a model that finds a span,
            a row for its start and one for its end, distributions over the tokens.
    """

    draws: NDArray[np.float64]

    @property
    def median(self) -> NDArray[np.float64]:
        """(row,) the median over the draws."""
        return np.asarray(np.median(self.draws, axis=0))

    @property
    def low(self) -> NDArray[np.float64]:
        """(row,) the smallest of the draws."""
        return np.asarray(self.draws.min(axis=0))

    @property
    def high(self) -> NDArray[np.float64]:
        """(row,) the largest of the draws."""
        return np.asarray(self.draws.max(axis=0))


def shuffle_effect(
    model: "TracedModel",
    source: "Text",
    target: "Text | None" = None,
    *,
    path: str,
    head: int | Sequence[int] | None = None,
    weights: Literal["shuffled", "uniform"] = "shuffled",
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
    to: str | None = None,
) -> ShuffleEffect:
    """Shuffle the weights of heads within each row among its allowed keys, and measure what rows then predict.

    A distance near 0 says that this text needs no choice of keys there; it does not say that the head is idle, since
    its values still come through.

    Args:
        model: a model that predicts tokens or labels.
        source: a text or its token ids, as for ``model.trace``.
        target: as for :func:`weight_effects`.
        path: path of an attention, or a glob: "decoder.0.*" is a layer.
        head: one, several, or None: all.
        weights: "shuffled", or "uniform": the same weight on each allowed key, which is one draw.
        draws: number of shuffles.
        seed: of the first; the others follow.
        progress: as for :func:`weight_effects`.
        to: target language, as for ``model.trace``.

    Returns:
        The distances of each draw.

    Raises:
        VisformerError: the model predicts nothing, or a setting is unknown.
        EditError: there is no such head, or the model does not let its weights be changed.
    """
    from visformer.edits import Shuffle, Uniform

    require_choice("weights", weights, ("shuffled", "uniform"))
    require_whole("draws", draws)
    text = model.read_again(traced(model, source, target, to=to, record=()))
    changed = [Uniform(path, head)] if weights == "uniform" else [Shuffle(path, head, seed + i) for i in range(draws)]
    texts = [(text, ()), *((text, edit) for edit in changed)]
    runs = with_progress(model.logits(texts), len(texts), progress)
    each = (_distributions(logits.T if model._finds_span else logits) for logits in runs)
    clean = next(each)
    return ShuffleEffect(np.stack([abs(changed - clean).sum(axis=1) / 2 for changed in each]))


def _distributions(logits: NDArray[np.float32]) -> Floats:
    """Softmax of logits, (row, choice) or, of a classifier of whole texts, (choice,), which is one row."""
    rows = np.atleast_2d(logits).astype(np.float64)
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares
