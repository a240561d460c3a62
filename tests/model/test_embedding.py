"""Embeddings and positions (sections 3.4 and 3.5)."""

import pytest
import torch

from tests.model.support import build, ids, record, run
from visformer.errors import TextError
from visformer.model.embedding import sinusoidal_encoding
from visformer.model.transformer import Transformer


def test_untrained_embeddings_times_the_root_of_d_model_have_unit_variance():
    model = Transformer(build(src_vocab=4000, d_model=64, n_heads=1).config)
    assert (model.src_embedding.token.weight * 8).std().item() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_positions_do_not_depend_on_the_length_of_the_sentence(dtype):
    model = build(dtype=dtype, n_encoder_layers=0, n_decoder_layers=0)
    short, long = (record(model, ids(1, length), ids(1, 2))[1]["src.position"] for length in (512, 530))
    assert long.shape == (530, 12) and short.dtype == long.dtype == dtype
    assert torch.equal(long[:512], short)
    assert torch.equal(long, sinusoidal_encoding(530, 12, dtype=dtype))


def test_a_model_created_on_the_meta_device_has_sinusoidal_positions():
    with torch.device("meta"):
        model = Transformer(build().config)
    _, tapped = record(model.to_empty(device="cpu"), ids(1, 5), ids(1, 2))
    assert torch.equal(tapped["src.position"][:5], sinusoidal_encoding(5, 12))


def test_learned_positions_are_a_table_and_longer_texts_are_refused():
    model = build(position="learned", max_len=6)
    _, tapped = record(model, ids(1, 6), ids(1, 4))
    assert torch.equal(tapped["src.position"], model.src_embedding.position)
    assert torch.equal(tapped["tgt.position"], model.tgt_embedding.position[:4])
    for src_length, tgt_length in ((7, 4), (4, 7)):
        with pytest.raises(TextError, match=r"7 tokens.*6 positions"):
            run(model, ids(1, src_length), ids(1, tgt_length))
    with pytest.raises(TextError, match="7 tokens"):
        model.decode(ids(1, 1), torch.zeros(1, 4, 12), ids(1, 4), cache=model.new_cache(), start=6)


def test_the_state_has_learned_positions_but_no_sinusoids():
    assert not [name for name in build().state_dict() if "position" in name]
    assert [name for name in build(position="learned").state_dict() if "position" in name]
