"""The logit lens and direct attribution, against the model's own modules."""

import numpy as np
import pytest
import torch

from tests.adapters.huggingface import hub
from tests.support import tiny_gpt, tiny_translator
from visformer.adapters.load import wrap
from visformer.analysis import DIRECT_NEEDS, LENS_NEEDS, direct_attribution, logit_lens
from visformer.errors import MissingTensor, TraceError, VisformerError

MODELS = {
    "gpt": (tiny_gpt, "I went to school."),
    "post-norm": (tiny_translator, "I went to school."),
    "pre-norm": (lambda: tiny_translator(norm="pre"), "I went to school."),
    "gpt2": (lambda: wrap(hub.tiny_module("gpt2"), hub.tokenizer()), "I went to school"),
    "llama": (lambda: wrap(hub.tiny_module("llama"), hub.tokenizer()), "I went to school"),
}


def recorded(model, text, *globs):
    return model.trace(text, record=model.available((*globs, "decoder.norm.*", "decoder.*.b_o", "output.*")))


@pytest.mark.parametrize("name", MODELS)
def test_the_last_layer_is_the_models_own_logits(name):
    make, text = MODELS[name]
    trace = recorded(make(), text, *LENS_NEEDS)
    lens = logit_lens(trace)
    logits = trace["logits"].value
    np.testing.assert_allclose(lens.logits[-1], logits, atol=1e-4 * abs(logits).max())
    np.testing.assert_allclose(lens.probabilities.sum(axis=-1), 1)
    np.testing.assert_allclose(
        logit_lens(trace, answer=(7, 9)).answer[-1], logits[:, 7] - logits[:, 9], atol=1e-4 * abs(logits).max()
    )
    assert lens.logits.shape[0] == trace.blocks.decoder.n_layers
    assert not np.allclose(lens.logits[0], lens.logits[-1])


def test_an_earlier_layer_goes_through_the_models_own_last_norm():
    model = tiny_gpt()
    trace = recorded(model, "I went to school.", *LENS_NEEDS)
    with torch.no_grad():
        x = torch.tensor(trace["decoder.0.resid_post"].value)
        wanted = model.module.output(model.module.decoder.norm(x)).numpy()
    np.testing.assert_allclose(logit_lens(trace).logits[0], wanted, atol=1e-4)


def test_a_model_that_caps_its_logits_is_refused():
    model = wrap(hub.tiny_module("gemma2", final_logit_softcapping=1.0), hub.tokenizer())
    with pytest.raises(TraceError, match="something else in between"):
        logit_lens(recorded(model, "I went to school", *LENS_NEEDS))


@pytest.mark.parametrize("name", ["gpt", "pre-norm", "gpt2", "llama"])
def test_the_parts_sum_to_the_logit(name):
    make, text = MODELS[name]
    trace = recorded(make(), text, *DIRECT_NEEDS)
    for row in range(len(trace.tokens["tgt"])):
        table = direct_attribution(trace, row, answer=7)
        assert table["logit"].sum() == pytest.approx(float(trace["logits"].value[row, 7]), abs=1e-6)
        pair, other = direct_attribution(trace, row, answer=(7, 9)), direct_attribution(trace, row, answer=9)
        np.testing.assert_allclose(pair["logit"], table["logit"] - other["logit"], atol=1e-6)
        residue = table[table["part"] == "residue"]["logit"].item()
        assert abs(residue) < 1e-4 * max(1, abs(trace["logits"].value).max())
    heads = table[table["part"] == "head"]
    kinds = 2 if "decoder.0.cross_attn.heads" in trace else 1
    assert len(heads) == kinds * trace.blocks.decoder.n_layers * trace.blocks.decoder.n_heads


def test_a_head_of_the_last_layer_is_what_the_logit_loses_with_the_norm_held_fixed():
    model = tiny_gpt()
    trace = recorded(model, "I went to school.", *DIRECT_NEEDS)
    with torch.no_grad():
        attention, norm = model.module.decoder.layers[1].self_attn, model.module.decoder.norm
        last, heads = (torch.tensor(trace[n].value) for n in ("decoder.1.resid_post", "decoder.1.self_attn.heads"))
        written = attention.w_o.weight[:, :8] @ heads[0, 3]  # head 0 of 2, d_k 8
        std = (last[3].var(unbiased=False) + norm.eps).sqrt()
        wanted = ((written - written.mean()) / std * norm.weight) @ model.module.output.weight[7]
    table = direct_attribution(trace, 3, answer=7)
    row = table[(table["part"] == "head") & (table["layer"] == 1) & (table["head"] == 0)]
    assert row["logit"].item() == pytest.approx(float(wanted), rel=1e-4)


def test_without_a_token_it_is_the_prediction_and_without_a_row_an_error():
    trace = recorded(tiny_gpt(), "I went to school.", *DIRECT_NEEDS)
    token = trace.meta["ids"]["next"][2]
    assert direct_attribution(trace, 2).equals(direct_attribution(trace, 2, answer=token))
    with pytest.raises(VisformerError, match=r"row=99 is not in 0 to \d+"):
        direct_attribution(trace, 99)
    with pytest.raises(VisformerError, match="answer=-1 is not in"):
        direct_attribution(trace, 0, answer=-1)
    with pytest.raises(MissingTensor):
        direct_attribution(tiny_gpt().trace("I went.", record=("logits",)), 0)


def test_a_post_norm_model_is_refused_with_the_reason():
    with pytest.raises(VisformerError, match=r"its norms: post.*no path adds linearly"):
        direct_attribution(recorded(tiny_translator(), "I went to school.", *DIRECT_NEEDS), 0)
