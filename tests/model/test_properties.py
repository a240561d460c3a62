"""Properties of a Transformer of any sizes: tests/parity compares its numbers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.support import build, ids, record, run
from visformer.model.positions import POSITIONS


@pytest.mark.parametrize("position", POSITIONS)
def test_d_model_may_be_odd(position):
    for n_heads, d_model in ((1, 1), (1, 7), (2, 6), (3, 15), (4, 8)):
        if position == "rotary" and d_model // n_heads % 2:
            continue
        for norm in ("post", "pre"):
            model = build(n_heads=n_heads, d_model=d_model, norm=norm, position=position)
            logits, tapped = record(model, ids(2, 4), ids(2, 3))
            assert logits.shape == (2, 3, 19) and logits.isfinite().all()
            assert tapped["src.input"].shape == (2, 4, d_model)


@settings(max_examples=15)
@given(st.sampled_from(["post", "pre"]), st.sampled_from([*POSITIONS]), st.integers(0, 2), st.booleans())
def test_logits_are_bit_identical_with_and_without_recording(norm, position, n_encoder_layers, padded):
    model = build(norm=norm, position=position, n_encoder_layers=n_encoder_layers)
    src, tgt = ids(2, 6), ids(2, 5)
    if padded:
        src[0, 3:], tgt[1, 2:] = 0, 0
    plain = run(model, src, tgt)
    recorded, tapped = record(model, src, tgt)
    assert torch.equal(plain, recorded) and torch.equal(tapped["logits"], plain)
    assert torch.equal(run(model, src, tgt), plain)
