"""The explorer's arithmetic, compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.messages import decode
from tests.js.reference import Options, derived
from visformer.analysis.heads import strongest_word
from visformer.web.codes import ONE


@st.composite
def patterns(draw, n_heads):
    """Draw float32 patterns (head, query, key) with rows that are spread, sharp, uniform or fully masked."""
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    weights = rng.random((n_heads, rows, columns)) ** draw(st.sampled_from([1, 6]))
    weights[rng.random((n_heads, rows)) < 0.2] = 1  # uniform
    sharp = rng.random((n_heads, rows)) < 0.2
    weights[sharp] = np.eye(columns)[rng.integers(columns, size=int(sharp.sum()))]
    weights /= weights.sum(-1, keepdims=True)
    weights[rng.random((n_heads, rows)) < 0.1] = 0
    return weights.astype(np.float32)


def sides(draw, heads):
    """Draw the words and special tokens of rows and columns."""
    sizes = heads.shape[1:]
    words = [np.cumsum(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))).tolist() for n in sizes]
    special = [draw(st.lists(st.booleans(), min_size=n, max_size=n)) for n in sizes]
    return words, special


limits = st.just(("none", 0.0)) | st.tuples(st.just("weight"), st.floats(0, 0.5)) | st.tuples(
    st.just("mass"), st.floats(0.5, 1)
)  # fmt: skip
options = st.builds(
    lambda limit, **rest: Options(**rest, kind=limit[0], value=limit[1]),
    limits,
    how=st.sampled_from(["one", "mean", "max"]),
    merging=st.booleans(),
    hiding=st.booleans(),
    renormalising=st.booleans(),
)

DERIVE = """
  const [words, special] = [args.words, args.special].map(([rows, columns]) => ({ rows, columns }))
  const heads = args.heads.map((head) => Float32Array.from(head))
  const derived = m.derive(heads, { nColumns: args.n, words, special }, args.options)
  return { ...derived, values: [...derived.values], hidden: [...derived.hidden],
    kept: derived.kept && [...derived.kept] }
"""


def derived_in_javascript(node, heads, words, special, chosen):
    flat = [head.ravel().tolist() for head in heads]
    args = {"heads": flat, "words": words, "special": special, "n": heads.shape[2], "options": chosen.as_json()}
    return node.run("explorer/derive.js", DERIVE, args)


def check_derived(node, heads, words, special, chosen):
    actual = derived_in_javascript(node, heads, words, special, chosen)
    expected = derived(heads, words, special, chosen)
    assert (actual["rows"], actual["columns"]) == (expected.rows, expected.columns)
    np.testing.assert_allclose(actual["values"], expected.values.ravel(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(actual["hidden"], expected.hidden, rtol=1e-5, atol=3e-6)
    assert actual["kept"] == (None if chosen.kind == "none" else expected.kept.ravel().astype(int).tolist())
    assert all(0 <= hidden <= 1 + 1e-6 for hidden in actual["hidden"])


@settings(max_examples=250)
@given(st.data(), options, st.integers(1, 3))
def test_matrix_kept_cells_and_hidden_mass_equal_numpy_under_any_options(node, data, chosen, n_heads):
    heads = data.draw(patterns(1 if chosen.how == "one" else n_heads))
    check_derived(node, heads, *sides(data.draw, heads), chosen)


@pytest.mark.parametrize("kind", ["none", "weight", "mass"])
@pytest.mark.parametrize("renormalising", [False, True])
def test_a_sentence_of_special_tokens_only_is_not_hidden(node, kind, renormalising):
    """An empty sentence consists of its end token."""
    chosen = Options(hiding=True, renormalising=renormalising, kind=kind, value=0.5)
    check_derived(node, np.ones((1, 1, 1), dtype=np.float32), [[0], [0]], [[True], [True]], chosen)


def test_an_example_worked_out_by_hand(node):
    """The third token is special and takes 0.5 of the row; the rest, 0.4 and 0.1, is renormalised to 0.8 and 0.2."""
    chosen = Options(hiding=True, renormalising=True, kind="weight", value=0.3)
    head = np.array([[[0.4, 0.1, 0.5]]])
    actual = derived_in_javascript(node, head, [[0], [0, 1, 2]], [[False], [False, False, True]], chosen)
    assert actual["values"] == pytest.approx([0.8, 0.2])
    assert actual["kept"] == [1, 0]
    assert actual["hidden"] == pytest.approx([0.5 + 0.1])


def test_javascript_and_python_decode_every_code_to_the_same_weight(node):
    body = "return [...m.decode(Uint16Array.from({ length: args }, (_, i) => i))].map((w) => m.rounded(w))"
    actual = node.run("explorer/picture.js", body, ONE + 1)
    assert len(actual) == 65_522
    assert actual == decode(np.arange(ONE + 1, dtype=np.uint16)).tolist()


ORDER = """
  const thumbs = args.thumbs.map((layer) => layer.map((head) => Uint8Array.from(head)))
  const thumbOf = ({ layer, head }) => thumbs[args.layers.indexOf(layer)][head]
  const heads = args.layers.map(() => args.shape[1])
  const stack = { shape: args.shape, heads, layers: args.layers, values: args.values, thumbOf }
  return m.ordered(stack, args.by, args.anchor).map(({ layer, head, score }) => [layer, head, score])
"""


@pytest.mark.parametrize("layers", [[0, 1, 2], [2, 3, 7]])
@pytest.mark.parametrize("by", ["place", "entropy", "distance", "similarity"])
def test_heads_are_ordered_by_place_score_or_similarity(node, by, layers):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 4)).round(1)
    scores[1, 1] = scores[2, 3]
    thumbs = rng.integers(0, 256, (3, 4, 30))
    values = {name: scores.tolist() for name in ("entropy", "distance")}
    args = {"shape": [3, 4], "layers": layers, "thumbs": thumbs.tolist(), "values": values, "by": by}
    args |= {"anchor": {"layer": layers[1], "head": 2}}
    actual = node.run("explorer/order.js", ORDER, args)
    if by == "place":
        assert actual == [[layer, head, None] for layer in layers for head in range(4)]
        return
    if by == "similarity":
        vectors = thumbs.reshape(12, 30).astype(float)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        expected = vectors @ vectors[6]
    else:
        expected = scores.ravel()
    order = np.argsort(expected if by == "entropy" else -expected, kind="stable")
    assert [(layer, head) for layer, head, _ in actual] == [(layers[i // 4], i % 4) for i in order]
    np.testing.assert_allclose([score for *_, score in actual], expected[order], rtol=1e-6)


STRONGEST = """
  const labels = (side) => args.texts[side].map((text, i) => ({ text, special: args.special[side][i] }))
  return m.strongest(Float32Array.from(args.values), { rows: labels("rows"), columns: labels("columns") })
"""
TEXTS = st.sampled_from(["Northeastern", "東", "大学", ".", "。", "</s>", "7", "I", "\u0301", "𝒜b"])


@given(st.data())
@settings(max_examples=60)
def test_the_word_that_is_chosen_at_first_is_that_of_the_analysis(node, data):
    head = data.draw(patterns(1))[0]
    head = np.round(head, 4)  # as sent
    texts = {
        side: data.draw(st.lists(TEXTS, min_size=n, max_size=n)) for side, n in zip(SIDES, head.shape, strict=True)
    }
    special = {side: [text == "</s>" for text in texts[side]] for side in SIDES}
    given_ = {"values": head.astype(float).ravel().tolist(), "texts": texts, "special": special}
    expected = strongest_word(head, *texts.values(), tuple(special.values()))
    assert node.run("explorer/derive.js", STRONGEST, given_) == expected


SIDES = ("rows", "columns")
