"""Other libraries' habits: stand-ins shaped like TransformerLens's cache, nnsight's proxies and BertViz's arguments."""

import numpy as np
import pytest
import torch

import visformer as vf
from tests.trace.test_from_arrays import TARGET, TOKENS, weights
from visformer.errors import TraceError

ENCODER = weights(2, 1, 3, 4, 4)
OWN, CROSS = weights(2, 1, 3, 3, 3, seed=1), weights(2, 1, 3, 3, 4, seed=2)


class Cache:
    """TransformerLens's ActivationCache: no Mapping, but with its methods, and short names such as ("pattern", 0)."""

    def __init__(self, cache_dict):
        self.cache_dict = cache_dict

    def __getitem__(self, name):
        return self.cache_dict[name if isinstance(name, str) else f"blocks.{name[1]}.attn.hook_{name[0]}"]

    def __len__(self):
        return len(self.cache_dict)

    def __iter__(self):
        return iter(self.cache_dict)

    def keys(self):
        return self.cache_dict.keys()


def hooks(layers, path="blocks.{}.attn"):
    """Return the entries of a cache for these patterns, in no order, among others."""
    named = {f"{path.format(i)}.hook_pattern": layer for i, layer in reversed([*enumerate(layers)])}
    return {"hook_embed": torch.zeros(1, 4, 8), f"{path.format(0)}.hook_attn_scores": torch.zeros(1, 3, 4, 4), **named}


@pytest.mark.parametrize("kind", [Cache, dict])
@pytest.mark.parametrize("batched", [True, False])
def test_a_cache_of_transformer_lens_gives_its_patterns_by_layer(kind, batched):
    layers = OWN if batched else OWN[:, 0]
    trace = vf.Trace.from_attention(target=TARGET, decoder=kind(hooks(layers)))
    assert trace.names() == ("decoder.0.self_attn.pattern", "decoder.1.self_attn.pattern")
    np.testing.assert_array_equal(np.asarray(trace.stack("decoder")), OWN[:, 0])
    cache = Cache(hooks(layers))
    listed = vf.Trace.from_attention(target=TARGET, decoder=[cache["pattern", i] for i in range(2)])
    np.testing.assert_array_equal(np.asarray(listed.stack("decoder")), OWN[:, 0])


def test_a_cache_of_more_than_ten_layers_is_in_their_order():
    layers = weights(12, 1, 2, 3, 3)
    trace = vf.Trace.from_attention(target=TARGET, decoder=Cache(hooks(layers)))
    np.testing.assert_array_equal(np.asarray(trace.stack("decoder")), layers[:, 0])


def test_each_argument_takes_its_stack_from_the_cache_of_an_encoder_decoder():
    cache = Cache(
        hooks(ENCODER, "encoder.{}.attn") | hooks(OWN, "decoder.{}.attn") | hooks(CROSS, "decoder.{}.cross_attn")
    )
    trace = vf.Trace.from_attention(TOKENS, cache, target=TARGET, decoder=cache, cross=cache)
    for i in range(2):
        np.testing.assert_array_equal(trace[f"encoder.{i}.self_attn.pattern"], ENCODER[i, 0])
        np.testing.assert_array_equal(trace[f"decoder.{i}.self_attn.pattern"], OWN[i, 0])
        np.testing.assert_array_equal(trace[f"decoder.{i}.cross_attn.pattern"], CROSS[i, 0])


@pytest.mark.parametrize(
    ("entries", "held"),
    [
        ({"hook_embed": torch.zeros(1, 3, 8), "blocks.0.attn.hook_q": torch.zeros(1, 3, 2, 4)}, "-"),
        ({"blocks.1.attn.hook_pattern": OWN[1]}, "blocks.1.attn.hook_pattern"),
        (hooks(CROSS, "decoder.{}.cross_attn"), "-"),
    ],
)
def test_a_cache_without_the_patterns_is_refused_with_what_it_holds(entries, held):
    with pytest.raises(TraceError, match=f"decoder is a cache with the patterns of {held} for .* names_filter=lambda"):
        vf.Trace.from_attention(target=TARGET, decoder=Cache(entries))


def test_a_batch_in_a_cache_is_refused():
    with pytest.raises(TraceError, match=r"a batch of 2. Give one sentence, layer\[:1\] of each layer"):
        vf.Trace.from_attention(target=TARGET, decoder=Cache(hooks(weights(2, 2, 3, 3, 3))))


class Proxy:
    """A saved proxy of nnsight."""

    def __init__(self, value):
        self.value = value


def test_saved_proxies_and_whole_outputs_give_their_weights():
    first = torch.zeros(1, 3, 6)
    for what, saved in {
        "proxies": [Proxy(layer) for layer in OWN],
        "outputs": [(first, layer) for layer in OWN],
        "proxies of outputs": [Proxy((first, layer)) for layer in OWN],
        "outputs of proxies": [(Proxy(first), Proxy(layer)) for layer in OWN],
        "with a cache": [(first, None, layer) for layer in OWN],
        "no batch": [(first[0], layer[0]) for layer in OWN],
        "a list": Proxy(list(OWN)),
        "an array": Proxy(OWN),
    }.items():
        trace = vf.Trace.from_attention(target=TARGET, decoder=saved)
        np.testing.assert_array_equal(np.asarray(trace.stack("decoder")), OWN[:, 0], err_msg=what)


def test_the_output_of_multihead_attention_is_taken_as_it_is():
    layer = torch.nn.MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)
    x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(0))
    output = layer(x, x, x, average_attn_weights=False)
    trace = vf.Trace.from_attention(TOKENS, [output])
    np.testing.assert_array_equal(trace["encoder.0.self_attn.pattern"], output[1][0].detach())
    with pytest.raises(TraceError, match="average_attn_weights=False"):
        vf.Trace.from_attention(TOKENS, [layer(x, x, x)])


def test_an_output_without_weights_is_refused_with_a_remedy():
    with pytest.raises(TraceError, match=r'shapes \(1, 3, 6\), None, without .* attn_implementation="eager"'):
        vf.Trace.from_attention(target=TARGET, decoder=[(torch.zeros(1, 3, 6), None)] * 2)


BERTVIZ = {
    "encoder_attention": ("patterns", ENCODER),
    "decoder_attention": ("decoder", OWN),
    "cross_attention": ("cross", CROSS),
    "encoder_tokens": ("tokens", list(TOKENS)),
    "decoder_tokens": ("target", list(TARGET)),
}
"""The arguments of its head_view, a tuple of layers (batch, head, query, key) each, and what they are called here."""


def test_arguments_by_bertviz_s_names_work_under_ours_and_the_error_says_which():
    ours = dict(BERTVIZ.values())
    trace = vf.Trace.from_attention(**{name: tuple(given) for name, given in ours.items()})
    np.testing.assert_array_equal(np.asarray(trace.stack("decoder", "cross_attn")), CROSS[:, 0])
    for name, (called, given) in BERTVIZ.items():
        with pytest.raises(TraceError, match=f"{name}= is called {called}= here"):
            vf.Trace.from_attention(**{name: given})
    with pytest.raises(TypeError, match="unexpected keyword argument 'patern'"):
        vf.Trace.from_attention(TOKENS, patern=ENCODER)


@pytest.mark.parametrize("attention", [ENCODER, tuple(ENCODER), list(ENCODER.numpy())], ids=["array", "tuple", "list"])
def test_attention_before_tokens_as_bertviz_takes_them_is_refused_in_a_short_sentence(attention):
    with pytest.raises(TraceError, match="tokens is an array, not a list of texts: the tokens come first") as caught:
        vf.Trace.from_attention(attention, list(TOKENS))
    assert len(str(caught.value)) < 100
