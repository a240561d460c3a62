"""Attention by rows against softmax in double precision, for any mask, bias, sink and block."""

from unittest import mock

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from visformer.adapters import by_rows
from visformer.adapters.by_rows import Shared, attend_by_rows
from visformer.model.taps import AttentionInputs
from visformer.trace.names import axes_of

NAME = "decoder.0.self_attn.pattern"


@st.composite
def cases(draw):
    n, n_heads, group = draw(st.integers(1, 70)), draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2]))
    group = min(group, n_heads)
    seed = draw(st.integers(0, 2**31))
    random = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, heads, n, 8, generator=random) for heads in (n_heads, *[n_heads // group] * 2))
    mask = draw(st.sampled_from([None, "causal", "window", "random"]))
    rows, columns = torch.arange(n)[:, None], torch.arange(n)
    masks = {
        "causal": columns <= rows,
        "window": (columns <= rows) & (columns > rows - 5),
        "random": torch.rand(n, n, generator=random) < 0.5,  # some rows may attend to nothing
    }
    bias = draw(st.sampled_from([None, "keys", "distance", "any"]))
    line = torch.randn(1, n_heads, 2 * n - 1, generator=random)
    biases = {
        "keys": torch.randn(1, n_heads, 1, n, generator=random),
        "distance": line[..., n - 1 - rows + columns],
        "any": torch.randn(1, n_heads, n, n, generator=random),
    }
    return AttentionInputs(
        q, k, v,
        scale=draw(st.sampled_from([1.0, 8**-0.5])),
        mask=None if mask is None else masks[mask][None, None],
        bias=None if bias is None else biases[bias],
        softcap=draw(st.sampled_from([None, 0.5])),
        sinks=torch.randn(n_heads, generator=random) if draw(st.booleans()) else None,
    )  # fmt: skip


def reference(inputs):
    """The pattern (head, query, key) and the sink's mass, float64."""
    group = inputs.query.shape[1] // inputs.key.shape[1]
    q, k = inputs.query[0].double(), inputs.key[0].double().repeat_interleave(group, dim=0)
    scores = q @ k.transpose(1, 2) * inputs.scale
    if inputs.softcap:
        scores = torch.tanh(scores / inputs.softcap) * inputs.softcap
    if inputs.bias is not None:
        scores = scores + inputs.bias[0].double()
    if inputs.mask is not None:
        scores = scores.masked_fill(~inputs.mask[0], -torch.inf)
    sinks = torch.full((len(scores),), -torch.inf) if inputs.sinks is None else inputs.sinks
    column = sinks.double()[:, None, None].expand(*scores.shape[:2], 1)
    pattern = torch.cat([scores, column], dim=-1).softmax(dim=-1).nan_to_num(0.0)
    return pattern[..., :-1], pattern[..., -1]


@settings(max_examples=150, deadline=None)
@given(cases(), st.integers(1, 9), st.sampled_from([1, 500, 10**6]))
def test_blocks_of_rows_and_heads_give_what_softmax_gives(inputs, block, weights):
    tokens = [str(i % 7) for i in range(inputs.query.shape[2])]
    shared = Shared(lambda side: tokens)
    with mock.patch.multiple(by_rows, _BLOCK=block, _WEIGHTS=weights):
        heads, sink, found = attend_by_rows(NAME, axes_of(NAME), inputs, [], shared)
    pattern, mass = reference(inputs)
    group = inputs.query.shape[1] // inputs.key.shape[1]
    wanted = pattern @ inputs.value[0].double().repeat_interleave(group, dim=0)
    np.testing.assert_allclose(heads[0], wanted, atol=1e-5)
    np.testing.assert_allclose(found.value, pattern, atol=3e-6)
    if sink is not None:
        np.testing.assert_allclose(sink[0], mass, atol=3e-6)
    sums, n = found.overview.sums, len(tokens)
    np.testing.assert_allclose(sums.mass, pattern.sum(-1), atol=1e-5)
    np.testing.assert_allclose(sums.entropy, -torch.special.xlogy(pattern, pattern).sum(-1), atol=1e-5)
    np.testing.assert_allclose(sums.received, pattern.sum(-2), atol=1e-5)
    np.testing.assert_allclose(sums.own, pattern.diagonal(0, 1, 2), atol=3e-6)
    np.testing.assert_allclose(sums.previous, pattern.diagonal(-1, 1, 2).sum(-1), atol=1e-5)
    np.testing.assert_allclose(sums.next, pattern.diagonal(1, 1, 2).sum(-1), atol=1e-5)
    equal = np.array([[a == b for b in tokens] for a in tokens]) & ~np.eye(n, dtype=bool)
    np.testing.assert_allclose(sums.same, (pattern.numpy() * equal).sum((1, 2)), atol=1e-5)
    part = found.block(n // 3, n, n // 4, n // 2, head=-1)
    np.testing.assert_allclose(part, pattern[-1, n // 3 :, n // 4 : n // 2], atol=3e-6)
