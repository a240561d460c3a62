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
    """Return the word that each word reads most, from the characters of the tokens."""
    trace = model.trace(tree.text, to="zh")
    pattern = trace[f"encoder.{layer}.self_attn.pattern"].value[head].astype(float)
    spans = model.tokenizer.spans(tree.text)
    owner, start = {}, 0
    for i, word in enumerate(tree.words):
        start = tree.text.index(word, start)
        owner |= {place: i for place in range(start, start + len(word))}
        start += len(word)
    tokens = [
        [j for j, (a, b) in enumerate(spans) if any(owner.get(p) == i for p in range(a, b))]
        for i in range(len(tree.words))
    ]
    found = []
    for i, queries in enumerate(tokens):
        weights = [
            -1.0 if j == i else np.mean([sum(pattern[q, k] for k in keys) for q in queries])
            for j, keys in enumerate(tokens)
        ]
        found.append(int(np.argmax(weights)))
    return found


def test_the_bundled_trees_are_those_of_the_grammar():
    assert FILE.read_text(encoding="utf-8").splitlines() == lines()
    assert all(tree.heads.count(-1) == 1 for tree in bundled_trees())


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
