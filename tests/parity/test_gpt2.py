"""GPT against ``transformers.GPT2LMHeadModel`` with the same weights: logits, gradients, every tensor of a trace."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from tokenizers import models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import visformer as vf
from tests.model.support import ids, randomise
from tests.support import tiny_tokenizer
from visformer.edits import Block, SetPattern, Silence
from visformer.model.config import GPTConfig
from visformer.model.gpt import GPT

SIZES = {"d_model": 24, "n_heads": 3, "n_layers": 2, "d_ff": 40, "max_len": 16, "layer_norm_eps": 1e-3}
TEXT = "I went to school. She likes"


def theirs_of(config, *, seed=0, std=0.3):
    """Return transformers' model of these sizes in eval mode, with random weights, biases and norms."""
    wanted = GPT2Config(
        vocab_size=config.vocab, n_embd=config.d_model, n_head=config.n_heads, n_layer=config.n_layers,
        n_inner=config.d_ff, n_positions=config.max_len, layer_norm_epsilon=config.layer_norm_eps,
        activation_function="gelu", tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
        attn_implementation="eager",
    )  # fmt: skip
    return randomise(GPT2LMHeadModel(wanted), seed=seed, std=std).eval()


@torch.no_grad()
def copy_of(theirs, config):
    """Return ours with their weights. theirs stores W_Q, W_K and W_V side by side, and matrices as (in, out)."""
    ours = GPT(config).eval()
    ours.embedding.token.weight.copy_(theirs.transformer.wte.weight)
    ours.embedding.position.copy_(theirs.transformer.wpe.weight)
    ours.output.weight.copy_(theirs.lm_head.weight)
    ours.decoder.norm.load_state_dict(theirs.transformer.ln_f.state_dict())
    for layer, block in zip(ours.decoder.layers, theirs.transformer.h, strict=True):
        attention = layer.self_attn
        pairs = [(attention.w_o, block.attn.c_proj), (layer.ffn.w_1, block.mlp.c_fc), (layer.ffn.w_2, block.mlp.c_proj)]
        for linear, conv in pairs:
            linear.weight.copy_(conv.weight.T)
            linear.bias.copy_(conv.bias)
        weights, biases = block.attn.c_attn.weight.chunk(3, dim=1), block.attn.c_attn.bias.chunk(3)
        for linear, weight, bias in zip((attention.w_q, attention.w_k, attention.w_v), weights, biases, strict=True):
            linear.weight.copy_(weight.T)
            linear.bias.copy_(bias)
        layer.norm_self.load_state_dict(block.ln_1.state_dict())
        layer.norm_ffn.load_state_dict(block.ln_2.state_dict())
    return ours


CONFIGS = st.builds(
    lambda d_k, n_heads, **more: GPTConfig(19, d_model=n_heads * d_k, n_heads=n_heads, max_len=12, **more),
    d_k=st.integers(1, 8),
    n_heads=st.integers(1, 4),
    n_layers=st.integers(1, 3),
    d_ff=st.integers(1, 30),
    layer_norm_eps=st.sampled_from([1e-5, 1e-2]),
)


def check_logits(config, tokens, *, seed=0):
    """Compare the logits of all tokens but the padding."""
    theirs, real = theirs_of(config, seed=seed), tokens != 0
    with torch.no_grad():
        ours = copy_of(theirs, config)(tokens)[real]
        expected = theirs(tokens, attention_mask=real.long()).logits[real]
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


@settings(max_examples=25)
@given(CONFIGS, st.lists(st.integers(1, 12), min_size=1, max_size=3), st.integers(0, 99))
def test_logits_are_those_of_transformers_of_any_size_and_with_padding(config, lengths, seed):
    tokens = ids(len(lengths), max(lengths), seed=seed)
    for row, length in zip(tokens, lengths, strict=True):
        row[length:] = 0
    check_logits(config, tokens, seed=seed)


def test_padding_on_the_left_is_read_by_nothing():
    tokens = ids(2, 9)
    tokens[0, :4] = 0
    check_logits(GPTConfig(19, **SIZES), tokens)


def test_gradients_are_those_of_transformers():
    config = GPTConfig(19, **SIZES, dropout=0.0)
    theirs = theirs_of(config)
    ours, tokens = copy_of(theirs, config), ids(2, 9)
    ours(tokens).logsumexp(dim=-1).sum().backward()
    theirs(tokens).logits.logsumexp(dim=-1).sum().backward()
    assert ours.embedding.position.grad[:9].abs().min() > 0
    first, second = theirs.transformer.h
    for mine, its in (
        (ours.embedding.token.weight, theirs.transformer.wte.weight.grad),
        (ours.decoder.layers[0].self_attn.w_k.weight, first.attn.c_attn.weight.grad.chunk(3, dim=1)[1].T),
        (ours.decoder.layers[1].ffn.w_1.weight, second.mlp.c_fc.weight.grad.T),
    ):
        torch.testing.assert_close(mine.grad, its, atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def models_alike():
    """Return our model and transformers' as visformer adapts them, with the same weights and the same token ids."""
    tokenizer = tiny_tokenizer()
    config = GPTConfig(len(tokenizer), **SIZES)
    theirs = theirs_of(config)
    ours = vf.wrap(copy_of(theirs, config), tokenizer)
    pieces = ["</s>", "▁I", "▁went", "▁to", "▁school", "▁.", "▁She", "▁likes"]
    words = {piece: number for piece, number in zip(pieces, [1, *tokenizer.encode(TEXT)], strict=True)}
    rest = {f"#{i}": i for i in range(len(tokenizer)) if i not in words.values()}
    library = Library(models.WordLevel(words | rest, unk_token="#0"))
    library.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return ours, vf.wrap(theirs, PreTrainedTokenizerFast(tokenizer_object=library, unk_token="#0"))


THEIR_TEXT = "</s> ▁I ▁went ▁to ▁school ▁. ▁She ▁likes"
EDITS = {
    "none": [],
    "silence": [Silence("decoder.0.self_attn", head=1)],
    "block": [Block("decoder.1.self_attn", query=4, key=2)],
    "pattern": [SetPattern("decoder.0.self_attn", 0, np.eye(8))],
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_trace_is_that_of_the_adapter_for_transformers(models_alike, edit):
    ours, theirs = models_alike
    record = ("*", "*.self_attn.w_*", "*.self_attn.b_*")
    mine = ours.trace(TEXT, record=record, edits=EDITS[edit])
    its = theirs.trace(THEIR_TEXT, record=record, edits=EDITS[edit])
    assert mine.meta["ids"] == its.meta["ids"]
    assert set(mine.names()) == set(its.names())
    for name in its.names():
        assert mine[name].axes == its[name].axes
        np.testing.assert_allclose(mine[name], its[name], atol=1e-5, rtol=1e-4, err_msg=name)
    assert set(its.params) <= set(mine.params)
    for name, weight in its.params.items():
        np.testing.assert_array_equal(mine.params[name], weight, err_msg=name)
    for key in ("position", "n_kv_heads", "missing", "forced", "to"):
        assert mine.meta[key] == its.meta[key], key


@pytest.mark.parametrize("how", [{}, {"temperature": 1.4, "top_k": 9, "seed": 3}, {"beam_size": 3}])
@pytest.mark.parametrize("edit", ["none", "silence"])
def test_what_follows_is_that_of_the_adapter_for_transformers(models_alike, how, edit):
    ours, theirs = models_alike
    allowed = ours._generator.allowed
    theirs._generator = ours._generator  # the same ids may be generated
    mine = ours.generate("I went to", max_new_tokens=5, edits=EDITS[edit], **how)
    its = theirs.generate("</s> ▁I ▁went ▁to", max_new_tokens=5, edits=EDITS[edit], **how)
    assert mine.ids == its.ids and allowed[list(mine.ids)].all()
    for a, b in zip(mine.steps, its.steps, strict=True):
        assert [c.id for c in a.candidates] == [c.id for c in b.candidates]
        assert [c.probability for c in a.candidates] == pytest.approx([c.probability for c in b.candidates], abs=1e-5)
