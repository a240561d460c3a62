"""The numbers of the whole model, compared with torch and transformers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.adapters.huggingface.test_heads import MASKED, with_head
from tests.kinds import KINDS, TEXT, model_of, trace_of
from tests.web.support import made_up_trace, with_gaps
from visformer.pictures import map as model_map
from visformer.trace import Trace, TracedTensor
from visformer.trace.names import axes_of

SELF, BOTH = ("self_attn", "ffn"), ("self_attn", "cross_attn", "ffn")
STACKS = {
    "en-zh": {"encoder": {i: SELF for i in range(3)}, "decoder": {i: BOTH for i in range(3)}},
    "mini-gpt": {"encoder": {}, "decoder": {i: SELF for i in range(4)}},
    "bert": {"encoder": {i: SELF for i in range(3)}, "decoder": {}},
    "gpt2": {"encoder": {}, "decoder": {i: SELF for i in range(3)}},
    "gptj": {"encoder": {}, "decoder": {i: SELF for i in range(3)}},
    "bart": {"encoder": {i: SELF for i in range(2)}, "decoder": {i: BOTH for i in range(3)}},
    "lfm2": {"encoder": {}, "decoder": {i: SELF for i in range(6)}},
    "attention": {"encoder": {i: SELF[:1] for i in range(2)}, "decoder": {i: BOTH[:2] for i in range(2)}},
    "decoder": {"encoder": {}, "decoder": {i: SELF[:1] for i in range(2)}},
    "maps": {"encoder": {i: SELF[:1] for i in range(2)}, "decoder": {i: BOTH[:2] for i in range(2)}},
}
"""Kind to stack to number of each layer to its sublayers."""
SUMS = ("embed", "position", "input")
ADDED = {
    "lfm2": {"tgt": ("embed", "input")},
    "en-zh": {"src": SUMS, "tgt": SUMS},
    "mini-gpt": {"tgt": SUMS},
    "bert": {"src": SUMS},
    "gpt2": {"tgt": SUMS},
    "gptj": {"tgt": ("embed", "input")},
    "bart": {"src": SUMS, "tgt": SUMS},
}
PREDICTING = ("en-zh", "mini-gpt", "gpt2", "gptj", "bart", "lfm2")
STREAM = {"self_attn": "resid_self", "cross_attn": "resid_cross", "ffn": "resid_post"}


@pytest.mark.parametrize("kind", KINDS)
def test_layers_have_their_sublayers_with_the_lengths_of_vectors_or_the_reason_why_they_lack_them(kind):
    """A parallel block has no stream between its two parts, and arrays without a model have none at all."""
    trace = trace_of(kind)
    named = {
        "self_attn": ("self_attn.pattern", "self_attn.map"),
        "cross_attn": ("cross_attn.pattern", "cross_attn.map"),
        "ffn": ("resid_post",),
    }
    for stack in model_map.SIDES:
        layers = model_map.layers(trace, stack)
        kinds = [(layer.number, tuple(sublayer.kind for sublayer in layer.sublayers)) for layer in layers]
        assert kinds == list(STACKS[kind][stack].items())
        for number, sublayer in [(layer.number, sublayer) for layer in layers for sublayer in layer.sublayers]:
            names = [f"{stack}.{number}.{name}" for name in named[sublayer.kind]]
            assert (sublayer.lacks is None) == any(name in trace for name in names)
            assert sublayer.lacks in (None, trace.lacks(names[0]))
            name = f"{stack}.{number}.{STREAM[sublayer.kind]}"
            assert (sublayer.norms is None) == (name not in trace)
            if sublayer.norms is not None:
                wanted = torch.linalg.vector_norm(torch.from_numpy(trace[name].value.copy()).double(), dim=-1)
                np.testing.assert_allclose(sublayer.norms, wanted, rtol=1e-12)
    if kind in ("gptj", "lfm2"):
        (first, *_) = model_map.layers(trace, "decoder")[0].sublayers
        assert (first.kind, first.norms) == ("self_attn", None)
    if kind == "lfm2":
        empty = [one.number for one in model_map.layers(trace, "decoder") if one.sublayers[0].lacks]
        assert empty == [0, 1, 3, 5]


def test_lengths_are_those_of_the_hidden_states_that_transformers_returns():
    """All but the last layer's: that one is returned after the norm behind it."""
    trace = trace_of("gpt2")
    with torch.no_grad():
        output = tiny_module("gpt2")(torch.tensor([trace.meta["ids"]["tgt"]]), output_hidden_states=True)
    layers = model_map.layers(trace, "decoder")
    for layer, hidden in zip(layers[:-1], output.hidden_states[1:-1], strict=True):
        wanted = torch.linalg.vector_norm(hidden[0], dim=-1)
        np.testing.assert_allclose(layer.sublayers[-1].norms, wanted, rtol=1e-5)


def test_layers_are_in_the_order_of_their_numbers():
    layers = model_map.layers(with_gaps(made_up_trace(n_layers=7)), "decoder")
    assert [layer.number for layer in layers] == [1, 3, 5, 7, 9, 11, 13]
    assert {tuple(sublayer.kind for sublayer in layer.sublayers) for layer in layers} == {BOTH[:2]}


@given(arrays(np.float16, (3, 5), elements=st.floats(-60_000, 60_000, width=16)))
def test_lengths_of_half_precision_do_not_overflow(rows):
    wanted = torch.linalg.vector_norm(torch.from_numpy(rows).double(), dim=-1)
    np.testing.assert_allclose(model_map.norms(rows), wanted, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_what_enters_the_first_layer_was_recorded_and_the_likeliest_tokens_are_those_of_torch(kind):
    trace = trace_of(kind)
    for side in ("src", "tgt"):
        added = model_map.added(trace, side)
        assert tuple(added) == ADDED.get(kind, {}).get(side, ())
        for name, rows in added.items():
            assert np.array_equal(rows, trace[f"{side}.{name}"].value)
    steps = model_map.steps(trace)
    if kind not in PREDICTING:
        assert steps == ()
        return
    probabilities = torch.softmax(torch.from_numpy(trace["logits"].value.copy()).double(), dim=-1)
    best = torch.topk(probabilities, 5)
    following = probabilities.gather(1, torch.tensor(trace.meta["ids"]["next"])[:, None])[:, 0]
    assert [list(step.ids) for step in steps] == best.indices.tolist()
    np.testing.assert_allclose([step.probabilities for step in steps], best.values, rtol=1e-9)
    np.testing.assert_allclose([step.following for step in steps], following, rtol=1e-9)
    assert len(steps) == len(trace.tokens["tgt"])


@pytest.mark.parametrize("kind", ["gpt2", "bart"])
def test_the_likeliest_tokens_are_those_that_transformers_predicts(kind):
    trace = trace_of(kind)
    ids = {side: torch.tensor([row]) for side, row in trace.meta["ids"].items()}
    given_ids = (ids["src"],) if kind == "bart" else (ids["tgt"],)
    decoder = {"decoder_input_ids": ids["tgt"]} if kind == "bart" else {}
    with torch.no_grad():
        logits = tiny_module(kind)(*given_ids, **decoder, use_cache=False).logits[0]
    best = torch.topk(torch.softmax(logits, dim=-1), 5)
    steps = model_map.steps(trace)
    np.testing.assert_allclose([step.probabilities for step in steps], best.values, rtol=1e-3, atol=1e-6)
    assert [step.ids[0] for step in steps] == best.indices[:, 0].tolist()


def with_logits(logits, ids):
    """Return a made-up Trace of a decoder with these logits."""
    trace = made_up_trace(n_tgt=len(logits))
    tensor = TracedTensor("logits", np.asarray(logits, dtype=np.float32), axes_of("logits"))
    return replace(trace, tensors={**trace.tensors, "logits": tensor}, meta={**trace.meta, "ids": {"next": ids}})


def test_probabilities_worked_out_by_hand():
    """1 : 2 : 1 and, however large the logits are, 0 : 1 : 0; a vocabulary may be smaller than the candidates."""
    one, other = model_map.steps(with_logits(np.log([[1, 2, 1], [1, 1e30, 1]]) * [[1], [40]], [2, 1]))
    assert one.ids == (1, 0, 2), "equal ones in the order of their ids"
    assert one.probabilities == pytest.approx((0.5, 0.25, 0.25))
    assert (one.following, other.probabilities[0], other.following) == pytest.approx((0.25, 1.0, 1.0))


def test_the_probability_of_a_token_without_a_known_id_is_not_known():
    for ids in ([], [1], [1, 7]):
        steps = model_map.steps(with_logits([[0.0, 1.0], [1.0, 0.0]], ids))
        assert steps[1].following is None
        assert (steps[0].following is None) == (not ids)


def test_the_labels_that_an_encoder_predicts_are_no_next_tokens():
    model = vf.wrap(with_head("bert", MASKED), tokenizer())
    trace = model.trace(TEXT, record=model.available(("*.pattern", "logits")))
    assert "logits" in trace
    assert model_map.steps(trace) == ()


def test_what_is_not_recorded_is_left_out():
    trace = model_of("en-zh").trace("I like cats.")
    assert {layer.sublayers for layer in model_map.layers(trace, "encoder")} == {
        (model_map.DrawnSublayer("self_attn", None),)
    }
    assert model_map.added(trace, "src") == {}
    assert model_map.steps(trace) == ()
    assert model_map.layers(Trace.from_attention(("a",), np.ones((1, 1, 1, 1))), "decoder") == ()


@pytest.mark.parametrize(
    ("kind", "does"),
    [("en-zh", "translates"), ("mini-gpt", "continues"), ("bert", "reads"), ("bart", "turns one text")],
)
def test_the_heading_says_what_this_kind_of_model_does(kind, does):
    assert does in model_map.heading(trace_of(kind))
