"""Properties of a Transformer of any sizes and weights, on any sentences."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.model.support import build, ids, record, run
from visformer.model.attention import attention
from visformer.model.positions import POSITIONS

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
CHOICES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 5),
        "norm": st.sampled_from(["post", "pre"]),
        "activation": st.sampled_from(["relu", "gelu"]),
        "position": st.sampled_from(list(POSITIONS)),
        "n_encoder_layers": st.integers(0, 2),
        "n_decoder_layers": st.integers(1, 2),
    }
)
WIDTHS = st.sampled_from([(1, 1), (1, 7), (2, 6), (3, 15), (4, 8)])


def token_ids(length, *, vocab=19, least=0):
    return st.lists(st.integers(least, vocab - 1), min_size=length, max_size=length)


@given(st.data())
def test_rows_of_attention_sum_to_one_or_are_all_zero(data):
    batch, n, m, d = (data.draw(st.integers(1, 4)) for _ in range(4))
    size = data.draw(st.sampled_from([0.1, 3.0, 300.0]))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    query, key = torch.randn(batch, n, d, generator=generator), torch.randn(batch, m, d, generator=generator)
    mask = torch.rand(batch, n, m, generator=generator) < data.draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    output, pattern = attention(query * size, key, key, mask=mask)
    visible = mask.any(-1)
    torch.testing.assert_close(pattern.sum(-1), visible.float(), rtol=0, atol=1e-5)
    assert (pattern >= 0).all() and (pattern[~mask] == 0).all() and (output[~visible] == 0).all()


@settings(max_examples=15)
@given(CHOICES, st.data())
def test_later_target_tokens_never_change_earlier_logits(choices, data):
    model = build(**choices)
    length = data.draw(st.integers(2, 7))
    known = data.draw(st.integers(1, length - 1))
    src = torch.tensor([data.draw(token_ids(4))])
    first, end, other_end = (data.draw(token_ids(n)) for n in (known, length - known, length - known))
    logits, other_logits = (run(model, src, torch.tensor([first + rest])) for rest in (end, other_end))
    assert torch.equal(logits[:, :known], other_logits[:, :known])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=15)
@given(choices=CHOICES, data=st.data())
def test_padding_in_a_batch_does_not_change_the_logits_of_a_sentence(dtype, choices, data):
    model = build(dtype=dtype, std=0.2, **choices)
    n, m = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    src = torch.tensor([data.draw(token_ids(n, least=1))])
    tgt = torch.tensor([data.draw(token_ids(m, least=1))])
    alone = run(model, src, tgt)
    batch_src, batch_tgt = ids(2, n + data.draw(st.integers(1, 4))), ids(2, m + data.draw(st.integers(1, 4)))
    batch_src[0], batch_tgt[0] = 0, 0
    batch_src[0, :n], batch_tgt[0, :m] = src[0], tgt[0]
    together = run(model, batch_src, batch_tgt)
    torch.testing.assert_close(together[:1, :m], alone, rtol=0, atol=TOLERANCE[dtype])


@settings(max_examples=15)
@given(WIDTHS, CHOICES)
def test_d_model_may_be_odd(width, choices):
    n_heads, d_model = width
    assume(choices["position"] != "rotary" or d_model // n_heads % 2 == 0)
    model = build(n_heads=n_heads, d_model=d_model, **choices)
    logits, tapped = record(model, ids(2, 4), ids(2, 3))
    assert logits.shape == (2, 3, 19) and logits.isfinite().all()
    assert tapped["src.input"].shape == (2, 4, d_model)


@settings(max_examples=15)
@given(CHOICES, st.booleans())
def test_logits_are_bit_identical_with_and_without_recording(choices, padded):
    model = build(**choices)
    src, tgt = ids(2, 6), ids(2, 5)
    if padded:
        src[0, 3:], tgt[1, 2:] = 0, 0
    plain = run(model, src, tgt)
    recorded, tapped = record(model, src, tgt)
    assert torch.equal(plain, recorded) and torch.equal(tapped["logits"], plain)
    assert torch.equal(run(model, src, tgt), plain)
