"""How far apart the heads of two passes are, and which heads of two models match, by what they attend to."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.partners import Partners, token_partners
from visformer.errors import N_, TraceError
from visformer.trace import Trace
from visformer.trace.stacks import ranges, shape_of

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Part = Literal["encoder", "decoder"]
Kind = Literal["self_attn", "cross_attn"]


def row_distances(first: NDArray[Any], second: NDArray[Any], rows: Partners, columns: Partners) -> Floats:
    """Total variation distance of aligned rows, TV(p, q) = 1/2 sum_k |p_k - q_k|: from 0 (equal) to 1.

    Weight on a column that only one side has counts in full.

    Args:
        first: (..., query, key), weights.
        second: the same of the other pass, whose leading axes broadcast.
        rows: the partners among the queries.
        columns: the partners among the keys.

    Returns:
        (..., pair of rows), in the order of ``rows.pairs``.
    """
    p, q = (np.asarray(each, dtype=np.float64) for each in (first, second))
    p, q = (each[..., _at(rows.pairs, i), :] for i, each in enumerate((p, q)))  # (..., pair, key)
    shared = np.abs(p[..., _at(columns.pairs, 0)] - q[..., _at(columns.pairs, 1)]).sum(axis=-1)
    alone = [each[..., list(of)].sum(axis=-1) for each, of in zip((p, q), columns.alone, strict=True)]
    return np.asarray((shared + alone[0] + alone[1]) / 2)


def partners_of(
    first: Trace, second: Trace, stack: Part, attention: Kind = "self_attn", *, by_source: bool = False
) -> tuple[Partners, Partners]:
    """Return the partners among the queries and among the keys of an attention, see :func:`token_partners`.

    Raises:
        MissingTensor: a pass has no patterns of this attention.
        TraceError: no row has a partner.
    """
    axes = next(iter(first.layers(stack, attention).values())).axes[1:]
    second.layers(stack, attention)
    sides = [str(axis.side) for axis in axes]
    rows, columns = (
        token_partners(first, second, side, by_source=by_source and side == "tgt")  # type: ignore[arg-type]
        for side in sides
    )
    if not rows.pairs:
        raise TraceError(N_("These two have no token in common, so that no row can be compared with another."))
    return rows, columns


def head_differences(
    first: Trace, second: Trace, stack: Part, attention: Kind = "self_attn", *, by_source: bool = False
) -> Floats:
    """Measure how far apart each head's rows are in two passes: the mean of :func:`row_distances` over aligned rows.

    It says that a head reads elsewhere, not what the model makes of it.

    Args:
        first: one pass.
        second: another one of the same model, or of one with as many layers and heads.
        stack: "encoder" or "decoder".
        attention: "self_attn", or for the decoder "cross_attn".
        by_source: see :func:`token_partners`.

    Returns:
        (layer, head), from 0 to 1.

    Raises:
        MissingTensor: a pass has no patterns of this attention.
        TraceError: no row has a partner, or the passes differ in layers or heads: see :func:`match_heads`.
    """
    rows, columns = partners_of(first, second, stack, attention, by_source=by_source)
    ones, others = (trace.layers(stack, attention) for trace in (first, second))
    sizes = [f"{ranges(layers)} × {shape_of(layers)[1]}" for layers in (ones, others)]
    if sizes[0] != sizes[1]:
        raise TraceError(
            N_("One has layers (from 0) × heads {given}, the other {other}: match heads by their patterns."),
            given=sizes[0],
            other=sizes[1],
        )
    pairs = zip(ones.values(), others.values(), strict=True)
    return np.stack([row_distances(one.value, other.value, rows, columns).mean(axis=-1) for one, other in pairs])


def head_similarity(
    first: Trace | Iterable[Trace],
    second: Trace | Iterable[Trace],
    stack: Part,
    attention: Kind = "self_attn",
) -> Floats:
    """Measure how similar each head of one model is to each of another: 1 - mean TV over the aligned rows of all texts.

    Args:
        first: a Trace, or several of one model.
        second: Traces of the other model, of the same texts in the same order.
        stack: "encoder" or "decoder".
        attention: "self_attn", or for the decoder "cross_attn".

    Returns:
        (layer, head, other layer, other head), from 0 to 1.

    Raises:
        MissingTensor: a pass has no patterns of this attention.
        TraceError: no row has a partner, there are no Traces, or not as many of both.
    """
    ones, others = _listed(first), _listed(second)
    if not ones or len(ones) != len(others):
        raise TraceError(
            N_("Heads are matched on the same texts: there are {given} and {other} traces."),
            given=len(ones),
            other=len(others),
        )
    total: Any = 0.0
    n_rows = 0
    for one, other in zip(ones, others, strict=True):
        rows, columns = partners_of(one, other, stack, attention)
        patterns, there = one.stack(stack, attention), other.stack(stack, attention)
        flat = patterns.reshape(-1, *patterns.shape[2:])  # (head of all layers, query, key)
        sums = [row_distances(head, there, rows, columns).sum(axis=-1) for head in flat]
        total = total + np.reshape(sums, (*patterns.shape[:2], *there.shape[:2]))
        n_rows += len(rows.pairs)
    return np.asarray(1 - total / n_rows)


def match_heads(
    first: Trace | Iterable[Trace],
    second: Trace | Iterable[Trace],
    stack: Part,
    attention: Kind = "self_attn",
) -> "pd.DataFrame":
    """Find for each head of one model the most similar one of another, among all heads of the same attention.

    Numbers of heads mean nothing across trainings, so heads are matched by their patterns alone. The best of many is
    similar by selection: compare with "floor", and with two trainings that differ in their seed only ("mini-gpt" and
    "mini-gpt-2").

    Args:
        first: a Trace, or several of one model.
        second: Traces of the other model, of the same texts in the same order.
        stack: "encoder" or "decoder".
        attention: "self_attn", or for the decoder "cross_attn".

    Returns:
        One row for each head of the first: layer, head, other_layer, other_head (from 0), similarity (from 0 to 1),
        floor (its mean similarity to all heads of the other), mutual (whether it is also the best match of its match).

    Raises:
        MissingTensor: a pass has no patterns of this attention.
        TraceError: no row has a partner, there are no Traces, or not as many of both.
    """
    import pandas as pd

    traces = _listed(first), _listed(second)
    similarity = head_similarity(*traces, stack, attention)
    shape, there = similarity.shape[:2], similarity.shape[2:]
    table = similarity.reshape(np.prod(shape), np.prod(there))  # (head, other head)
    best, back = table.argmax(axis=1), table.argmax(axis=0)
    layers, heads = np.unravel_index(np.arange(len(table)), shape)
    other_layers, other_heads = np.unravel_index(best, there)
    ones, others = (each[0].layers(stack, attention) for each in traces)
    return pd.DataFrame(
        {
            "layer": np.array([*ones])[layers],
            "head": heads,
            "other_layer": np.array([*others])[other_layers],
            "other_head": other_heads,
            "similarity": table.max(axis=1),
            "floor": table.mean(axis=1),
            "mutual": back[best] == np.arange(len(table)),
        }
    )


def _listed(traces: Trace | Iterable[Trace]) -> list[Trace]:
    return [traces] if isinstance(traces, Trace) else list(traces)


def _at(pairs: Sequence[tuple[int, int]], which: int) -> list[int]:
    return [pair[which] for pair in pairs]
