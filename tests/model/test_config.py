"""The configuration: invalid values are refused, the defaults are the paper's base model, and sizes count."""

import dataclasses
import math

import pytest
import torch

from tests.model.support import count_parameters
from visformer.errors import ConfigError, VisformerError
from visformer.model.config import GPTConfig, TransformerConfig
from visformer.model.gpt import GPT
from visformer.model.transformer import Transformer

SHARED_VOCAB = 37000  # section 5.1: a shared source-target vocabulary of about 37000 tokens

INVALID = {
    "src_vocab": (-3, 10.0, "10", True),
    "tgt_vocab": (0,),
    "d_model": (512.0,),
    "n_heads": (0,),
    "n_encoder_layers": (-1,),
    "n_decoder_layers": (None,),
    "d_ff": ([2048],),
    "max_len": (0,),
    "dropout": (1.0, math.nan, "0.1"),
    "layer_norm_eps": (0.0, math.inf),
    "norm": ("Pre", ["pre"]),
    "position": ("relative",),
    "activation": (torch.relu,),
    "final_norm": ("yes",),
    "tie_embeddings": (None,),
}
INVALID_GPT = {"vocab": 0, "n_layers": 0, "d_model": 10, "n_heads": 2.0, "max_len": 0, "dropout": 1}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in INVALID.items() for value in values])
def test_the_error_names_an_invalid_field_and_its_value(name, value):
    with pytest.raises(ConfigError, match=name) as caught:
        TransformerConfig(**{"src_vocab": 10, "tgt_vocab": 10, name: value})
    assert str(value) in str(caught.value)
    assert isinstance(caught.value, VisformerError) and isinstance(caught.value, ValueError)
    assert caught.value.localized(lambda message: f"> {message}") == f"> {caught.value}"


@pytest.mark.parametrize(("name", "value"), INVALID_GPT.items())
def test_the_configuration_of_a_decoder_only_model_is_checked_too(name, value):
    with pytest.raises(ConfigError, match=f"{name}={value}"):
        GPTConfig(**{"vocab": 10, name: value})


def test_the_default_decoder_only_model_is_the_smallest_gpt_2():
    """124 million parameters (as released), and an output matrix of its own."""
    with torch.device("meta"):
        model = GPT(GPTConfig(50257))
    assert count_parameters(model) == 124_439_808 + 50257 * 768


def test_rotary_positions_need_an_even_d_k():
    with pytest.raises(ConfigError, match="d_model / n_heads is 3 and must be even"):
        TransformerConfig(10, 10, d_model=12, n_heads=4, position="rotary")


def test_n_heads_must_divide_d_model():
    with pytest.raises(ConfigError, match=r"d_model=10.*n_heads=4"):
        TransformerConfig(src_vocab=5, tgt_vocab=5, d_model=10, n_heads=4)


def test_extreme_values_are_valid():
    extremes = {"dropout": 0, "layer_norm_eps": 1, "n_decoder_layers": 0, "final_norm": False, "max_len": 1}
    for name, value in [*extremes.items(), ("dropout", 0.999)]:
        config = TransformerConfig(**{"src_vocab": 1, "tgt_vocab": 1, name: value})
        assert getattr(config, name) == value


def test_a_config_is_frozen_and_hashable_and_takes_only_vocabulary_sizes_by_position():
    config = TransformerConfig(10, 12)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 8
    with pytest.raises(TypeError):
        TransformerConfig(10, 12, 512)
    assert hash(config) == hash(TransformerConfig(src_vocab=10, tgt_vocab=12))
    with pytest.raises(ConfigError):
        dataclasses.replace(config, n_heads=7)


def test_defaults_are_the_base_model_of_table_3():
    config = TransformerConfig(src_vocab=SHARED_VOCAB, tgt_vocab=SHARED_VOCAB)
    assert (config.n_encoder_layers, config.n_decoder_layers) == (6, 6)
    assert (config.d_model, config.d_ff, config.n_heads, config.d_k) == (512, 2048, 8, 64)
    assert (config.dropout, config.norm, config.position, config.activation) == (0.1, "post", "sinusoidal", "relu")
    assert not config.has_final_norm


def test_a_final_norm_is_the_default_with_pre_norm_only():
    for norm, final_norm, expected in (
        ("post", None, False), ("pre", None, True), ("post", True, True), ("pre", False, False),
    ):  # fmt: skip
        config = TransformerConfig(src_vocab=5, tgt_vocab=5, norm=norm, final_norm=final_norm)
        assert config.has_final_norm is expected, (norm, final_norm)


def expected_parameters(vocab, d, d_ff, layers):
    """Count the parameters of the paper's model with ``layers`` encoder and as many decoder layers."""
    attention = 4 * (d * d + d)  # W_Q, W_K, W_V, W_O and their biases
    feed_forward = d * d_ff + d_ff + d_ff * d + d
    norm = 2 * d
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    return vocab * d + layers * (encoder + decoder)  # one matrix for both embeddings and the output (section 3.4)


@pytest.mark.parametrize(
    ("d_model", "d_ff", "n_heads", "count"),
    [(512, 2048, 8, 63_082_496), (1024, 4096, 16, 214_245_376)],
    ids=["base", "big"],
)
def test_base_and_big_model_have_as_many_parameters_as_in_the_paper(d_model, d_ff, n_heads, count):
    """Table 3: 65 and 213 million, with a vocabulary of "about" 37000."""
    sizes = {"d_model": d_model, "d_ff": d_ff, "n_heads": n_heads}
    with torch.device("meta"):
        model = Transformer(TransformerConfig(SHARED_VOCAB, SHARED_VOCAB, **sizes, tie_embeddings=True))
    assert count_parameters(model) == expected_parameters(SHARED_VOCAB, d_model, d_ff, 6) == count


def test_untied_embeddings_learned_positions_and_final_norms_have_parameters_of_their_own():
    sizes = {"d_model": 6, "n_heads": 2, "n_encoder_layers": 1, "n_decoder_layers": 1, "d_ff": 10, "max_len": 9}
    model = Transformer(TransformerConfig(7, 11, **sizes, position="learned", norm="pre"))
    layers = expected_parameters(0, 6, 10, 1)
    assert count_parameters(model) == layers + (7 + 11 + 11) * 6 + 2 * 9 * 6 + 2 * 12
