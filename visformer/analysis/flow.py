"""What an output is mixed from: the parts of one attention sublayer, ALTI, and the same through all layers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.needs import Floats, blocks_of, depth, optional, place_of, read, tolerance
from visformer.errors import N_, ShapeError, TraceError
from visformer.trace import Trace
from visformer.trace.stacks import require_only_tokens

ShareOf = Callable[[str], Floats]
"""Maps the path of an attention to shares: (query, key), in cross-attention (query, key + 1), last the residual."""


def through_encoder(trace: Trace, share_of: ShareOf, method: str) -> Floats:
    """Multiply the shares of the encoder's layers: C_L ... C_1, (src, src).

    Raises:
        TraceError: some layers have no attention.
    """
    n_layers, _, _ = stacks_of(trace, method)
    result = np.eye(len(trace.tokens["src"]) if n_layers else 0)
    for layer in range(n_layers):
        result = share_of(f"encoder.{layer}.self_attn") @ result
    return result


def through_layers(trace: Trace, share_of: ShareOf, method: str) -> tuple[Floats, Floats]:
    """Multiply the shares of all layers (Ferrando et al. 2022b, "Towards Opening the Black Box of NMT", section 3).

    Args:
        trace: the pass.
        share_of: computes the shares of an attention.
        method: name, for errors.

    Returns:
        R_src and R_tgt: (tgt, src) and (tgt, tgt), or for an encoder alone (src, src) and (src, 0), for a decoder alone
        (tgt, 0) and (tgt, tgt).

    Raises:
        TraceError: some layers have no attention.
    """
    _, n_layers, crosses = stacks_of(trace, method)
    sources = through_encoder(trace, share_of, method)
    if not n_layers:
        return sources, np.zeros((len(sources), 0))
    n = len(trace.tokens["tgt"])
    src, tgt = np.zeros((n, len(sources))), np.eye(n)
    for layer in range(n_layers):
        own = share_of(f"decoder.{layer}.self_attn")
        src, tgt = own @ src, own @ tgt
        if crosses:
            cross = share_of(f"decoder.{layer}.cross_attn")
            stays = cross[:, -1:]
            src, tgt = cross[:, :-1] @ sources + stays * src, stays * tgt
    return src, tgt


def rollout(trace: Trace) -> tuple[Floats, Floats]:
    """Attention rollout: the product of (A + I) / 2 over the layers, A the mean of the heads (Abnar & Zuidema 2020).

    "Quantifying Attention Flow in Transformers", section 3. Its encoder-decoder form is our extension: cross-attention
    and the residual stream have half of a row each, combined as by :func:`alti_plus`. It cannot say what a value vector
    holds: weights on a vector near zero count like all others.

    Args:
        trace: with the patterns of all layers.

    Returns:
        R_src (tgt, src) and R_tgt (tgt, tgt), shares; a row of both sums to 1 if rows of the patterns do. A decoder
        alone has R_src (tgt, 0); an encoder alone R_src (src, src) and R_tgt (src, 0).

    Raises:
        MissingTensor: a pattern was not recorded.
        TraceError: some layers have no attention.
    """
    return through_layers(trace, partial(halves, trace), "rollout")


def halves(trace: Trace, path: str) -> Floats:
    """Half of a row for the weights, half for the residual stream, which in cross-attention is the last column."""
    pattern = trace[f"{path}.pattern"].value.mean(axis=0, dtype=np.float64)
    if path.endswith("cross_attn"):
        return np.concatenate([pattern, np.ones((len(pattern), 1))], axis=1) / 2
    return np.asarray(pattern + np.eye(len(pattern))) / 2


def stacks_of(trace: Trace, method: str) -> tuple[int, int, bool]:
    """Return the depths of encoder and decoder, and whether the decoder reads the encoder."""
    require_only_tokens(trace, method)
    if (blocks := trace.blocks) is not None:
        depths = [depth(stack, method) for stack in (blocks.encoder, blocks.decoder)]
        return depths[0], depths[1], all(depths)
    layers = [{name.split(".")[1] for name in trace if name.startswith(f"{part}.")} for part in ("encoder", "decoder")]
    return len(layers[0]), len(layers[1]), any(".cross_attn." in name for name in trace)


_TOLERANCE = 1e-4
"""Largest deviation of the sum of the parts from y, as a share of the largest number of y."""


def norm_weighted(trace: Trace, path: str, *, head: int | None = None) -> Floats:
    """Norm-weighted attention, ||f[q, k]|| with f[q, k] = sum_h alpha_h[q, k] v_h[k] W_O,h (Kobayashi 2020, section 2).

    v includes its bias; the residual stream, b_O and the layer norm are left out. It cannot say what the residual
    stream contributes, nor whether two vectors cancel.

    Args:
        trace: with what :func:`needed` names for "norm".
        path: path of an attention, such as "decoder.0.cross_attn".
        head: one head, whose term alone is taken; None: all heads.

    Returns:
        (query, key), the Euclidean norm, in units of the residual stream; rows do not sum to 1.

    Raises:
        MissingTensor: a tensor was not recorded, or the model has none.
        TraceError: there is no such path.
        ShapeError: there is no such head.
    """
    pattern, values = _terms(trace, path, "norm")
    if head is None:
        return np.asarray(np.linalg.norm(_summed(pattern, values), axis=-1))
    if not 0 <= head < len(pattern):
        raise ShapeError(N_("{path} has {n} heads; {head} is not in 0 to {last}."), path=path, n=len(pattern),
                         head=head, last=len(pattern) - 1)  # fmt: skip
    return np.asarray(pattern[head] * np.linalg.norm(values[head], axis=-1))


@dataclass(frozen=True)
class Parts:
    """The parts that sum to a sublayer's output y, all float64.

    Args:
        keys: (query, key, d_model), of each key that is read.
        residual: (query, d_model), of the residual stream that the sublayer receives.
        bias: (query, d_model), of b_O, with the layer norm's beta after post-norm.
        y: (query, d_model), as the model computed it: ``keys.sum(1) + residual + bias``.
    """

    keys: Floats
    residual: Floats
    bias: Floats
    y: Floats


def parts(trace: Trace, path: str) -> Parts:
    """Split the output of an attention sublayer into its parts (Kobayashi 2021, section 3; Ferrando 2022, section 3).

    Pre-norm: y_q = x_q + sum_k f[q, k] + b_O, and the parts are these terms. Post-norm: each term t of
    u_q = x_q + sum_k f[q, k] + b_O becomes gamma (t - mean(t)) / std(u_q), with the deviation that the model used; the
    bias has beta, too. The parts cannot say what the layers above make of them.

    Args:
        trace: with what :func:`needed` names for "parts".
        path: path of an attention, such as "decoder.0.cross_attn".

    Returns:
        The parts, which are checked to sum to y.

    Raises:
        MissingTensor: a tensor was not recorded, or the model has none.
        TraceError: there is no such path, norms are elsewhere in this family, or the parts do not sum to y.
    """
    return Sublayer(trace, path, "parts").parts(slice(None))


class Sublayer:
    """One attention sublayer, whose parts are computed for some rows at a time: all of them may not fit in memory."""

    def __init__(self, trace: Trace, path: str, method: str) -> None:
        part, layer, kind = place_of(path)
        blocks = blocks_of(trace, method)
        stack = blocks.encoder if part == "encoder" else blocks.decoder
        if stack is None or stack.parallel or stack.norm not in ("pre", "post"):
            raise TraceError(
                N_(
                    "{method} of {path}: in this family, attention is not followed by a residual sum with one layer "
                    "norm before or after it, and its parts are not known to sum to its output."
                ),
                method=method,
                path=path,
            )
        self.path, self._tolerance = path, tolerance(trace, _TOLERANCE, roundings=4)
        self._pattern, self._values = _terms(trace, path, method)
        at, name = f"{part}.{layer}", kind.removesuffix("_attn")
        enters = "resid_self" if kind == "cross_attn" else "resid_pre"
        self._x, self._y = read(trace, [f"{at}.{enters}", f"{at}.resid_{name}"], method)
        self._b_o = optional(trace, f"{path}.b_o")
        self._post = stack.norm == "post"
        if self._post:
            (self._gamma,) = read(trace, [f"{at}.norm_{name}.gamma"], method)
            self._beta = optional(trace, f"{at}.norm_{name}.beta")

    def __len__(self) -> int:
        return len(self._y)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(query, key, d_model)."""
        return (*self._pattern.shape[1:], self._y.shape[1])

    def parts(self, rows: slice) -> Parts:
        """Return the parts of these rows."""
        keys = _summed(self._pattern[:, rows], self._values)  # (query, key, d_model)
        x, y = self._x[rows], self._y[rows]
        bias = np.broadcast_to(self._b_o, x.shape)
        if self._post:
            u = self._centred(x + keys.sum(axis=1) + bias)
            # The model's deviation, its eps included: by least squares, since y = u / std + beta.
            square = (u * u).sum(axis=-1)
            inverse = np.divide((u * (y - self._beta)).sum(axis=-1), square, out=np.zeros(len(u)), where=square > 0)
            keys = self._centred(keys) * inverse[:, None, None]
            x, bias = (self._centred(each) * inverse[:, None] for each in (x, bias))
            bias = bias + self._beta
        error = float(abs(keys.sum(axis=1) + x + bias - y).max(initial=0))
        if error > self._tolerance * float(abs(y).max(initial=0)):
            raise TraceError(
                N_(
                    "The parts of {path} do not sum to its output: they miss it by {error:.2g}. The family scales or "
                    "normalises it in another way, an edit changes it, or a bias was not recorded."
                ),
                path=self.path,
                error=error,
            )
        return Parts(keys, x, bias, y)

    def _centred(self, t: Floats) -> Floats:
        return np.asarray(self._gamma * (t - t.mean(axis=-1, keepdims=True)))


def _terms(trace: Trace, path: str, method: str) -> tuple[Floats, Floats]:
    """Return alpha (head, query, key) and v W_O (head, key, d_model)."""
    place_of(path)
    pattern, v, w_o = read(trace, [f"{path}.{end}" for end in ("pattern", "v", "w_o")], method)
    v = v.repeat(len(pattern) // len(v), axis=0)  # (head, key, d_v): several heads may share one
    return pattern, v @ w_o.reshape(len(v), -1, w_o.shape[-1])


def _summed(pattern: Floats, values: Floats) -> Floats:
    """f[q, k]: (query, key, d_model)."""
    f = pattern.transpose(2, 1, 0) @ values.transpose(1, 0, 2)  # (key, query, d_model)
    return f.transpose(1, 0, 2)


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
