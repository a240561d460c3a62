"""What the tasks are trained and probed on, drawn at random. Ids: :mod:`visformer.adapters.learning.symbols`."""

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Rng = np.random.Generator

START, FIRST = 1, 4
"""The id that begins and ends a text, and the first id of a symbol: before it come the special tokens."""

NOTHING = -100
"""In place of a target that is not scored, as torch's cross_entropy has it."""

ROWS = 32
"""Sequences in a batch."""


@dataclass(frozen=True)
class Batch:
    """Sequences, and what each place predicts.

    Args:
        ids: (row, token), what the decoder reads.
        targets: (row, token), what follows; NOTHING where that is not scored.
        source: (row, source token), what the encoder reads; None: there is none. 0 is padding.
    """

    ids: Ids
    targets: Ids
    source: Ids | None = None


Cells = Mapping[str, tuple[Ids, Ids, Ids]]
"""What a head is scored by: name to row, query and key of each weight that counts."""


@dataclass(frozen=True)
class Probe:
    """Sequences that no training sees, and the weights by which heads are scored. The first one is drawn."""

    batch: Batch
    cells: Cells


@dataclass(frozen=True)
class Drawn:
    """The sequences of a task.

    Args:
        symbols: its vocabulary, besides the special tokens.
        batch: draws one, for a variant.
        probe: draws the probe.
        length: of the longest sequence that is trained, in tokens.
    """

    symbols: tuple[str, ...]
    batch: Callable[[Rng, str], Batch]
    probe: Callable[[Rng], Probe]
    length: int


# Random letters that repeat -------------------------------------------------------------------------------------------

PERIODS, FIXED, NEW = (6, 7, 8, 9, 10, 12, 13, 14, 15, 16), 16, 11
_LETTERS = tuple(string.ascii_letters + string.digits)
_LENGTH = 2 * FIXED + 1


def _distinct(rng: Rng, rows: int, n: int, count: int = len(_LETTERS)) -> Ids:
    """Draw n different symbols for each row, (row, n)."""
    return FIRST + rng.permuted(np.broadcast_to(np.arange(count), (rows, count)), axis=1)[:, :n]


def _recurring(rng: Rng, periods: Ids, length: int) -> Batch:
    """Random symbols that recur, each row after its own period; the first time is not scored."""
    letters, place = _distinct(rng, len(periods), int(periods.max())), np.arange(length - 1)
    rows = np.take_along_axis(letters, place[None] % periods[:, None], axis=1)  # (row, token)
    targets = np.where(place[None] < periods[:, None], NOTHING, rows)
    ids = np.concatenate([np.full((len(rows), 1), START), rows[:, :-1]], axis=1)
    return Batch(ids, targets)


def _repeat(rng: Rng, variant: str) -> Batch:
    return _recurring(rng, rng.choice([FIXED] if variant == "fixed" else PERIODS, ROWS), _LENGTH)


def _repeat_probe(rng: Rng) -> Probe:
    batch = _recurring(rng, np.full(8, NEW), 2 * NEW + 3)
    again, every = np.arange(1 + NEW, 1 + 2 * NEW), np.arange(1, batch.ids.shape[1])
    cells = {"previous": (every, every - 1), "induction": (again, again - NEW + 1), "answer": (again, again + 1)}
    return Probe(batch, {name: _cells(8, *places) for name, places in cells.items()})


def _cells(rows: int, queries: Ids, keys: Ids) -> tuple[Ids, Ids, Ids]:
    """The same cells in each of the rows."""
    return np.repeat(np.arange(rows), len(queries)), np.tile(queries, rows), np.tile(keys, rows)


# Copying, reversing, sorting ------------------------------------------------------------------------------------------

_LONGEST, _SHORTEST, _PROBED = 10, 4, 8
_FEW = tuple(string.ascii_lowercase)
_SIGN = FIRST + len(_FEW)


def _written(letters: Ids, order: Ids) -> Batch:
    """Letters, the sign, the same in this order, (row, n) both, and the end; the first letters are not scored."""
    rows, n = letters.shape
    one = np.ones((rows, 1), dtype=np.int64)
    full = np.concatenate(
        [START * one, letters, _SIGN * one, np.take_along_axis(letters, order, axis=1), START * one], axis=1
    )
    targets = full[:, 1:].copy()
    targets[:, : n + 1] = NOTHING
    return Batch(full[:, :-1], targets)


def _same(letters: Ids) -> Ids:
    return np.broadcast_to(np.arange(letters.shape[1]), letters.shape)


def _reversed(letters: Ids) -> Ids:
    return _same(letters)[:, ::-1]


def _sorted(letters: Ids) -> Ids:
    return np.argsort(letters, axis=1, kind="stable")


def _rewriting(order: Callable[[Ids], Ids]) -> Drawn:
    def batch(rng: Rng, variant: str) -> Batch:
        lengths = rng.integers(_SHORTEST, _LONGEST + 1, 4)  # a few in a batch, padded to the longest
        parts = [FIRST + rng.integers(0, len(_FEW), (ROWS // 4, int(n))) for n in lengths]
        return _joined([_written(letters, order(letters)) for letters in parts])

    def probe(rng: Rng) -> Probe:
        letters = _distinct(rng, 8, _PROBED, len(_FEW))
        place = order(letters)  # (row, n)
        rows, queries = np.repeat(np.arange(8), _PROBED), np.tile(_PROBED + 1 + np.arange(_PROBED), 8)
        return Probe(_written(letters, place), {"source": (rows, queries, 1 + place.ravel())})

    return Drawn((*_FEW, ">"), batch, probe, 2 * _LONGEST + 3)


def _joined(parts: list[Batch]) -> Batch:
    """Join batches, padded at the end."""

    def join(arrays: list[Ids], fill: int) -> Ids:
        longest = max(a.shape[1] for a in arrays)
        return np.concatenate([np.pad(a, ((0, 0), (0, longest - a.shape[1])), constant_values=fill) for a in arrays])

    source = [part.source for part in parts if part.source is not None]
    return Batch(
        join([part.ids for part in parts], 0),
        join([part.targets for part in parts], NOTHING),
        join(source, 0) if source else None,
    )


# Adding ---------------------------------------------------------------------------------------------------------------


def _digits(numbers: Ids, n: int) -> Ids:
    """Digits from the ones up, (row, n), as ids."""
    return FIRST + numbers[:, None] // 10 ** np.arange(n) % 10


def _sum(rng: Rng, rows: int) -> Batch:
    first, second = rng.integers(0, 100, (2, rows))
    one = np.ones((rows, 1), dtype=np.int64)
    parts = [START * one, _digits(first, 2), (FIRST + 10) * one, _digits(second, 2), (FIRST + 11) * one]
    full = np.concatenate([*parts, _digits(first + second, 3), START * one], axis=1)
    targets = full[:, 1:].copy()
    targets[:, :6] = NOTHING
    return Batch(full[:, :-1], targets)


def _sum_probe(rng: Rng) -> Probe:
    queries, keys = np.array([6, 6, 7, 7]), np.array([1, 4, 2, 5])
    return Probe(_sum(rng, 64), {"source": _cells(64, queries, keys)})


# A tiny grammar -------------------------------------------------------------------------------------------------------

_NOUNS = dict(cat="猫", dog="狗", bird="鸟", child="孩子", teacher="老师", friend="朋友", horse="马", fish="鱼")
_ADJECTIVES = dict(big="大", small="小", red="红", white="白", old="老", happy="快乐")
_VERBS = dict(sees="看见", likes="喜欢", knows="认识", hears="听见", finds="找到", helps="帮助")
_TIMES = dict(today="今天", now="现在", often="常常")
_ENGLISH = ("the", *_NOUNS, *_ADJECTIVES, *_VERBS, *_TIMES)
_CHINESE = ("那", *_NOUNS.values(), *_ADJECTIVES.values(), *_VERBS.values(), *_TIMES.values())
_WORDS = (*_ENGLISH, *_CHINESE)
_ID = {word: FIRST + i for i, word in enumerate(_WORDS)}
_TO_CHINESE = 3  # the special token that begins a Chinese target


def _sentence(rng: Rng, shape: tuple[bool, bool, bool]) -> tuple[list[int], list[int], list[int]]:
    """Draw source, target, and the place in the source of each target word; ``shape``: adjectives, and a time."""

    def pick(words: Mapping[str, str]) -> tuple[str, str]:
        return [*words.items()][int(rng.integers(len(words)))]

    def phrase(has_adjective: bool) -> tuple[list[str], list[str]]:
        pairs = [("the", "那"), *([pick(_ADJECTIVES)] if has_adjective else []), pick(_NOUNS)]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    (who, who_zh), (verb, verb_zh), (whom, whom_zh) = phrase(shape[0]), pick(_VERBS), phrase(shape[1])
    english, chinese = [*who, verb, *whom], [*who_zh, verb_zh, *whom_zh]
    places = [*range(len(english))]
    if shape[2]:  # last in English, after the subject in Chinese
        time, time_zh = pick(_TIMES)
        places.insert(len(who), len(english))
        english.append(time)
        chinese.insert(len(who_zh), time_zh)
    return [_ID[word] for word in english], [_ID[word] for word in chinese], places


def _translated(source: list[int], target: list[int]) -> Batch:
    ids = np.array([[_TO_CHINESE, *target]])
    return Batch(ids, np.array([[*target, START]]), np.array([[*source, START]]))


def _grammar(rng: Rng, variant: str) -> Batch:
    shapes = rng.random((ROWS, 3)) < 0.5
    return _joined([_translated(*_sentence(rng, (bool(a), bool(b), bool(c)))[:2]) for a, b, c in shapes])


def _grammar_probe(rng: Rng) -> Probe:
    drawn = [_sentence(rng, (True, True, True)) for _ in range(16)]
    n = len(drawn[0][1])
    rows, queries = np.repeat(np.arange(16), n), np.tile(np.arange(n), 16)
    keys = np.concatenate([np.array(places) for _, _, places in drawn])
    return Probe(_joined([_translated(*each[:2]) for each in drawn]), {"aligned": (rows, queries, keys)})


SEQUENCES: Mapping[str, Drawn] = {
    "repeat": Drawn(_LETTERS, _repeat, _repeat_probe, _LENGTH),
    "copy": _rewriting(_same),
    "reverse": _rewriting(_reversed),
    "sort": _rewriting(_sorted),
    "add": Drawn((*string.digits, "+", "="), lambda rng, _: _sum(rng, 2 * ROWS), _sum_probe, 11),
    "grammar": Drawn(_WORDS, _grammar, _grammar_probe, 12),
}
"""By the name of the task."""
