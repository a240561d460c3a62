"""Sums of an atlas compared with their definitions, cell by cell, and merged in any order."""

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.atlas.corpus import SHAPE, corpus, reduced
from visformer.analysis.atlas.data import Record
from visformer.analysis.atlas.measures import edges, histograms, measured, names
from visformer.analysis.atlas.reducer import EXAMPLES, FIELDS, OFFSETS, POSITIONS, Reducer
from visformer.analysis.heads import mean_head_scores
from visformer.errors import TraceError
from visformer.trace import Trace

STACKS = ("encoder.self_attn", "decoder.self_attn", "decoder.cross_attn")


@cache
def whole():
    return reduced(range(len(corpus())))


def sides(stack):
    return {"encoder.self_attn": ("src", "src"), "decoder.self_attn": ("tgt", "tgt")}.get(stack, ("tgt", "src"))


def by_hand(trace, stack):
    """Yield for each head the rows of statistics beside the scores, cell by cell: name, then a value a row."""
    queries, keys = (trace.tokens[side] for side in sides(stack))
    marks = trace.special[sides(stack)[1]]
    layers = trace.layers(stack)
    for layer, head in np.ndindex(SHAPE):
        weights = layers[layer].value[head].astype(float)
        most = max(range(len(keys)), key=lambda k: weights[:, k].sum())
        rows = {"special": [], "punctuation": [], "sink": [], "induction": []}
        for q, row in enumerate(weights):
            rows["special"].append(sum(w for k, w in enumerate(row) if marks[k]))
            rows["punctuation"].append(sum(w for k, w in enumerate(row) if keys[k] in ",." and not marks[k]))
            rows["sink"].append(row[most])
            followers = [k for k in range(1, q + 1) if keys[k - 1] == queries[q]] if stack.endswith("self_attn") else []
            if followers:
                rows["induction"].append(sum(row[k] for k in followers))
        yield (
            layer,
            head,
            {name: values for name, values in rows.items() if stack.endswith("self_attn") or name != "induction"},
        )


@pytest.mark.parametrize("stack", STACKS)
def test_statistics_equal_their_definitions(stack):
    sums = whole().sums[stack]
    expected = {}
    for _, trace in corpus():
        for layer, head, rows in by_hand(trace, stack):
            for name, values in rows.items():
                expected.setdefault((name, layer, head), []).append(values)
    for (name, layer, head), texts in expected.items():
        means = [np.mean(values) for values in texts if values]
        wanted = {
            "rows": sum(map(len, texts)),
            "total": sum(map(sum, texts)),
            "texts": len(means),
            "means": sum(means),
            "squares": sum(mean * mean for mean in means),
            "values": sum(means),
        }
        found = sums.measures[sums.names.index(name), :, layer, head]
        assert found == pytest.approx([wanted[field] for field in FIELDS], rel=1e-6, abs=1e-9), (name, layer, head)
    assert sums.texts == len(corpus())


@pytest.mark.parametrize("stack", STACKS)
def test_the_scores_of_the_explorer_are_those_of_many_texts(stack):
    sums = whole().sums[stack]
    for name, mean in mean_head_scores((trace for _, trace in corpus()), stack).items():
        rows, total = sums.measures[sums.names.index(name), :2]
        assert total / rows == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("stack", STACKS)
def test_offsets_and_positions_count_every_cell_and_row(stack):
    sums = whole().sums[stack]
    offsets, positions = np.zeros((2, *SHAPE, 2 * OFFSETS + 1)), np.zeros((2, *SHAPE, POSITIONS))
    for _, trace in corpus():
        for layer, tensor in trace.layers(stack).items():
            for (head, q, k), weight in np.ndenumerate(tensor.value.astype(float)):
                place = max(0, min(2 * OFFSETS, k - q + OFFSETS))
                offsets[:, layer, head, place] += weight, 1
                if k == 0:
                    row = tensor.value[head, q].astype(float)
                    entropy = -sum(w * np.log(w) for w in row if w > 0)
                    positions[:, layer, head, min(q, POSITIONS - 1)] += entropy, 1
    assert sums.positions == pytest.approx(positions, abs=1e-5)
    if stack.endswith("self_attn"):
        assert sums.offsets == pytest.approx(offsets, abs=1e-9)
        assert offsets[1, 0, 0, 0] > 0 or stack.startswith("decoder"), "no text is long enough"
    else:
        assert not sums.offsets.any()


@pytest.mark.parametrize("stack", STACKS)
def test_examples_are_the_cells_that_exceed_equal_weights_most(stack):
    sums = whole().sums[stack]
    queries, keys = sides(stack)
    for head in range(SHAPE[0] * SHAPE[1]):
        found = {}  # by text, the strongest and earliest
        for number, (record, trace) in enumerate(corpus()):
            pattern = trace.layers(stack)[head // SHAPE[1]].value[head % SHAPE[1]]
            cells = []
            for (q, k), weight in np.ndenumerate(pattern):
                words = trace.tokens[queries][q], trace.tokens[keys][k]
                if (queries == keys and q == k) or any(word in (",", ".", "[CLS]", "[SEP]") for word in words):
                    continue
                keys_of_row = q + 1 if stack == "decoder.self_attn" else pattern.shape[1]
                cells.append((weight - 1 / keys_of_row, number, q, k))
            if cells and record.texts not in found:
                found[record.texts] = max(cells, key=lambda cell: cell[0])
        best = sorted(found.values(), key=lambda cell: (-cell[0], cell[1]))[:EXAMPLES]
        assert len(best) > 5
        assert [(each.number, each.query, each.key) for each in sums.examples[head]] == [cell[1:] for cell in best]
        for each in sums.examples[head]:
            trace = corpus()[each.number][1]
            assert each.query_token == trace.tokens[queries][each.query]
            assert each.key_token == trace.tokens[keys][each.key]
            tensor = trace.layers(stack)[head // SHAPE[1]].value
            assert each.weight == tensor[head % SHAPE[1], each.query, each.key]


@pytest.mark.parametrize("stack", STACKS)
def test_a_histogram_counts_the_means_of_texts(stack):
    sums = whole().sums[stack]
    for layer, head in np.ndindex(SHAPE):
        values = {"sink": [], "entropy": [], "distance": []}
        for _, trace in corpus():
            weights = trace.layers(stack)[layer].value[head].astype(float)
            n, m = weights.shape
            values["sink"].append(weights.sum(axis=0).max() / n)
            largest = sum(math.log(q + 1 if stack == "decoder.self_attn" else m) for q in range(n))
            entropy = -(weights * np.log(np.where(weights > 0, weights, 1))).sum()
            values["entropy"].append(entropy / (largest or 1))
            values["distance"].append((weights * (np.arange(n)[:, None] - np.arange(m))).sum() / n)
        for name in {*values} & {*sums.names}:
            i = sums.names.index(name)
            begin, end = edges(name)[[0, -1]]
            inside = np.clip(values[name], begin, end)
            assert sums.bins[i, layer, head].tolist() == np.histogram(inside, edges(name))[0].tolist(), name
            total = sums.measures[i, FIELDS.index("values"), layer, head]
            assert total == pytest.approx(sum(values[name]), rel=1e-5, abs=1e-5)
    texts = sums.measures[:, FIELDS.index("texts")]
    assert (sums.bins.sum(axis=-1) == texts).all(), "every text with such rows is in one bin"


def test_what_is_beyond_the_bins_is_in_the_outermost_and_what_is_no_number_in_none():
    values = np.array([[-99.0, 10.4], [99.0, np.nan]]).reshape(1, 2, 2, 1)
    (counts,) = histograms(["distance"], values, np.ones(values.shape, dtype=bool))
    assert counts.shape == (2, 1, 20)
    assert [np.flatnonzero(each[0]).tolist() for each in counts] == [[0, 19], [19]]
    assert counts.sum(axis=-1).ravel().tolist() == [2, 1]
    (counts,) = histograms(["sink"], np.array([0.0, 0.05, 0.999, 1.0]).reshape(1, 4, 1, 1), np.ones((1, 4, 1, 1), bool))
    assert [*enumerate(counts.ravel())][:2] == [(0, 1), (1, 1)] and counts[0, 0, -1] == 2


def assert_same(one, other):
    assert one.sums.keys() == other.sums.keys()
    for name, sums in one.sums.items():
        second = other.sums[name]
        assert sums.texts == second.texts
        assert (sums.bins == second.bins).all(), "numbers of texts are exact in any order"
        for values in ("measures", "offsets", "positions"):
            np.testing.assert_allclose(getattr(sums, values), getattr(second, values), rtol=1e-12, atol=1e-12)
        for head in range(SHAPE[0] * SHAPE[1]):
            assert sums.examples[head] == second.examples[head], (name, head)


@settings(max_examples=15)
@given(st.permutations(range(24)), st.sets(st.integers(1, 23)), st.randoms(use_true_random=False))
def test_any_split_and_any_order_of_merging_give_the_same(order, cuts, random):
    places = [0, *sorted(cuts), 24]
    parts = [reduced(order[a:b]) for a, b in pairwise(places)]
    while len(parts) > 1:  # merged as a tree of any form
        one = parts.pop(random.randrange(len(parts)))
        parts[random.randrange(len(parts))].merge(one)
    assert_same(parts[0], whole())


def test_more_examples_than_are_kept_are_merged_as_if_all_had_been_kept(monkeypatch):
    monkeypatch.setattr("visformer.analysis.atlas.reducer.EXAMPLES", 3)
    parts = [reduced(range(i, 24, 4)) for i in range(4)]
    for part in (parts[2], parts[0], parts[3]):
        parts[1].merge(part)
    assert_same(parts[1], reduced(range(24)))
    assert {len(parts[1].sums[stack].examples[0]) for stack in STACKS} == {3}


def test_an_empty_part_changes_nothing():
    part = reduced(range(24))
    part.merge(Reducer())
    empty = Reducer()
    empty.merge(part)
    assert_same(part, empty)


def test_traces_of_another_model_are_refused():
    reducer = reduced([0])
    with pytest.raises(TraceError, match="Traces of one model belong together"):
        reducer.add([(1, Record("-", 1, "a"), Trace.from_attention(["a"], np.ones((1, 1, 1, 1))))])


TREE = (2, 3, 0, 3)  # the <- cat <- sat -> down
TOKENS = ("[CLS]", "the", "ca", "##t", "sat", "down", "[SEP]")


def test_agreement_with_a_tree_and_with_word_alignment():
    rng = np.random.default_rng(1)
    pattern = rng.random((1, 1, 7, 7))
    pattern /= pattern.sum(-1, keepdims=True)
    cross = rng.random((1, 1, 3, 7))
    cross /= cross.sum(-1, keepdims=True)
    trace = Trace.from_attention(
        TOKENS,
        pattern,
        target=("<s>", "猫", "坐"),
        cross=cross,
        following=("猫", "坐", "</s>"),
        words={"src": (0, 1, 2, 2, 3, 4, 5), "tgt": (0, 1, 2)},
    )
    record = Record("-", 1, "the cat sat down", heads=TREE, alignment=((1, 0), (2, 1)))
    found = {}
    for stack in ("encoder.self_attn", "decoder.cross_attn"):
        layers = trace.layers(stack)
        found |= measured([record], [trace], layers, np.stack([layer.value for layer in layers.values()])[None]).totals
    w, c = pattern[0, 0], cross[0, 0]
    heads = w[1, 2] + w[1, 3] + w[2, 4] + w[3, 4] + w[5, 4]
    dependents = w[2, 1] + w[3, 1] + w[4, 2] + w[4, 3] + w[4, 5]
    for name, total, rows in (
        ("syntactic_head", heads, 4),
        ("dependents", dependents, 3),
        ("alignment", c[0, 2] + c[0, 3] + c[1, 4], 2),
    ):
        assert found[name][0].item() == pytest.approx(total, rel=1e-6), name
        assert found[name][1].item() == rows


def test_a_tree_of_other_words_and_links_beyond_the_text_are_not_counted():
    _, trace = corpus()[0]
    record = Record("-", 1, "a", heads=(0,), alignment=((99, 0),))
    for stack in ("encoder.self_attn", "decoder.cross_attn"):
        layers = trace.layers(stack)
        found = measured([record], [trace], layers, np.stack([layer.value for layer in layers.values()])[None]).totals
        assert not {"syntactic_head", "dependents", "alignment"} & found.keys()
        assert found.keys() <= {*names(cross=stack == "decoder.cross_attn")}
