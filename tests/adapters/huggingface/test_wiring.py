"""A wrapped model is the caller's: nothing of it is changed between two calls, and what is shown is what computes."""

import copy
import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
import torch
from torch import nn

import visformer as vf
from tests.adapters.huggingface.hub import IS_OLD, STRUCTURES, TEXT, target_of, tiny_module, tokenizer
from tests.support import tiny_config, tiny_tokenizer
from visformer.edits import Silence
from visformer.errors import TraceError, VisformerError

SOME = ("bert", "gpt2", "falcon", "t5")
OF_LIBRARY = {"_output_capturing_hooks_installed", *(["forward"] if IS_OLD else [])}
"""Attributes that transformers itself adds to modules, to return attention weights."""


def of_library(hook):
    """Whether a hook is one that transformers adds, once, to return attention weights."""
    return getattr(hook, "__module__", "").startswith("transformers.")


def what_is_set(module):
    """Return all that a wrapper could leave behind: hooks, modes, attributes of modules, attention functions."""
    hooks = [
        [hook for hook in (*part._forward_hooks.values(), *part._forward_pre_hooks.values()) if not of_library(hook)]
        for part in module.modules()
    ]
    modes = [part.training for part in module.modules()]
    named = [sorted({*vars(part)} - OF_LIBRARY) for part in module.modules()]
    configs = [part.config._attn_implementation for part in module.modules() if hasattr(part, "config")]
    return hooks, modes, named, configs, module.config._attn_implementation


def values(trace):
    """Return the values of a Trace, to be compared to the last digit."""
    return {name: tensor.value.tolist() for name, tensor in trace.tensors.items()}


@pytest.mark.parametrize("family", STRUCTURES)
def test_between_two_calls_nothing_of_the_callers_model_is_changed(family):
    module = tiny_module(family, attention="sdpa" if family in SOME else "eager")
    module.train()
    module.base_model.eval()  # each module has a mode of its own
    before = what_is_set(module)
    with vf.wrap(module, tokenizer()) as model:
        assert what_is_set(module) == before
        trace = model.trace(TEXT, target_of(model))
        assert what_is_set(module) == before
        assert all(values.value.shape for values in trace.tensors.values())
        with pytest.raises(VisformerError):
            model.trace("")
        assert what_is_set(module) == before
    with pytest.raises(VisformerError, match="This model was closed: wrap or load it again"):
        model.trace(TEXT)
    assert what_is_set(module) == before


def test_a_pass_has_no_dropout_whatever_the_mode_and_the_mode_stays():
    for module, words in ((tiny_module("bert", hidden_dropout_prob=0.5), tokenizer()),
                          (vf.Transformer(tiny_config()), tiny_tokenizer())):  # fmt: skip
        model, target = vf.wrap(module.eval(), words), "to school" if isinstance(module, vf.Transformer) else None
        calm = model.trace("I went to school", target)
        module.train()
        assert values(model.trace("I went to school", target)) == values(calm)
        assert all(part.training for part in module.modules())


@pytest.mark.parametrize("family", SOME)
def test_another_attention_chosen_later_does_not_keep_an_edit_from_its_heads(family):
    module = tiny_module(family)
    model = vf.wrap(module, tokenizer())
    stack = "encoder" if model.info.kind == "encoder" else "decoder"
    silence = [Silence(f"{stack}.{layer}.self_attn", head) for layer in range(2) for head in range(4)]
    before = (
        model.trace(TEXT, target_of(model), record="*.resid_post"),
        model.trace(TEXT, target_of(model), record="*.resid_post", edits=silence),
    )
    module.set_attn_implementation("sdpa")
    chosen = module.config._attn_implementation  # not every family lets it be set
    after = (
        model.trace(TEXT, target_of(model), record="*.resid_post"),
        model.trace(TEXT, target_of(model), record="*.resid_post", edits=silence),
    )
    assert [*map(values, after)] == [*map(values, before)]
    last = f"{stack}.1.resid_post"
    assert abs(after[1][last].value - after[0][last].value).max() > 1e-4
    assert module.config._attn_implementation == chosen


def test_a_module_that_was_replaced_is_shown_as_it_computes_and_refused_where_it_cannot_be():
    module = tiny_module("llama")
    model = vf.wrap(module, tokenizer())
    own = model.trace(TEXT, record="decoder.1.self_attn.*")
    block = module.model.layers[1]
    other = copy.deepcopy(block.self_attn)
    with torch.no_grad():
        other.q_proj.weight.mul_(2)
    kept, block.self_attn = block.self_attn, other
    doubled = model.trace(TEXT, record="decoder.1.self_attn.*")
    np.testing.assert_allclose(doubled["decoder.1.self_attn.q"].value, 2 * own["decoder.1.self_attn.q"].value)

    class Fused(nn.Module):
        def forward(self, hidden_states, **_):
            return kept.o_proj(kept.v_proj(hidden_states).repeat(1, 1, 2)), None

    block.self_attn = Fused()
    block.self_attn.o_proj = kept.o_proj
    with pytest.raises(TraceError, match=r"no longer computes decoder\.1\.self_attn\.pattern as it did when it was wr"):
        model.trace(TEXT)
    with pytest.raises(TraceError, match=r"no longer computes decoder\.1\.self_attn"):
        model.translate(TEXT, edits=Silence("decoder.1.self_attn", 0))


def test_a_compiled_model_is_refused():
    module = tiny_module("gpt2")
    model = vf.wrap(module, tokenizer())
    module.transformer.h[1].compile(backend="eager")
    with pytest.raises(TraceError, match=r"GPT2LMHeadModel was compiled.*: wrap one that is not"):
        model.trace(TEXT)


def test_threads_that_trace_one_model_see_their_own_values_and_leave_it_as_it_was():
    module = tiny_module("gpt2")
    model = vf.wrap(module, tokenizer())
    before, one = what_is_set(module), model.trace(TEXT, record="*")
    inside, over = Event(), Event()

    def wait(name, tensor):
        inside.set()
        assert over.wait(60)
        return tensor * 2 if name == "decoder.0.ffn.out" else tensor

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(model.trace, TEXT, record="*", edits=wait)
        assert inside.wait(60)
        meanwhile = model.trace(TEXT, record="*")
        over.set()
        assert values(slow.result()) != values(one)
    assert values(meanwhile) == values(one)
    assert what_is_set(module) == before


def test_two_wrappers_of_one_model_do_not_edit_twice():
    module = tiny_module("bert")
    masked = tiny_module("bert")
    whole, part = vf.wrap(module, tokenizer()), vf.wrap(module.base_model, tokenizer())
    plus = [lambda name, tensor: tensor + 1 if name == "encoder.0.ffn.out" else tensor]
    alone = vf.wrap(masked, tokenizer()).trace(TEXT, record="encoder.0.*", edits=plus)
    with whole._passes.open():
        assert values(part.trace(TEXT, record="encoder.0.*", edits=plus)) == values(alone)


def test_a_wrapper_that_is_thrown_away_frees_its_model():
    module = tiny_module("gpt2")
    model = vf.wrap(module, tokenizer())
    model.trace(TEXT)
    weak = weakref.ref(module)
    del model, module
    gc.collect()
    assert weak() is None
