"""Weights of transformers models, compared with the tensors before and after them."""

import numpy as np
import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import TEXT, one_of_each, target_of, tiny_model, tiny_module, tiny_trace, tokenizer
from tests.adapters.huggingface.listed import FAMILIES, layout_of
from visformer.errors import BudgetError, MissingTensor
from visformer.panel import traced
from visformer.system import limits
from visformer.trace import Trace

LATENT = ("deepseek_v2", "deepseek_v3")  # q, k and v are computed through narrower vectors


def inputs_of(family, config, trace, path):
    """Return what an attention computes its queries from, and what it computes keys and values from."""
    layer, kind = path.rsplit(".", 1)
    stack = FAMILIES[family].stacks[path.split(".")[0]]
    before = {"self_attn": ("resid_pre", "norm_self"), "cross_attn": ("resid_self", "norm_cross")}[kind]
    # OLMo 2 normalises the output instead, ModernBERT the embeddings before its first block.
    post = layout_of(stack, config) == "post" or family == "olmo2" or (family, layer) == ("modernbert", "encoder.0")
    x = trace[f"{layer}.{before[0 if post else 1]}"].value
    return x, x if kind == "self_attn" else trace["encoder.out"].value


def linear(x, trace, path, letter):
    """Apply a projection of an attention, with its bias if it has one."""
    y = x @ trace.params[f"{path}.w_{letter}"].value
    return y + trace.params[f"{path}.b_{letter}"].value if f"{path}.b_{letter}" in trace.params else y


def projected(x, trace, path, letter):
    """Return a projection of each head, (head, token, d_k)."""
    n_heads = len(trace[f"{path}.{letter}"])
    return linear(x, trace, path, letter).reshape(len(x), n_heads, -1).transpose(1, 0, 2)


@pytest.mark.parametrize(
    ("family", "changes"),
    [*((name, {}) for name in FAMILIES if name not in LATENT), ("gpt_bigcode", {"multi_query": False})],
)
def test_weights_map_the_input_of_an_attention_to_its_q_k_v_and_out(family, changes):
    """v and out exactly; q and k of the first token, which rotary does not rotate, up to a norm or a scale."""
    trace, config = tiny_trace(family, **changes), tiny_model(family, **changes).module.config
    paths = [name.removesuffix(".w_q") for name in trace.params if name.endswith(".w_q")]
    assert paths
    assert set(paths) == {name.removesuffix(".heads") for name in trace if name.endswith(".heads")}
    for path in paths:
        x, read = inputs_of(family, config, trace, path)
        np.testing.assert_allclose(projected(read, trace, path, "v"), trace[f"{path}.v"], atol=2e-5)
        for letter, states in (("q", x), ("k", read)):
            both = projected(states, trace, path, letter), trace[f"{path}.{letter}"].value
            ours, theirs = (a[:, 0] / np.linalg.norm(a[:, 0], axis=-1, keepdims=True) for a in both)
            np.testing.assert_allclose(ours, theirs, atol=1e-4)
        heads = trace[f"{path}.heads"].value.transpose(1, 0, 2)
        if f"{path}.out" in trace:
            out = linear(heads.reshape(len(heads), -1), trace, path, "o")
            np.testing.assert_allclose(out, trace[f"{path}.out"], atol=5e-5)


def test_weights_have_axes_are_saved_and_can_be_drawn(tmp_path):
    trace = tiny_model("llama").trace(TEXT, record=("*.pattern", "decoder.1.*.w_k"))
    assert list(trace.params) == ["decoder.1.self_attn.w_k"]
    assert [axis.name for axis in trace.params["decoder.1.self_attn.w_k"].axes] == ["d_model", "d_heads"]
    assert traced(trace, "decoder.1.self_attn.w_k", title="W_K").columns.title == "dimension (heads × d_k)"
    trace.save(tmp_path / "t.safetensors")
    loaded = Trace.load(tmp_path / "t.safetensors").params["decoder.1.self_attn.w_k"]
    np.testing.assert_array_equal(loaded, trace.params["decoder.1.self_attn.w_k"])


def test_a_later_change_of_the_model_does_not_change_a_trace():
    module = tiny_module("gpt2")
    trace = vf.wrap(module, tokenizer()).trace(TEXT, record=("*.pattern", "*.w_v"))
    before = trace.params["decoder.0.self_attn.w_v"].value.copy()
    with torch.no_grad():
        module.transformer.h[0].attn.c_attn.weight.zero_()
    np.testing.assert_array_equal(trace.params["decoder.0.self_attn.w_v"].value, before)


def distinct(family, **changes):
    """Return a model whose norms and output bias are far from those of an untrained one."""
    module = tiny_module(family, **changes)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if weight.dim() == 1 and "sink" not in name:
                weight.add_(torch.rand_like(weight))
        if getattr(module, "final_logits_bias", None) is not None:
            module.final_logits_bias.normal_()
    return module


WITH_OUTPUT = [name for name, family in FAMILIES.items() if family.decoder]
RMS = ["gemma", "gemma2", "gemma3_text", "llama", "mistral", "ministral", "mixtral", "qwen2", "qwen2_moe", "qwen3",
       "qwen3_moe", "granite", "glm", "glm4", "deepseek_v2", "deepseek_v3", "smollm3", "olmo2", "phi3", "gpt_oss", "t5",
       "mt5", "umt5"]  # fmt: skip
WITHOUT_NORM = ["olmo", "marian", "bart", "blenderbot-small", "plbart"]


@pytest.mark.parametrize("family", one_of_each(WITH_OUTPUT))
def test_the_last_norm_and_the_unembedding_lead_from_the_residual_stream_to_the_logits_of_transformers(family):
    changes = {"granite": {"logits_scaling": 4.0}, "gemma3_text": {"final_logit_softcapping": 1.5}}.get(family, {})
    model = vf.wrap(distinct(family, **changes), tokenizer())
    trace = model.trace(TEXT, target_of(model), record=("decoder.*.resid_post", "decoder.out", "logits", "output.*"))
    out, config = trace["decoder.out"].value, model.module.config
    weights = {name: tensor.value for name, tensor in trace.params.items()}
    if family in ("t5", "umt5"):  # whose embeddings are tied
        out = out * config.d_model**-0.5
    logits = out @ weights["output.w"] + weights.get("output.b", 0)
    logits = logits * getattr(config, "logit_scale", 1) / getattr(config, "logits_scaling", 1)
    if cap := getattr(config, "final_logit_softcapping", None):
        logits = cap * np.tanh(logits / cap)
    twin, ids = distinct(family, **changes), {side: torch.tensor([row]) for side, row in trace.meta["ids"].items()}
    with torch.no_grad():
        given = (
            {"input_ids": ids["src"], "decoder_input_ids": ids["tgt"]} if "src" in ids else {"input_ids": ids["tgt"]}
        )
        np.testing.assert_allclose(logits, twin(**given).logits[0], atol=1e-4)
    assert ("output.b" in weights) == (family in ("gptj", "phi") or hasattr(twin, "final_logits_bias"))
    if family in WITHOUT_NORM:
        assert not [name for name in model._weights if name.startswith("decoder.norm")]
        return
    norm = model.trace(
        TEXT, record=("decoder.norm.gamma", *["decoder.norm.beta"] * (family not in (*RMS, "cohere", "cohere2")))
    )
    gamma, beta = (norm.params.get(f"decoder.norm.{name}") for name in ("gamma", "beta"))
    x = list(trace.tensors.values())[-3].value.astype(np.float64)
    x = x if family in RMS else x - x.mean(-1, keepdims=True)
    normed = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * gamma.value + (0 if beta is None else beta.value)
    np.testing.assert_allclose(trace["decoder.out"], normed, atol=1e-4)


def test_the_last_norms_of_encoders_have_the_names_of_ours():
    model = vf.wrap(distinct("mbart"), tokenizer())
    trace = model.trace(TEXT, target_of(model), record=("encoder.1.resid_post", "encoder.out", "*.norm.*"))
    assert set(trace.params) == {f"{part}.norm.{name}" for part in ("encoder", "decoder") for name in ("gamma", "beta")}
    x = trace["encoder.1.resid_post"].value
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    gamma, beta = (trace.params[f"encoder.norm.{name}"].value for name in ("gamma", "beta"))
    np.testing.assert_allclose(trace["encoder.out"], x * gamma + beta, atol=1e-4)


@pytest.mark.parametrize("family", ["bart", "mbart", "gpt2", "llama", "gemma"])
def test_the_norms_of_a_layer_have_the_names_of_ours(family):
    """Gemma multiplies by 1 + what it stores; the norms of Llama and Gemma have no mean and no summand."""
    model, post, mean = vf.wrap(distinct(family), tokenizer()), family == "bart", family not in ("llama", "gemma")
    norms = [name for name in model._names if name.split(".")[-1].startswith("norm_")]
    record = ("*", *(f"*.{part}" for part in ("gamma", *["beta"] * mean)))
    trace = model.trace(TEXT, target_of(model), record=record)
    assert norms
    for name in norms:
        layer, which = name.rpartition(".")[0], name.rpartition("_")[2]
        before = {"self": "attn_sum", "cross": "cross_sum", "ffn": "ffn_sum"} if post else PRE_NORM
        x = trace[f"{layer}.{before[which]}"].value
        if which == "ffn" and f"{layer}.resid_cross" in trace and not post:
            x = trace[f"{layer}.resid_cross"].value
        x = x - x.mean(-1, keepdims=True) * mean
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        beta = trace.params[f"{name}.beta"].value if mean else 0
        np.testing.assert_allclose(trace[name], x * trace.params[f"{name}.gamma"].value + beta, atol=1e-3)


PRE_NORM = {"self": "resid_pre", "cross": "resid_self", "ffn": "resid_self"}


@pytest.mark.parametrize(
    ("family", "glob", "reason"),
    [
        ("deepseek_v3", "*.w_q", "no module of this model was seen to make it as x W"),
        ("llama", "*.b_q", "the biases b_q to b_o it was trained with"),
        ("gpt2", "decoder.9.self_attn.w_q", "the biases b_q to b_o it was trained with"),
        ("megatron-bert", "*.w_v", "this family has its own attention code"),
        ("bert", "output.w", "may end with norm.gamma and norm.beta, and a decoder with output.w and output.b"),
        ("llama", "*.norm.beta", "may end with norm.gamma and norm.beta"),
    ],
)
def test_the_error_says_why_a_family_lacks_a_weight(family, glob, reason):
    with pytest.raises(MissingTensor, match=reason):
        tiny_model(family).trace(TEXT, record=("*.pattern", glob))


def test_a_star_records_all_tensors_but_no_weights():
    """Those of a large model would exceed the limit."""
    assert not tiny_model("llama").trace(TEXT, record=("*",)).params


def test_weights_count_towards_the_limit_of_a_trace(monkeypatch):
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", 1000)
    with pytest.raises(BudgetError):
        tiny_model("llama").trace(TEXT, record=("*.w_q",))
