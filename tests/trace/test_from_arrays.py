"""Trace.from_attention: arrays of any framework become a Trace, or an error says where they do not fit."""

import json
import re

import numpy as np
import pytest
import torch
from transformers import DynamicCache
from transformers.modeling_outputs import Seq2SeqModelOutput

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module
from visformer.errors import TraceError
from visformer.web.payload import pack

TOKENS = ("[CLS]", "我", "去", "[SEP]")
TARGET = ("<s>", "I", "go")
UNIFORM = {"tokens": ["a", "b"], "patterns": np.full((1, 1, 2, 2), 0.5)}


def weights(*shape, seed=0):
    """Return random attention weights."""
    return torch.softmax(torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=-1)


def test_a_tuple_of_batches_of_one_as_models_return_it():
    layers = tuple(weights(1, 3, 4, 4, seed=i).requires_grad_() for i in range(2))
    trace = vf.Trace.from_attention(TOKENS, layers)
    assert trace.names() == ("encoder.0.self_attn.pattern", "encoder.1.self_attn.pattern")
    np.testing.assert_array_equal(trace.stack("encoder.self_attn"), torch.cat(layers).detach().numpy())
    assert trace.special["src"] == (True, False, False, True)
    assert trace.words["src"] == (0, 1, 2, 3)
    assert len(pack(trace)) > 1000


def test_any_array_list_or_generator_gives_the_same_trace():
    whole = weights(2, 3, 4, 4)
    arrays = (whole, whole.numpy(), whole.double().numpy(), whole.tolist(), whole[:, None])
    listed = (list(whole), (layer for layer in whole), [layer[None] for layer in whole.numpy()])
    for patterns in (*arrays, *listed):
        trace = vf.Trace.from_attention(TOKENS, patterns)
        np.testing.assert_allclose(
            trace.stack("encoder.self_attn"), whole.numpy(), atol=1e-7, err_msg=str(type(patterns))
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rows_of_low_precision_are_accepted(dtype):
    n = 300
    patterns = weights(1, 2, n, n).to(dtype)
    trace = vf.Trace.from_attention([f"t{i}" for i in range(n)], patterns)
    np.testing.assert_array_equal(trace["encoder.0.self_attn.pattern"].value, patterns[0].float().numpy())


def test_an_encoder_decoder_has_three_stacks():
    stacks = {"patterns": weights(1, 2, 4, 4), "decoder": weights(3, 2, 3, 3), "cross": weights(3, 2, 3, 4)}
    trace = vf.Trace.from_attention(TOKENS, **stacks, target=TARGET, following=("I", "go", "</s>"))
    assert trace.stack("decoder.cross_attn").shape == (3, 2, 3, 4)
    assert [axis.side for axis in trace["decoder.2.cross_attn.pattern"].axes] == [None, "tgt", "src"]
    assert trace.tokens["next"] == ("I", "go", "</s>")
    assert trace.special["next"] == (False, False, True)


def test_rows_of_a_decoder_have_no_next_tokens_unless_they_are_given():
    trace = vf.Trace.from_attention(target=TARGET, decoder=weights(2, 2, 3, 3))
    assert set(trace.tokens) == {"tgt", "next"}
    figure = vf.figures.attention_head(trace, "decoder.0.self_attn.pattern")
    assert figure.layout.yaxis.ticktext == ("&lt;s&gt; 1", "I 2", "go 3")


def test_words_and_special_tokens_can_be_given():
    trace = vf.Trace.from_attention(
        ("un", "seen", "."), weights(1, 1, 3, 3), words={"src": (0, 0, 1)}, special={"src": [0, 0, 1]}
    )
    assert trace.words["src"] == (0, 0, 1)
    assert trace.special["src"] == (False, False, True)


def test_a_masked_row_of_zeros_stays():
    patterns = weights(1, 1, 4, 4).numpy()
    patterns[0, 0, 2] = 0
    assert not vf.Trace.from_attention(TOKENS, patterns)["encoder.0.self_attn.pattern"].value[0, 2].any()


def test_a_rounding_error_above_1_is_clipped():
    patterns = np.eye(4, dtype=np.float32)[None, None] * np.float32(1.0000002)
    assert vf.Trace.from_attention(TOKENS, patterns)["encoder.0.self_attn.pattern"].value.max() == 1.0


class Foreign:
    """An array of another framework, with no methods but those of a protocol."""

    def __init__(self, array, protocol):
        methods = {name: lambda _, *a, name=name, **k: getattr(array, name)(*a, **k) for name in protocol}
        self.__class__ = type("Foreign", (), methods)


@pytest.mark.parametrize("protocol", [("__array__",), ("__dlpack__", "__dlpack_device__"), ("__array__", "__len__")])
@pytest.mark.parametrize("whole", [True, False])
def test_arrays_of_other_frameworks_are_read_by_array_or_dlpack(protocol, whole):
    array = weights(2, 3, 4, 4).numpy()
    if "__len__" in protocol and whole:
        protocol = (*protocol, "__getitem__")
    patterns = Foreign(array, protocol) if whole else [Foreign(layer, protocol) for layer in array]
    np.testing.assert_array_equal(vf.Trace.from_attention(TOKENS, patterns).stack("encoder.self_attn"), array)


def with_sinks(*shape):
    """Return attention weights and the mass of their sink: a softmax over one more score."""
    *lead, keys = shape
    whole = weights(*lead, keys + 1)
    return whole[..., :-1], whole[..., -1]


@pytest.mark.parametrize("form", ["rest of the row", "last column", "mass", "batches of one", "by stack"])
def test_the_sink_is_recorded_apart_from_the_pattern(form):
    pattern, mass = with_sinks(2, 3, 4, 4)
    patterns, sink = {
        "rest of the row": (pattern, True),
        "last column": (torch.cat([pattern, mass[..., None]], dim=-1), True),
        "mass": (pattern, mass),
        "batches of one": ([layer[None] for layer in pattern], [layer[None] for layer in mass]),
        "by stack": (pattern, {"decoder": mass}),
    }[form]
    trace = vf.Trace.from_attention(target=("<s>", "I", "go", "on"), decoder=patterns, sink=sink)
    for layer in range(2):
        np.testing.assert_array_equal(trace[f"decoder.{layer}.self_attn.pattern"].value, pattern[layer])
        np.testing.assert_allclose(trace[f"decoder.{layer}.self_attn.sink"].value, mass[layer], atol=1e-6)
    assert len(pack(trace)) > 1000
    assert vf.export.to_csv(trace).count(",sink,") == 2 * 3 * 4
    assert ">sink<" in vf.export.attention_svg(trace, layer=0, head=0)


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        (None, r"decoder\[0\], head 0, query 0 \(from 0\) sums to 0\.\d+, not to 1: .* give sink=True"),
        (weights(2, 3, 3) * 0, r"decoder\[0\], head 0, query 0 \(from 0\): the row and its sink sum to 0\.\d+"),
        (weights(2, 3, 4), r"sink of decoder\[0\] has shape \(3, 4\); expected \(head, query\) = \(3, 3\)"),
        (weights(1, 3, 3), "sink of decoder has 1 layers, but decoder has 2"),
        ({"cross": True}, "sink must be True for all, or a dict with any of decoder"),
    ],
)
def test_a_sink_that_does_not_fit_is_refused(sink, message):
    pattern, _ = with_sinks(2, 3, 3, 3)
    with pytest.raises(TraceError, match=message):
        vf.Trace.from_attention(target=TARGET, decoder=pattern, sink=sink)


def test_with_several_stacks_a_sink_is_given_by_stack():
    pattern, mass = with_sinks(1, 2, 3, 3)
    arguments = {"target": TARGET, "tokens": TOKENS, "cross": weights(1, 2, 3, 4), "decoder": pattern}
    with pytest.raises(TraceError, match="a dict with any of decoder, cross"):
        vf.Trace.from_attention(**arguments, sink=mass)
    trace = vf.Trace.from_attention(**arguments, sink={"decoder": mass})
    assert [name for name in trace if name.endswith("sink")] == ["decoder.0.self_attn.sink"]


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart", "t5", "gpt_oss"])
def test_attentions_of_transformers_models_are_taken_as_they_are(family):
    """Tuples of (batch, head, query, key), as returned with output_attentions=True."""
    module = tiny_module(family)
    ids = torch.tensor([[5, 6, 7, 8]])
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids[:, :3]} if module.config.is_encoder_decoder else {})}
    with torch.inference_mode():
        output = module(**inputs, output_attentions=True)
    if module.config.is_encoder_decoder:
        encoder, decoder, cross = output.encoder_attentions, output.decoder_attentions, output.cross_attentions
        trace = vf.Trace.from_attention(TOKENS, encoder, target=TARGET, decoder=decoder, cross=cross)
        np.testing.assert_array_equal(trace["decoder.1.cross_attn.pattern"], cross[1][0])
    elif family == "bert":
        trace = vf.Trace.from_attention(TOKENS, output.attentions)
        np.testing.assert_array_equal(trace["encoder.1.self_attn.pattern"], output.attentions[1][0])
    else:
        has_sink = family == "gpt_oss"
        trace = vf.Trace.from_attention(target=TOKENS, decoder=output.attentions, sink=has_sink)
        np.testing.assert_array_equal(trace["decoder.1.self_attn.pattern"], output.attentions[1][0])
        assert ("decoder.0.self_attn.sink" in trace) == has_sink


def invalid(value, *, query=2):
    """Return weights with an invalid value in layer 1, head 1."""
    patterns = weights(2, 3, 4, 4).numpy()
    patterns[1, 1, query, 0] = value
    return patterns


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (weights(2, 3, 5, 5), r"patterns\[0\] has shape \(3, 5, 5\); expected .* \(any, 4, 4\)"),
        (weights(4), r"patterns has shape \(4,\); expected \(layer, head, query, key\)"),
        (weights(2, 2, 3, 4, 4), r"patterns\[0\] has shape \(2, 3, 4, 4\): a batch of 2"),
        ((weights(3, 4, 4), weights(3, 4, 6)), r"patterns\[1\] has shape \(3, 4, 6\); expected .* \(any, 4, 4\)"),
        ((weights(3, 4, 4), None), r"patterns\[1\] is None. .*eager"),
        (invalid(-0.5), r"patterns\[1\], head 1, query 2, key 0 \(from 0\) is -0.5, not a probability"),
        (invalid(np.nan), r"patterns\[1\], head 1, query 2, key 0 \(from 0\) is NaN. A query whose keys are all mas"),
        (invalid(1.0, query=3), r"patterns\[1\], head 1, query 3 \(from 0\) sums to 1\.\d+, not to 1"),
        (weights(2, 3, 4, 4) / 2, r"patterns\[0\], head 0, query 0 \(from 0\) sums to 0\.5000"),
        ([["a"]], r"patterns\[0\] is not an array of numbers"),
        (weights(2, 3, 4, 4).numpy() + 0j, r"patterns\[0\] is not an array of numbers"),
        ([], "patterns has no layers"),
        ("ab", "patterns has no layers"),
    ],
)
def test_invalid_patterns_are_refused_with_their_place(patterns, message):
    with pytest.raises(TraceError, match=message):
        vf.Trace.from_attention(TOKENS, patterns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": "a b", "patterns": weights(1, 1, 3, 3)}, "tokens is one text, 'a b'; give a list"),
        ({"tokens": [1, 2], "patterns": weights(1, 1, 2, 2)}, r"tokens\[0\] is 1, not a text"),
        ({"tokens": [], "patterns": weights(1, 1, 2, 2)}, "tokens is empty"),
        ({"tokens": TOKENS}, "No attention was given"),
        ({"patterns": weights(1, 1, 4, 4)}, "patterns needs the tokens along its query axis: give tokens"),
        ({"tokens": TOKENS, "cross": weights(1, 1, 3, 4)}, "cross needs the tokens along its query axis: give target"),
        ({"tokens": TOKENS, "patterns": weights(1, 1, 4, 4), "special": {"src": [True]}}, "1 entries for 4 tokens"),
        ({"target": TARGET, "decoder": weights(1, 1, 3, 3), "following": ["x"]}, "one entry for each of target"),
        ({**UNIFORM, "words": {"source": [0, 0]}}, 'words has \'source\'; its keys must be "src" and "tgt"'),
        ({**UNIFORM, "special": {"src": ["zzz", "a"]}}, "special contains 'zzz': give True or False for each token"),
        ({**UNIFORM, "words": [0, 1]}, r"words is \[0, 1\]; give a dict from side"),
        ({**UNIFORM, "sink": np.full((1, 1, 2), 0.1)}, r"the row and its sink sum to 1\.1000 together, not to 1"),
    ],
)
def test_arguments_that_do_not_fit_each_other_are_refused(arguments, message):
    with pytest.raises(TraceError, match=message):
        vf.Trace.from_attention(**arguments)


def test_other_outputs_of_transformers_models_are_refused_with_a_remedy():
    """No attention without eager attention, a tuple for each step of generate(), and a whole output."""
    layer = weights(1, 2, 4, 4)
    for nothing in ((), None, (None, None)):
        with pytest.raises(TraceError, match='attn_implementation="eager"'):
            vf.Trace.from_attention(TOKENS, nothing)
    with pytest.raises(TraceError, match=r"patterns is a tuple of 3 steps with 2 layers each, .* give it as decoder="):
        vf.Trace.from_attention(TOKENS, ((layer, layer),) * 3)
    whole = Seq2SeqModelOutput(last_hidden_state=layer, encoder_attentions=(layer,), cross_attentions=(layer,))
    with pytest.raises(TraceError, match=r"whole output with cross_attentions, encoder_attentions: give one of them"):
        vf.Trace.from_attention(TOKENS, whole)


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (["<s>", "ĠThe", "Ġn", "æĪĳ", "é¾", "ĺ", "Ċ"], ("<s>", "The", "n", "我", "龘₁", "龘₂", "\n")),
        (["▁The", "re", "▁", "<0xE6>", "<0x88>", "<0x91>", "</s>"], ("The", "re", "␣", "我₁", "我₂", "我₃", "</s>")),
        (["[CLS]", "walk", "##ing", "[SEP]"], ("[CLS]", "walk", "ing", "[SEP]")),
        (["I", " went", "#", "##", "é", "<0x88>"], ("I", " went", "#", "##", "é", "<0x88>")),
        (["ĠI", "我"], ("ĠI", "我")),
        # different tokens that look alike keep their marks
        (["the", "Ġcat", "Ġthe"], ("the", "cat", "␣the")),
        (["▁the", "▁cat", "the"], ("␣the", "cat", "the")),
        (["[CLS]", "ing", "bath", "##ing"], ("[CLS]", "ing", "bath", "##ing")),
        (["Ġthe", "Ġcat", "Ġthe"], ("the", "cat", "the")),
    ],
)
def test_tokens_are_shown_without_the_marks_of_their_vocabulary(tokens, shown):
    n = len(tokens)
    assert vf.Trace.from_attention(tokens, np.full((1, 1, n, n), 1 / n)).tokens["src"] == shown


def test_a_file_that_is_not_a_trace_is_refused(tmp_path):
    (tmp_path / "x").write_text("no tensors at all")
    with pytest.raises(TraceError, match=r"x is not a \.safetensors trace"):
        vf.Trace.load(tmp_path / "x")


@pytest.mark.parametrize(
    ("shape", "remedies"),
    [((4, 4), {"[None, None]": (1, 1, 4, 4)}), ((3, 4, 4), {"[None]": (1, 3, 4, 4), "[:, None]": (3, 1, 4, 4)})],
)
def test_the_error_about_too_few_dimensions_says_how_to_add_the_missing_ones(shape, remedies):
    patterns = weights(*shape).numpy()
    with pytest.raises(TraceError, match=re.escape(f"patterns has shape {shape}")) as caught:
        vf.Trace.from_attention(TOKENS, patterns)
    for remedy, expected in remedies.items():
        assert f"patterns{remedy}" in str(caught.value)
        reshaped = eval(f"patterns{remedy}", {"patterns": patterns})
        assert vf.Trace.from_attention(TOKENS, reshaped).stack("encoder.self_attn").shape == expected


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
    np.testing.assert_array_equal(np.asarray(trace.stack("decoder.self_attn")), OWN[:, 0])
    cache = Cache(hooks(layers))
    listed = vf.Trace.from_attention(target=TARGET, decoder=[cache["pattern", i] for i in range(2)])
    np.testing.assert_array_equal(np.asarray(listed.stack("decoder.self_attn")), OWN[:, 0])


def test_a_cache_of_more_than_ten_layers_is_in_their_order():
    layers = weights(12, 1, 2, 3, 3)
    trace = vf.Trace.from_attention(target=TARGET, decoder=Cache(hooks(layers)))
    np.testing.assert_array_equal(np.asarray(trace.stack("decoder.self_attn")), layers[:, 0])


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
        np.testing.assert_array_equal(np.asarray(trace.stack("decoder.self_attn")), OWN[:, 0], err_msg=what)


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
    np.testing.assert_array_equal(np.asarray(trace.stack("decoder.cross_attn")), CROSS[:, 0])
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


# What generate() returns ----------------------------------------------------------------------------------------------

PROMPT = torch.tensor([[5, 6, 7, 8, 9]])


def generated(module, ids=PROMPT, **options):
    """Return six tokens and their attention, as generate() returns them."""
    how = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "pad_token_id": 0, **options}
    return module.generate(ids, output_attentions=True, return_dict_in_generate=True, **how)


def names_of(ids):
    return [f"t{i}" for i in ids.tolist()]


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "gemma3_text", "gpt_oss"])
@pytest.mark.parametrize("cache", [{}, {"use_cache": False}, {"cache_implementation": "static"}], ids=str)
def test_the_steps_of_a_decoder_are_the_rows_of_one_pass(family, cache):
    module = tiny_module(family)
    out = generated(module, **cache)
    ids = out.sequences[0]
    with torch.inference_mode():
        whole = module(ids[None, :-1], output_attentions=True).attentions
    trace = vf.Trace.from_attention(target=names_of(ids), decoder=out.attentions, sink=family == "gpt_oss")
    np.testing.assert_allclose(trace.stack("decoder.self_attn"), torch.cat(whole).numpy(), atol=1e-5)
    assert trace.tokens["tgt"] == tuple(names_of(ids[:-1])) and trace.tokens["next"] == tuple(names_of(ids[1:]))
    read = vf.Trace.from_attention(target=names_of(ids[:-1]), decoder=out.attentions, sink=family == "gpt_oss")
    np.testing.assert_array_equal(read.stack("decoder.self_attn"), trace.stack("decoder.self_attn"))


@pytest.mark.parametrize("family", ["bart", "t5"])
@pytest.mark.parametrize("begin", [None, torch.tensor([[2, 9, 8]])], ids=["alone", "after a prompt"])
def test_the_steps_of_an_encoder_decoder_are_the_rows_of_one_pass(family, begin):
    module = tiny_module(family)
    out = generated(module, **({} if begin is None else {"decoder_input_ids": begin}))
    ids = out.sequences[0]
    with torch.inference_mode():
        whole = module(PROMPT, decoder_input_ids=ids[None, :-1], output_attentions=True)
    trace = vf.Trace.from_attention(
        names_of(PROMPT[0]),
        out.encoder_attentions,
        target=names_of(ids),
        decoder=out.decoder_attentions,
        cross=out.cross_attentions,
    )
    for stack, theirs in (
        ("encoder.self_attn", whole.encoder_attentions),
        ("decoder.self_attn", whole.decoder_attentions),
        ("decoder.cross_attn", whole.cross_attentions),
    ):
        np.testing.assert_allclose(trace.stack(stack), torch.cat(theirs).numpy(), atol=1e-5)


def test_generation_that_continues_a_cache_has_the_earlier_tokens_before_its_own():
    module = tiny_module("llama")
    with torch.inference_mode():
        past = module(PROMPT[:, :3], use_cache=True).past_key_values
    out = generated(module, past_key_values=past)
    ids = out.sequences[0]
    with torch.inference_mode():
        whole = torch.cat(module(ids[None, :-1], output_attentions=True).attentions)
    trace = vf.Trace.from_attention(
        target=names_of(ids[3:]), decoder=out.attentions, prefix={"tgt": names_of(PROMPT[0, :3])}
    )
    np.testing.assert_allclose(trace.stack("decoder.self_attn"), whole[:, :, 3:].numpy(), atol=1e-5)
    assert trace.tokens["prefix+tgt"] == tuple(names_of(ids[:-1])) and not any(trace.special["prefix+tgt"])


def test_beams_several_texts_and_fused_attention_are_refused_with_the_remedy():
    module = tiny_module("gpt2")
    for options in ({"num_beams": 2}, {"num_return_sequences": 2, "do_sample": True}):
        out = generated(module, **options)
        with pytest.raises(TraceError, match=r"decoder\[0\]\[0\] has shape \(2, 4, 5, 5\).*num_beams=1"):
            vf.Trace.from_attention(target=names_of(out.sequences[0]), decoder=out.attentions)
    nothing = ((None, None),) * 3
    with pytest.raises(TraceError, match=r'decoder\[0\]\[0\] is None.*attn_implementation="eager"'):
        vf.Trace.from_attention(target=TARGET, decoder=nothing)
    steps = generated(module).attentions
    with pytest.raises(TraceError, match="its steps differ in layers or shapes"):
        vf.Trace.from_attention(target=TARGET, decoder=(*steps[:3], steps[3][:1]))
    with pytest.raises(TraceError, match=r"decoder\[0\] has shape \(4, 10, 10\); expected .* \(any, 3, 3\)"):
        vf.Trace.from_attention(target=TARGET, decoder=steps)


# More keys than tokens, and layers of unequal heads -------------------------------------------------------------------


def test_keys_before_the_tokens_are_named():
    patterns = weights(2, 3, 4, 6)
    trace = vf.Trace.from_attention(target=TOKENS, decoder=patterns)
    np.testing.assert_array_equal(trace.stack("decoder.self_attn"), patterns)
    assert trace.tokens["tgt"] == TOKENS and trace.tokens["prefix+tgt"] == ("[prefix 1]", "[prefix 2]", *TOKENS)
    assert trace.special["prefix+tgt"] == (True, True, True, False, False, True)
    assert vf.export.to_csv(trace).count(",[prefix 2],") == 2 * 3 * 4
    named = vf.Trace.from_attention(
        TOKENS, patterns, target=TARGET, cross=weights(1, 3, 3, 6), prefix={"src": ["one", "</s>"]}
    )
    assert named.tokens["prefix+src"] == ("one", "</s>", *TOKENS)
    assert named.special["prefix+src"][:2] == (False, True)
    assert [axis.side for axis in named["decoder.0.cross_attn.pattern"].axes] == [None, "tgt", "prefix+src"]


def test_a_file_keeps_the_keys_before_the_tokens_and_the_heads_of_each_layer(tmp_path):
    layers = [weights(3, 4, 6), weights(1, 4, 6), weights(4, 4, 6)]
    roles = {"tgt": [None, "user", "user", None]}
    trace = vf.Trace.from_attention(target=TOKENS, decoder=layers, roles=roles)
    assert trace.roles["prefix+tgt"] == (None, None, None, "user", "user", None)
    assert json.loads(vf.export.to_json(trace))["roles"] == {side: [*each] for side, each in trace.roles.items()}
    trace.save(tmp_path / "x")
    again = vf.Trace.load(tmp_path / "x")
    for name in ("tokens", "special", "words", "roles"):
        assert dict(getattr(again, name)) == dict(getattr(trace, name))
    for i, layer in enumerate(layers):
        np.testing.assert_array_equal(again[f"decoder.{i}.self_attn.pattern"].value, layer)


def test_the_keys_of_prefix_tuning_are_those_that_transformers_computes():
    """Prefix tuning is a cache of learned keys and values before the text."""
    module, past = tiny_module("llama"), DynamicCache()
    for layer in range(3):
        past.update(weights(1, 2, 2, 4, seed=layer), weights(1, 2, 2, 4), layer)  # (batch, kv_head, key, d_k)
    with torch.inference_mode():
        theirs = module(PROMPT, past_key_values=past, output_attentions=True).attentions
    trace = vf.Trace.from_attention(target=names_of(PROMPT[0]), decoder=theirs)
    np.testing.assert_array_equal(trace.stack("decoder.self_attn"), torch.cat(theirs).numpy())
    assert trace.tokens["prefix+tgt"][:3] == ("[prefix 1]", "[prefix 2]", "t5")


def test_scores_of_heads_are_those_of_the_tokens_without_the_keys_before_them():
    layers = [weights(3, 4, 6).numpy(), weights(2, 4, 6, seed=1).numpy()]
    trace = vf.Trace.from_attention(TOKENS, layers)
    scores = vf.analysis.mean_head_scores(trace, "encoder.self_attn")
    for row, layer in enumerate(layers):
        own = layer[..., 2:]
        diagonal = np.trace(own, axis1=1, axis2=2) / 4
        np.testing.assert_allclose(scores["diagonal"][row, : len(layer)], diagonal, atol=1e-6)
        np.testing.assert_allclose(scores["first"][row, : len(layer)], own[..., 0].mean(axis=1), atol=1e-6)
    assert np.isnan(scores["diagonal"][1, 2])


def test_what_follows_tokens_alone_says_so_of_keys_before_them():
    trace = vf.Trace.from_attention(target=TOKENS, decoder=weights(2, 3, 4, 6))
    with pytest.raises(
        TraceError, match=r"decoder\.0\.self_attn\.pattern has keys before its tokens, which rollout does"
    ):
        vf.analysis.rollout(trace)
    with pytest.raises(TraceError, match="keys before its tokens, which compare does not follow"):
        vf.compare(trace, trace)._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cross": weights(1, 2, 3, 6)}, r"cross\[0\] has shape \(2, 3, 6\); expected .* \(any, 3, 4\)"),
        ({"patterns": weights(1, 2, 4, 4), "prefix": {"src": ["x"]}}, r"prefix\['src'\] names 1 keys, but no array"),
        (
            {"patterns": weights(1, 2, 4, 6), "prefix": {"src": ["x"]}},
            r"has shape \(2, 4, 6\); expected .* \(any, 4, 4\)",
        ),
        ({"patterns": weights(1, 2, 4, 6), "prefix": ["x", "y"]}, r"prefix is \['x', 'y'\]; give a dict from"),
        ({"patterns": weights(1, 2, 4, 6), "prefix": {"src": [1, 2]}}, r"prefix\['src'\]\[0\] is 1, not a text"),
        ({"patterns": weights(1, 2, 4, 4), "roles": {"src": [1] * 4}}, "roles contains 1: give the role of each"),
        ({"patterns": weights(1, 2, 4, 4), "roles": {"src": ["user"]}}, r"roles\['src'\] has 1 entries for 4 tokens"),
    ],
)
def test_keys_and_roles_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(TraceError, match=message):
        vf.Trace.from_attention(**{"tokens": TOKENS, "target": TARGET, **arguments})


def test_layers_of_unequal_heads_are_drawn_with_the_heads_that_they_have():
    trace = vf.Trace.from_attention(TOKENS, [weights(3, 4, 4), weights(1, 4, 4)])
    assert [len(layer) for layer in trace.layers("encoder.self_attn").values()] == [3, 1]
    with pytest.raises(
        TraceError, match=r"encoder.1.self_attn.pattern has 1 heads, but encoder.0.self_attn.pattern has"
    ):
        trace.stack("encoder.self_attn")
    assert vf.export.attention_svg(trace, stack="encoder.self_attn").count("<image") == 0
    (heatmap,) = vf.figures.attention_heads(trace, "encoder.self_attn").data
    shown = ~np.isnan(np.array(heatmap.z, dtype=float))
    assert shown[:5].sum() == 3 * 16 and shown[5:].sum() == 16
    with pytest.raises(TraceError, match="has no head 1: there are 0"):
        vf.export.attention_svg(trace, layer=1, head=1)
