"""The explorer's arithmetic, run in Chromium and compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.messages import decode
from tests.browser.reference import Options, derived
from visformer.web.codes import ONE

pytestmark = pytest.mark.browser

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
"""For float32 sums of up to 100 weights."""


@st.composite
def patterns(draw, n_heads):
    """Draw float32 patterns (head, query, key) with rows that are spread, sharp, uniform or fully masked."""
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    weights = rng.random((n_heads, rows, columns)) ** draw(st.sampled_from([1, 6]))
    weights[rng.random((n_heads, rows)) < 0.2] = 1  # all alike
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
  const [words, special] = [given.words, given.special].map(([rows, columns]) => ({ rows, columns }))
  const heads = given.heads.map((head) => Float32Array.from(head))
  const shown = m.derive(heads, { nColumns: given.n, words, special }, given.options)
  return { ...shown, values: [...shown.values], hidden: [...shown.hidden], kept: shown.kept && [...shown.kept] }
"""


def check_derived(bare, heads, words, special, chosen):
    flat = [head.ravel().tolist() for head in heads]
    sent = {"heads": flat, "words": words, "special": special, "n": heads.shape[2], "options": chosen.as_json()}
    found, expected = bare.run("explorer/derive.js", DERIVE, sent), derived(heads, words, special, chosen)
    assert (found["rows"], found["columns"]) == (expected.rows, expected.columns)
    np.testing.assert_allclose(found["values"], expected.values.ravel(), **CLOSE)
    np.testing.assert_allclose(found["hidden"], expected.hidden, rtol=1e-5, atol=3e-6)
    if chosen.kind == "none":
        assert found["kept"] is None
    else:
        assert found["kept"] == expected.kept.ravel().astype(int).tolist()
    assert all(0 <= hidden <= 1 + 1e-6 for hidden in found["hidden"])


@settings(max_examples=250)
@given(st.data(), options, st.integers(1, 3))
def test_all_steps_together(bare, data, chosen, n_heads):
    """Combined heads, words, special tokens, threshold: the matrix, the cells kept, and the hidden mass."""
    heads = data.draw(patterns(1 if chosen.how == "one" else n_heads))
    check_derived(bare, heads, *sides(data.draw, heads), chosen)


@pytest.mark.parametrize("kind", ["none", "weight", "mass"])
@pytest.mark.parametrize("renormalising", [False, True])
def test_a_sentence_of_special_tokens_only_is_not_hidden(bare, kind, renormalising):
    """An empty sentence consists of its end token."""
    chosen = Options(hiding=True, renormalising=renormalising, kind=kind, value=0.5)
    check_derived(bare, np.ones((1, 1, 1), dtype=np.float32), [[0], [0]], [[True], [True]], chosen)


def test_a_fixed_example_by_hand(bare):
    """The third token is special and takes 0.5 of the row; the rest, 0.4 and 0.1, is renormalised to 0.8 and 0.2."""
    head = [0.4, 0.1, 0.5]
    limit = {"kind": "weight", "value": 0.3}
    given = {
        "heads": [head], "words": [[0], [0, 1, 2]], "special": [[False], [False, False, True]], "n": 3,
        "options": {"how": "one", "merging": False, "hiding": True, "renormalising": True, "limit": limit},
    }  # fmt: skip
    found = bare.run("explorer/derive.js", DERIVE, given)
    assert found["values"] == pytest.approx([0.8, 0.2])
    assert found["kept"] == [1, 0]
    assert found["hidden"] == pytest.approx([0.5 + 0.1])


def test_every_code_is_the_same_weight_in_both_languages(bare):
    body = "return [...m.decode(Uint16Array.from({ length: given }, (_, i) => i))].map((w) => m.rounded(w))"
    found = bare.run("shared/codes.js", body, ONE + 1)
    expected = decode(np.arange(ONE + 1, dtype=np.uint16)).tolist()
    assert len(found) == 65_522
    assert found == expected


ORDER = """
  const thumbs = given.thumbs.map((layer) => layer.map((head) => Uint8Array.from(head)))
  const stack = { shape: given.shape, values: given.values, thumbOf: ({ layer, head }) => thumbs[layer][head] }
  return m.ordered(stack, given.by, given.anchor).map(({ layer, head, score }) => [layer, head, score])
"""


@pytest.fixture(scope="module")
def made_up_heads():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 4)).round(1)  # some of them alike
    scores[1, 1] = scores[2, 3]
    return rng.integers(0, 256, (3, 4, 30)), scores


@pytest.mark.parametrize("by", ["place", "entropy", "distance", "similarity"])
def test_heads_in_order(bare, made_up_heads, by):
    thumbs, scores = made_up_heads
    values = {name: scores.tolist() for name in ("entropy", "distance")}
    sent = {"shape": [3, 4], "thumbs": thumbs.tolist(), "values": values, "by": by, "anchor": {"layer": 1, "head": 2}}
    found = bare.run("explorer/order.js", ORDER, sent)
    if by == "place":
        assert found == [[layer, head, None] for layer in range(3) for head in range(4)]
        return
    if by == "similarity":
        vectors = thumbs.reshape(12, 30).astype(float)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        expected = vectors @ vectors[6]
    else:
        expected = scores.ravel()
    order = np.argsort(expected if by == "entropy" else -expected, kind="stable")
    assert [(layer, head) for layer, head, _ in found] == [divmod(int(i), 4) for i in order]
    np.testing.assert_allclose([score for *_, score in found], expected[order], rtol=1e-6)
