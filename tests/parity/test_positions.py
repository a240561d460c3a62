"""Each positional encoding compared with a transformers model that has it, and with NumPy."""

import numpy as np
import pytest
import torch
from transformers import LlamaConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from tests.model.support import build, ids
from visformer import formulas
from visformer.model.attention import Order, attention
from visformer.model.positions import Alibi, Rotary

N, HEADS, D_K = 16, 4, 8


def random(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)), dtype=dtype)


@pytest.mark.parametrize("base", [100.0, 10_000.0])
def test_queries_and_keys_are_rotated_as_in_llama(base):
    sizes = {"hidden_size": HEADS * D_K, "num_attention_heads": HEADS, "max_position_embeddings": N}
    config = LlamaConfig(**sizes, rope_theta=base)
    q, k = random(2, HEADS, N, D_K), random(2, HEADS, N, D_K).flip(0)
    cos, sin = LlamaRotaryEmbedding(config)(q, torch.arange(N)[None])
    order = Order.of(Rotary(base), torch.zeros(1, N, HEADS * D_K), n_heads=HEADS)
    for ours, theirs in zip(map(order.rotated, (q, k)), apply_rotary_pos_emb(q, k, cos, sin), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 8, 12, 16, 20])
def test_alibi_slopes_are_those_of_bloom(n_heads):
    theirs = build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), n_heads, torch.float32)[:, 0, 1]
    np.testing.assert_allclose(formulas.alibi_slopes(n_heads), theirs.numpy(), rtol=1e-6)


def test_causal_attention_with_alibi_equals_that_with_the_bias_of_bloom():
    """BLOOM adds slope times the key's position: the difference is constant in each row, so softmax ignores it."""
    q, k, v = (random(1, 3, N, D_K, dtype=torch.float64) * scale for scale in (1, 2, 3))
    causal = torch.ones(N, N, dtype=torch.bool).tril()
    theirs = build_alibi_tensor(torch.ones(1, N, dtype=torch.long), 3, torch.float64)[None]
    ours = torch.from_numpy(Alibi().bias(3, N))
    actual, expected = (attention(q, k, v, mask=causal, bias=bias) for bias in (ours, theirs))
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("position", ["rotary", "alibi", "none"])
def test_without_added_positions_vectors_depend_on_distances_only(position):
    """The same tokens after padding, which is never attended to, have the same vectors."""
    model = build(position=position, dtype=torch.float64)
    tokens = ids(1, 6)
    shifted = torch.cat([torch.zeros(1, 5, dtype=torch.long), tokens], dim=1)
    with torch.no_grad():
        torch.testing.assert_close(model.encode(shifted)[:, 5:], model.encode(tokens), rtol=0, atol=1e-12)
