"""Heads that point from a word to the word that it depends on (Clark et al. 2019, section 4.2; Voita et al. 2019).

The baseline is the best fixed offset for the relation: in English, most determiners stand one word before their noun.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from visformer.analysis.intervals import SEED, wilson
from visformer.analysis.needs import Floats
from visformer.analysis.word_alignment import word_shares
from visformer.errors import N_, VisformerError

if TYPE_CHECKING:
    import pandas as pd

    from visformer.adapters.own import Translator
    from visformer.trace import Trace

FEWEST = 30
"""Words of a relation in the half that is scored; with fewer, nothing is said of it."""

_COLUMNS = "stack layer head label relation score low high null null_high offset n".split()
_FARTHEST = 5  # words away: the offsets that the baseline may be


@dataclass(frozen=True)
class Tree:
    """A sentence with its dependency tree.

    Args:
        text: the sentence.
        words: its words, in order.
        heads: for each the index of the word that it depends on; -1: the root.
        relations: for each its relation, of Universal Dependencies.
    """

    text: str
    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]


@cache
def bundled_trees() -> tuple[Tree, ...]:
    """Read 400 English sentences of the project's own grammar, with words or rules that those for training never use.

    Returns:
        The sentences with their trees, for :func:`syntactic_heads`.
    """
    lines = files("visformer.analysis").joinpath("trees.jsonl").read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return tuple(Tree(row["text"], *map(tuple, (row["words"], row["heads"], row["relations"]))) for row in rows)


def syntactic_heads(model: "Translator", trees: Sequence[Tree], *, to: str | None = None) -> "pd.DataFrame":
    """Find, for each relation, the head of the encoder that points best from a word to the word it depends on.

    A word reads the word with the greatest weight, itself left out; sub-words are summed over keys and averaged over
    queries. Head and fixed offset are chosen on one half of the sentences and scored on the other. A high score says
    that the head's weights follow the relation in these sentences, not that the model uses it as grammar.

    Args:
        model: a translator of visformer.
        trees: sentences in its source language, such as :func:`bundled_trees`.
        to: target language; None: as for :meth:`visformer.adapters.base.TracedModel.trace`.

    Returns:
        One row for each relation with at least 30 words in the half that is scored, the best first: stack, layer and
        head (from 0), label ("syntactic"), relation, score (share of words whose head is found), low and high (95 %,
        Wilson), null (the same share of the best fixed offset), null_high (end of its interval), offset (of the
        baseline), n (words scored).

    Raises:
        VisformerError: the model is no translator of visformer, or there are fewer than two trees.
    """
    import pandas as pd

    if model.info.kind != "encoder-decoder" or not hasattr(model.tokenizer, "spans"):
        raise VisformerError(N_("Syntactic heads need a translator of visformer, which tells where its tokens stand."))
    if len(trees) < 2:
        halved = N_("Syntactic heads are chosen on one half of the sentences: give at least two with trees.")
        raise VisformerError(halved)
    halves = np.random.default_rng(SEED).permutation(len(trees)) % 2
    hits: dict[str, list[list[NDArray[np.bool_]]]] = {}
    steps: dict[str, list[list[int]]] = {}
    texts = [tree.text for tree in trees]
    traces = model.trace_many(texts, to=to, record=("encoder.*.self_attn.pattern",))
    for half, tree, trace in zip(halves, trees, traces, strict=True):
        reads = _reads(trace, word_shares(model, tree.text, tree.words))  # (layer, head, word)
        for word, (head, relation) in enumerate(zip(tree.heads, tree.relations, strict=True)):
            if head >= 0:
                hits.setdefault(relation, [[], []])[half].append(reads[:, :, word] == head)
                steps.setdefault(relation, [[], []])[half].append(head - word)
    rows = [_row(relation, hits[relation], steps[relation]) for relation in hits if len(hits[relation][1]) >= FEWEST]
    table = pd.DataFrame([row for row in rows if row is not None], columns=_COLUMNS)
    return table.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def _reads(trace: "Trace", shares: Floats) -> NDArray[np.intp]:
    """Return the word that each word reads most, itself left out, (layer, head, word)."""
    patterns = np.stack([layer.value for layer in trace.layers("encoder.self_attn").values()]).astype(np.float64)
    patterns = patterns[..., : shares.shape[1], : shares.shape[1]]
    queries = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9)
    weights = queries @ patterns @ shares.T  # (layer, head, word, word)
    weights[..., np.arange(len(shares)), np.arange(len(shares))] = -1.0
    return np.asarray(weights.argmax(axis=-1))


def _row(relation: str, hits: list[list[NDArray[np.bool_]]], steps: list[list[int]]) -> tuple[object, ...] | None:
    """Choose head and offset on the first half, and score them on the second."""
    if not hits[0]:
        return None
    chosen, scored = (np.stack(half) for half in hits)  # (word, layer, head)
    layer, head = np.unravel_index(int(chosen.sum(axis=0).argmax()), chosen.shape[1:])
    offsets = [offset for offset in range(-_FARTHEST, _FARTHEST + 1) if offset]
    offset = max(offsets, key=lambda one: steps[0].count(one))
    n, right, fixed = len(scored), int(scored[:, layer, head].sum()), steps[1].count(offset)
    _, null_high = wilson(fixed, n)
    score = (right / n, *wilson(right, n), fixed / n, null_high, offset, n)
    return ("encoder.self_attn", int(layer), int(head), "syntactic", relation, *score)
