"""Each class of the Transformer used alone, on a batch, as one uses torch's own."""

import numpy as np
import pytest
import torch
from torch import nn

import visformer as vf
from visformer.errors import ArgumentError, ShapeError

CONFIG = vf.TransformerConfig(1000, 1000, d_model=512, d_ff=1024, n_encoder_layers=3, n_decoder_layers=3, dropout=0.0)
TOKENS = torch.Size([2, 4, 512])


def batch():
    return torch.randn(TOKENS, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("module", "takes", "gives"),
    [
        (lambda: vf.model.MultiHeadAttention(512, 8), 3, 512),
        (lambda: vf.model.FeedForward(512, 1024), 1, 512),
        (lambda: vf.model.EncoderLayer(CONFIG), 1, 512),
        (lambda: vf.model.DecoderLayer(CONFIG), 2, 512),
        (lambda: vf.model.Encoder(CONFIG), 1, 512),
        (lambda: vf.model.Decoder(CONFIG), 2, 512),
        (lambda: vf.model.Output(512, 1000), 1, 1000),
    ],
    ids=lambda value: value().__class__.__name__ if callable(value) else "",
)
def test_every_class_works_alone_and_says_what_does_not_fit(module, takes, gives):
    module, x = module(), batch()
    assert module(*[x] * takes).shape == (2, 4, gives)
    with pytest.raises(ShapeError, match=r"int64 \(2, 4, 512\)"):
        module(*[x.long()] * takes)
    with pytest.raises(ArgumentError, match=r"is float32 \(2, 4, 512\), of the type ndarray; it has to be Tensor"):
        module(*[x.numpy()] * takes)


def test_ids_become_vectors_and_vectors_are_no_ids():
    embedding = vf.model.Embedding(1000, CONFIG).eval()
    ids = torch.tensor([[1, 2, 999, 0]] * 2)
    expected = nn.functional.embedding(ids, embedding.token.weight) * 512**0.5 + vf.sinusoidal_encoding(4, 512)
    torch.testing.assert_close(embedding(ids), expected)
    with pytest.raises(ShapeError, match=r"ids float32 \(2, 4, 512\)"):
        embedding(batch())


def test_queries_keys_and_values_may_differ_as_in_torch():
    theirs = nn.MultiheadAttention(512, 8, batch_first=True)
    ours = vf.model.MultiHeadAttention(512, 8)
    with torch.no_grad():
        for own, weight, bias in zip(
            (ours.w_q, ours.w_k, ours.w_v), theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True
        ):
            own.weight.copy_(weight)
            own.bias.copy_(bias)
        ours.w_o.load_state_dict(theirs.out_proj.state_dict())
    query, key = batch(), torch.randn(2, 7, 512)
    value = key + 1
    torch.testing.assert_close(ours(query, key, value), theirs(query, key, value)[0])


def test_attention_says_what_it_was_given():
    with pytest.raises(ShapeError, match=r"query int64 \(4, 8\)"):
        vf.attention(*[torch.ones(4, 8, dtype=torch.int64)] * 3)
    with pytest.raises(ArgumentError, match=r"query is float64 \(4, 8\), of the type ndarray"):
        vf.attention(*[np.ones((4, 8))] * 3)
