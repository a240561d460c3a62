"""The architecture that a model is said to have, compared with what transformers' modules do when they run.

The modules are hooked, and each possible order of norms is an equation over what they received and returned: exactly
one of them has to hold, and it has to be the one that is told.
"""

import pytest
import torch

import visformer as vf
from tests.adapters.huggingface.hub import HYBRIDS, TEXT, target_of, tiny_model, tokenizer
from tests.adapters.huggingface.listed import FAMILIES
from tests.adapters.huggingface.test_heads import MASKED, SEQUENCE, with_head
from tests.adapters.huggingface.test_weights import LATENT, distinct
from visformer.adapters.huggingface.run import Engine
from visformer.model.positions import DESCRIBED
from visformer.trace import Trace

VARIANTS = [
    *((family, {}) for family in FAMILIES),
    ("opt", {"do_layer_norm_before": False}),
    ("opt", {"_remove_final_layer_norm": True}),
    ("bart", {"encoder_attention_heads": 2}),
    ("gpt_neox", {"use_parallel_residual": False}),
    ("stablelm", {"use_parallel_residual": True}),
    ("falcon", {"multi_query": False, "parallel_attn": False}),
    ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 2}),
    ("falcon", {"alibi": True}),
    ("bloom", {"apply_residual_connection_post_layernorm": True}),
]
ORDERS = [("pre", False), ("pre", True), ("post", False), ("both", False), ("output", False)]


class Pass:
    """What the modules of an unwrapped model received and returned in one pass, the last call of each."""

    def __init__(self, family, changes):
        self.module = distinct(family, **changes)
        self.given, self.returned = {}, {}
        self.order, self.norms = [], []  # every module that ran; what each norm received and returned
        for module in self.module.modules():
            module.register_forward_hook(self._note, with_kwargs=True)
        ids = torch.tensor([tokenizer()(TEXT).input_ids])
        inputs = {"input_ids": ids, "output_attentions": True, "output_hidden_states": True}
        if FAMILIES[family].kind != "encoder":
            inputs["use_cache"] = True
        if FAMILIES[family].kind == "encoder-decoder":
            inputs["decoder_input_ids"] = ids[:, :-1]
        with torch.no_grad():
            self.output = self.module(**inputs)

    def _note(self, module, args, kwargs, output):
        given = args[0] if args else kwargs.get("hidden_states")
        value = (
            output
            if isinstance(output, torch.Tensor)
            else next(iter(output.values() if hasattr(output, "values") else output))
        )
        self.order.append(module)
        self.given[module], self.returned[module] = _copy(given), _copy(value)
        if "norm" in type(module).__name__.lower():
            self.norms.append((self.given[module], self.returned[module]))

    def normed(self, x):
        """Return what each norm that received ``x`` returned."""
        return [after for before, after in self.norms if near(before, x)]


def _copy(value):
    """Copy a tensor, because Falcon adds to what a module returned; OPT has one axis for batch and tokens."""
    if not isinstance(value, torch.Tensor):
        return None
    return (value[None] if value.dim() == 2 else value).detach().clone()


def near(a, b):
    return a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=1e-5 * float(b.abs().max()))


class Sublayer:
    """A sublayer of one block: what it received and what it adds to the stream; ``module``: what computes it first."""

    def __init__(self, run, name, module, last):
        self.name, self.reads, self.adds = name, run.given[module], run.returned[last]
        self.at = max(i for i, each in enumerate(run.order) if each is module)


def sublayers_of(run, block, stack):
    """Return the sublayers of a block in the order in which they ran."""
    found, attentions = [], set()
    for name, path, out in (
        ("self_attn", stack.self_attn, stack.self_out),
        ("cross_attn", stack.cross_attn, stack.cross_out),
    ):
        if path is not None:
            attention, last = block.get_submodule(path), block.get_submodule(out)
            found.append(Sublayer(run, name, attention, last))
            attentions |= {*attention.modules(), last}
    if stack.ffn:
        network = next(module for name, module in block.named_modules() if name in stack.ffn.split("|"))
        found.append(Sublayer(run, "ffn", network, network))
    else:
        others = {*block.modules()} - attentions
        first = next(
            each for each in run.order if each in others and getattr(each, "weight", torch.empty(0)).dim() == 2
        )
        found.append(Sublayer(run, "ffn", first, block.get_submodule(stack.down)))
    return sorted(found, key=lambda each: each.at)


def holds(norm, parallel, run, sublayers, start, end):
    """Whether this order of norms leads from the stream at a block's start to that at its end."""
    streams = [start]  # there may be several: two norms with equal inputs
    for sublayer in sublayers:
        before = [start] if parallel else streams
        read = [y for x in before for y in (run.normed(x) if norm in ("pre", "both") else [x])]
        if not any(near(y, sublayer.reads) for y in read):
            return False
        added = run.normed(sublayer.adds) if norm in ("both", "output") else [sublayer.adds]
        sums = [x + y for x in streams for y in added]
        streams = [y for x in sums for y in run.normed(x)] if norm == "post" else sums
    return any(near(x, end) for x in streams)


@pytest.mark.parametrize(("family", "changes"), VARIANTS, ids=str)
def test_the_architecture_of_a_family_is_what_its_modules_compute(family, changes):
    told = tiny_model(family, **changes).info.blocks
    run = Pass(family, changes)
    base = Engine(run.module).base
    for part, stack in FAMILIES[family].stacks.items():
        blocks = getattr(told, part)
        first, *others = base.get_submodule(stack.blocks).children()
        for block in others or [first]:  # ModernBERT's first has no norm of its own before attention
            sublayers = sublayers_of(run, block, stack)
            assert blocks.sublayers == tuple(each.name for each in sublayers)
            start, end = run.given[block], run.returned[block]
            found = [order for order in ORDERS if holds(*order, run, sublayers, start, end)]
            assert found == ([] if blocks.norm == "unknown" else [(blocks.norm, blocks.parallel)])
        two = FAMILIES[family].kind == "encoder-decoder"
        out = run.output[f"{part}_hidden_states" if two else "hidden_states"][-1]
        assert near(out, end) is not blocks.final_norm
        assert any(near(out, each) for each in run.normed(end)) is blocks.final_norm
        patterns = run.output[f"{part}_attentions"] if two else run.output.attentions
        assert (blocks.n_layers, blocks.n_heads) == (len(patterns), patterns[0].shape[1])
        assert blocks.attention_layers is None
    assert (told.encoder is None, told.decoder is None) == ("encoder" not in FAMILIES[family].stacks,
                                                            "decoder" not in FAMILIES[family].stacks)  # fmt: skip
    assert told.logits is (told.decoder is not None)
    if told.decoder and not changes and family not in LATENT:  # whose cache holds narrower vectors
        cache = run.output.past_key_values
        layers = getattr(cache, "self_attention_cache", cache).layers
        assert {layer.keys.shape[1] for layer in layers} == {told.decoder.n_kv_heads}


def test_every_family_declares_its_positional_encoding():
    assert {family.position for family in FAMILIES.values()} <= set(DESCRIBED)
    for family in FAMILIES.values():
        is_added = family.position in ("learned", "sinusoidal")
        assert all((stack.position is not None) == is_added for stack in family.stacks.values())


@pytest.mark.parametrize("family", HYBRIDS)
def test_a_hybrid_model_names_the_layers_that_have_attention(family):
    model = tiny_model(family)
    (told,) = filter(None, (model.info.blocks.encoder, model.info.blocks.decoder))
    assert told.n_layers == model.module.config.num_hidden_layers
    everywhere = len(HYBRIDS[family]) == told.n_layers
    assert told.attention_layers == (None if everywhere else HYBRIDS[family])


@pytest.mark.parametrize("family", ["openai-gpt", "megatron-bert", "fsmt"])
def test_of_a_family_with_attention_of_its_own_only_what_is_seen_is_told(family):
    told = tiny_model(family).info.blocks
    assert (told.encoder is None, told.decoder is None) == (family == "openai-gpt", family == "megatron-bert")
    for blocks in filter(None, (told.encoder, told.decoder)):
        assert (blocks.norm, blocks.parallel, blocks.final_norm) == ("unknown", False, False)
        assert (blocks.n_heads, blocks.n_kv_heads) == (4, None)
        assert ("cross_attn" in blocks.sublayers) is (told.encoder is not None and blocks is told.decoder)
    assert told.position == "unknown"


@pytest.mark.parametrize("family", ["gpt2", "t5", "lfm2"])
def test_a_trace_of_transformers_keeps_the_architecture_of_its_model(family, tmp_path):
    model = tiny_model(family)
    trace = model.trace(TEXT, target_of(model))
    trace.save(tmp_path / "t.safetensors")
    loaded = Trace.load(tmp_path / "t.safetensors")
    assert trace.blocks == loaded.blocks == model.info.blocks
    assert trace.meta == loaded.meta


@pytest.mark.parametrize("auto", [MASKED, SEQUENCE])
def test_an_encoder_with_a_head_ends_with_logits(auto):
    told = vf.wrap(with_head("bert", auto), tokenizer()).info.blocks
    assert told.logits and told.encoder.norm == "post" and told.decoder is None
