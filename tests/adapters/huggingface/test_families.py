"""Families that cannot be shown: the message says why, and what transformers returns is indeed of no use."""

import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import IS_OLD, tiny_module, tokenizer
from visformer.adapters.huggingface.families import REFUSED
from visformer.errors import CheckpointError, VisformerError

IDS = torch.tensor([[1, *range(5, 31), 2]])  # BigBird-Pegasus reads fewer in full, and stays so


@pytest.mark.parametrize("family", REFUSED)
def test_a_family_is_refused_with_its_reason(family):
    with pytest.raises(CheckpointError) as error:
        vf.wrap(tiny_module(family), tokenizer())
    assert str(error.value) == f"Models of the family {family!r} cannot be shown: {REFUSED[family]}."


@pytest.mark.skipif(IS_OLD, reason="transformers 4 takes other arguments")
@pytest.mark.parametrize("family", REFUSED)
def test_a_refused_family_indeed_returns_no_pattern_over_tokens(family):
    module = tiny_module(family)
    given = {"input_ids": IDS, "output_attentions": True}
    if module.config.is_encoder_decoder:
        given |= {"decoder_input_ids": IDS, "use_cache": False}
    if module.main_input_name == "pixel_values":
        given["pixel_values"] = torch.zeros(1, 3, 8, 8)
    with torch.no_grad():
        output = module(**given)
    fields = [output.get(field) for field in ("attentions", "encoder_attentions", "decoder_attentions")]
    returned = [pattern for field in fields if field for pattern in field]
    assert not returned or not all(is_pattern(pattern, causal=family == "xlnet") for pattern in returned)


def is_pattern(weights, causal):
    """Whether they are (batch, head, query, key), of rows that sum to 1, without a view of what comes later."""
    n = IDS.shape[1]
    if weights is None or weights.dim() != 4 or weights.shape[-2:] != (n, n):
        return False
    return torch.allclose(weights.sum(dim=-1), torch.ones(1), atol=1e-4) and not (causal and weights.triu(1).any())


def test_a_refused_model_is_not_downloaded_or_read(tmp_path):
    tiny_module("mamba").config.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="'mamba' cannot be shown: its layers are state-space models"):
        vf.load(tmp_path)


def test_big_bird_with_full_attention_is_shown():
    model = vf.wrap(tiny_module("big_bird", attention_type="original_full"), tokenizer())
    assert model.trace("I went to school").stack("encoder.self_attn").shape == (3, 4, 6, 6)


def test_a_family_that_nobody_listed_is_refused_if_it_returns_no_patterns(monkeypatch):
    monkeypatch.setattr("visformer.adapters.huggingface.families.REFUSED", {})
    for family in ("mamba", "longformer"):
        with pytest.raises(VisformerError, match=r"returns no attention weights of shape \(head, query, key\)"):
            vf.wrap(tiny_module(family), tokenizer())
