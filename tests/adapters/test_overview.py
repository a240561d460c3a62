"""Traces of long texts: an overview of every head, and weights on demand, against those that are recorded whole."""

import numpy as np
import pytest

import visformer as vf
from tests.adapters.huggingface.hub import TEXT, one_of_each, tiny_model
from tests.adapters.huggingface.listed import FAMILIES
from visformer.analysis import head_scores
from visformer.edits import Block, Open, SetPattern, Shuffle, Silence, Uniform, Zero
from visformer.errors import BudgetError, EditError, MissingTensor, TraceError
from visformer.scenes import draw
from visformer.trace.overview import PatternOnDemand, bins
from visformer.trace.stacks import STACKS

LONG = f"{TEXT} . {TEXT} + {TEXT}"  # tokens that occur more than once


def both(model, **how):
    """Trace a text whole, and as an overview."""
    target = "I saw the river again" if model.info.kind == "encoder-decoder" else None
    whole = model.trace(LONG, target, record=("*.pattern", *model.available(["logits"])), **how)
    return whole, model.trace(LONG, target, record=("overview", *model.available(["logits"])), **how)


def compare(whole, trace, *, atol=2e-6):
    """Every weight, thumbnail and score of an overview is that of the Trace that holds all weights."""
    assert trace.names() == whole.names()
    assert {name for name in trace if isinstance(trace[name], PatternOnDemand)} == {
        name for name in trace if name.endswith(".pattern")
    }
    for name in trace:
        scale = float(abs(whole[name].value).max())  # 1 of weights
        np.testing.assert_allclose(
            trace[name].value, whole[name].value, atol=atol * max(1, scale), rtol=0, err_msg=name
        )
    for name in filter(lambda name: name.endswith(".pattern"), trace):
        pattern, weights = trace[name], whole[name].value
        np.testing.assert_allclose(pattern.rows(1, 3), weights[:, 1:3], atol=atol)
        np.testing.assert_allclose(pattern.block(1, 3, 2, 5, head=-1), weights[-1, 1:3, 2:5], atol=atol)
        pooled = np.maximum.reduceat(weights, bins(weights.shape[1])[:-1], axis=1)
        pooled = np.maximum.reduceat(pooled, bins(weights.shape[2])[:-1], axis=2)
        np.testing.assert_allclose(pattern.overview.thumbs, pooled, atol=atol)
    for stack in STACKS:
        if stack.in_trace(trace):
            ours, wanted = (scores(each, stack) for each in (trace, whole))
            assert ours.keys() == wanted.keys()
            for score in wanted:
                np.testing.assert_allclose(ours[score], wanted[score], atol=2e-5, err_msg=score)


def scores(trace, stack):
    rows, columns = stack.sides
    tokens = {"queries": trace.tokens[rows], "keys": trace.tokens[columns], "special": trace.special[columns]}
    return head_scores([*stack.layers(trace).values()], **tokens, cross=stack.kind == "cross_attn")


@pytest.mark.parametrize("family", one_of_each(family for family in FAMILIES if not family.startswith("deberta")))
def test_an_overview_has_the_weights_and_scores_of_the_whole(family):
    compare(*both(tiny_model(family)), atol=4e-6 if family == "marian" else 2e-6)  # its scores are the largest


@pytest.mark.parametrize("position", ["sinusoidal", "alibi", "rotary"])
def test_of_our_own_models_too(position):
    sizes = {"d_model": 16, "n_heads": 4, "n_encoder_layers": 2, "n_decoder_layers": 2, "d_ff": 16}
    compare(*both(vf.untrained(**sizes, position=position)))


def small():
    """A model for texts of any length."""
    return vf.untrained(d_model=32, n_heads=4, n_encoder_layers=1, n_decoder_layers=1, d_ff=16, position="rotary")


EDITS = [
    [Block("*.self_attn", head=(0, 2), query=5, key=(1, 3))],
    [Block("*.0.self_attn", key=0), Open("*.1.self_attn", head=1)],
    [Zero("*.self_attn", head=1, key=2), Silence("*.self_attn", head=0)],
    [Uniform("*.0.self_attn", head=3), Shuffle("*.self_attn", head=(1, 3), seed=4)],
    [SetPattern("decoder.1.self_attn", head=2, pattern=np.eye(34).tolist())],
]


@pytest.mark.parametrize("family", ["gpt2", "gpt_oss"])
@pytest.mark.parametrize("edits", EDITS, ids=lambda edits: "+".join(type(edit).__name__ for edit in edits))
def test_named_edits_change_an_overview_as_they_change_the_whole(family, edits):
    compare(*both(tiny_model(family), edits=edits))


def test_a_head_that_is_not_there_is_named():
    with pytest.raises(EditError, match="4 entries along its head axis; 9"):
        tiny_model("gpt2").trace(LONG, record="overview", edits=Zero("decoder.0.self_attn", head=9, key=0))


def test_a_function_sees_its_layers_whole_or_is_refused():
    model = tiny_model("gpt2")
    how = {"edits": lambda name, tensor: tensor * 0.5 if name == "decoder.1.self_attn.pattern" else tensor}
    whole, trace = model.trace(LONG, record="*.pattern", **how), model.trace(LONG, record="overview", **how)
    assert not any(isinstance(tensor, PatternOnDemand) for tensor in trace.tensors.values())
    np.testing.assert_array_equal(trace.stack("decoder.self_attn"), whole.stack("decoder.self_attn"))
    with pytest.raises(BudgetError, match="a function that edits sees a layer whole"):
        model.trace(LONG, record="overview", max_bytes=30_000, **how)


def test_a_content_dependent_bias_is_computed_whole():
    model = tiny_model("deberta-v2")
    whole, trace = model.trace(LONG), model.trace(LONG, record="overview")
    np.testing.assert_array_equal(trace.stack("encoder.self_attn"), whole.stack("encoder.self_attn"))


def test_size_decides_what_is_recorded_and_the_trace_says_which():
    ids = np.random.default_rng(0).integers(10, 400, 600)
    whole = small().trace(ids, ids[:2])
    assert "on demand" not in repr(whole)
    assert not isinstance(whole["encoder.0.self_attn.pattern"], PatternOnDemand)
    trace = small().trace(ids, ids[:2], max_bytes=whole.nbytes - 1)
    assert "heads on demand" in repr(trace)
    pattern = trace["encoder.0.self_attn.pattern"]
    assert isinstance(pattern, PatternOnDemand)
    np.testing.assert_allclose(pattern[3], whole["encoder.0.self_attn.pattern"][3], atol=1e-6)


def test_all_weights_of_a_layer_are_refused_above_the_limit_and_the_message_says_what_to_take(monkeypatch):
    pattern = tiny_model("gpt2").trace(LONG, record="overview")["decoder.0.self_attn.pattern"]
    monkeypatch.setenv("VISFORMER_TRACE_BYTES", str(4 * 4 * 34 * 34 - 1))
    with pytest.raises(BudgetError, match=r"decoder.0.self_attn.pattern.*\.head\(i\).*VISFORMER_TRACE_BYTES"):
        np.asarray(pattern)
    assert pattern[3].shape == (34, 34)
    for beyond in (lambda: pattern.head(4), lambda: pattern.rows(0, 35), lambda: pattern.block(3, 2, 0, 1)):
        with pytest.raises(TraceError, match=r"decoder\.0\.self_attn\.pattern has"):
            beyond()


def test_what_a_token_gives_and_gets_leaves_out_itself():
    whole, trace = both(tiny_model("bert"))
    weights = whole["encoder.0.self_attn.pattern"].value * (1 - np.eye(len(whole.tokens["src"])))
    pattern = trace["encoder.0.self_attn.pattern"]
    np.testing.assert_allclose(pattern.gives, weights.sum(axis=2), atol=2e-6)
    np.testing.assert_allclose(pattern.gets, weights.sum(axis=1), atol=2e-6)


@pytest.mark.parametrize("family", ["gpt_oss", "t5", "bloom"])
def test_a_file_holds_the_overview_and_on_request_what_heads_are_computed_from(family, tmp_path):
    _, trace = both(tiny_model(family))
    trace.save(tmp_path / "short.safetensors")
    trace.save(tmp_path / "full.safetensors", heads=True)
    short, full = (vf.Trace.load(tmp_path / f"{name}.safetensors") for name in ("short", "full"))
    for name in filter(lambda name: name.endswith(".pattern"), trace):
        np.testing.assert_array_equal(full[name].value, trace[name].value)
        np.testing.assert_array_equal(short[name].overview.thumbs, trace[name].overview.thumbs)
        with pytest.raises(MissingTensor, match="heads=True"):
            short[name].head(0)


def test_only_the_q_and_k_of_a_text_grow_with_it():
    """Twice as long a text takes about twice the memory, where patterns take four times."""
    model, ids = small(), np.random.default_rng(0).integers(10, 400, 2_000)
    sizes = [model.trace(ids[:n], ids[:2], record="overview").nbytes for n in (1_000, 2_000)]
    assert sizes[1] < 2.2 * sizes[0]
    assert model.trace(ids[:1_000], ids[:2], record="*.pattern").nbytes > 10 * sizes[0]


def test_of_a_picture_too():
    model, scene = vf.load("mini-caption"), next(draw(seed=3, held_out=True))
    whole, trace = (model.trace(image=scene, record=record) for record in ("*.pattern", "overview"))
    compare(whole, trace, atol=5e-6)  # its weights are sharp
