"""ALTI: how near the output of an attention sublayer is to each of its parts, and the same through all layers."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.flow import stacks_of, through_layers
from visformer.analysis.needs import Floats, blocks_of, place_of
from visformer.analysis.sublayers import Sublayer
from visformer.trace import Trace

_BLOCK = 1 << 22
"""Numbers of the parts that are computed at once: 32 MB."""


def alti(trace: Trace, path: str) -> Floats:
    """ALTI of one layer: c[q, k] = max(0, ||y_q||_1 - ||y_q - T[q, k]||_1), rows divided by their sum.

    Ferrando et al. 2022a, "Measuring the Mixing of Contextual Information in the Transformer", section 3. T are the
    :func:`parts`; in self-attention that of the residual stream belongs to the row's own key. A row in which no part
    counts gives all to the residual stream, see :func:`empty_rows`. It cannot say whether a part speaks for or against
    a word: it measures how near it is to y, not what y is used for.

    Args:
        trace: with what :func:`needed` names for "alti".
        path: path of an attention, such as "decoder.0.cross_attn".

    Returns:
        Shares, each row sums to 1: (query, key), in cross-attention (query, key + 1), whose last column is the
        residual stream.

    Raises:
        MissingTensor: a tensor was not recorded, or the model has none.
        TraceError: as for :func:`parts`.
    """
    return _shares(trace, path)[0]


def alti_plus(trace: Trace) -> tuple[Floats, Floats]:
    """ALTI+: shares of source and target in each row, by :func:`alti` through all layers (Ferrando et al. 2022b).

    "Towards Opening the Black Box of Neural Machine Translation: Source and Target Interpretations of the Transformer",
    section 3. Feed-forward layers, embeddings and final norms act on each position alone and are left out, so that it
    cannot say what they do to a word. The source share of a word is the sum of its row of R_src; row q is of the word
    that it predicts.

    Args:
        trace: with what :func:`needed` names for "alti+".

    Returns:
        R_src (tgt, src) and R_tgt (tgt, tgt); a row of both sums to 1. Column 0 of R_tgt is the token that begins the
        target. A decoder alone has R_src (tgt, 0); an encoder alone R_src (src, src) and R_tgt (src, 0).

    Raises:
        MissingTensor: a tensor was not recorded, or the model has none.
        TraceError: as for :func:`parts`, or some layers have no attention.
    """
    blocks_of(trace, "alti+")
    return through_layers(trace, partial(alti, trace), "alti+")


def empty_rows(trace: Trace) -> int:
    """Count the rows, of all layers, in which no part counts: :func:`alti` gives them to the residual stream.

    Args:
        trace: with what :func:`needed` names for "alti".

    Returns:
        Their number.

    Raises:
        MissingTensor: a tensor was not recorded, or the model has none.
        TraceError: as for :func:`alti_plus`.
    """
    return sum(int(_shares(trace, path)[1].sum()) for path in _paths(trace))


def _paths(trace: Trace) -> Iterator[str]:
    encoder, decoder, crosses = stacks_of(trace, "alti")
    yield from (f"encoder.{layer}.self_attn" for layer in range(encoder))
    for layer in range(decoder):
        yield from (f"decoder.{layer}.{kind}_attn" for kind in ("self", *["cross"] * crosses))


def _shares(trace: Trace, path: str) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the shares, and which rows were empty."""
    sublayer, crosses = Sublayer(trace, path, "alti"), place_of(path)[2] == "cross_attn"
    n_queries, n_keys, width = sublayer.shape
    counts = np.empty((n_queries, n_keys + crosses))
    step = max(1, _BLOCK // (n_keys * width))
    for first in range(0, n_queries, step):
        part = sublayer.parts(rows := slice(first, first + step))
        if crosses:
            terms = np.concatenate([part.keys, part.residual[:, None]], axis=1)  # (query, key + 1, d_model)
        else:
            terms, own = part.keys.copy(), np.arange(len(part.y))
            terms[own, first + own] += part.residual
        lengths = abs(part.y).sum(axis=-1, keepdims=True)  # (query, 1)
        counts[rows] = np.maximum(0, lengths - abs(part.y[:, None] - terms).sum(axis=-1))
    total = counts.sum(axis=1)
    empty = total == 0
    at = np.flatnonzero(empty)
    counts[at, n_keys if crosses else at] = 1
    return counts / np.where(empty, 1, total)[:, None], empty
