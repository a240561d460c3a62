"""Weights of transformers models, compared with the inputs of their own modules and the tensors at our taps."""

import numpy as np
import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from visformer.adapters.huggingface.families import FAMILIES
from visformer.adapters.huggingface.taps import blocks_of
from visformer.errors import BudgetError, MissingTensor
from visformer.panel import traced
from visformer.system import limits
from visformer.trace import Trace

TEXT = "I went to the river"
OWN_ATTENTION = [name for name, family in FAMILIES.items() if not family.patterns_only and any(
    stack.self_attn for stack in family.stacks.values())]  # fmt: skip
PATHS = {"encoder": ("self_attn",), "decoder": ("self_attn", "cross_attn")}


def inputs_of(family, trace):
    """Map each attention's path to the inputs of the module in an unwrapped copy: hidden states, and what it reads."""
    twin, seen = tiny_module(family), {}
    for part, stack in FAMILIES[family].stacks.items():
        for layer, block in enumerate(blocks_of(twin.base_model, stack, twin.config)):
            for kind, path in zip(PATHS[part], (stack.self_attn, stack.cross_attn), strict=False):
                if path is None:
                    continue

                def keep(_module, args, kwargs, name=f"{part}.{layer}.{kind}"):
                    given = [
                        *args,
                        *(
                            kwargs[k]
                            for k in ("hidden_states", "key_value_states", "encoder_hidden_states")
                            if k in kwargs
                        ),
                    ]
                    states = [one[0] for one in given if torch.is_tensor(one) and one.dim() == 3]
                    seen.setdefault(name, (states[0], states[-1] if "cross" in name else states[0]))

                block.get_submodule(path).register_forward_pre_hook(keep, with_kwargs=True)
    ids = {side: torch.tensor([row]) for side, row in trace.meta["ids"].items()}
    with torch.inference_mode():
        if FAMILIES[family].kind == "encoder-decoder":
            twin(ids["src"], decoder_input_ids=ids["tgt"], use_cache=False)
        else:
            twin(next(iter(ids.values())))
    return seen


def projected(x, trace, path, letter):
    """(head, token, d_k)."""
    whole = x.numpy() @ trace.params[f"{path}.w_{letter}"].value
    if f"{path}.b_{letter}" in trace.params:
        whole = whole + trace.params[f"{path}.b_{letter}"].value
    heads = len(trace[f"{path}.{letter}"])
    return whole.reshape(len(whole), heads, -1).transpose(1, 0, 2)


@pytest.mark.parametrize("family", OWN_ATTENTION)
def test_projections_give_what_is_seen(family):
    """v and out exactly; q and k of the first token, which rotary does not rotate, up to a norm or a scale."""
    model = vf.wrap(tiny_module(family), tokenizer())
    trace = model.trace(TEXT, record=("*_attn.*", "*.w_[qkvo]", *(("*.b_*",) if has_bias(model) else ())))
    seen = inputs_of(family, trace)
    paths = [name.removesuffix(".w_q") for name in trace.params if name.endswith(".w_q")]
    assert paths
    assert set(paths) == {name.removesuffix(".heads") for name in trace if name.endswith(".heads")}
    for path in paths:
        x, read = seen[path] if path in seen else seen[path.replace(path.split(".")[1], "0", 1)]
        if family != "albert" or ".0." in path:  # one module for all layers: its first call is the first layer's
            np.testing.assert_allclose(projected(read, trace, path, "v"), trace[f"{path}.v"], atol=2e-5)
            for letter, states in (("q", x), ("k", read)):
                both = projected(states, trace, path, letter), trace[f"{path}.{letter}"].value
                ours, theirs = (a[:, 0] / np.linalg.norm(a[:, 0], axis=-1, keepdims=True) for a in both)
                np.testing.assert_allclose(ours, theirs, atol=1e-4)
        heads = trace[f"{path}.heads"].value.transpose(1, 0, 2)
        if f"{path}.out" in trace:
            out = heads.reshape(len(heads), -1) @ trace.params[f"{path}.w_o"].value
            if f"{path}.b_o" in trace.params:
                out = out + trace.params[f"{path}.b_o"].value
            np.testing.assert_allclose(out, trace[f"{path}.out"], atol=5e-5)


def has_bias(model):
    return any(name.rpartition(".")[2].startswith("b_") for name in model._weights)


def test_they_are_labelled_kept_and_drawn(tmp_path):
    trace = vf.wrap(tiny_module("llama"), tokenizer()).trace(TEXT, record=("*.pattern", "decoder.1.*.w_k"))
    assert list(trace.params) == ["decoder.1.self_attn.w_k"]
    assert [axis.name for axis in trace.params["decoder.1.self_attn.w_k"].axes] == ["d_model", "d_heads"]
    assert traced(trace, "decoder.1.self_attn.w_k", title="W_K").columns.title == "dimension (heads × d_k)"
    trace.save(tmp_path / "t.safetensors")
    again = Trace.load(tmp_path / "t.safetensors").params["decoder.1.self_attn.w_k"]
    np.testing.assert_array_equal(again.value, trace.params["decoder.1.self_attn.w_k"].value)


def test_a_trace_outlives_changes_to_the_model():
    module = tiny_module("gpt2")
    trace = vf.wrap(module, tokenizer()).trace(TEXT, record=("*.pattern", "*.w_v"))
    before = trace.params["decoder.0.self_attn.w_v"].value.copy()
    with torch.no_grad():
        module.transformer.h[0].attn.c_attn.weight.zero_()
    np.testing.assert_array_equal(trace.params["decoder.0.self_attn.w_v"].value, before)


@pytest.mark.parametrize(
    ("family", "glob", "reason"),
    [
        ("deberta", "*.w_q", "computes its attention in a way of its own"),
        ("bloom", "*.w_q", "computes its attention in a way of its own"),
        ("llama", "*.b_q", "those it was trained with"),
        ("gpt2", "decoder.9.self_attn.w_q", "those it was trained with"),
        ("megatron-bert", "*.w_v", "not in visformer's table"),
    ],
)
def test_what_a_family_lacks_is_missing_for_a_reason(family, glob, reason):
    model = vf.wrap(tiny_module(family), tokenizer())
    with pytest.raises(MissingTensor, match=reason):
        model.trace(TEXT, record=("*.pattern", glob))


def test_everything_is_everything_but_weights():
    """The weights of a large model would not fit."""
    assert not vf.wrap(tiny_module("llama"), tokenizer()).trace(TEXT, record=("*",)).params


def test_weights_are_held_against_the_budget(monkeypatch):
    monkeypatch.setattr(limits, "MAX_TRACE_BYTES", 1000)
    with pytest.raises(BudgetError):
        vf.wrap(tiny_module("llama"), tokenizer()).trace(TEXT, record=("*.w_q",))
