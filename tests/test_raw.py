"""Attention from elsewhere: arrays of any framework become a Trace, or a message says where they do not fit."""

import numpy as np
import pytest
import torch

import visformer as vf
from visformer.canvas.payload import pack
from visformer.errors import TraceError

TOKENS = ("[CLS]", "我", "去", "[SEP]")
TARGET = ("<s>", "I", "go")


def weights(*shape, seed=0):
    """Attention as PyTorch's own softmax makes it."""
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


def spoiled(value, *, head=1, query=2):
    given = weights(2, 3, 4, 4).numpy()
    given[1, head, query, 0] = value
    return given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (weights(2, 3, 5, 5), r"patterns\[0\] has shape \(3, 5, 5\), but wanted is .* \(any, 4, 4\)"),
        (weights(3, 4, 4), r"patterns\[0\] has shape \(4, 4\), but wanted"),
        (weights(2, 2, 3, 4, 4), r"patterns\[0\] has shape \(2, 3, 4, 4\): a batch of 2"),
        ((weights(3, 4, 4), weights(2, 4, 4)), r"patterns\[1\] has 2 heads, but patterns\[0\] has 3"),
        ((weights(3, 4, 4), None), r"patterns\[1\] is None. .*eager"),
        (spoiled(-0.5), r"patterns\[1\], head 1, query 2, key 0 \(from 0\) is -0.5, no probability"),
        (spoiled(np.nan), r"patterns\[1\], head 1, query 2, key 0 \(from 0\) is nan, no probability"),
        (spoiled(1.0, query=3), r"patterns\[1\], head 1, query 3 \(from 0\) sums to 1\.\d+, not to 1"),
        (weights(2, 3, 4, 4) / 2, r"patterns\[0\], head 0, query 0 \(from 0\) sums to 0\.5000"),
        ([["a"]], r"patterns\[0\] is no array of numbers"),
        (weights(2, 3, 4, 4).numpy() + 0j, r"patterns\[0\] is no array of numbers"),
        ([], "patterns holds no layers"),
        ("ab", "patterns holds no layers"),
    ],
)
def test_what_does_not_fit_is_named(given, message):
    with pytest.raises(TraceError, match=message):
        vf.Trace.from_attention(TOKENS, given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tokens": "a b", "patterns": weights(1, 1, 3, 3)}, "tokens is one text, 'a b'; give a list"),
        ({"tokens": [1, 2], "patterns": weights(1, 1, 2, 2)}, r"tokens\[0\] is 1, which is no text"),
        ({"tokens": [], "patterns": weights(1, 1, 2, 2)}, "tokens is empty"),
        ({"tokens": TOKENS}, "No attention was given"),
        ({"patterns": weights(1, 1, 4, 4)}, "patterns needs the tokens along its query axis: give tokens"),
        ({"tokens": TOKENS, "cross": weights(1, 1, 3, 4)}, "cross needs the tokens along its query axis: give target"),
        ({"tokens": TOKENS, "patterns": weights(1, 1, 4, 4), "special": {"src": [True]}}, "1 entries for 4 tokens"),
        ({"target": TARGET, "decoder": weights(1, 1, 3, 3), "following": ["x"]}, "one entry for each of target"),
    ],
)
def test_arguments_that_do_not_go_together_are_named(given, message):
    with pytest.raises(TraceError, match=message):
        vf.Trace.from_attention(**given)
