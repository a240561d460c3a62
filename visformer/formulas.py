"""The paper's formulas in NumPy float64: the reference for tests of the torch model, and for worked examples.

Written for clarity, not speed; does not import torch. Masks are bool, True = may attend. Sections are those of
"Attention Is All You Need".
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from visformer.errors import N_, ConfigError, ShapeError
from visformer.system.arguments import checked, require_whole

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@checked
def softmax(scores: ArrayLike, mask: ArrayLike | None = None) -> Floats:
    """softmax(s)_j = exp(s_j) / sum_k exp(s_k), over the last axis (section 3.2.1).

    Departs from the paper in one point: a row whose every key is masked gives zeros, never NaN.

    Args:
        scores: (..., query, key), any real unit.
        mask: bool, broadcastable to ``scores``, True = may attend; None: everything may.

    Returns:
        (..., query, key), probabilities: each row sums to 1, or is all zeros.

    Raises:
        ShapeError: the mask is not bool or cannot be broadcast to the scores.
    """
    scores = np.asarray(scores, dtype=np.float64)
    allowed = np.ones(scores.shape, dtype=np.bool_) if mask is None else _spread(mask, scores.shape)
    visible = np.where(allowed, scores, -np.inf)  # (..., query, key)
    highest = visible.max(axis=-1, keepdims=True, initial=-np.inf)  # (..., query, 1)
    weights: Floats = np.exp(visible - np.where(np.isfinite(highest), highest, 0.0))
    total = weights.sum(axis=-1, keepdims=True)  # (..., query, 1)
    return weights / np.where(total == 0.0, 1.0, total)


@checked
def attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    bias: ArrayLike = 0.0,
) -> tuple[Floats, Floats]:
    """Scaled dot-product attention: softmax(Q K^T / sqrt(d_k)) V (section 3.2.1, equation 1).

    Args:
        query: (..., query, d_k).
        key: (..., key, d_k).
        value: (..., key, d_v).
        mask: bool, broadcastable to (..., query, key), True = may attend; None: everything may.
        bias: added to the scores, which it can be broadcast to; the paper has none.

    Returns:
        output (..., query, d_v) and pattern (..., query, key): probabilities, each row sums to 1 or is all zeros.

    Raises:
        ShapeError: widths of query and key differ, key and value differ in length, or the mask does not fit.
    """
    q, k, v = (np.asarray(x, dtype=np.float64) for x in (query, key, value))
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            N_(
                "Attention needs query (..., n, d_k), key (..., m, d_k) and value (..., m, d_v); "
                "given {query}, {key} and {value}: the last sizes of query and key must agree, "
                "and the next-to-last of key and value."
            ),
            query=q.shape,
            key=k.shape,
            value=v.shape,
        )
    scores = q @ k.swapaxes(-2, -1) / math.sqrt(q.shape[-1]) + np.asarray(bias)  # (..., query, key)
    pattern = softmax(scores, mask)  # (..., query, key)
    return pattern @ v, pattern  # (..., query, d_v)


@checked
def frequencies(d_model: int, base: float = 10000.0) -> Floats:
    """base^(-2i/d) for i = 0, 1, ...: the angle per position, for each pair of dimensions (section 3.5).

    Args:
        d_model: number of dimensions; if odd, the last is a sine without a cosine, which has a frequency, too.
        base: above 0.

    Returns:
        (pair,), radians per position.
    """
    pairs = np.arange((d_model + 1) // 2)
    return np.asarray(base, dtype=np.float64) ** (-2.0 * pairs / d_model)


@checked
def sinusoidal_encoding(n_positions: int, d_model: int, base: float = 10000.0) -> Floats:
    """PE(pos, 2i) = sin(pos / base^(2i/d)), PE(pos, 2i+1) = cos(the same angle) (section 3.5).

    With an odd d_model the last column is a sine without its cosine.

    Args:
        n_positions: number of rows; position 0 first.
        d_model: number of columns.
        base: the longest wavelength is below 2 pi base positions.

    Returns:
        (n_positions, d_model), in [-1, 1].

    Raises:
        ConfigError: a size or the base is not above 0.
    """
    if n_positions < 0 or d_model < 1 or not base > 0:
        raise ConfigError(
            N_("No positional encoding for n_positions={n}, d_model={d}, base={base}: sizes and base must be above 0."),
            n=n_positions,
            d=d_model,
            base=base,
        )
    return encoding_at(np.arange(n_positions), d_model, base)


@checked
def encoding_at(positions: ArrayLike, d_model: int, base: float = 10000.0) -> Floats:
    """Return the rows of :func:`sinusoidal_encoding` for these positions, in this order.

    Args:
        positions: (position,), any real number.
        d_model: number of columns.
        base: above 0.

    Returns:
        (position, d_model), in [-1, 1].
    """
    angles = np.outer(np.asarray(positions, dtype=np.float64), frequencies(d_model, base))  # (position, pair)
    table = np.empty((len(angles), d_model), dtype=np.float64)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, : d_model // 2])
    return table


@checked
def rotate(x: ArrayLike, positions: ArrayLike, base: float = 10000.0) -> Floats:
    """Rotate each pair (i, i + d/2) of a vector by position times base^(-2i/d) (Su et al. 2021, equation 15).

    The paper pairs adjacent dimensions; Llama and most later models pair the two halves, as here.

    Args:
        x: (..., position, d), d even: queries or keys of one head.
        positions: (position,), any real number.
        base: of the frequencies, above 0.

    Returns:
        (..., position, d); the length of each vector is unchanged.

    Raises:
        ShapeError: d is odd.
    """
    x = np.asarray(x, dtype=np.float64)
    if x.shape[-1] % 2:
        raise ShapeError(N_("A rotation needs pairs of dimensions; there are {d}."), d=x.shape[-1])
    angles = np.outer(np.asarray(positions, dtype=np.float64), frequencies(x.shape[-1], base))  # (position, pair)
    first, second = np.split(x, 2, axis=-1)  # each (..., position, pair)
    turned: NDArray[np.complex128] = (first + 1j * second) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1)


@checked
def alibi_slopes(n_heads: int) -> Floats:
    """2^(-8/n), 2^(-16/n), ... for n heads (Press et al. 2022, section 3).

    If n is not a power of two, the paper's code takes the slopes for the next lower power, and adds every other one of
    those for the next higher power.

    Args:
        n_heads: at least 1.

    Returns:
        (head,), above 0: the penalty on a score per token of distance.

    Raises:
        VisformerError: there is no head.
    """
    require_whole("n_heads", n_heads)
    below = 2 ** int(math.log2(n_heads))
    slopes = 2.0 ** (-8.0 / below * np.arange(1, below + 1))
    between = 2.0 ** (-4.0 / below * np.arange(1, 2 * (n_heads - below) + 1, 2))
    return np.concatenate([slopes, between])


@checked
def alibi_bias(n_heads: int, n: int) -> Floats:
    """-slope |i - j|: the bias of each head's scores for query i and key j (Press et al. 2022).

    Args:
        n_heads: at least 1.
        n: number of positions.

    Returns:
        (head, query n, key n), 0 on the diagonal.

    Raises:
        VisformerError: there is no head.
    """
    places = np.arange(n)
    distance = np.abs(places[:, None] - places[None, :])  # (query, key)
    bias: Floats = -alibi_slopes(n_heads)[:, None, None] * distance
    return bias


@checked
def layer_norm(x: ArrayLike, *, gain: ArrayLike = 1.0, bias: ArrayLike = 0.0, eps: float = 1e-5) -> Floats:
    """gain (x - mean) / sqrt(variance + eps) + bias, over the last axis (section 3.1, after Ba et al. 2016).

    Uses the population variance (divided by d) with eps inside the square root, as torch.nn.LayerNorm does.

    Args:
        x: (..., d).
        gain: (d,), gamma.
        bias: (d,), beta.
        eps: in the unit of the variance.

    Returns:
        (..., d).
    """
    x = np.asarray(x, dtype=np.float64)
    centred = x - x.mean(axis=-1, keepdims=True)  # (..., d)
    variance = (centred**2).mean(axis=-1, keepdims=True)  # (..., 1)
    normed: Floats = np.asarray(gain) * centred / np.sqrt(variance + eps) + np.asarray(bias)
    return normed


@checked
def layer_norm_sample_std(x: ArrayLike, *, gain: ArrayLike = 1.0, bias: ArrayLike = 0.0, eps: float = 1e-6) -> Floats:
    """gain (x - mean) / (s + eps) + bias, where s is the *sample* standard deviation (divided by d - 1).

    A variant common in teaching code; it is neither the formula of Ba et al. nor torch.nn.LayerNorm.

    Args:
        x: (..., d), d of at least 2.
        gain: (d,), gamma.
        bias: (d,), beta.
        eps: in the unit of x, outside the square root.

    Returns:
        (..., d).

    Raises:
        ShapeError: there are fewer than two numbers, which have no sample standard deviation.
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim < 1 or x.shape[-1] < 2:
        raise ShapeError(
            N_("The sample standard deviation needs at least 2 numbers in the last axis; given shape {shape}."),
            shape=x.shape,
        )
    centred = x - x.mean(axis=-1, keepdims=True)  # (..., d)
    deviation = x.std(axis=-1, ddof=1, keepdims=True)  # (..., 1)
    normed: Floats = np.asarray(gain) * centred / (deviation + eps) + np.asarray(bias)
    return normed


@checked
def batch_norm(x: ArrayLike, real: ArrayLike | None = None, *, eps: float = 1e-5) -> Floats:
    """(x - mean) / sqrt(variance + eps) over all tokens, separately for each feature (Ioffe & Szegedy 2015).

    Not part of the Transformer; for comparison with :func:`layer_norm`.

    Args:
        x: (token, d), the tokens of all sentences concatenated.
        real: bool (token,), the tokens that count for mean and variance; None: all.
        eps: in the unit of the variance.

    Returns:
        (token, d).

    Raises:
        ShapeError: ``x`` has not two axes.
    """
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2:
        raise ShapeError(N_("Tokens have the shape (token, d); given {shape}."), shape=x.shape)
    counted = x if real is None else x[np.asarray(real, dtype=np.bool_)]
    if not len(counted):
        return np.zeros_like(x)
    normed: Floats = (x - counted.mean(axis=0)) / np.sqrt(counted.var(axis=0) + eps)
    return normed


@checked
def feed_forward(
    x: ArrayLike,
    w_1: ArrayLike,
    *,
    b_1: ArrayLike,
    w_2: ArrayLike,
    b_2: ArrayLike,
    activation: Literal["relu", "gelu"] = "relu",
) -> Floats:
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (section 3.3, equation 2).

    The weights are (in, out) as in the paper, the transpose of torch.nn.Linear's. "gelu" departs from the paper: it
    replaces max(0, h) by h Phi(h), with the exact cumulative distribution function Phi of the normal distribution.

    Args:
        x: (..., d_model).
        w_1: (d_model, d_ff).
        b_1: (d_ff,).
        w_2: (d_ff, d_model).
        b_2: (d_model,).
        activation: "relu" or "gelu".

    Returns:
        (..., d_model).

    Raises:
        ConfigError: an unknown activation.
    """
    if activation not in ("relu", "gelu"):
        raise ConfigError(
            N_("{name}={value!r} is not known: choose one of {choices}."),
            name="activation",
            value=activation,
            choices="relu, gelu",
        )
    x, w_1, b_1, w_2, b_2 = (np.asarray(a, dtype=np.float64) for a in (x, w_1, b_1, w_2, b_2))
    hidden = x @ w_1 + b_1  # (..., d_ff)
    hidden = np.maximum(hidden, 0.0) if activation == "relu" else _gelu(hidden)
    return hidden @ w_2 + b_2  # (..., d_model)


@checked
def causal_mask(n: int) -> Bools:
    """Mask that lets position i attend to positions 0..i (section 3.2.3).

    Args:
        n: number of positions.

    Returns:
        bool (query n, key n), True on and below the diagonal.
    """
    places = np.arange(n)
    return places[None, :] <= places[:, None]


@checked
def padding_mask(ids: ArrayLike, pad_id: int = 0) -> Bools:
    """Mask that hides keys that are padding.

    Args:
        ids: integer (batch, key).
        pad_id: the id of padding.

    Returns:
        bool (batch, 1, 1, key), ready to broadcast over heads and queries.
    """
    mask: Bools = (np.asarray(ids) != pad_id)[:, None, None, :]
    return mask


def _gelu(x: Floats) -> Floats:
    phi: Floats = np.array([0.5 * (1.0 + math.erf(v / math.sqrt(2.0))) for v in x.ravel()]).reshape(x.shape)
    return x * phi


def _spread(mask: ArrayLike, shape: tuple[int, ...]) -> Bools:
    mask = np.asarray(mask)
    try:
        if mask.dtype != np.bool_:
            raise ValueError
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ShapeError(
            N_("A mask must be bool (True = may attend) and broadcast to {scores}; given {dtype} {given}."),
            scores=shape,
            dtype=mask.dtype,
            given=mask.shape,
        ) from None
