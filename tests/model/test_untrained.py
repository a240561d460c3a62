"""Untrained Transformers: the name has all sizes and the seed, and determines the weights."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

import visformer as vf
from tests.support import tiny_translator
from visformer.adapters.checkpoints import TRANSLATOR
from visformer.errors import ConfigError
from visformer.model.checkpoints import FOLDER
from visformer.model.positions import POSITIONS
from visformer.model.untrained import Untrained, is_untrained_name

untrained = st.builds(
    lambda heads, wide, **more: Untrained(d_model=2 * heads * wide, n_heads=heads, **more),
    heads=st.integers(1, 16),
    wide=st.integers(1, 32),
    n_encoder_layers=st.integers(0, 12),
    n_decoder_layers=st.integers(0, 12),
    d_ff=st.integers(1, 4096),
    norm=st.sampled_from(["post", "pre"]),
    position=st.sampled_from(list(POSITIONS)),
    seed=st.integers(0, 999_999_999),
)


@given(untrained)
def test_a_model_is_restored_from_its_name(model):
    assert is_untrained_name(model.name)
    assert Untrained.named(model.name) == model


@pytest.mark.parametrize(
    "name",
    ["", "en-zh", "untrained-", "untrained-128x4", "untrained-0128x4-enc2-dec2-ff512", "untrained-1٣x1-enc2-dec2-ff512",
     *(f"untrained-128x4-enc2-dec2-ff512{more}" for more in ("-seed0", "-learned-pre", "\n", "-post"))],
)  # fmt: skip
def test_an_invalid_name_is_refused_with_a_valid_example(name):
    with pytest.raises(ConfigError, match="write untrained-128x4-enc2-dec2-ff512") as refused:
        Untrained.named(name)
    assert repr(name) in str(refused.value)


def test_the_default_sizes_are_those_of_the_bundled_translator():
    with safe_open(FOLDER / TRANSLATOR / "model.safetensors", "numpy") as file:
        bundled = json.loads(file.metadata()["config"])
    config = vf.untrained().module.config
    for name in ("src_vocab", "tgt_vocab", "d_model", "n_heads", "n_encoder_layers", "n_decoder_layers", "d_ff", "norm",
                 "position", "tie_embeddings", "max_len"):  # fmt: skip
        assert getattr(config, name) == bundled[name], name


def test_a_name_and_the_same_arguments_give_the_same_model():
    named = vf.load("untrained-32x4-enc1-dec2-ff64-pre-learned-seed3")
    state = torch.get_rng_state()
    sizes = {"d_model": 32, "n_heads": 4, "n_encoder_layers": 1, "n_decoder_layers": 2, "d_ff": 64}
    model = vf.untrained(**sizes, norm="pre", position="learned", seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    assert named.info == model.info
    assert (model.info.n_encoder_layers, model.info.n_decoder_layers, model.info.position) == (1, 2, "learned")
    for name, weight in named.module.state_dict().items():
        assert torch.equal(weight, model.module.state_dict()[name]), name
    other = vf.load("untrained-32x4-enc1-dec2-ff64-pre-learned-seed4").module.state_dict()
    assert not torch.equal(other["output.weight"], named.module.state_dict()["output.weight"])


def test_an_untrained_model_can_have_tokenizer_and_sizes_of_another():
    tiny = tiny_translator(tie_embeddings=True)
    model = vf.untrained(tiny, norm="pre")
    assert model.tokenizer is tiny.tokenizer
    assert model.module.config.tie_embeddings and model.module.config.norm == "pre"
    assert model.info.name == "untrained-16x2-enc2-dec3-ff24-pre"
    assert model.trace("I went", "我去")["encoder.1.self_attn.pattern"].value.shape[0] == 2


def test_an_untrained_model_can_be_loaded_in_float64():
    assert vf.load("untrained-16x2-enc2-dec3-ff24", dtype=torch.float64).module.output.weight.dtype == torch.float64


def test_the_name_untrained_alone_has_the_default_sizes():
    assert is_untrained_name("untrained") and not is_untrained_name("untraineds")
    assert Untrained.named("untrained") == Untrained()
