"""Untrained Transformers: each has one name, and its weights depend on nothing else."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

import visformer as vf
from tests.support import tiny_translator
from visformer.adapters.bundled import BUNDLED
from visformer.app.session import url_state
from visformer.errors import ConfigError
from visformer.model.checkpoints import FOLDER
from visformer.model.positions import POSITIONS
from visformer.model.untrained import Untrained, names_untrained

SOME = st.builds(
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


@given(SOME)
def test_each_has_one_name(wanted):
    assert names_untrained(wanted.name)
    assert Untrained.named(wanted.name) == wanted


@pytest.mark.parametrize(
    "name",
    ["", "en-zh", "untrained-", "untrained-128x4", "untrained-0128x4-enc2-dec2-ff512", "untrained-1٣x1-enc2-dec2-ff512",
     *(f"untrained-128x4-enc2-dec2-ff512{more}" for more in ("-seed0", "-learned-pre", "\n", "-post"))],
)  # fmt: skip
def test_an_invalid_name_is_refused_with_a_valid_example(name):
    with pytest.raises(ConfigError, match="write untrained-128x4-enc2-dec2-ff512") as refused:
        Untrained.named(name)
    assert repr(name) in str(refused.value)


def test_by_default_it_is_as_large_as_the_bundled_translator():
    with safe_open(FOLDER / BUNDLED[0] / "model.safetensors", "numpy") as file:
        bundled = json.loads(file.metadata()["config"])
    config = vf.untrained().module.config
    for name in ("src_vocab", "tgt_vocab", "d_model", "n_heads", "n_encoder_layers", "n_decoder_layers", "d_ff", "norm",
                 "position", "tie_embeddings", "max_len"):  # fmt: skip
        assert getattr(config, name) == bundled[name], name


def test_name_and_arguments_give_the_same_model():
    named = vf.load("untrained-32x4-enc1-dec2-ff64-pre-learned-seed3")
    state = torch.get_rng_state()
    made = vf.untrained(
        d_model=32, n_heads=4, n_encoder_layers=1, n_decoder_layers=2, d_ff=64, norm="pre", position="learned", seed=3
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert named.info == made.info
    assert (made.info.n_encoder_layers, made.info.n_decoder_layers, made.info.position) == (1, 2, "learned")
    for name, weight in named.module.state_dict().items():
        assert torch.equal(weight, made.module.state_dict()[name]), name
    other = vf.load("untrained-32x4-enc1-dec2-ff64-pre-learned-seed4").module.state_dict()
    assert not torch.equal(other["output.weight"], named.module.state_dict()["output.weight"])


def test_like_copies_tokenizer_and_sizes():
    tiny = tiny_translator(tie_embeddings=True)
    made = vf.untrained(tiny, norm="pre")
    assert made.tokenizer is tiny.tokenizer
    assert made.module.config.tie_embeddings and made.module.config.norm == "pre"
    assert made.info.name == "untrained-16x2-enc2-dec3-ff24-pre"
    assert made.trace("I went", "我去")["encoder.1.self_attn.pattern"].value.shape[0] == 2
    assert vf.load("untrained-16x2-enc2-dec3-ff24", dtype=torch.float64).module.output.weight.dtype == torch.float64


def test_the_bare_name_has_the_defaults():
    assert names_untrained("untrained") and not names_untrained("untraineds")
    assert Untrained.named("untrained") == Untrained()
    assert url_state.read({"model": "untrained"})[0].model == Untrained().name
