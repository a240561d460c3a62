"""Random Traces of a small model with repeated words and punctuation, and their records."""

from functools import cache

import numpy as np

from visformer.analysis.atlas.data import Record
from visformer.analysis.atlas.reducer import Reducer
from visformer.trace import Trace

WORDS = ("the", "cat", "sat", ",", ".", "on", "mat")
SHAPE = 2, 3


@cache
def corpus(n=24):
    """Return (record, trace) of n texts, of encoder, decoder and cross-attention; some texts are there twice."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        if i % 7 == 6:
            record, trace = rows[i - 3]
            rows.append((Record("a.txt", i + 1, *record.texts[:2]), trace))
            continue
        source = ("[CLS]", *rng.choice(WORDS, rng.integers(1, 30 if i % 5 == 0 else 8)), "[SEP]")
        target = tuple(rng.choice(WORDS, rng.integers(1, 6)))
        n_src, n_tgt = len(source), len(target)
        encoder = rng.random((*SHAPE, n_src, n_src)) ** 4
        decoder = rng.random((*SHAPE, n_tgt, n_tgt)) ** 4 * np.tri(n_tgt)
        cross = rng.random((*SHAPE, n_tgt, n_src)) ** 4
        encoder, decoder, cross = (each / each.sum(-1, keepdims=True) for each in (encoder, decoder, cross))
        trace = Trace.from_attention(
            source, encoder, target=target, decoder=decoder, cross=cross, following=(*target[1:], "</s>")
        )
        rows.append((Record("a.txt", i + 1, " ".join(source[1:-1]), " ".join(target)), trace))
    return rows


def reduced(numbers):
    """Add the texts of these numbers, in this order."""
    reducer = Reducer()
    reducer.add([(number, *corpus()[number]) for number in numbers])
    return reducer
