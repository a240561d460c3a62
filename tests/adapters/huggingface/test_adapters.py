"""Adapters, codes in place of numbers and modules that are elsewhere: the weights shown are those that compute."""

import copy
import json

import accelerate
import numpy as np
import peft
import pytest
import torch
from torch import nn

import visformer as vf
from tests.adapters.huggingface.hub import TEXT, target_of, tiny_module, tokenizer
from visformer.adapters.huggingface.weights import affine
from visformer.errors import CheckpointError, ConfigError, MissingTensor, VisformerError

PLACES = {"llama": ["q_proj", "k_proj", "v_proj", "o_proj"], "gpt2": ["c_attn", "c_proj"], "bert": ["query", "value"]}
RECORD = ("*.w_[qkvo]", "*.b_[qkvo]", "*.v", "*.heads", "*.self_attn.out", "*.norm_self", "*.resid_pre", "*.pattern")


def lora(family, **more):
    """Return a config of an adapter whose matrices are not zero, as they are before any training."""
    return peft.LoraConfig(
        target_modules=PLACES[family], r=2, init_lora_weights=False, fan_in_fan_out=family == "gpt2", **more
    )


def require_own_weights(trace, part):
    """Check that a Trace's w_v and w_o give its own v and its own output of the attention."""
    for layer in range(2):
        path = f"{part}.{layer}.self_attn"
        w, b = (trace.params[f"{path}.{x}_v"].value if f"{path}.{x}_v" in trace.params else 0 for x in "wb")
        x = trace[f"{part}.{layer}.{'resid_pre' if part == 'encoder' else 'norm_self'}"].value
        v = (x @ w + b).reshape(len(x), -1, trace[f"{path}.v"].value.shape[-1]).transpose(1, 0, 2)
        np.testing.assert_allclose(v, trace[f"{path}.v"].value, atol=2e-5)
        w, b = (trace.params[f"{path}.{x}_o"].value if f"{path}.{x}_o" in trace.params else 0 for x in "wb")
        heads = trace[f"{path}.heads"].value.transpose(1, 0, 2).reshape(len(x), -1)
        np.testing.assert_allclose(heads @ w + b, trace[f"{path}.out"].value, atol=5e-5)


@pytest.mark.parametrize("family", PLACES)
@pytest.mark.parametrize("more", [{}, {"use_dora": True}])
def test_an_adapter_is_part_of_the_weights_from_the_trace_after_it_came_until_it_is_gone(family, more):
    module = tiny_module(family)
    model = vf.wrap(module, tokenizer())
    part = "encoder" if family == "bert" else "decoder"
    record = model.available(RECORD)
    base = model.trace(TEXT, record=record)
    require_own_weights(base, part)
    module.add_adapter(lora(family, **more), adapter_name="mine")
    adapted = model.trace(TEXT, record=record)
    require_own_weights(adapted, part)
    name = f"{part}.0.self_attn.w_v"
    assert abs(adapted.params[name].value - base.params[name].value).max() > 1e-3
    module.disable_adapters()
    np.testing.assert_allclose(model.trace(TEXT, record=record).params[name].value, base.params[name].value, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft asks transformers for it
def test_a_peft_model_is_wrapped_with_its_adapter_and_one_that_writes_before_the_text_is_refused():
    module = tiny_module("llama")
    whole = peft.get_peft_model(copy.deepcopy(module), lora("llama"))
    trace = vf.wrap(whole, tokenizer()).trace(TEXT, record=("*", "*.w_[qkvo]"))
    require_own_weights(trace, "decoder")
    ids = torch.tensor([trace.meta["ids"]["tgt"]])
    with torch.no_grad():
        np.testing.assert_allclose(whole.eval()(ids).logits[0].numpy(), trace["logits"].value, atol=1e-4)
    before = peft.get_peft_model(module, peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2))
    with pytest.raises(VisformerError, match="PROMPT_TUNING adapters put tokens before the text"):
        vf.wrap(before, tokenizer())


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
def test_a_folder_with_an_adapter_names_and_loads_its_base(tmp_path):
    base, adapter = tmp_path / "base", tmp_path / "mine"
    module = tiny_module("llama")
    module.save_pretrained(base)
    tokenizer().save_pretrained(base)
    whole = peft.get_peft_model(vf.load(base).module, lora("llama"))
    whole.save_pretrained(adapter)
    model = vf.load(adapter)
    assert model.info.name == f"mine ({base})"
    trace = model.trace(TEXT, record=("*", "*.w_[qkvo]"))
    require_own_weights(trace, "decoder")
    with torch.no_grad():
        logits = whole.eval()(torch.tensor([trace.meta["ids"]["tgt"]])).logits[0].numpy()
    np.testing.assert_allclose(logits, trace["logits"].value, atol=1e-4)
    told = json.loads((adapter / "adapter_config.json").read_text(encoding="utf-8"))
    for wrong in (None, 3, ""):
        content = json.dumps({**told, "base_model_name_or_path": wrong})
        (adapter / "adapter_config.json").write_text(content, encoding="utf-8")
        with pytest.raises(CheckpointError, match="does not name the model that this adapter is for"):
            vf.load(adapter)


class Codes(nn.Module):
    """A linear map in int8 with a scale for each row, as quantised models have them."""

    def __init__(self, linear):
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        scale = linear.weight.abs().amax(dim=1, keepdim=True) / 127
        self.weight = nn.Parameter((linear.weight / scale).round().to(torch.int8), requires_grad=False)
        self.register_buffer("scale", scale.detach())
        self.bias = linear.bias

    def forward(self, x):
        return nn.functional.linear(x, self.weight.float() * self.scale, self.bias)


def test_codes_are_shown_as_the_numbers_that_they_stand_for():
    module = tiny_module("llama")
    model = vf.wrap(module, tokenizer())
    record = model.available(RECORD)
    exact = model.trace(TEXT, record=record)
    for block in module.model.layers:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(block.self_attn, name, Codes(getattr(block.self_attn, name)))
    trace = model.trace(TEXT, record=record)
    require_own_weights(trace, "decoder")
    w_q = "decoder.0.self_attn.w_q"
    assert 0 < abs(trace.params[w_q].value - exact.params[w_q].value).max() < 0.01


def test_what_is_no_product_with_one_matrix_has_no_weights():
    class Square(nn.Linear):
        def forward(self, x):
            return super().forward(x) ** 2

    with pytest.raises(MissingTensor, match="Square computes no product with one matrix"):
        affine(Square(4, 4))
    module = tiny_module("llama")
    model = vf.wrap(module, tokenizer())
    module.model.layers[0].self_attn.q_proj = Square(16, 16, bias=False)
    model.trace(TEXT)
    with pytest.raises(MissingTensor, match="Square"):
        model.trace(TEXT, record="*.w_q")


def test_modules_that_are_elsewhere_are_traced_and_show_their_weights():
    module = tiny_module("llama")
    own = vf.wrap(module, tokenizer()).trace(TEXT, record=("*", "*.w_q", "*.gamma"))
    away = accelerate.cpu_offload(copy.deepcopy(module), torch.device("cpu"))
    assert {weight.device.type for weight in away.parameters()} == {"meta"}
    trace = vf.wrap(away, tokenizer()).trace(TEXT, record=("*", "*.w_q", "*.gamma"))
    for name, tensor in own.tensors.items():
        np.testing.assert_allclose(trace[name].value, tensor.value, atol=1e-5)
    assert {*trace.params} == {*own.params}
    for name, weight in own.params.items():
        np.testing.assert_allclose(trace.params[name].value, weight.value, atol=1e-5)


def test_a_model_is_loaded_as_it_was_saved_and_placed_as_asked(tmp_path):
    tiny_module("gpt2").to(torch.bfloat16).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    kept, asked = vf.load(tmp_path), vf.load(tmp_path, dtype=torch.float32)
    assert (kept.module.dtype, asked.module.dtype) == (torch.bfloat16, torch.float32)
    assert kept.trace(TEXT).meta["dtype"] == "bfloat16"
    assert "dtype" not in asked.trace(TEXT).meta
    placed = vf.load(tmp_path, device_map={"": "cpu"}, dtype=torch.float32)
    np.testing.assert_array_equal(
        placed.trace(TEXT)["decoder.1.self_attn.pattern"].value, asked.trace(TEXT)["decoder.1.self_attn.pattern"].value
    )
    for option in ({"device_map": "auto"}, {"revision": "main"}, {"quantization_config": object()}):
        with pytest.raises(ConfigError, match=f"{next(iter(option))} is for models of transformers, and mini-gpt is"):
            vf.load("mini-gpt", **option)


@pytest.mark.parametrize("family", ["gpt2", "llama", "opt", "bert", "bart"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_analyses_of_halves_allow_for_their_roundings(family, dtype):
    model = vf.wrap(tiny_module(family).to(dtype), tokenizer())
    stack = "decoder.self_attn" if model.info.kind == "decoder" else "encoder.self_attn"
    assert vf.analysis.attribution(model, TEXT, target_of(model), method="alti", stack=stack)
    if model.info.kind == "decoder":
        record = model.available(("*", "*.w_o", "*.b_o", "output.*", "decoder.norm.*"))
        trace = model.trace(TEXT, record=record)
        logits = trace["logits"].value
        np.testing.assert_allclose(
            vf.analysis.logit_lens(trace).logits[-1], logits, atol=torch.finfo(dtype).eps * abs(logits).max()
        )
        parts = vf.analysis.direct_attribution(trace, 2)
        assert parts.iloc[:, -1].sum() == pytest.approx(
            float(logits[2, trace.meta["ids"]["next"][2]]), rel=1e-3, abs=1e-3
        )


def test_a_cap_on_the_logits_is_found_in_halves_too():
    model = vf.wrap(tiny_module("gemma2").to(torch.bfloat16), tokenizer())
    record = model.available(("decoder.*.resid_post", "decoder.out", "logits", "output.*", "decoder.norm.*"))
    with pytest.raises(VisformerError, match="does something else in between, such as a cap"):
        vf.analysis.logit_lens(model.trace(TEXT, record=record))
