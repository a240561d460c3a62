"""Attention from elsewhere: arrays of any framework become a Trace, or a message says where they do not fit."""

import numpy as np
import pytest
import torch
from transformers.modeling_outputs import Seq2SeqModelOutput

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module
from visformer.errors import TraceError
from visformer.web.payload import pack

TOKENS = ("[CLS]", "我", "去", "[SEP]")
TARGET = ("<s>", "I", "go")
EVEN = {"tokens": ["a", "b"], "patterns": np.full((1, 1, 2, 2), 0.5)}


def weights(*shape, seed=0):
    """Attention by PyTorch's own softmax."""
    return torch.softmax(torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=-1)


def test_a_tuple_of_batches_of_one_as_models_give_it():
    layers = tuple(weights(1, 3, 4, 4, seed=i).requires_grad_() for i in range(2))
    trace = vf.Trace.from_attention(TOKENS, layers)
    assert trace.names() == ("encoder.0.self_attn.pattern", "encoder.1.self_attn.pattern")
    np.testing.assert_array_equal(trace.stack("encoder").value, torch.cat(layers).detach().numpy())
    assert trace.special["src"] == (True, False, False, True)
    assert trace.words["src"] == (0, 1, 2, 3)
    assert len(pack(trace)) > 1000


@pytest.mark.parametrize(
    "given",
    [
        weights(2, 3, 4, 4),
        weights(2, 3, 4, 4).numpy(),
        weights(2, 3, 4, 4).double().numpy(),
        weights(2, 3, 4, 4).tolist(),
        list(weights(2, 3, 4, 4)),
        (layer for layer in weights(2, 3, 4, 4)),
        weights(2, 1, 3, 4, 4),
        [layer[None] for layer in weights(2, 3, 4, 4).numpy()],
    ],
)
def test_every_way_to_write_the_same_numbers(given):
    trace = vf.Trace.from_attention(TOKENS, given)
    wanted = weights(2, 1, 3, 4, 4)[:, 0] if torch.is_tensor(given) and given.ndim == 5 else weights(2, 3, 4, 4)
    np.testing.assert_allclose(trace.stack("encoder").value, wanted.numpy(), atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rows_of_few_digits_are_probabilities_still(dtype):
    many = 300
    given = weights(1, 2, many, many).to(dtype)
    trace = vf.Trace.from_attention([f"t{i}" for i in range(many)], given)
    np.testing.assert_array_equal(trace["encoder.0.self_attn.pattern"].value, given[0].float().numpy())


def test_an_encoder_decoder_has_three_stacks():
    trace = vf.Trace.from_attention(
        TOKENS,
        weights(1, 2, 4, 4),
        target=TARGET,
        decoder=weights(3, 2, 3, 3),
        cross=weights(3, 2, 3, 4),
        following=("I", "go", "</s>"),
    )
    assert trace.stack("decoder", "cross_attn").shape == (3, 2, 3, 4)
    assert [axis.side for axis in trace["decoder.2.cross_attn.pattern"].axes] == [None, "tgt", "src"]
    assert trace.tokens["next"] == ("I", "go", "</s>")
    assert trace.special["next"] == (False, False, True)


def test_a_decoder_alone_claims_no_next_tokens():
    trace = vf.Trace.from_attention(target=TARGET, decoder=weights(2, 2, 3, 3))
    assert set(trace.tokens) == {"tgt", "next"}
    figure = vf.figures.attention_head(trace, "decoder.0.self_attn.pattern")
    assert figure.layout.yaxis.ticktext == ("&lt;s&gt; 1", "I 2", "go 3")


def test_words_and_special_tokens_may_be_given():
    trace = vf.Trace.from_attention(
        ("un", "seen", "."), weights(1, 1, 3, 3), words={"src": (0, 0, 1)}, special={"src": [0, 0, 1]}
    )
    assert trace.words["src"] == (0, 0, 1)
    assert trace.special["src"] == (False, False, True)


def test_a_masked_row_of_zeros_stays():
    given = weights(1, 1, 4, 4).numpy()
    given[0, 0, 2] = 0
    assert not vf.Trace.from_attention(TOKENS, given)["encoder.0.self_attn.pattern"].value[0, 2].any()


def test_what_rounding_put_above_one_is_one():
    given = np.eye(4, dtype=np.float32)[None, None] * np.float32(1.0000002)
    assert vf.Trace.from_attention(TOKENS, given)["encoder.0.self_attn.pattern"].value.max() == 1.0


class Foreign:
    """An array of a framework that supports only one protocol."""

    def __init__(self, array, protocol):
        made = {name: lambda _, *a, name=name, **k: getattr(array, name)(*a, **k) for name in protocol}
        self.__class__ = type("Foreign", (), made)


@pytest.mark.parametrize("protocol", [("__array__",), ("__dlpack__", "__dlpack_device__"), ("__array__", "__len__")])
@pytest.mark.parametrize("whole", [True, False])
def test_arrays_of_any_framework_by_the_protocols_that_they_share(protocol, whole):
    array = weights(2, 3, 4, 4).numpy()
    if "__len__" in protocol and whole:
        protocol = (*protocol, "__getitem__")
    given = Foreign(array, protocol) if whole else [Foreign(layer, protocol) for layer in array]
    np.testing.assert_array_equal(vf.Trace.from_attention(TOKENS, given).stack("encoder").value, array)


def with_sinks(*shape):
    """Attention and the mass of its sink, by torch's softmax over one score more."""
    *lead, keys = shape
    whole = weights(*lead, keys + 1)
    return whole[..., :-1], whole[..., -1]


@pytest.mark.parametrize("how", ["the rest", "a column", "its mass", "a batch", "its name"])
def test_sinks_are_kept_apart_from_tokens(how):
    pattern, mass = with_sinks(2, 3, 4, 4)
    given, sink = {
        "the rest": (pattern, True),
        "a column": (torch.cat([pattern, mass[..., None]], dim=-1), True),
        "its mass": (pattern, mass),
        "a batch": ([layer[None] for layer in pattern], [layer[None] for layer in mass]),
        "its name": (pattern, {"decoder": mass}),
    }[how]
    trace = vf.Trace.from_attention(target=("<s>", "I", "go", "on"), decoder=given, sink=sink)
    for layer in range(2):
        np.testing.assert_array_equal(trace[f"decoder.{layer}.self_attn.pattern"].value, pattern[layer])
        np.testing.assert_allclose(trace[f"decoder.{layer}.self_attn.sink"].value, mass[layer], atol=1e-6)
    assert len(pack(trace)) > 1000
    assert vf.export.to_csv(trace).count(",sink,") == 2 * 3 * 4
    assert ">sink<" in vf.export.attention_svg(trace, layer=0, head=0)
    assert vf.export.attention_svg(trace) != vf.export.attention_svg(
        vf.Trace.from_attention(target=trace.tokens["tgt"], decoder=pattern / pattern.sum(-1, keepdim=True))
    )


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
def test_a_sink_that_does_not_fit_is_named(sink, message):
    pattern, _ = with_sinks(2, 3, 3, 3)
    with pytest.raises(TraceError, match=message):
        vf.Trace.from_attention(target=TARGET, decoder=pattern, sink=sink)


def test_of_several_stacks_a_sink_says_whose_it_is():
    pattern, mass = with_sinks(1, 2, 3, 3)
    given = {"target": TARGET, "tokens": TOKENS, "cross": weights(1, 2, 3, 4), "decoder": pattern}
    with pytest.raises(TraceError, match="a dict with any of decoder, cross"):
        vf.Trace.from_attention(**given, sink=mass)
    trace = vf.Trace.from_attention(**given, sink={"decoder": mass})
    assert [name for name in trace if name.endswith("sink")] == ["decoder.0.self_attn.sink"]


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart", "t5", "gpt_oss"])
def test_what_models_of_transformers_give(family):
    """Tuples of (batch, head, query, key), as they come with output_attentions=True."""
    module = tiny_module(family)
    module.set_attn_implementation("eager")
    ids = torch.tensor([[5, 6, 7, 8]])
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids[:, :3]} if module.config.is_encoder_decoder else {})}
    with torch.inference_mode():
        found = module(**inputs, output_attentions=True)
    if module.config.is_encoder_decoder:
        trace = vf.Trace.from_attention(
            TOKENS,
            found.encoder_attentions,
            target=TARGET,
            decoder=found.decoder_attentions,
            cross=found.cross_attentions,
        )
        np.testing.assert_array_equal(trace["decoder.1.cross_attn.pattern"].value, found.cross_attentions[1][0])
    elif family == "bert":
        trace = vf.Trace.from_attention(TOKENS, found.attentions)
        np.testing.assert_array_equal(trace["encoder.1.self_attn.pattern"].value, found.attentions[1][0])
    else:
        sunk = family == "gpt_oss"
        trace = vf.Trace.from_attention(target=TOKENS, decoder=found.attentions, sink=sunk)
        np.testing.assert_array_equal(trace["decoder.1.self_attn.pattern"].value, found.attentions[1][0])
        assert ("decoder.0.self_attn.sink" in trace) == sunk


def spoiled(value, *, query=2):
    given = weights(2, 3, 4, 4).numpy()
    given[1, 1, query, 0] = value
    return given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (weights(2, 3, 5, 5), r"patterns\[0\] has shape \(3, 5, 5\); expected .* \(any, 4, 4\)"),
        (weights(4), r"patterns has shape \(4,\); expected \(layer, head, query, key\)"),
        (weights(2, 2, 3, 4, 4), r"patterns\[0\] has shape \(2, 3, 4, 4\): a batch of 2"),
        ((weights(3, 4, 4), weights(2, 4, 4)), r"patterns\[1\] has 2 heads, but patterns\[0\] has 3"),
        ((weights(3, 4, 4), None), r"patterns\[1\] is None. .*eager"),
        (spoiled(-0.5), r"patterns\[1\], head 1, query 2, key 0 \(from 0\) is -0.5, not a probability"),
        (
            spoiled(np.nan),
            r"patterns\[1\], head 1, query 2, key 0 \(from 0\) is NaN. A query whose keys are all masked",
        ),
        (spoiled(1.0, query=3), r"patterns\[1\], head 1, query 3 \(from 0\) sums to 1\.\d+, not to 1"),
        (weights(2, 3, 4, 4) / 2, r"patterns\[0\], head 0, query 0 \(from 0\) sums to 0\.5000"),
        ([["a"]], r"patterns\[0\] is not an array of numbers"),
        (weights(2, 3, 4, 4).numpy() + 0j, r"patterns\[0\] is not an array of numbers"),
        ([], "patterns has no layers"),
        ("ab", "patterns has no layers"),
    ],
)
def test_what_does_not_fit_is_named(given, message):
    with pytest.raises(TraceError, match=message):
        vf.Trace.from_attention(TOKENS, given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tokens": "a b", "patterns": weights(1, 1, 3, 3)}, "tokens is one text, 'a b'; give a list"),
        ({"tokens": [1, 2], "patterns": weights(1, 1, 2, 2)}, r"tokens\[0\] is 1, not a text"),
        ({"tokens": [], "patterns": weights(1, 1, 2, 2)}, "tokens is empty"),
        ({"tokens": TOKENS}, "No attention was given"),
        ({"patterns": weights(1, 1, 4, 4)}, "patterns needs the tokens along its query axis: give tokens"),
        ({"tokens": TOKENS, "cross": weights(1, 1, 3, 4)}, "cross needs the tokens along its query axis: give target"),
        ({"tokens": TOKENS, "patterns": weights(1, 1, 4, 4), "special": {"src": [True]}}, "1 entries for 4 tokens"),
        ({"target": TARGET, "decoder": weights(1, 1, 3, 3), "following": ["x"]}, "one entry for each of target"),
        ({**EVEN, "words": {"source": [0, 0]}}, 'words has \'source\'; its keys must be "src" and "tgt"'),
        ({**EVEN, "special": {"src": ["zzz", "a"]}}, "special contains 'zzz': give True or False for each token"),
        ({**EVEN, "words": [0, 1]}, r"words is \[0, 1\]; give a dict from side"),
        ({**EVEN, "sink": np.full((1, 1, 2), 0.1)}, r"the row and its sink sum to 1\.1000 together, not to 1"),
    ],
)
def test_arguments_that_do_not_go_together_are_named(given, message):
    with pytest.raises(TraceError, match=message):
        vf.Trace.from_attention(**given)


def test_a_hub_models_outputs_that_are_not_its_attention_say_what_is():
    """transformers may return nothing without eager attention, a tuple per step from generate(), or a whole output."""
    layer = weights(1, 2, 4, 4)
    for given in ((), None, (None, None)):
        with pytest.raises(TraceError, match='attn_implementation="eager"'):
            vf.Trace.from_attention(TOKENS, given)
    with pytest.raises(TraceError, match=r"patterns is a tuple of 3 steps with 2 layers each, as generate\(\) returns"):
        vf.Trace.from_attention(TOKENS, ((layer, layer),) * 3)
    whole = Seq2SeqModelOutput(last_hidden_state=layer, encoder_attentions=(layer,), cross_attentions=(layer,))
    with pytest.raises(TraceError, match=r"whole output with cross_attentions, encoder_attentions: give one of them"):
        vf.Trace.from_attention(TOKENS, whole)


@pytest.mark.parametrize(
    ("tokens", "seen"),
    [
        (["<s>", "ĠThe", "Ġn", "æĪĳ", "é¾", "ĺ", "Ċ"], ("<s>", "The", "n", "我", "龘₁", "龘₂", "\n")),
        (["▁The", "re", "▁", "<0xE6>", "<0x88>", "<0x91>", "</s>"], ("The", "re", "␣", "我₁", "我₂", "我₃", "</s>")),
        (["[CLS]", "walk", "##ing", "[SEP]"], ("[CLS]", "walk", "ing", "[SEP]")),
        (["I", " went", "#", "##", "é", "<0x88>"], ("I", " went", "#", "##", "é", "<0x88>")),
        (["ĠI", "我"], ("ĠI", "我")),
    ],
)
def test_tokens_are_shown_without_the_marks_of_their_vocabulary(tokens, seen):
    n = len(tokens)
    assert vf.Trace.from_attention(tokens, np.full((1, 1, n, n), 1 / n)).tokens["src"] == seen


def test_a_file_that_is_no_trace_is_told_in_plain_words(tmp_path):
    (tmp_path / "x").write_text("no tensors at all")
    with pytest.raises(TraceError, match=r"x is not a \.safetensors trace"):
        vf.Trace.load(tmp_path / "x")


@pytest.mark.parametrize(
    ("shape", "remedies"),
    [((4, 4), {"[None, None]": (1, 1, 4, 4)}), ((3, 4, 4), {"[None]": (1, 3, 4, 4), "[:, None]": (3, 1, 4, 4)})],
)
def test_an_array_of_too_few_dimensions_is_told_what_makes_it_a_stack(shape, remedies):
    patterns = weights(*shape).numpy()
    with pytest.raises(TraceError) as raised:
        vf.Trace.from_attention(TOKENS, patterns)
    assert f"patterns has shape {shape}" in str(raised.value)
    for remedy, wanted in remedies.items():
        assert f"patterns{remedy}" in str(raised.value)
        given = eval(f"patterns{remedy}", {"patterns": patterns})
        assert vf.Trace.from_attention(TOKENS, given).stack("encoder").shape == wanted
