"""Scores of heads compared with their definitions, computed cell by cell."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import tiny_translator
from visformer.analysis import heads
from visformer.analysis.heads import SCORES, head_scores, mean_head_scores
from visformer.errors import MissingTensor, TraceError
from visformer.trace import Trace
from visformer.trace.row_totals import row_entropy, same_place, separators

WORDS = ("the", "cat", ",", "。", "...", "</s>", " ", "a-b", "S")


def cell_by_cell(pattern, queries, keys, special, cross):
    """Compute the scores of a head by their definitions."""
    scores = {score.name: [] for score in SCORES if score.cross or not cross}
    for q, row in enumerate(pattern.astype(float).tolist()):
        if sum(row) == 0:
            continue
        cells = list(enumerate(row))
        # The key at the same fraction of the sentence; of two, the even one.
        same = min(range(len(keys)), key=lambda k: (abs(q * (len(keys) - 1) - k * (len(queries) - 1)), k % 2, k))
        of_row = {
            "entropy": sum(-w * math.log(w) for w in row if w > 0),
            "first": row[0],
            "diagonal": row[same if len(queries) > 1 else 0],
            "separator": sum(w for k, w in cells if special[k] or keys[k] in (",", "。", "...")),
            "distance": sum(w * (q - k) for k, w in cells),
            "previous": sum(w for k, w in cells if k == q - 1),
            "next": sum(w for k, w in cells if k == q + 1),
            "same_token": sum(w for k, w in cells if k != q and keys[k] == queries[q]),
        }
        for name, values in scores.items():
            has_one = {"previous": q > 0, "next": q < len(queries) - 1}
            values += [of_row[name]] if has_one.get(name, True) else []
    return {name: sum(values) / len(values) if values else math.nan for name, values in scores.items()}


@st.composite
def patterns(draw):
    n_layers, n_heads = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    cross = draw(st.booleans())
    queries = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7))
    keys = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7)) if cross else queries
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    weights = rng.random((n_layers, n_heads, len(queries), len(keys))) ** 3 + 1e-9
    weights *= rng.random(weights.shape) < draw(st.sampled_from([0.4, 1.0]))  # zeros, and rows of zeros
    sums = weights.sum(-1, keepdims=True)
    pattern = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0).astype(np.float32)
    return pattern, queries, keys, [key == "</s>" for key in keys], cross


@given(patterns(), st.sampled_from([1, 60, heads._BLOCK]))
def test_scores_equal_their_definitions(patterns, block):
    pattern, queries, keys, special, cross = patterns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heads, "_BLOCK", block)  # one head at a time, a few, or all
        scores = head_scores(list(pattern), queries=queries, keys=keys, special=special, cross=cross)
    for layer, head in np.ndindex(pattern.shape[:2]):
        expected = cell_by_cell(pattern[layer, head], queries, keys, special, cross)
        assert scores.keys() == expected.keys()
        for name, value in expected.items():
            assert scores[name].shape == pattern.shape[:2]
            assert scores[name][layer, head] == pytest.approx(value, rel=1e-5, abs=1e-6, nan_ok=True), name


def test_the_entropy_of_a_row_with_rounding_errors_is_not_negative():
    pattern = np.array([[1.0000001, 0, 0], [0, 0, 0], [1e-45, 1, 0]], dtype=np.float32)
    assert row_entropy(pattern).tolist() == pytest.approx([0, 0, 0], abs=1e-6)
    assert not np.signbit(row_entropy(pattern)).any()


@given(st.integers(1, 50), st.integers(1, 50))
def test_same_place_maps_the_first_query_to_the_first_key_and_the_last_to_the_last(n_queries, n_keys):
    places = same_place(n_queries, n_keys)
    assert places[0] == 0
    assert n_queries == 1 or places[-1] == n_keys - 1
    assert (np.diff(places) >= 0).all()
    if n_queries == n_keys:
        assert places.tolist() == list(range(n_keys))


def test_separators_are_special_tokens_and_punctuation():
    tokens = ("</s>", ",", "。", "“", "a,", "+", " ", "", "—", "Univ.")
    assert separators(tokens, [True] + [False] * 9).tolist() == [True, True, True, True] + [False] * 4 + [True, False]


def test_names_and_labels_of_scores_are_unique():
    assert len({score.name for score in SCORES}) == len(SCORES) == len({score.label for score in SCORES})


@pytest.mark.parametrize("stack", ["encoder.self_attn", "decoder.cross_attn"])
def test_scores_over_many_traces_are_means_over_all_of_their_rows(stack):
    model, texts = tiny_translator(), ["I went to school", "a", "She likes the school"]
    rows = {}
    for text in texts:
        trace = model.trace(text, "我去学校。")
        layers, (_, query, key) = trace.layers(stack), trace.layers(stack)[0].axes
        for layer, head in np.ndindex(len(layers), 2):
            for q, row in enumerate(layers[layer][head]):  # each row alone: the other rows are masked
                alone = np.zeros_like(layers[layer][head])
                alone[q] = row
                tokens = (trace.tokens[query.side], trace.tokens[key.side], trace.special[key.side])
                rows.setdefault((layer, head), []).append(cell_by_cell(alone, *tokens, query.side != key.side))
    scores = mean_head_scores(model.trace_many(texts, ["我去学校。"] * 3), stack)
    for (layer, head), values in rows.items():
        for name in scores:
            told = [value[name] for value in values if not math.isnan(value[name])]  # the first has none before it
            mean = sum(told) / len(told)
            assert scores[name][layer, head] == pytest.approx(mean, rel=1e-4, abs=1e-5), name
    one = model.trace(texts[0], "我去学校。")
    alone = mean_head_scores(one, stack)
    assert alone.keys() == mean_head_scores(iter([one]), stack).keys() == scores.keys()


def test_scores_need_traces_and_those_of_one_model():
    with pytest.raises(TraceError, match="no traces to score"):
        mean_head_scores([], "encoder.self_attn")
    traces = [tiny_translator(n_encoder_layers=n).trace("a", "a") for n in (1, 2)]
    with pytest.raises(TraceError, match=r"one has layers \(from 0\) × heads 0–1 × 2, others 0 × 2"):
        mean_head_scores(traces, "encoder.self_attn")
    other_layers = [tiny_translator().trace("a", "a", record=f"encoder.{n}.*.pattern") for n in (0, 1)]
    with pytest.raises(TraceError, match=r"heads 1 × 2, others 0 × 2"):
        mean_head_scores(other_layers, "encoder.self_attn")
    with pytest.raises(MissingTensor):
        mean_head_scores(other_layers[0], "decoder.cross_attn")
    with pytest.raises(TraceError, match="only attention weights have scores"):
        mean_head_scores(Trace.from_maps(["a", "b"], -np.ones((1, 1, 2, 2))), "encoder.self_attn")
