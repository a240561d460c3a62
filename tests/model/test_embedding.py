"""Embeddings and positions (sections 3.4 and 3.5)."""

import pytest
import torch

from tests.model.support import build, ids, record, run
from visformer.errors import TextError
from visformer.model.embedding import sinusoidal_encoding
from visformer.model.transformer import Transformer


def test_embedded_words_start_with_unit_variance():
    model = build(src_vocab=4000, d_model=64, n_heads=1)
    fresh = Transformer(model.config)
    assert (fresh.src_embedding.token.weight * 8).std().item() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_positions_do_not_depend_on_how_long_the_sentence_is(dtype):
    model = build(dtype=dtype, n_encoder_layers=0, n_decoder_layers=0)
    short = dict(record(model, ids(1, 512), ids(1, 2))[1])["src.position"]
    long = dict(record(model, ids(1, 530), ids(1, 2))[1])["src.position"]
    assert long.shape == (530, 12) and short.dtype == long.dtype == dtype
    assert torch.equal(long[:512], short)
    assert torch.equal(long, sinusoidal_encoding(530, 12, dtype=dtype))


def test_positions_survive_a_model_made_on_the_meta_device():
    with torch.device("meta"):
        model = Transformer(build().config)
    seen = dict(record(model.to_empty(device="cpu"), ids(1, 5), ids(1, 2))[1])
    assert torch.equal(seen["src.position"][:5], sinusoidal_encoding(5, 12))


def test_learned_positions_are_a_table_with_an_end():
    model = build(position="learned", max_len=6)
    seen = dict(record(model, ids(1, 6), ids(1, 4))[1])
    assert torch.equal(seen["src.position"], model.src_embedding.position)
    assert torch.equal(seen["tgt.position"], model.tgt_embedding.position[:4])
    with pytest.raises(TextError, match=r"7 tokens.*6 positions"):
        run(model, ids(1, 7), ids(1, 4))
    with pytest.raises(TextError, match=r"7 tokens.*6 positions"):
        run(model, ids(1, 4), ids(1, 7))
    with pytest.raises(TextError, match="7 tokens"):
        model.decode(ids(1, 1), torch.zeros(1, 4, 12), ids(1, 4), cache=model.new_cache(), start=6)


def test_sinusoids_are_not_in_the_state():
    assert not [name for name in build().state_dict() if "position" in name]
    assert [name for name in build(position="learned").state_dict() if "position" in name]
