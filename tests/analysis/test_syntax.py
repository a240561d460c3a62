"""Syntactic heads, against a recount word by word, and on a head that is made to follow the trees."""

import numpy as np
import pytest

import visformer as vf
from scripts.bundle_trees import FILE, lines
from tests.kinds import model_of
from visformer.analysis import bundled_trees, syntactic_heads
from visformer.analysis.intervals import SEED, wilson
from visformer.errors import VisformerError


def read_by_hand(model, tree, layer, head):
    """Return the word that each word reads most, character by character: each has an equal share of its token."""
    trace = model.trace(tree.text, "我", to="zh")  # the encoder does not know the target: any saves the translation
    pattern = trace[f"encoder.{layer}.self_attn.pattern"].value[head].astype(float)
    spans = model.tokenizer.spans(tree.text)
    token_of = {place: (token, 1 / (b - a)) for token, (a, b) in enumerate(spans) for place in range(a, b)}
    words, start = [], 0
    for word in tree.words:
        start = tree.text.index(word, start)
        words.append([token_of[place] for place in range(start, start + len(word))])
        start += len(word)
    found = []
    for i, queries in enumerate(words):
        weights = [
            -1.0 if j == i else sum(part * share * pattern[q, k] for q, part in queries for k, share in keys)
            for j, keys in enumerate(words)
        ]
        found.append(int(np.argmax(weights)))
    return found


@pytest.mark.full
def test_the_bundled_trees_are_those_of_the_grammar():
    assert FILE.read_text(encoding="utf-8").splitlines() == lines()
    assert all(tree.heads.count(-1) == 1 for tree in bundled_trees())


@pytest.mark.full
def test_scores_are_those_of_a_recount():
    model, trees = vf.load("en-zh"), bundled_trees()[:120]
    table = syntactic_heads(model, trees, to="zh")
    halves = np.random.default_rng(SEED).permutation(len(trees)) % 2
    row = table[table["relation"] == "nsubj"].iloc[0]
    right = n = fixed = 0
    for half, tree in zip(halves, trees, strict=True):
        if half:
            reads = read_by_hand(model, tree, row["layer"], row["head"])
            for i, (head, relation) in enumerate(zip(tree.heads, tree.relations, strict=True)):
                if relation == "nsubj":
                    n, right, fixed = n + 1, right + (reads[i] == head), fixed + (head == i + row["offset"])
    assert (row["n"], row["score"], row["null"]) == (n, right / n, fixed / n)
    assert (row["low"], row["high"]) == wilson(right, n)
    assert (table["n"] >= 30).all() and not table["score"].isna().any()


def test_models_without_places_of_tokens_and_lists_without_halves_are_refused():
    with pytest.raises(VisformerError, match="translator of visformer"):
        syntactic_heads(model_of("mini-gpt"), bundled_trees())
    with pytest.raises(VisformerError, match="at least two"):
        syntactic_heads(vf.load("en-zh"), bundled_trees()[:1])
