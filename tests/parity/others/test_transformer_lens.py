"""Norms and parts, compared with what TransformerLens caches of the same weights."""

import numpy as np
import pytest
import torch
from transformer_lens.model_bridge import TransformerBridge

from tests.adapters.huggingface.test_weights import distinct
from tests.analysis.models import TEXT, model_of
from visformer.analysis import needed, norm_weighted, parts


@pytest.mark.filterwarnings("ignore")  # of its own
def test_norms_and_parts_of_gpt2(tmp_path):
    model = model_of("gpt2")
    distinct("gpt2").save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    theirs = TransformerBridge.boot_transformers(str(tmp_path), device="cpu")
    trace = model.trace(TEXT, record=(*needed(model, "alti"), "logits"))
    with torch.no_grad():
        logits, cache = theirs.run_with_cache(torch.tensor([trace.meta["ids"]["tgt"]]))
    np.testing.assert_allclose(logits[0], trace["logits"], atol=1e-3)
    for layer in range(3):
        path = f"decoder.{layer}.self_attn"
        split, at = parts(trace, path), f"blocks.{layer}."
        pattern, v = cache[f"{at}attn.hook_pattern"][0], cache[f"{at}attn.hook_v"][0]  # (head, query, key), (key, ...)
        v = v.reshape(len(v), len(pattern), -1)  # (key, head, d_v)
        w_o = theirs.W_O[layer]  # (head, d_v, d_model)
        f = torch.einsum("hqk,khv,hvd->qkd", pattern, v, w_o).detach()
        np.testing.assert_allclose(norm_weighted(trace, path), f.norm(dim=-1), atol=1e-4)
        np.testing.assert_allclose(split.keys, f, atol=1e-4)
        np.testing.assert_allclose(split.residual, cache[f"{at}hook_resid_pre"][0], atol=1e-4)
        np.testing.assert_allclose(split.y, cache[f"{at}hook_resid_mid"][0], atol=1e-4)
