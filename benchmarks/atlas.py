"""Benchmarks of an atlas: a table of texts through MiniLM into a folder of Parquet files. fp32, inference mode."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import torch

import visformer
from benchmarks.measure import Effort, Row, compare, require
from benchmarks.peers.minilm import Encoder
from benchmarks.subjects import WORDS
from visformer.analysis.atlas import build
from visformer.system import limits

LENGTHS = {10: range(6, 15), 32.5: range(17, 49)}
"""Tokens of the texts, by their mean."""

TEXTS = 1000


def rows(effort: Effort) -> Iterator[Row]:
    """Yield what an atlas costs beside transformers' own forward passes with attentions, in batches of its size."""
    effort = replace(effort, least=min(effort.least, 6), warm_up=min(effort.warm_up, 1))  # a round takes seconds
    theirs = Encoder()
    ours = visformer.wrap(Encoder().model, theirs.tokenizer)
    folder = Path(tempfile.mkdtemp())
    try:
        for mean, lengths in LENGTHS.items():
            n_texts = TEXTS if effort.least > 3 else 64
            texts = [_text(i % 7, n) for i, n in enumerate(islice(cycle(lengths), n_texts))]
            data = folder / "texts.txt"
            data.write_text("\n".join(texts))

            @torch.inference_mode()
            def bare(texts: list[str] = texts) -> float:
                first = 0.0
                for window in _batches(texts, limits.WINDOW):  # those of similar length together, as we run them
                    for batch in _batches(sorted(window, key=len), limits.BATCH):
                        inputs = theirs.tokenizer(batch, return_tensors="pt", padding=True)
                        patterns = theirs.model(**inputs, output_attentions=True).attentions
                        there = inputs["attention_mask"].bool()  # (text, query)
                        first += float(patterns[0][:, 0, :, 0][there].sum())  # the weight on [CLS] of one head
                return first

            def atlas(data: Path = data) -> float:
                shutil.rmtree(folder / "atlas", ignore_errors=True)
                heads = build(ours, str(data), folder / "atlas").heads
                return float(heads["first"][0] * heads["first_rows"][0])

            require(bool(np.isclose(bare(), atlas(), rtol=1e-4)), "both see the same weights")
            size = f"{len(texts)} x {mean}"
            yield Row("atlas / forward passes with attentions", size, compare(atlas, bare, effort), goal=1.5)
    finally:
        shutil.rmtree(folder)


def _batches(texts: list[str], size: int) -> Iterator[list[str]]:
    yield from (texts[i : i + size] for i in range(0, len(texts), size))


def _text(begin: int, n: int) -> str:
    """A text of n tokens: each word is one, with [CLS] and [SEP]."""
    return " ".join(islice(cycle(WORDS), begin, begin + n - 2))
