"""Benchmarks of batches: many texts through MiniLM, with all patterns recorded. fp32, inference mode."""

from collections.abc import Callable, Iterator
from itertools import cycle, islice

import numpy as np
import torch

import visformer
from benchmarks.measure import Effort, Row, compare, require
from benchmarks.peers.minilm import Encoder
from benchmarks.subjects import WORDS

LENGTHS = range(17, 49)
"""Tokens of each text, 32.5 on average; together they are one batch."""


def rows(effort: Effort) -> Iterator[Row]:
    """Yield all rows: what a batch costs beside transformers' own, and what it saves."""
    theirs = Encoder()
    ours = visformer.wrap(Encoder().model, theirs.tokenizer)
    texts = [" ".join(islice(cycle(WORDS), n - 2)) for n in LENGTHS]  # each word is a token, with [CLS] and [SEP]

    @torch.inference_mode()
    def plain() -> tuple[torch.Tensor, ...]:
        inputs = theirs.tokenizer(texts, return_tensors="pt", padding=True)
        patterns: tuple[torch.Tensor, ...] = theirs.model(**inputs, output_attentions=True).attentions
        return patterns

    def together() -> list[visformer.Trace]:
        return list(ours.trace_many(texts))

    _require_same(plain, together)
    size = f"{len(texts)} x {sum(LENGTHS) / len(LENGTHS):.1f}"
    yield Row("trace_many / transformers, padded batch", size, compare(together, plain, effort), goal=1.25)
    alone = lambda: [ours.trace(text) for text in texts]  # noqa: E731
    yield Row("trace_many / trace, one by one", size, compare(together, alone, effort), goal=0.7)


def _require_same(plain: Callable[[], tuple[torch.Tensor, ...]], together: Callable[[], list[visformer.Trace]]) -> None:
    patterns = torch.stack(plain(), dim=1).numpy()  # (text, layer, head, query, key)
    for pattern, trace, n in zip(patterns, together(), LENGTHS, strict=True):
        same = np.allclose(trace.stack("encoder.self_attn"), pattern[..., :n, :n], atol=1e-5)
        require(same, "both record the same patterns")
