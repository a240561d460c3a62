"""Benchmarks of head effects: zeroing every head, and the estimate by the gradient. fp32, the bundled translator."""

from collections.abc import Iterator
from dataclasses import replace

import torch

import visformer
from benchmarks.measure import Effort, Row, compare

_SENTENCES = [
    ("I went to school.", "我去了学校。"),
    ("She likes the river.", "她喜欢这条河。"),
    ("He is a teacher today.", "他今天是老师。"),
    ("I bought a book.", "我买了一本书。"),
]
PAIRS = _SENTENCES * 8
"""One batch."""

PASSES = 75


def rows(effort: Effort) -> Iterator[Row]:
    """Yield what all heads cost beside as many batched passes, and the gradient beside all heads."""
    effort = replace(effort, least=min(effort.least, 6), warm_up=min(effort.warm_up, 1))  # a round takes seconds
    model = visformer.load("en-zh")
    texts = list(model.forced(*zip(*PAIRS, strict=True)))
    src, tgt = (torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in ids], batch_first=True) for ids in
                ([text.src for text in texts], [text.tgt for text in texts]))  # fmt: skip

    @torch.inference_mode()
    def passes() -> None:
        for _ in range(PASSES):
            model.module(src, tgt).log_softmax(dim=-1)

    zero = lambda: visformer.analysis.head_effects(model, PAIRS)  # noqa: E731
    gradient = lambda: visformer.analysis.head_effects(model, PAIRS, method="gradient")  # noqa: E731
    size = f"{len(PAIRS)} x {src.shape[1]}"
    yield Row(f"72 heads set to 0 / {PASSES} batched passes", size, compare(zero, passes, effort), goal=1.0)
    yield Row("gradient / 72 heads set to 0", size, compare(gradient, zero, effort), goal=0.2)
