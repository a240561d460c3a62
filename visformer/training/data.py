"""Batches: what a step learns from. Sentence pairs: read them, encode them, and batch examples of similar length."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from visformer.errors import N_, DataError
from visformer.model.masks import PAD_ID, pad
from visformer.model.tokenizer import EOS, LANGUAGE_TOKEN, Tokenizer
from visformer.training.supplement import read_lines


@dataclass(frozen=True)
class Batch:
    """What a model is given, and what each position of its output should predict; ids are int64, 0 is padding.

    Args:
        inputs: the model's arguments, each (row, token); pictures, floating, in place of source ids.
        targets: (row, position); 0: not part of the loss.
    """

    inputs: tuple[Tensor, ...]
    targets: Tensor

    @property
    def tokens(self) -> int:
        """How many tokens of text it is given, without padding."""
        return sum(int((ids != PAD_ID).sum()) for ids in self.inputs if not ids.is_floating_point())

    def to(self, device: torch.device | str) -> "Batch":
        """Return the batch on a device."""
        return Batch(tuple(ids.to(device) for ids in self.inputs), self.targets.to(device))


BOTH = "both"
SPLIT_SEED = 0
"""Seed for splitting the validation pairs, in training and evaluation alike."""


@dataclass(frozen=True)
class Pair:
    """One sentence in both languages; ``direction`` is "both", "en-zh" or "zh-en"."""

    en: str
    zh: str
    direction: str = BOTH

    def directed(self) -> list[tuple[str, str, str]]:
        """Return (source, target, target language) for each direction of the pair."""
        both = [(self.en, self.zh, "zh"), (self.zh, self.en, "en")]
        return [each for each, name in zip(both, ("en-zh", "zh-en"), strict=True) if self.direction in (BOTH, name)]


def read_pairs(path: str | Path) -> list[Pair]:
    """Read a TSV of English and Chinese; further columns, such as an attribution, are ignored.

    Raises:
        DataError: the file cannot be read or is empty, or a line lacks a sentence; the message names the line.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < 2 or not cells[0] or not cells[1]:
            raise DataError(
                N_("{path}, line {number}: expected an English and a Chinese sentence separated by a tab."),
                path=path,
                number=number,
            )
        pairs.append(Pair(cells[0], cells[1]))
    if not pairs:
        raise DataError(
            N_("{path} is empty: each line needs an English and a Chinese sentence separated by a tab."), path=path
        )
    return pairs


def split_pairs(pairs: Sequence[Pair], *, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Split at random into two halves: one for early stopping, and a test half that no decision is based on."""
    shuffled = random.Random(seed).sample(pairs, len(pairs))
    return shuffled[: len(pairs) // 2], shuffled[len(pairs) // 2 :]


@dataclass(frozen=True)
class TrainingExample:
    """Token ids of a pair in one direction. ``src``: source, </s>; ``tgt``: language token, target, </s>."""

    src: list[int]
    tgt: list[int]


def to_examples(tokenizer: Tokenizer, pairs: Iterable[Pair]) -> list[TrainingExample]:
    """Encode pairs in each of their directions."""
    eos = tokenizer.token_id(EOS)
    return [
        TrainingExample(
            src=[*tokenizer.encode(source), eos],
            tgt=[tokenizer.token_id(LANGUAGE_TOKEN[language]), *tokenizer.encode(target), eos],
        )
        for pair in pairs
        for source, target, language in pair.directed()
    ]


def batches(examples: Sequence[TrainingExample], *, tokens: int, seed: int | None) -> Iterator[tuple[Tensor, Tensor]]:
    """Batch examples of similar length: at most ``tokens`` tokens in a batch, source, target and padding together.

    With a seed, batches are shuffled; without, they are ordered by length.

    Yields:
        (src, tgt) int64 (batch, token), padded with 0.
    """
    rng = random.Random(seed)
    shuffled = list(examples) if seed is None else rng.sample(examples, len(examples))
    order = sorted(shuffled, key=_by_lengths)  # stable: equal lengths stay shuffled
    groups: list[list[TrainingExample]] = [[]]
    width = [0, 0]
    for example in order:
        grown = [max(width[0], len(example.src)), max(width[1], len(example.tgt))]
        if groups[-1] and (len(groups[-1]) + 1) * sum(grown) > tokens:
            groups.append([])
            grown = [len(example.src), len(example.tgt)]
        groups[-1].append(example)
        width = grown
    if seed is not None:
        rng.shuffle(groups)
    for group in filter(None, groups):
        yield pad([e.src for e in group]), pad([e.tgt for e in group])


def pair_batches(
    tokenizer: Tokenizer, pairs: Sequence[Pair], *, tokens: int, seed: int | None = None, bpe_dropout: float = 0.0
) -> list[Batch]:
    """Batch pairs for a translator, in each of their directions; arguments as for :func:`batches`.

    With BPE-dropout, one choice of merges for each sixteenth of them.
    """
    examples: list[TrainingExample] = []
    for i in range(16) if bpe_dropout else ():
        examples += to_examples(tokenizer.with_dropout(bpe_dropout, seed=(seed or 0) * 16 + i), pairs[i::16])
    examples = examples or to_examples(tokenizer, pairs)
    return [Batch((src, tgt[:, :-1]), tgt[:, 1:]) for src, tgt in batches(examples, tokens=tokens, seed=seed)]


def _by_lengths(example: TrainingExample) -> tuple[int, int]:
    """Sort by target length, in twos, then by source length, alternately up and down, for little padding."""
    twos = len(example.tgt) // 2
    return twos, len(example.src) * (-1) ** twos
