"""Norms and parts, compared with the results of heads that TransformerLens computes."""

import numpy as np
import torch
from transformer_lens import HookedTransformer, HookedTransformerConfig
from transformer_lens.pretrained.weight_conversions import convert_gpt2_weights

from tests.analysis.models import TEXT, model_of
from visformer.analysis import needed, norm_weighted, parts


def test_norms_and_parts_of_gpt2():
    model = model_of("gpt2")
    config = HookedTransformerConfig(
        n_layers=3, d_model=16, n_heads=4, d_head=4, d_mlp=64, n_ctx=64, d_vocab=48, act_fn="gelu_new",
        normalization_type="LN", eps=model.module.config.layer_norm_epsilon, use_attn_result=True,
        original_architecture="GPT2LMHeadModel",
    )  # fmt: skip
    theirs = HookedTransformer(config)
    theirs.load_state_dict(convert_gpt2_weights(model.module, config), strict=False)
    theirs.eval()
    trace = model.trace(TEXT, record=(*needed(model, "alti"), "logits"))
    ids = torch.tensor([trace.meta["ids"]["tgt"]])
    with torch.no_grad():
        logits, cache = theirs.run_with_cache(ids)
    np.testing.assert_allclose(logits[0], trace["logits"], atol=1e-3)
    for layer in range(3):
        path = f"decoder.{layer}.self_attn"
        split = parts(trace, path)
        pattern, v = cache["pattern", layer][0], cache["v", layer][0]  # (head, query, key), (key, head, d_v)
        f = torch.einsum("hqk,khv,hvd->qkd", pattern, v, theirs.blocks[layer].attn.W_O)
        np.testing.assert_allclose(norm_weighted(trace, path), f.norm(dim=-1).detach(), atol=1e-4)
        np.testing.assert_allclose(split.keys.sum(axis=1), cache["result", layer][0].sum(dim=1), atol=1e-4)
        np.testing.assert_allclose(split.residual, cache["resid_pre", layer][0], atol=1e-4)
        np.testing.assert_allclose(split.y, cache["resid_mid", layer][0], atol=1e-4)
