"""Each model with a fault differs from the sound one exactly where its fault says, by formulas written out here."""

from functools import cache

import numpy as np
import pytest

import visformer as vf
from visformer.adapters.names import N_FAULTS, base_of, is_broken_name
from visformer.errors import ConfigError

SENTENCE, TARGET = "the cat saw the dog.", "猫看见了狗。"
SWAPPED = "encoder.0.self_attn"
KINDS = [("encoder", "self_attn"), ("decoder", "self_attn"), ("decoder", "cross_attn")]


@cache
def model_of(number):
    """Return the model with this fault."""
    return vf.load(f"broken-{number}")


@cache
def broken(number):
    """Return its Trace."""
    return model_of(number).trace(SENTENCE, TARGET, record=("*",))


@pytest.fixture(scope="module")
def sound():
    return vf.load("en-zh").trace(SENTENCE, TARGET, record=("*",))


def softmax(scores, axis=-1):
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


def first_that_differs(trace, sound):
    """Return the first tensor, in the order of computation, that is not as in the sound model."""
    return next(
        n for n in sound if n not in sound.params and not np.allclose(trace[n].value, sound[n].value, atol=1e-5)
    )


@pytest.mark.parametrize(
    ("number", "name"),
    [(1, "decoder.0.cross_attn.k"), (2, "decoder.0.self_attn.mask"), (3, "encoder.0.self_attn.scores"),
     (4, "encoder.0.self_attn.pattern"), (5, "src.input"), (6, "encoder.1.norm_ffn"), (8, "encoder.0.self_attn.k")],
)  # fmt: skip
def test_everything_before_the_fault_is_as_in_the_sound_model(sound, number, name):
    assert first_that_differs(broken(number), sound) == name
    assert {*broken(number)} == {*sound}, "the same tensors can be recorded"


def test_without_memory_every_key_is_read_alike_whatever_the_sentence_says(sound):
    cross = broken(1).stack("decoder.cross_attn")
    np.testing.assert_allclose(cross, 1 / len(sound.tokens["src"]), rtol=1e-5)
    bias = broken(1).params["decoder.0.cross_attn.b_k"].value
    np.testing.assert_allclose(np.hstack(broken(1)["decoder.0.cross_attn.k"].value)[0], bias, atol=1e-6)
    model = model_of(1)
    assert model.translate(SENTENCE).text == model.translate("I went to Northeastern University.").text


def test_the_inverted_mask_shows_what_is_to_come_and_hides_the_rest(sound):
    mask = broken(2)["decoder.0.self_attn.mask"].value
    np.testing.assert_array_equal(mask, ~sound["decoder.0.self_attn.mask"].value)
    pattern = broken(2).stack("decoder.self_attn")
    assert not np.tril(pattern).any()
    np.testing.assert_allclose(pattern.sum(axis=-1)[..., :-1], 1, rtol=1e-5)
    assert not pattern[..., -1, :].any(), "the last row is left with nothing"


@pytest.mark.parametrize(("stack", "kind"), KINDS)
def test_scores_are_not_divided_by_the_root_of_d_k(stack, kind):
    names = ("q", "k", "scores", "mask", "pattern")
    q, k, scores, mask, pattern = (broken(3)[f"{stack}.2.{kind}.{name}"].value for name in names)
    np.testing.assert_allclose(scores, q @ k.transpose(0, 2, 1), atol=1e-4)
    np.testing.assert_allclose(pattern, softmax(np.where(mask, scores, -1e30)), atol=1e-5)


@pytest.mark.parametrize(("stack", "kind"), KINDS)
def test_with_softmax_over_the_wrong_axis_columns_sum_to_1(stack, kind):
    patterns = broken(4).stack(f"{stack}.{kind}")
    np.testing.assert_allclose(patterns.sum(axis=-2), 1, rtol=1e-5)
    assert np.abs(patterns.sum(axis=-1) - 1).max() > 0.5
    scores, mask, values = (broken(4)[f"{stack}.1.{kind}.{name}"].value for name in ("scores", "mask", "v"))
    expected = softmax(np.where(mask, scores, -1e30), axis=-2)
    np.testing.assert_allclose(patterns[1], expected, atol=1e-5)
    np.testing.assert_allclose(broken(4)[f"{stack}.1.{kind}.heads"].value, expected @ values, atol=1e-4)


def test_without_positions_equal_words_are_equal():
    trace, width = broken(5), 256
    for side in ("src", "tgt"):
        embedding = trace.params[f"{side}.embedding"].value * np.sqrt(width)
        np.testing.assert_allclose(trace[f"{side}.input"].value, embedding, rtol=1e-5)
        assert np.abs(trace[f"{side}.position"].value).max() == 1, "computed, but not added"
    first, second = (i for i, token in enumerate(trace.tokens["src"]) if token == "the")
    rows = trace.stack("encoder.self_attn")
    np.testing.assert_allclose(rows[:, :, first], rows[:, :, second], atol=1e-6)
    reversed_roles = SENTENCE.replace("cat", "-").replace("dog", "cat").replace("-", "dog")
    assert model_of(5).translate(SENTENCE).text == model_of(5).translate(reversed_roles).text


def test_where_a_norm_is_left_out_the_sum_goes_on_as_it_is():
    trace = broken(6)
    left_out = trace["encoder.1.ffn_sum"].value
    np.testing.assert_array_equal(trace["encoder.1.norm_ffn"].value, left_out)
    np.testing.assert_array_equal(trace["encoder.2.resid_pre"].value, left_out)
    gamma, beta = (trace.params[f"encoder.0.norm_ffn.{name}"].value for name in ("gamma", "beta"))
    x = trace["encoder.0.ffn_sum"].value
    normed = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * gamma + beta
    np.testing.assert_allclose(trace["encoder.0.norm_ffn"].value, normed, atol=1e-4)


@pytest.mark.full  # its model is trained when it is loaded
def test_without_a_causal_mask_letters_after_the_row_are_read():
    model = model_of(7)
    trace = model.trace("gkbptcwmasegkbptcwmase", record=("*.pattern", "*.mask"))
    patterns = trace.stack("decoder.self_attn")
    assert trace["decoder.0.self_attn.mask"].value.all()
    following = np.diagonal(patterns[0], offset=1, axis1=-2, axis2=-1)[:, 11:]  # of the letters that repeat
    assert following.mean(axis=-1).max() > 0.5, "a head reads the answer"
    assert not model.caches


def test_keys_are_computed_as_values_and_values_as_keys(sound):
    trace = broken(8)
    np.testing.assert_allclose(trace[f"{SWAPPED}.k"].value, sound[f"{SWAPPED}.v"].value, atol=1e-5)
    np.testing.assert_allclose(trace[f"{SWAPPED}.v"].value, sound[f"{SWAPPED}.k"].value, atol=1e-5)
    x, w, b = trace["src.input"].value, trace.params[f"{SWAPPED}.w_v"].value, trace.params[f"{SWAPPED}.b_v"].value
    np.testing.assert_allclose(np.hstack(trace[f"{SWAPPED}.k"].value), x @ w + b, atol=1e-4)
    np.testing.assert_array_equal(w, sound.params[f"{SWAPPED}.w_v"].value)


NUMBERS = [pytest.param(n, marks=pytest.mark.full) if n == 7 else n for n in range(1, N_FAULTS + 1)]


@pytest.mark.parametrize("number", NUMBERS)
def test_each_step_of_decoding_computes_what_a_trace_shows(number):
    """With a cache or, where a fault lets later tokens change those before them, without."""
    model = model_of(number)
    text = "abcabc" if number == 7 else SENTENCE
    decoding = model.translate(text, max_new_tokens=4)
    assert len(decoding.steps) > 1
    for step in range(1, len(decoding.steps)):
        logits = model.trace(text, decoding.ids[:step], record=("logits",))["logits"].value[-1].astype(np.float64)
        shown = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
        decoded = decoding.steps[step].log_probabilities.numpy()
        possible = np.isfinite(decoded)
        np.testing.assert_allclose(decoded[possible], shown[possible], atol=1e-3)


def test_the_name_does_not_give_the_fault_away():
    model = model_of(4)
    assert model.info.name == "broken-4"
    assert "softmax" not in repr(model.info)
    assert model.trace(SENTENCE).meta["model"] == "broken-4"
    assert "unsure_below" not in model.trace(SENTENCE).meta, "the threshold is of the sound model"


def test_the_sound_model_stays_sound(sound):
    model_of(3)
    again = vf.load("en-zh").trace(SENTENCE, TARGET, record=("*",))
    assert all(np.array_equal(again[name].value, sound[name].value) for name in sound)


@pytest.mark.parametrize("name", ["broken-0", "broken-9", "broken-", "broken-1x", "broken-01"])
def test_there_are_eight_models_with_a_fault(name):
    assert is_broken_name(name)
    with pytest.raises(ConfigError, match="broken-1 to broken-8"):
        vf.load(name)
    with pytest.raises(ConfigError):
        base_of(name)
