"""Hybrid models: the layers that have attention keep their numbers."""

import numpy as np
import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import HYBRIDS, TEXT, tiny_model, tiny_module, tiny_trace, tokenizer
from visformer.adapters.huggingface.run import watching_blocks
from visformer.errors import MissingTensor, VisformerError


@pytest.mark.parametrize("family", HYBRIDS)
def test_the_patterns_of_a_hybrid_model_have_the_numbers_of_its_layers(family):
    model, twin, trace = tiny_model(family), tiny_module(family), tiny_trace(family)
    patterns = [name for name in trace.names() if name.endswith(".pattern")]
    assert patterns == [f"decoder.{layer}.self_attn.pattern" for layer in HYBRIDS[family]]
    assert model.info.n_decoder_layers == twin.config.num_hidden_layers
    ids = torch.tensor([trace.meta["ids"]["tgt"]])
    with torch.no_grad():
        output = twin(ids, output_attentions=True, use_cache=False)
    size = (ids.shape[1], ids.shape[1])  # other sizes are the states of linear attention
    theirs = list({id(each): each for each in output.attentions if each.shape[-2:] == size}.values())
    for layer, pattern in zip(HYBRIDS[family], theirs, strict=True):
        np.testing.assert_allclose(trace[f"decoder.{layer}.self_attn.pattern"], pattern[0], atol=1e-5)


def test_a_pattern_is_that_of_the_layer_whose_queries_are_changed():
    """Zero queries make the rows of that layer uniform, and no other layer's."""
    module = tiny_module("lfm2")
    with torch.no_grad():
        module.model.layers[4].self_attn.q_proj.weight.zero_()
    trace = vf.wrap(module, tokenizer()).trace(TEXT)
    n = len(trace.tokens["tgt"])
    uniform = np.tri(n) / np.arange(1, n + 1)[:, None]
    np.testing.assert_allclose(trace["decoder.4.self_attn.pattern"][0], uniform, atol=1e-6)
    assert not np.allclose(trace["decoder.2.self_attn.pattern"][0], uniform, atol=0.1)


def test_the_error_says_which_layers_have_no_attention():
    trace = tiny_trace("lfm2")
    for layer in (0, 1, 3, 5):
        with pytest.raises(MissingTensor, match="mixes attention with layers of other kinds"):
            trace[f"decoder.{layer}.self_attn.pattern"]
    with pytest.raises(MissingTensor, match="or the model has no such layer"):
        trace["decoder.6.self_attn.pattern"]


def test_watching_leaves_no_hooks_and_refuses_a_pass_without_attention():
    module = tiny_module("lfm2")
    with watching_blocks(module) as watch:
        assert module.model.layers[0]._forward_hooks
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
    for weights in ((), (None, None), (torch.zeros(1, 4, 3, 3),)):
        with pytest.raises(VisformerError, match="returns no attention weights"):
            watch.numbering(weights, (5, 5))
