"""Properties of every Transformer, whatever its sizes, weights and sentences."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.model.support import build, ids, record, run
from visformer.model.attention import attention
from visformer.model.masks import causal_mask, padding_mask
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


@given(CHOICES, st.data())
def test_every_pattern_of_the_model_is_a_pattern(choices, data):
    model = build(**choices)
    src = torch.tensor([data.draw(token_ids(4)), data.draw(token_ids(4))])
    tgt = torch.tensor([data.draw(token_ids(3)), data.draw(token_ids(3))])
    logits, seen = record(model, src, tgt)
    assert logits.isfinite().all()
    seen = dict(seen)
    patterns = [name for name in seen if name.endswith("pattern")]
    assert len(patterns) == choices["n_encoder_layers"] + 2 * choices["n_decoder_layers"]
    for name in patterns:
        mask = seen[name.replace("pattern", "mask")]
        keys = padding_mask(tgt if name.startswith("decoder") and "self" in name else src)
        allowed = causal_mask(3) & keys if name.startswith("decoder") and "self" in name else keys
        assert torch.equal(mask, allowed.expand(mask.shape))
        torch.testing.assert_close(seen[name].sum(-1), mask.any(-1).float(), rtol=0, atol=1e-5)
        assert (seen[name][~mask] == 0).all()


@given(CHOICES, st.data())
def test_future_targets_never_change_earlier_logits(choices, data):
    model = build(**choices)
    length = data.draw(st.integers(2, 7))
    known = data.draw(st.integers(1, length - 1))
    src = torch.tensor([data.draw(token_ids(4))])
    past, one, other = (data.draw(token_ids(n)) for n in (known, length - known, length - known))
    first, second = (run(model, src, torch.tensor([past + rest])) for rest in (one, other))
    assert torch.equal(first[:, :known], second[:, :known])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@given(choices=CHOICES, data=st.data())
def test_padding_never_changes_unpadded_outputs(dtype, choices, data):
    model = build(dtype=dtype, std=0.2, **choices)
    n, m = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    src = torch.tensor([data.draw(token_ids(n, least=1))])
    tgt = torch.tensor([data.draw(token_ids(m, least=1))])
    alone = run(model, src, tgt)
    mates_src, mates_tgt = ids(2, n + data.draw(st.integers(1, 4))), ids(2, m + data.draw(st.integers(1, 4)))
    mates_src[0], mates_tgt[0] = 0, 0
    mates_src[0, :n], mates_tgt[0, :m] = src[0], tgt[0]
    together = run(model, mates_src, mates_tgt)
    torch.testing.assert_close(together[:1, :m], alone, rtol=0, atol=TOLERANCE[dtype])


@given(WIDTHS, CHOICES)
def test_any_width_works_odd_ones_too(width, choices):
    n_heads, d_model = width
    assume(choices["position"] != "rotary" or d_model // n_heads % 2 == 0)
    model = build(n_heads=n_heads, d_model=d_model, **choices)
    logits, seen = record(model, ids(2, 4), ids(2, 3))
    assert logits.shape == (2, 3, 19) and logits.isfinite().all()
    assert dict(seen)["src.input"].shape == (2, 4, d_model)


@given(CHOICES, st.booleans())
def test_recording_leaves_the_logits_bit_identical(choices, padded):
    model = build(**choices)
    src, tgt = ids(2, 6), ids(2, 5)
    if padded:
        src[0, 3:], tgt[1, 2:] = 0, 0
    plain = run(model, src, tgt)
    recorded, seen = record(model, src, tgt)
    assert torch.equal(plain, recorded) and torch.equal(dict(seen)["logits"], plain)
    assert torch.equal(run(model, src, tgt), plain)
