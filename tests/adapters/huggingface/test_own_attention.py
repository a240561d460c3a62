"""Families that do not call transformers' attention interface, compared with their own code outside a session."""

import copy

import numpy as np
import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import TEXT, tiny_model, tiny_module, tiny_trace, tokenizer
from visformer.edits import Block, SetPattern

FALCONS = [{}, {"multi_query": False}, {"new_decoder_architecture": True, "num_kv_heads": 2},
           {"multi_query": False, "parallel_attn": False}]  # fmt: skip
VARIANTS = [
    *((family, {}) for family in ("bloom", "mpnet", "deberta", "deberta-v2", "gptj", "gpt_neo")),
    *(("falcon", changes) for changes in FALCONS),
    ("bloom", {"apply_residual_connection_post_layernorm": True}),
    ("deberta", {"pos_att_type": ["c2p"], "position_biased_input": True}),
    ("deberta", {"relative_attention": False}),
    ("deberta-v2", {"share_att_key": True, "position_buckets": 4, "norm_rel_ebd": "layer_norm"}),
    ("gptj", {"rotary_dim": 2}),
]
every_variant = pytest.mark.parametrize(("family", "changes"), VARIANTS, ids=str)


class Spy:
    """Stands in for softmax, which these families call once a layer, and keeps what it receives."""

    def __init__(self, monkeypatch, change=lambda layer, scores, pattern: pattern):
        self._softmax, self._change = torch.nn.functional.softmax, change
        self.scores = []
        monkeypatch.setattr(torch.nn.functional, "softmax", self)

    def __call__(self, scores, dim, dtype=None):
        self.scores.append(scores)
        return self._change(len(self.scores) - 1, scores, self._softmax(scores, dim=dim, dtype=dtype))


def family_s_own(model, trace):
    """Return the output of the family's own code for the trace's text: the logits, or the encoder's output."""
    ids = torch.tensor([trace.meta["ids"]["tgt" if model.info.kind == "decoder" else "src"]])
    with torch.no_grad():
        output = model.module(ids)
    return (output.logits if model.info.kind == "decoder" else output.last_hidden_state)[0]


def output_of(trace):
    return trace["logits" if "logits" in trace else "encoder.out"]


@pytest.mark.parametrize("family", ["bloom", "falcon"])
def test_a_bias_of_zeros_is_recorded_too(family):
    """ALiBi adds nothing to the only token of a text."""
    trace = tiny_model(family, alibi=True).trace([5], record="*.bias")
    assert len(trace.tensors) == 3
    assert all(np.array_equal(tensor, np.zeros((4, 1, 1))) for tensor in trace.tensors.values())


def path_of(model, layer=1):
    return f"{model.info.kind}.{layer}.self_attn"


def close(ours, theirs):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), atol=1e-5, rtol=1e-5)


@every_variant
def test_scores_and_mask_are_what_the_family_s_own_softmax_receives(family, changes, monkeypatch):
    model, trace = tiny_model(family, **changes), tiny_trace(family, **changes)
    assert not model._patterns_only
    spy = Spy(monkeypatch)
    close(output_of(trace), family_s_own(model, trace))
    for layer, theirs in enumerate(spy.scores):
        path, allowed = path_of(model, layer), theirs[0] > torch.finfo(theirs.dtype).min / 2
        assert np.array_equal(trace[f"{path}.mask"], allowed)
        close(trace[f"{path}.scores"].value[allowed], theirs[0][allowed])
        check_scores(family, model, trace, path)
    assert len(spy.scores) == model.info.n_encoder_layers + model.info.n_decoder_layers


def check_scores(family, model, trace, path):
    """They are the scaled products of queries and keys, plus the bias."""
    q, k = trace[f"{path}.q"].value, trace[f"{path}.k"].value
    products = q @ np.repeat(k, len(q) // len(k), axis=0).swapaxes(1, 2)
    terms = 1 + len(model.module.config.pos_att_type) if "deberta" in family else 1
    scaled = products if family == "gpt_neo" else products / np.sqrt(q.shape[-1] * terms)
    bias = trace[f"{path}.bias"].value if f"{path}.bias" in trace else 0
    np.testing.assert_allclose(trace[f"{path}.scores"], scaled + bias, atol=1e-4)
    relative = "deberta" in family and model.module.config.relative_attention
    assert (f"{path}.bias" in trace) == (relative or family in ("bloom", "mpnet"))


@every_variant
def test_the_effect_of_edits_is_that_of_the_same_change_in_the_family_s_own_code(family, changes, monkeypatch):
    model, plain = tiny_model(family, **changes), tiny_trace(family, **changes)
    path = path_of(model)
    n = len(plain[f"{path}.pattern"][0])
    rows = tuple(tuple(1 / n for _ in range(n)) for _ in range(n))

    def uniform(layer, scores, pattern):
        if layer == 1:
            pattern[:, 2] = 1 / n
        return pattern

    def without_key(layer, scores, pattern):
        if layer != 1:
            return pattern
        scores = scores.clone()
        scores[:, 3, 4:, 4] = -torch.inf
        return scores.softmax(dim=-1)

    cases = [
        (SetPattern(path, head=2, pattern=rows), uniform),
        (Block(path, head=3, query=(4, n), key=4), without_key),
    ]
    for edit, change in cases:
        trace = model.trace(TEXT, record=("*",), edits=[edit])
        assert abs(output_of(trace).value - output_of(plain).value).max() > 1e-3
        with monkeypatch.context() as patch:
            Spy(patch, change)
            close(output_of(trace), family_s_own(model, trace))


@every_variant
def test_an_edited_projection_equals_a_model_with_that_projection_in_its_weights(family, changes):
    model, plain = tiny_model(family, **changes), tiny_trace(family, **changes)
    path = path_of(model)
    twin = vf.wrap(tiny_module(family, **changes), tokenizer())
    for letter in "qkv":
        trace = model.trace(TEXT, record=("*",), edits=lambda name, x, p=f"{path}.{letter}": x * 2 if name == p else x)
        assert abs(output_of(trace).value - output_of(plain).value).max() > 1e-3, letter
        if changes.get("share_att_key") and letter != "v":
            continue  # the same weights project relative positions, too
        weights = [
            twin._weights[name] for name in (f"{path}.w_{letter}", f"{path}.b_{letter}") if name in twin._weights
        ]
        multiply(weights, 2.0)
        close(output_of(trace), family_s_own(twin, trace))
        multiply(weights, 0.5)


def multiply(weights, factor):
    for weight in weights:
        rows = slice(None) if weight.columns is None else weight.columns
        getattr(weight.module, weight.part).data[rows] *= factor


def test_falcon_s_large_variant_has_two_norms_side_by_side():
    large = {"new_decoder_architecture": True, "num_kv_heads": 2}
    model, trace = tiny_model("falcon", **large), tiny_trace("falcon", **large)
    block, x = model.module.transformer.h[1], torch.tensor(trace["decoder.1.resid_pre"].value)
    with torch.no_grad():
        close(trace["decoder.1.norm_self"], block.ln_attn(x))
        close(trace["decoder.1.norm_ffn"], block.ln_mlp(x))


def test_eager_falcon_adds_alibi_twice_and_ours_once_as_sdpa_does():
    changes = {"alibi": True, "multi_query": False, "parallel_attn": False}
    model, trace = tiny_model("falcon", **changes), tiny_trace("falcon", **changes)
    ids = torch.tensor([trace.meta["ids"]["tgt"]])
    with torch.no_grad():
        once = tiny_module("falcon", attention="sdpa", **changes)(ids).logits[0]
        twice = tiny_module("falcon", **changes)(ids).logits[0]
    close(trace["logits"], once)
    assert abs(once - twice).max() > 1e-2, "if transformers has repaired it, use_own needs no exception"
    check_scores("bloom", model, trace, "decoder.1.self_attn")
    step = model.generate(TEXT, max_new_tokens=2).steps[0]
    assert step.chosen.probability == pytest.approx(float(once[-1].softmax(-1)[step.chosen.id]), abs=1e-5)


def test_outside_a_session_the_family_s_own_code_runs_also_in_training_and_in_copies():
    module = tiny_module("bloom", attention_dropout=0.5, hidden_dropout=0.5)
    vf.wrap(module, tokenizer())
    ids = torch.tensor([[1, 5, 6, 7]])
    twin = copy.deepcopy(module)
    for parameter in twin.parameters():
        parameter.data.zero_()
    assert not twin(ids).logits.any(), "a copy does not use the weights of the original"
    assert not torch.equal(module.train()(ids).logits, module(ids).logits), "dropout"
