"""What an attention sublayer's output consists of: one vector for each key, the residual stream, and the biases.

Kobayashi et al. 2020 ("Attention is Not Only a Weight: Analyzing Transformers with Vector Norms", section 2) take the
vectors that attention sums, and 2021 ("Incorporating Residual and Normalization Layers into Analysis of Masked
Language Models", section 3) pass them through the residual sum and the layer norm.
"""

from dataclasses import dataclass

import numpy as np

from visformer.analysis.needs import Floats, blocks_of, optional, place_of, read, tolerance
from visformer.errors import N_, ShapeError, TraceError
from visformer.trace import Trace

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
