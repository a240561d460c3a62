"""ALTI, ALTI+ and rollout, recomputed row by row from the parts and the patterns."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import visformer as vf
from tests.adapters.huggingface.hub import tiny_module, tokenizer
from tests.analysis.models import KINDS, paths_of, trace_of
from visformer.analysis import alti, alti_plus, empty_rows, parts, rollout
from visformer.errors import MissingTensor, TraceError
from visformer.trace import Trace


def shares(trace, path):
    """C of one attention by the definition, one cell after the other."""
    split, crosses = parts(trace, path), path.endswith("cross_attn")
    n_queries, n_keys = split.keys.shape[:2]
    result = np.zeros((n_queries, n_keys + crosses))
    for q in range(n_queries):
        terms = [*split.keys[q], split.residual[q]] if crosses else [*split.keys[q]]
        if not crosses:
            terms[q] = terms[q] + split.residual[q]
        for k, term in enumerate(terms):
            result[q, k] = max(0, abs(split.y[q]).sum() - abs(split.y[q] - term).sum())
    return result / result.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
def test_alti_is_that_of_the_definition(kind, monkeypatch):
    trace = trace_of(kind)
    for path in paths_of(trace):
        value = alti(trace, path)
        np.testing.assert_allclose(value, shares(trace, path), atol=1e-6)
        np.testing.assert_allclose(value.sum(axis=1), 1, atol=1e-12)
        monkeypatch.setattr("visformer.analysis.flow._BLOCK", 1)  # one row at a time
        np.testing.assert_allclose(alti(trace, path), value, atol=1e-12)
        monkeypatch.undo()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["alti+", "rollout"])
def test_layers_are_multiplied_as_defined_and_rows_sum_to_1(kind, method):
    trace = trace_of(kind)
    src, tgt = alti_plus(trace) if method == "alti+" else rollout(trace)

    def layer_of(path):
        if method == "alti+":
            return shares(trace, path)
        mean = trace[f"{path}.pattern"].value.astype(float).mean(axis=0)
        return np.c_[mean, np.ones(len(mean))] / 2 if "cross" in path else (mean + np.eye(len(mean))) / 2

    paths = paths_of(trace)
    encoder = [layer_of(path) for path in paths if path.startswith("encoder")]
    own = [layer_of(path) for path in paths if path.startswith("decoder") and path.endswith("self_attn")]
    cross = [layer_of(path) for path in paths if path.endswith("cross_attn")]
    encoded = np.linalg.multi_dot([*encoder[::-1], np.eye(len(encoder[0]))]) if encoder else None
    if not own:
        expected = encoded, np.zeros((len(encoded), 0))
    elif not cross:
        expected = np.zeros((len(own[0]), 0)), np.linalg.multi_dot([*own[::-1], np.eye(len(own[0]))])
    else:
        # Each decoder layer as one matrix over source and target together, the encoder's output as it is.
        n_src, n_tgt = len(encoded), len(own[0])
        state = np.r_[np.c_[encoded, np.zeros((n_src, n_tgt))], np.c_[np.zeros((n_tgt, n_src)), np.eye(n_tgt)]]
        for reads_itself, reads in zip(own, cross, strict=True):
            state[n_src:] = reads_itself @ state[n_src:]
            state[n_src:] = reads[:, :-1] @ state[:n_src] + np.diag(reads[:, -1]) @ state[n_src:]
        expected = state[n_src:, :n_src], state[n_src:, n_src:]
    np.testing.assert_allclose(src, expected[0], atol=1e-6)
    np.testing.assert_allclose(tgt, expected[1], atol=1e-6)
    np.testing.assert_allclose(src.sum(axis=1) + tgt.sum(axis=1), 1, atol=1e-6)
    assert min(src.min(initial=0), tgt.min(initial=0)) >= 0
    if own:
        assert not np.triu(tgt, 1).any(), "a row takes something from a later one"


def test_a_row_in_which_nothing_counts_gives_all_to_the_residual_and_is_counted():
    trace = trace_of("en-zh")
    assert empty_rows(trace) == 0

    def zeros(tensors):
        return {
            name: each if name.endswith("pattern") else replace(each, value=each.value * 0)
            for name, each in tensors.items()
        }

    empty = replace(trace, tensors=zeros(trace.tensors), params=zeros(trace.params))
    n_src, n_tgt = len(trace.tokens["src"]), len(trace.tokens["tgt"])
    np.testing.assert_array_equal(alti(empty, "decoder.0.cross_attn"), np.eye(n_src + 1)[[-1] * n_tgt])
    np.testing.assert_array_equal(alti(empty, "decoder.0.self_attn"), np.eye(n_tgt))
    assert empty_rows(empty) == 3 * n_src + 6 * n_tgt


def test_layers_without_attention_and_those_that_were_not_recorded_are_refused():
    model = vf.wrap(tiny_module("lfm2"), tokenizer())
    with pytest.raises(TraceError, match="rollout needs attention in every layer"):
        rollout(model.trace("I went to the river"))
    trace = trace_of("en-zh")
    kept = {name: tensor for name, tensor in trace.tensors.items() if not name.startswith("encoder.1.")}
    for method in (rollout, alti_plus):
        with pytest.raises(MissingTensor, match=r"encoder\.1\.self_attn"):
            method(replace(trace, tensors=kept))


@settings(max_examples=15)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_rollout_of_any_attention_has_rows_that_sum_to_1(n_src, n_tgt, n_layers, seed):
    rng = np.random.default_rng(seed)

    def drawn(*shape):
        weights = rng.random((n_layers, 2, *shape)) ** 4 + 1e-9
        return weights / weights.sum(axis=-1, keepdims=True)

    own = drawn(n_tgt, n_tgt) * np.tri(n_tgt)
    trace = Trace.from_attention([*"abcde"[:n_src]], drawn(n_src, n_src), target=[*"vwxyz"[:n_tgt]],
                                 decoder=own / own.sum(axis=-1, keepdims=True), cross=drawn(n_tgt, n_src))  # fmt: skip
    src, tgt = rollout(trace)
    np.testing.assert_allclose(src.sum(axis=1) + tgt.sum(axis=1), 1, atol=1e-6)
    assert src.sum(axis=1) == pytest.approx(1 - 0.5**n_layers, abs=1e-6), "each layer halves what is left of the target"


def test_uniform_attention_rolls_out_to_numbers_worked_out_by_hand():
    half = np.full((1, 1, 2, 2), 0.5)
    src, tgt = rollout(Trace.from_attention(["a", "b"], half))
    np.testing.assert_allclose(src, [[0.75, 0.25], [0.25, 0.75]])
    assert tgt.shape == (2, 0)
