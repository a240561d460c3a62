"""The tasks: what each is trained and probed on, drawn at random, and what a page says of it.

Ids: :mod:`visformer.adapters.learning.training`. No torch here: pages and links read the tasks.
"""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from visformer.errors import N_

Ids = NDArray[np.int64]
Rng = np.random.Generator

START, FIRST = 1, 4
"""The id that begins and ends a text, and the first id of a symbol: before it come the special tokens."""

NOTHING = -100
"""In place of a target that is not scored, as torch's cross_entropy has it."""

ROWS = 32
"""Sequences in a batch."""


@dataclass(frozen=True)
class TaskBatch:
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

    batch: TaskBatch
    cells: Cells


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A way to train on a task; what it does not say is as usual.

    Args:
        label: its name on screen.
        note: what to watch, in place of the task's.
        batch: draws what is trained on; None: as the task does.
        rate: the learning rate.
        has_positions: whether there are positional encodings.
        n_layers: of a decoder-only model.
        causal: whether a decoder-only model has the causal mask.
    """

    label: str
    note: str | None = None
    batch: "Callable[[Rng], TaskBatch] | None" = None
    rate: float = 3e-3
    has_positions: bool = True
    n_layers: int = 2
    causal: bool = True


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """What a task is trained and probed on.

    Args:
        symbols: its vocabulary, besides the special tokens.
        batch: draws one.
        probe: draws the probe.
        length: of the longest sequence that is trained, in tokens.
    """

    symbols: tuple[str, ...]
    batch: Callable[[Rng], TaskBatch]
    probe: Callable[[Rng], Probe]
    length: int


@dataclass(frozen=True, kw_only=True)
class Task:
    """All that is said of a task, in code and on screen: to add one, add its entry to :data:`TASKS`.

    Args:
        title: its name.
        look_for: what to watch while it is learned.
        steps: of the optimizer, after which a training ends by itself.
        variants: ways to train it by name; the first is the default.
        trained: the label of the loss on what it is trained on.
        probed: the label of the loss on the probe, which it is never trained on.
        looks: what heads are scored by, the cells of the probe: name to label.
        best: the look whose best head a page opens with.
        sequences: what it is trained and probed on.
        translates: whether an encoder and a decoder learn it, which read words; otherwise a decoder that reads letters.
        d_ff: the width of the feed-forward layers; 0: there are none.
    """

    title: str
    look_for: str
    steps: int
    variants: Mapping[str, Variant]
    trained: str
    probed: str
    looks: Mapping[str, str]
    best: str
    sequences: Sequences
    translates: bool = False
    d_ff: int = 128


# Random letters that repeat -------------------------------------------------------------------------------------------

PERIODS, FIXED, NEW = (6, 7, 8, 9, 10, 12, 13, 14, 15, 16), 16, 11
_LETTERS = tuple(string.ascii_letters + string.digits)
_LENGTH = 2 * FIXED + 1


def _distinct(rng: Rng, rows: int, n: int, count: int = len(_LETTERS)) -> Ids:
    """Draw n different symbols for each row, (row, n)."""
    return FIRST + rng.permuted(np.broadcast_to(np.arange(count), (rows, count)), axis=1)[:, :n]


def _recurring(rng: Rng, periods: Ids, length: int) -> TaskBatch:
    """Random symbols that recur, each row after its own period; the first time is not scored."""
    letters, place = _distinct(rng, len(periods), int(periods.max())), np.arange(length - 1)
    rows = np.take_along_axis(letters, place[None] % periods[:, None], axis=1)  # (row, token)
    targets = np.where(place[None] < periods[:, None], NOTHING, rows)
    ids = np.concatenate([np.full((len(rows), 1), START), rows[:, :-1]], axis=1)
    return TaskBatch(ids, targets)


def _repeat(rng: Rng, periods: Sequence[int] = PERIODS) -> TaskBatch:
    return _recurring(rng, rng.choice(periods, ROWS), _LENGTH)


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


def _written(letters: Ids, order: Ids) -> TaskBatch:
    """Letters, the sign, the same in this order, (row, n) both, and the end; the first letters are not scored."""
    rows, n = letters.shape
    one = np.ones((rows, 1), dtype=np.int64)
    full = np.concatenate(
        [START * one, letters, _SIGN * one, np.take_along_axis(letters, order, axis=1), START * one], axis=1
    )
    targets = full[:, 1:].copy()
    targets[:, : n + 1] = NOTHING
    return TaskBatch(full[:, :-1], targets)


def _same(letters: Ids) -> Ids:
    return np.broadcast_to(np.arange(letters.shape[1]), letters.shape)


def _reversed(letters: Ids) -> Ids:
    return _same(letters)[:, ::-1]


def _sorted(letters: Ids) -> Ids:
    return np.argsort(letters, axis=1, kind="stable")


def _rewriting(order: Callable[[Ids], Ids]) -> Sequences:
    def batch(rng: Rng) -> TaskBatch:
        lengths = rng.integers(_SHORTEST, _LONGEST + 1, 4)  # a few in a batch, padded to the longest
        parts = [FIRST + rng.integers(0, len(_FEW), (ROWS // 4, int(n))) for n in lengths]
        return _joined([_written(letters, order(letters)) for letters in parts])

    def probe(rng: Rng) -> Probe:
        letters = _distinct(rng, 8, _PROBED, len(_FEW))
        place = order(letters)  # (row, n)
        rows, queries = np.repeat(np.arange(8), _PROBED), np.tile(_PROBED + 1 + np.arange(_PROBED), 8)
        return Probe(_written(letters, place), {"source": (rows, queries, 1 + place.ravel())})

    return Sequences(symbols=(*_FEW, ">"), batch=batch, probe=probe, length=2 * _LONGEST + 3)


def _joined(parts: list[TaskBatch]) -> TaskBatch:
    """Join batches, padded at the end."""

    def join(arrays: list[Ids], fill: int) -> Ids:
        longest = max(a.shape[1] for a in arrays)
        return np.concatenate([np.pad(a, ((0, 0), (0, longest - a.shape[1])), constant_values=fill) for a in arrays])

    source = [part.source for part in parts if part.source is not None]
    return TaskBatch(
        join([part.ids for part in parts], 0),
        join([part.targets for part in parts], NOTHING),
        join(source, 0) if source else None,
    )


# Adding ---------------------------------------------------------------------------------------------------------------


def _digits(numbers: Ids, n: int) -> Ids:
    """Digits from the ones up, (row, n), as ids."""
    return FIRST + numbers[:, None] // 10 ** np.arange(n) % 10


def _sum(rng: Rng, rows: int) -> TaskBatch:
    first, second = rng.integers(0, 100, (2, rows))
    one = np.ones((rows, 1), dtype=np.int64)
    parts = [START * one, _digits(first, 2), (FIRST + 10) * one, _digits(second, 2), (FIRST + 11) * one]
    full = np.concatenate([*parts, _digits(first + second, 3), START * one], axis=1)
    targets = full[:, 1:].copy()
    targets[:, :6] = NOTHING
    return TaskBatch(full[:, :-1], targets)


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


def _translated(source: list[int], target: list[int]) -> TaskBatch:
    ids = np.array([[_TO_CHINESE, *target]])
    return TaskBatch(ids, np.array([[*target, START]]), np.array([[*source, START]]))


def _grammar(rng: Rng) -> TaskBatch:
    shapes = rng.random((ROWS, 3)) < 0.5
    return _joined([_translated(*_sentence(rng, (bool(a), bool(b), bool(c)))[:2]) for a, b, c in shapes])


def _grammar_probe(rng: Rng) -> Probe:
    drawn = [_sentence(rng, (True, True, True)) for _ in range(16)]
    n = len(drawn[0][1])
    rows, queries = np.repeat(np.arange(16), n), np.tile(np.arange(n), 16)
    keys = np.concatenate([np.array(places) for _, _, places in drawn])
    return Probe(_joined([_translated(*each[:2]) for each in drawn]), {"aligned": (rows, queries, keys)})


# The tasks ------------------------------------------------------------------------------------------------------------

_ONE_LAYER = Variant(label=N_("One layer"), n_layers=1)
_NO_POSITIONS = Variant(label=N_("No positions"), has_positions=False)
_HIGH_RATE = Variant(label=N_("Learning rate 0.1"), rate=0.1)
_NO_MASK = Variant(label=N_("No causal mask"), causal=False)
_USUAL = {
    "plain": Variant(label=N_("As usual")),
    "one-layer": _ONE_LAYER,
    "no-positions": _NO_POSITIONS,
    "high-rate": _HIGH_RATE,
    "no-mask": _NO_MASK,
}

TASKS: Mapping[str, Task] = {
    "repeat": Task(
        title=N_("Repeated letters"),
        look_for=N_(
            "Random letters, then the same again. Watch which head comes to look at the letter before (previous "
            "token), which at what came after this letter the last time (induction), and when the loss falls."
        ),
        steps=300,
        variants={
            "drawn": Variant(label=N_("Periods 6 to 16")),
            "fixed": Variant(
                label=N_("Period always 16"),
                batch=lambda rng: _repeat(rng, [FIXED]),
                note=N_(
                    "If the period is always 16, positions are enough: the loss falls as well, and no induction head "
                    "forms. At a new period only a model that had to look for letters is right; this one is worse than "
                    "chance."
                ),
            ),
            "one-layer": replace(
                _ONE_LAYER,
                note=N_(
                    "One layer is not enough: an induction head reads what a head of the layer before it has written "
                    "about the letter before."
                ),
            ),
            "no-positions": replace(
                _NO_POSITIONS,
                note=N_(
                    "Without positions only the causal mask tells the order: no head finds the letter before, and in "
                    "the same number of steps the loss falls much less."
                ),
            ),
            "high-rate": replace(
                _HIGH_RATE,
                note=N_(
                    "A learning rate of 0.1 in place of 0.003: every step goes too far, and the loss does not fall."
                ),
            ),
            "no-mask": replace(
                _NO_MASK,
                note=N_(
                    "Without the causal mask a letter can read those after it: a head looks at the answer itself, the "
                    "loss falls, and nothing is learned that could write what is not there yet."
                ),
            ),
        },
        trained=N_("Loss on the repetition, trained periods"),
        probed=N_("at period 11, never trained"),
        looks={"previous": N_("previous token"), "induction": N_("induction"), "answer": N_("the answer itself")},
        best="induction",
        sequences=Sequences(symbols=_LETTERS, batch=_repeat, probe=_repeat_probe, length=_LENGTH),
        d_ff=0,
    ),
    "copy": Task(
        title=N_("Copying"),
        look_for=N_(
            "The letters after the sign > are those before it, in the same order: watch a head draw a line parallel to "
            "the diagonal."
        ),
        steps=400, variants=_USUAL, trained=N_("Loss on the copy"), probed=N_("on new letters"),
        looks={"source": N_("letter to copy")},
        best="source", sequences=_rewriting(_same),
    ),
    "reverse": Task(
        title=N_("Reversing"),
        look_for=N_(
            "The letters after the sign > are those before it, the last one first: watch a head draw a line across the "
            "diagonal."
        ),
        steps=600, variants=_USUAL, trained=N_("Loss on the reversed letters"), probed=N_("on new letters"),
        looks={"source": N_("letter to write next")},
        best="source", sequences=_rewriting(_reversed),
    ),
    "sort": Task(
        title=N_("Sorting"),
        look_for=N_(
            "After the sign > come the same letters in alphabetical order: watch a head find the next one, wherever it "
            "stands."
        ),
        steps=300, variants=_USUAL, trained=N_("Loss on the sorted letters"), probed=N_("on new letters"),
        looks={"source": N_("letter to write next")},
        best="source", sequences=_rewriting(_sorted),
    ),
    "add": Task(
        title=N_("Adding numbers"),
        look_for=N_(
            "Sums of two numbers of two digits, written from the ones up. Watch the heads look at the two digits of "
            "the same place."
        ),
        steps=600, variants=_USUAL, trained=N_("Loss on the digits of the sum"), probed=N_("on new sums"),
        looks={"source": N_("digits of the same place")},
        best="source",
        sequences=Sequences(
            symbols=(*string.digits, "+", "="), batch=lambda rng: _sum(rng, 2 * ROWS), probe=_sum_probe, length=11
        ),
    ),
    "grammar": Task(
        title=N_("English to Chinese"),
        look_for=N_(
            "Some fifty words, an encoder and a decoder. Watch the cross-attention learn which English word "
            "each Chinese word comes from; the time word changes its place."
        ),
        steps=300,
        variants={name: label for name, label in _USUAL.items() if name not in ("no-mask", "one-layer")},
        trained=N_("Loss on the translation"), probed=N_("on new sentences"),
        looks={"aligned": N_("aligned word")},
        best="aligned", translates=True,
        sequences=Sequences(symbols=_WORDS, batch=_grammar, probe=_grammar_probe, length=12),
    ),
}  # fmt: skip
"""Tasks by their name in links, the first is the default."""
