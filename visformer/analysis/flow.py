"""From one layer to all: what a row of the last layer consists of, if each layer mixes its rows by a known share."""

from collections.abc import Callable
from functools import partial

import numpy as np

from visformer.analysis.needs import Floats, depth
from visformer.trace import Trace

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
    if (blocks := trace.blocks) is not None:
        depths = [depth(stack, method) for stack in (blocks.encoder, blocks.decoder)]
        return depths[0], depths[1], all(depths)
    layers = [{name.split(".")[1] for name in trace if name.startswith(f"{part}.")} for part in ("encoder", "decoder")]
    return len(layers[0]), len(layers[1]), any(".cross_attn." in name for name in trace)
